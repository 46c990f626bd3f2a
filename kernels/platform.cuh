// The same source is CUDA C++ (NVRTC or nvcc) and host C++17: nothing here or above it includes a system header.
//
// A host build includes an emulation of threadIdx, __syncthreads, atomics, shuffles and dynamic shared memory first.
#pragma once

using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define CUZK_INLINE __device__ __forceinline__
#define CUZK_CALL __device__ __noinline__
#define CUZK_KERNEL(threads, blocks_per_sm) extern "C" __global__ void __launch_bounds__(threads, blocks_per_sm)
#define CUZK_SHARED __shared__
#define CUZK_DYNAMIC_SHARED(name) extern __shared__ cuzk::Quad name[]
#else
#define CUZK_INLINE inline
#define CUZK_CALL inline
#define CUZK_KERNEL(threads, blocks_per_sm) extern "C" void
#define CUZK_SHARED static
#define CUZK_DYNAMIC_SHARED(name) cuzk::Quad* name = emulation::dynamic_shared()
#endif

namespace cuzk {

// Sixteen bytes, the widest load of one thread.
struct alignas(16) Quad {
    u32 x, y, z, w;
};

// Reads a T whose size is a multiple of 16 bytes, 16 bytes at a time.
template <class T>
CUZK_INLINE T load(const T* from) {
    T value;
#if defined(__CUDA_ARCH__)
    const Quad* source = reinterpret_cast<const Quad*>(from);
    Quad* target = reinterpret_cast<Quad*>(&value);
#pragma unroll
    for (u32 i = 0; i < sizeof(T) / 16; ++i) target[i] = source[i];
#else
    __builtin_memcpy(&value, from, sizeof(T));
#endif
    return value;
}

template <class T>
CUZK_INLINE void store(T* to, const T& value) {
#if defined(__CUDA_ARCH__)
    const Quad* source = reinterpret_cast<const Quad*>(&value);
    Quad* target = reinterpret_cast<Quad*>(to);
#pragma unroll
    for (u32 i = 0; i < sizeof(T) / 16; ++i) target[i] = source[i];
#else
    __builtin_memcpy(to, &value, sizeof(T));
#endif
}

CUZK_INLINE u32 reverse_bits(u32 value) {
#if defined(__CUDA_ARCH__)
    return __brev(value);
#else
    u32 reversed = 0;
    for (int bit = 0; bit < 32; ++bit) reversed |= (value >> bit & 1) << (31 - bit);
    return reversed;
#endif
}

CUZK_INLINE u32 global_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }
CUZK_INLINE u32 global_threads() { return gridDim.x * blockDim.x; }

}  // namespace cuzk
