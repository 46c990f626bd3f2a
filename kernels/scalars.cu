// Scalars become signed digits: s or r - s, whichever is below r/2, in windows of c bits with digits in [-2^(c-1), 2^(c-1)].
//
// A digit word is |digit| with the sign of the point in the top bit; 0 is no digit. Folding makes the scalar 254 bits, so
// windows * c >= 255 leaves no carry out of the last window.
#include "curve.cuh"

namespace cuzk {

// Canonical scalar folded below r/2; returns sign_bit where it was negated.
CUZK_INLINE u32 fold(Fr& s) {
    s = canonical(s);
    const Fr negated = negate(s);
    bool below = false;
#pragma unroll
    for (int i = 0; i < 8; ++i) below = negated.v[i] != s.v[i] ? negated.v[i] < s.v[i] : below;
    if (!below) return 0;
    s = negated;
    return sign_bit;
}

}  // namespace cuzk

// Sorts the scalars of one query into none (zero), `ones` (+-1, as signed point indices) and `tail` (point indices).
// counts[0] and counts[1] must be 0 before. `wires` may be null: point i then has scalar first_wire + i.
CUZK_KERNEL(256, 4)
classify_scalars(const cuzk::Fr* scalars, const u32* wires, u32 first_wire, u32 num_points, u32* ones, u32* tail,
                 u32* counts) {
    using namespace cuzk;
    CUZK_SHARED u32 found[2], base[2];
    for (u32 start = blockIdx.x * blockDim.x; start < num_points; start += global_threads()) {
        if (threadIdx.x < 2) found[threadIdx.x] = 0;
        __syncthreads();
        const u32 point = start + threadIdx.x;
        u32 kind = 2, sign = 0, place = 0;
        if (point < num_points) {
            Fr s = load(scalars + (wires ? wires[point] : first_wire + point));
            sign = fold(s);
            u32 high = 0;
#pragma unroll
            for (int i = 1; i < 8; ++i) high |= s.v[i];
            kind = high || s.v[0] > 1 ? 1 : s.v[0] == 1 ? 0 : 2;
        }
        if (kind < 2) place = atomicAdd(&found[kind], 1u);
        __syncthreads();
        if (threadIdx.x < 2) base[threadIdx.x] = atomicAdd(&counts[threadIdx.x], found[threadIdx.x]);
        __syncthreads();
        if (kind == 0) ones[base[0] + place] = point | sign;
        if (kind == 1) tail[base[1] + place] = point;
        __syncthreads();
    }
}

// Digits of windows [first_window, first_window + num_windows), window-major; scalar i is that of point points[i].
// `points` may be null (the identity).
CUZK_KERNEL(256, 4)
scalar_digits(const cuzk::Fr* scalars, const u32* points, const u32* wires, u32 first_wire, u32 count, u32 window_bits,
              u32 first_window, u32 num_windows, u32* digits) {
    using namespace cuzk;
    for (u32 i = global_thread(); i < count; i += global_threads()) {
        const u32 point = points ? points[i] : i;
        Fr s = load(scalars + (wires ? wires[point] : first_wire + point));
        const u32 sign = fold(s);
        u32 carry = 0;
        const u32 half = 1u << (window_bits - 1), mask = (half << 1) - 1;
        u64 window = s.v[0] | static_cast<u64>(s.v[1]) << 32;
        u32 have = 64, next = 2;
#pragma unroll 1
        for (u32 w = 0; w < first_window + num_windows; ++w) {
            if (have < window_bits) {
                u32 limb = 0;
#pragma unroll
                for (u32 k = 2; k < 8; ++k) limb = k == next ? s.v[k] : limb;
                window |= static_cast<u64>(limb) << have;
                have += 32, ++next;
            }
            u32 digit = (static_cast<u32>(window) & mask) + carry, flip = 0;
            window >>= window_bits, have -= window_bits;
            carry = digit > half;
            if (carry) digit = (half << 1) - digit, flip = sign_bit;
            if (w >= first_window)
                digits[static_cast<u64>(w - first_window) * count + i] = digit ? digit | (sign ^ flip) : 0;
        }
    }
}
