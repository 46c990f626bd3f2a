// A CUDA block on the host: every thread is a fiber that runs until a barrier, so kernels run unchanged under g++.
//
// Blocks run one after another (static storage stands for shared memory); warps are 32 neighbours. A kernel that never
// synchronises runs as plain calls.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

struct Index3 {
    unsigned x = 0, y = 0, z = 0;
};
inline Index3 threadIdx, blockIdx, blockDim, gridDim;

namespace cuzk {
struct Quad;
}

namespace emulation {

// Sixty-four KiB, the most that a kernel here asks for.
inline cuzk::Quad* dynamic_shared() {
    alignas(16) static unsigned char bytes[64 * 1024];
    return reinterpret_cast<cuzk::Quad*>(bytes);
}

constexpr std::size_t stack_bytes = 256 * 1024;

struct Barrier {
    unsigned arrived = 0, expected = 0, generation = 0;
    void release_if_complete() {
        if (expected != 0 && arrived == expected) arrived = 0, ++generation;
    }
};

struct Block {
    std::vector<ucontext_t> contexts;
    std::vector<jmp_buf> places;
    std::vector<char> state;  // 0 not started, 1 suspended, 2 done
    std::vector<Barrier> warps;
    std::vector<unsigned> slots;
    Barrier all;
    jmp_buf scheduler;
    unsigned current = 0;
    const std::function<void()>* body = nullptr;
};
inline Block* block = nullptr;

inline void yield() {
    const unsigned self = block->current;
    if (_setjmp(block->places[self]) == 0) _longjmp(block->scheduler, 1);
    threadIdx.x = self;
}

inline void wait(Barrier& barrier) {
    const unsigned generation = barrier.generation;
    ++barrier.arrived;
    barrier.release_if_complete();
    while (barrier.generation == generation) yield();
}

inline void fiber_main() {
    (*block->body)();
    const unsigned self = block->current;
    block->state[self] = 2;
    --block->all.expected, block->all.release_if_complete();
    Barrier& warp = block->warps[self / 32];
    --warp.expected, warp.release_if_complete();
    _longjmp(block->scheduler, 1);
}

inline void run_block(const std::function<void()>& body) {
    static std::unique_ptr<char[]> stacks(new char[1024 * stack_bytes]);  // untouched pages cost nothing
    const unsigned n = blockDim.x;
    Block own;
    own.contexts.resize(n), own.places = std::vector<jmp_buf>(n), own.state.assign(n, 0);
    own.warps.resize((n + 31) / 32), own.slots.assign(n, 0);
    own.all.expected = n, own.body = &body;
    for (unsigned t = 0; t < n; ++t) ++own.warps[t / 32].expected;
    block = &own;
    // volatile: they live across the jumps.
    volatile bool busy = true;
    volatile unsigned t = 0;
    while (busy) {
        busy = false;
        for (t = 0; t < n; t = t + 1) {
            if (own.state[t] == 2) continue;
            busy = true;
            own.current = t, threadIdx.x = t;
            if (_setjmp(own.scheduler) != 0) continue;
            if (own.state[t] == 1) _longjmp(own.places[t], 1);
            own.state[t] = 1;
            ucontext_t& context = own.contexts[t];
            getcontext(&context);
            context.uc_stack.ss_sp = stacks.get() + t * stack_bytes;
            context.uc_stack.ss_size = stack_bytes;
            context.uc_link = nullptr;
            makecontext(&context, fiber_main, 0);
            setcontext(&context);
        }
    }
    block = nullptr;
}

template <class... A, std::size_t... I>
void call(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
    kernel(*static_cast<A*>(arguments[I])...);
}

template <class... A>
void launch(void (*kernel)(A...), bool cooperative, unsigned grid_x, unsigned grid_y, unsigned threads,
            void** arguments) {
    gridDim = {grid_x, grid_y, 1}, blockDim = {threads, 1, 1};
    const std::function<void()> body = [=] { call(kernel, arguments, std::index_sequence_for<A...>()); };
    for (unsigned y = 0; y < grid_y; ++y)
        for (unsigned x = 0; x < grid_x; ++x) {
            blockIdx = {x, y, 0};
            if (cooperative) {
                run_block(body);
            } else {
                for (unsigned t = 0; t < threads; ++t) threadIdx.x = t, body();
            }
        }
}

template <class Choose>
unsigned exchange(unsigned value, Choose choose) {
    const unsigned self = block->current, lane = self % 32, first = self - lane;
    block->slots[self] = value;
    wait(block->warps[self / 32]);
    const unsigned result = block->slots[first + choose(lane)];
    wait(block->warps[self / 32]);
    return result;
}

}  // namespace emulation

inline void __syncthreads() { emulation::wait(emulation::block->all); }
inline unsigned __shfl_sync(unsigned, unsigned value, int from) {
    return emulation::exchange(value, [=](unsigned) { return static_cast<unsigned>(from) % 32; });
}
inline unsigned __shfl_up_sync(unsigned, unsigned value, unsigned step) {
    return emulation::exchange(value, [=](unsigned lane) { return lane >= step ? lane - step : lane; });
}
inline unsigned __shfl_down_sync(unsigned, unsigned value, unsigned step) {
    return emulation::exchange(value, [=](unsigned lane) { return lane + step < 32 ? lane + step : lane; });
}
inline int __clz(int value) { return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value)); }
inline unsigned atomicAdd(unsigned* at, unsigned value) { return std::exchange(*at, *at + value); }
inline unsigned atomicMax(unsigned* at, unsigned value) { return std::exchange(*at, std::max(*at, value)); }
