// From bucket sums S_b to the few points per window whose weighted sum is sum_b (b + 1) S_b.
//
// Chunks of 2^k buckets give R_j = sum S_b and A_j = sum (b - j 2^k + 1) S_b by running sums, one thread a chunk; then
// sum_b (b + 1) S_b = sum_j A_j + 2^k sum_i 2^i T_i with T_i the plain sum of the R_j whose bit i of j is set. What is left,
// one chain of 255 doublings, is no work for a GPU: the host does it in a fraction of a millisecond.
#pragma once
#include "curve.cuh"

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
    CUZK_KERNEL(128, CUZK_CHUNK_BLOCKS)                                                                               \
    name##_sum_buckets(const cuzk::Affine<F>* sums, const u32* lengths, const u32* sum_starts, u32 num_buckets,       \
                       cuzk::Xyzz<F>* plain) {                                                                        \
        cuzk::sum_buckets(sums, lengths, sum_starts, num_buckets, plain);                                             \
    }
