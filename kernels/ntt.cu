// NTT of length 2^n in passes of at most 2^9 rows through shared memory: natural order in and out, no bit reversal pass.
//
// N = N1 N2 N3 (up to four factors). Pass p transforms digit i_p for all columns at once and multiplies by a table of
// inter-pass twiddles, into which powers of a coset shift and 1/N are folded; the last pass writes every column to its
// natural place, K = k1 + N1 k2 + N1 N2 k3. Inside a pass: radix-4 steps (one of radix 2 at the end), decimation in
// frequency; four elements a thread at a time leave registers for 24 warps an SM, which radix 8 does not. Values stay below
// 2r until the last pass. Source of the decomposition: Bailey 1990 (the four-step method), applied twice.
#include "lazy.cuh"

namespace cuzk {

CUZK_INLINE Fr power(Fr base, u64 exponent) {
    Fr result = Fr::one();
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1) result = result * base;
        base = base * base;
    }
    return result;
}

// DFT of 4: output q is left in x[bit-reversed q]; w4 is a primitive 4th root.
CUZK_INLINE void dft4(Fr (&x)[4], const Constant& w4) {
    butterfly(x[0], x[2]), butterfly(x[1], x[3]);
    x[3] = mul_constant(w4, x[3]);
    butterfly(x[0], x[1]), butterfly(x[2], x[3]);
}

constexpr u32 log_tile = 11, far = 1 << log_tile;  // elements a block holds; four columns of 2^9 rows fill whole lines

// Shared memory holds an element's halves in two planes `far` apart, so that neighbours load 16 bytes without conflicts.
CUZK_INLINE void put(Quad* place, const Fr& value) {
    place[0] = {value.v[0], value.v[1], value.v[2], value.v[3]};
    place[far] = {value.v[4], value.v[5], value.v[6], value.v[7]};
}

CUZK_INLINE Fr get(const Quad* place) {
    const Quad low = place[0], high = place[far];
    return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}

// Where column g begins. In the last pass the digits k1, k2, k3 of g stand most significant first in the address.
CUZK_INLINE u64 source_of(u32 g, u32 is_last, u32 log_rows, u32 log_columns, u32 log_stride, u32 log_first,
                          u32 log_second) {
    if (!is_last)
        return (static_cast<u64>(g >> log_stride) << (log_stride + log_rows)) + (g & ((1u << log_stride) - 1));
    const u32 k1 = g & ((1u << log_first) - 1), rest = g >> log_first;
    const u32 k2 = rest & ((1u << log_second) - 1), k3 = rest >> log_second;
    const u32 log_third = log_columns - log_first - log_second;
    return ((((static_cast<u64>(k1) << log_second) + k2) << log_third) + k3) << log_rows;
}

}  // namespace cuzk

using namespace cuzk;

// One pass over 2^log_rows rows of 2^log_columns columns. A block has up to 2^log_tile elements in shared memory: all rows
// of some columns, no more columns than threads; these take four elements at a time. `from` and `to` may be the same but in a last pass of several; batch y is
// batch_stride elements further on. Rows of a column lie 2^log_stride apart; the last pass reads rows side by side and
// has log_first, log_second = log N1, log N2 of the digits before it. roots: 2^log_rows powers of the pass's root; w4: a
// quarter of the way through them. row_factors: null, or a factor for each row, applied on the way in (row_factors_last = 0) or out (1). twiddles: null, or
// 2^(log_rows + log_stride) inter-pass factors in Montgomery form.
CUZK_KERNEL(256, 3)
ntt_pass(const Fr* from, Fr* to, u64 batch_stride, u32 log_rows, u32 log_columns, u32 log_stride, u32 log_first,
         u32 log_second, u32 is_last, const Constant* roots, const Constant w4, const Constant* row_factors,
         u32 row_factors_last, const Fr* twiddles) {
    CUZK_DYNAMIC_SHARED(plane);
    from += blockIdx.y * batch_stride, to += blockIdx.y * batch_stride;
    const u32 rows = 1u << log_rows;
    const u32 log_wide = log_tile - log_rows < log_columns ? log_tile - log_rows : log_columns, wide = 1u << log_wide;
    const u32 quads = rows / 4 << log_wide;  // butterflies of radix 4 in this block
    // Threads are a multiple of the columns, so each stays with one.
    const u32 column = threadIdx.x & (wide - 1), g = (blockIdx.x << log_wide) + column;
    const Fr* source = from + source_of(g, is_last, log_rows, log_columns, log_stride, log_first, log_second);
    const u32 log_step = is_last ? 0 : log_stride;

    u32 done = 0;  // log of the radices so far
#pragma unroll 1
    for (; log_rows - done >= 2; done += 2) {
        const u32 span = log_rows - done - 2;  // log distance between the inputs of a butterfly
        if (done != 0) __syncthreads();
#pragma unroll 1
        for (u32 item = threadIdx.x; item < quads; item += blockDim.x) {
            // `low` decides the twiddles and varies slowest, so that the warps that have none skip their products.
            const u32 group = item >> log_wide;
            const u32 low = group >> done, row = ((group & ((1u << done) - 1)) << (span + 2)) + low;
            const u32 apart = wide << span;
            Quad* place = plane + (row << log_wide) + column;
            Fr x[4];
            if (done == 0) {
#pragma unroll
                for (u32 i = 0; i < 4; ++i)
                    x[i] = load(source + (static_cast<u64>(row + (i << span)) << log_step));
                if (row_factors && !row_factors_last) {
#pragma unroll
                    for (u32 i = 0; i < 4; ++i) x[i] = mul_constant(load(row_factors + row + (i << span)), x[i]);
                }
            } else {
#pragma unroll
                for (u32 i = 0; i < 4; ++i) x[i] = get(place + i * apart);
            }
            dft4(x, w4);
            if (low != 0) {
                x[2] = mul_constant(load(roots + (low << done)), x[2]);
                x[1] = mul_constant(load(roots + (2 * low << done)), x[1]);
                x[3] = mul_constant(load(roots + (3 * low << done)), x[3]);
            }
            put(place, x[0]), put(place + apart, x[2]), put(place + 2 * apart, x[1]), put(place + 3 * apart, x[3]);
        }
    }
    const u32 left = log_rows - done;
    if (left != 0) {
        // The last step of an odd power of 2: butterflies among neighbours. Two rows have no step before it.
        if (done != 0) __syncthreads();
#pragma unroll 1
        for (u32 item = threadIdx.x; item < rows / 2 << log_wide; item += blockDim.x) {
            Quad* place = plane + (item >> log_wide << (log_wide + 1)) + column;
            Fr a, b;
            if (done == 0) {
                a = load(source), b = load(source + (1ull << log_step));
                if (row_factors && !row_factors_last) {
                    a = mul_constant(load(row_factors), a), b = mul_constant(load(row_factors + 1), b);
                }
            } else {
                a = get(place), b = get(place + wide);
            }
            butterfly(a, b);
            put(place, a), put(place + wide, b);
        }
    }
    __syncthreads();
    // Frequency k = q1 + 4 q2 + .. lies where the digits q1 (most significant), q2, .. of the steps say.
    const u32 log_apart = is_last ? log_columns : log_stride;  // log distance of the rows' places in `to`
    to += is_last ? g : (static_cast<u64>(g >> log_stride) << (log_stride + log_rows)) + (g & ((1u << log_stride) - 1));
    if (twiddles) twiddles += g & ((1u << log_stride) - 1);
#pragma unroll 1
    for (u32 k = threadIdx.x >> log_wide; k < rows; k += blockDim.x >> log_wide) {
        const u32 reversed = reverse_bits(k) >> (32 - log_rows), pairs = reversed >> left;
        const u32 place = ((pairs & 0x55555555u) << 1 | (pairs >> 1 & 0x55555555u)) << left | (reversed & left);
        Fr value = get(plane + (place << log_wide) + column);
        if (is_last) {
            if (row_factors && row_factors_last) value = mul_constant(load(row_factors + k), value);
            value = settle(value);
        } else if (twiddles) {
            value = mul_lazy(load(twiddles + (static_cast<u64>(k) << log_stride)), value);
        }
        store(to + (static_cast<u64>(k) << log_apart), value);
    }
}

// table[(k << log_columns) + j] = root^(k j) column_base^j row_base^k scale, for k < rows: tables of every kind.
CUZK_KERNEL(256, 2)
power_table(const Fr* parameters, u32 rows, u32 log_columns, Fr* table) {
    constexpr u32 run = 32;
    const Fr root = load(parameters), column_base = load(parameters + 1), row_base = load(parameters + 2);
    const Fr scale = load(parameters + 3);
    const u64 columns = 1ull << log_columns, stretch = columns < 32 * run ? columns : 32 * run;
    const u64 thread = blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x, lane = thread % 32;
    const u64 start = thread / 32 * stretch;
    if (start >= rows * columns || lane >= stretch) return;
    const u64 k = start >> log_columns, j = (start & (columns - 1)) + lane;
    const Fr base = power(root, k) * column_base;
    Fr value = power(base, j) * power(row_base, k) * scale;
    const Fr step = power(base, 32);
    for (u64 i = lane; i < stretch; i += 32) {
        store(table + start + i, value);
        value = value * step;
    }
}

// h = (a b - c) factor, elementwise.
CUZK_KERNEL(256, 4)
quotient(const Fr* a, const Fr* b, const Fr* c, const Fr* factor, u32 n, Fr* h) {
    const Fr f = load(factor);
    for (u32 i = global_thread(); i < n; i += global_threads())
        store(h + i, (load(a + i) * load(b + i) - load(c + i)) * f);
}

// Throughput of the field: every thread makes `count` dependent products of two chains.
CUZK_KERNEL(256, 2)
fr_product_chain(Fr* values, u32 count) {
    Fr a = load(values + 2 * global_thread()), b = load(values + 2 * global_thread() + 1);
#pragma unroll 4
    for (u32 i = 0; i < count; ++i) a = a * b, b = b * a;
    store(values + 2 * global_thread(), a), store(values + 2 * global_thread() + 1, b);
}
