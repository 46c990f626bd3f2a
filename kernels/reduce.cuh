// From bucket sums S_b to sum over windows w of 2^(c w) sum_b (b + 1) S_b, as one affine point.
//
// Chunks of 2^k buckets give R_j = sum S_b and A_j = sum (b - j 2^k + 1) S_b by running sums, one thread a chunk; then
// sum_b (b + 1) S_b = sum_j A_j + 2^k sum_i 2^i T_i with T_i the plain sum of the R_j whose bit i of j is set. All of it is
// wide parallel work but the last Horner chain over the windows, whose doublings are shared by the lanes of a warp.
#pragma once
#include "curve.cuh"
#include "inverse.cuh"

namespace cuzk {

template <class F>
CUZK_INLINE void reduce_chunks(const Affine<F>* sums, const u32* lengths, const u32* sum_starts, u32 log_chunk,
                               u32 num_chunks, Xyzz<F>* plain, Xyzz<F>* weighted) {
    const u32 chunk = global_thread();
    if (chunk >= num_chunks) return;
    Xyzz<F> running = Xyzz<F>::infinity(), total = Xyzz<F>::infinity();
#pragma unroll 1
    for (u32 i = 1u << log_chunk; i-- > 0;) {
        const u32 b = (chunk << log_chunk) + i;
        if (lengths[b] != 0) running = add(running, load(sums + sum_starts[b]));
        total = add(total, running);
    }
    store(plain + chunk, running);
    store(weighted + chunk, total);
}

// Sums of one block: slot `bit` of window `w` is T_bit, slot `num_bits` is the sum of the weighted chunks.
template <class F>
CUZK_INLINE void sum_by_bit(const Xyzz<F>* plain, const Xyzz<F>* weighted, u32 log_chunks, u32 first_bit,
                            Xyzz<F>* slots) {
    constexpr u32 threads = 128;
    CUZK_SHARED Quad scratch[threads / 2 * sizeof(Xyzz<F>) / sizeof(Quad)];
    Xyzz<F>* partial = reinterpret_cast<Xyzz<F>*>(scratch);
    const u32 window = blockIdx.x, bit = first_bit + blockIdx.y, lane = threadIdx.x;
    const bool is_bit = bit < log_chunks;
    const Xyzz<F>* from = (is_bit ? plain : weighted) + (static_cast<u64>(window) << log_chunks);
    const u32 count = is_bit ? (1u << log_chunks) / 2 : 1u << log_chunks;
    Xyzz<F> total = Xyzz<F>::infinity();
#pragma unroll 1
    for (u32 i = lane; i < count; i += threads) {
        // Opens a gap for the set bit: the i-th index that has it.
        const u32 j = is_bit ? (i >> bit << (bit + 1)) | 1u << bit | (i & ((1u << bit) - 1)) : i;
        total = add(total, load(from + j));
    }
#pragma unroll 1
    for (u32 half = threads / 2; half > 0; half /= 2) {
        if (lane >= half && lane < 2 * half) store(partial + lane - half, total);
        __syncthreads();
        if (lane < half) total = add(total, load(partial + lane));
        __syncthreads();
    }
    if (lane == 0) store(slots + window * (log_chunks + 1) + bit, total);
}

template <class F>
CUZK_INLINE F from_lane(const F& value, u32 lane) {
    F r;
    const u32* source = reinterpret_cast<const u32*>(&value);
    u32* target = reinterpret_cast<u32*>(&r);
#pragma unroll
    for (u32 i = 0; i < sizeof(F) / 4; ++i) target[i] = __shfl_sync(0xffffffffu, source[i], static_cast<int>(lane));
    return r;
}

template <class F>
CUZK_INLINE F choose(u32 lane, const F& a, const F& b, const F& c, const F& d) {
    return lane == 0 ? a : lane == 1 ? b : lane == 2 ? c : d;
}

// twice(p) by a whole warp that holds p in every lane: three products deep instead of nine.
template <class F>
CUZK_INLINE Xyzz<F> twice_by_warp(const Xyzz<F>& p, u32 lane) {
    const F u = p.y + p.y;
    F own = lane == 0 ? u : p.x;
    own = own * own;
    const F v = from_lane(own, 0), xx = from_lane(own, 1), m = xx + xx + xx;
    own = choose(lane, u, p.x, p.zz, m) * (lane < 3 ? v : m);
    const F w = from_lane(own, 0), s = from_lane(own, 1), zz = from_lane(own, 2), mm = from_lane(own, 3);
    const F x = mm - s - s;
    own = choose(lane, m, w, w, w) * choose(lane, s - x, p.y, p.zzz, p.zzz);
    return {x, from_lane(own, 0) - from_lane(own, 1), zz, from_lane(own, 2)};
}

// One block of 32 * `groups` threads: warp g folds windows g, g + groups, ..; then warp 0 joins all and goes affine.
template <class F>
CUZK_INLINE void fold_windows(const Xyzz<F>* slots, u32 num_windows, u32 window_bits, u32 log_chunk, u32 log_chunks,
                              Xyzz<F>* windows, Affine<F>* result) {
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll 1
    for (u32 window = warp; window < num_windows; window += blockDim.x / 32) {
        const Xyzz<F>* own = slots + window * (log_chunks + 1);
        Xyzz<F> total = Xyzz<F>::infinity();
#pragma unroll 1
        for (u32 bit = log_chunks; bit-- > 0;) {
            total = twice_by_warp(total, lane);
            total = add(total, load(own + bit));
        }
#pragma unroll 1
        for (u32 i = 0; i < log_chunk; ++i) total = twice_by_warp(total, lane);
        total = add(total, load(own + log_chunks));
        if (lane == 0) store(windows + window, total);
    }
    __syncthreads();
    if (warp != 0) return;
    Xyzz<F> total = Xyzz<F>::infinity();
#pragma unroll 1
    for (u32 window = num_windows; window-- > 0;) {
#pragma unroll 1
        for (u32 i = 0; i < window_bits && window + 1 < num_windows; ++i) total = twice_by_warp(total, lane);
        total = add(total, load(windows + window));
    }
    const F z = inverse(total.zzz);
    if (lane != 0) return;
    const F zz = square(z * total.zz);
    store(result, total.is_infinity() ? Affine<F>::infinity() : Affine<F>{total.x * zz, total.y * z});
}

// Plain sum of the buckets' sums, one partial a block.
template <class F>
CUZK_INLINE void sum_buckets(const Affine<F>* sums, const u32* lengths, const u32* sum_starts, u32 num_buckets,
                             Xyzz<F>* plain) {
    Xyzz<F> total = Xyzz<F>::infinity();
#pragma unroll 1
    for (u32 b = global_thread(); b < num_buckets; b += global_threads())
        if (lengths[b] != 0) total = add(total, load(sums + sum_starts[b]));
    store(plain + global_thread(), total);
}

}  // namespace cuzk

#define CUZK_REDUCE(name, F)                                                                                          \
    CUZK_KERNEL(128, CUZK_CHUNK_BLOCKS)                                                                               \
    name##_reduce_chunks(const cuzk::Affine<F>* sums, const u32* lengths, const u32* sum_starts, u32 log_chunk,       \
                         u32 num_chunks, cuzk::Xyzz<F>* plain, cuzk::Xyzz<F>* weighted) {                             \
        cuzk::reduce_chunks(sums, lengths, sum_starts, log_chunk, num_chunks, plain, weighted);                       \
    }                                                                                                                 \
    CUZK_KERNEL(128, CUZK_CHUNK_BLOCKS)                                                                               \
    name##_sum_by_bit(const cuzk::Xyzz<F>* plain, const cuzk::Xyzz<F>* weighted, u32 log_chunks,                      \
                      u32 first_bit, cuzk::Xyzz<F>* slots) {                                                          \
        cuzk::sum_by_bit(plain, weighted, log_chunks, first_bit, slots);                                              \
    }                                                                                                                 \
    CUZK_KERNEL(512, 1)                                                                                               \
    name##_fold_windows(const cuzk::Xyzz<F>* slots, u32 num_windows, u32 window_bits, u32 log_chunk, u32 log_chunks,  \
                        cuzk::Xyzz<F>* windows, cuzk::Affine<F>* result) {                                            \
        cuzk::fold_windows(slots, num_windows, window_bits, log_chunk, log_chunks, windows, result);                  \
    }                                                                                                                 \
    CUZK_KERNEL(128, CUZK_CHUNK_BLOCKS)                                                                               \
    name##_sum_buckets(const cuzk::Affine<F>* sums, const u32* lengths, const u32* sum_starts, u32 num_buckets,       \
                       cuzk::Xyzz<F>* plain) {                                                                        \
        cuzk::sum_buckets(sums, lengths, sum_starts, num_buckets, plain);                                             \
    }
