// Fp2 = Fp[u] / (u^2 + 1), c0 first; Karatsuba products.
#pragma once
#include "field.cuh"
#if defined(__CUDA_ARCH__)
#include "wide.cuh"
#endif

namespace cuzk {

struct alignas(16) Fp2 {
    Fp c0, c1;

    CUZK_INLINE static Fp2 zero() { return {Fp::zero(), Fp::zero()}; }
    CUZK_INLINE static Fp2 one() { return {Fp::one(), Fp::zero()}; }
    CUZK_INLINE bool is_zero() const { return c0.is_zero() && c1.is_zero(); }
};

CUZK_INLINE bool operator==(const Fp2& a, const Fp2& b) { return a.c0 == b.c0 && a.c1 == b.c1; }
CUZK_INLINE Fp2 operator+(const Fp2& a, const Fp2& b) { return {a.c0 + b.c0, a.c1 + b.c1}; }
CUZK_INLINE Fp2 operator-(const Fp2& a, const Fp2& b) { return {a.c0 - b.c0, a.c1 - b.c1}; }
CUZK_INLINE Fp2 negate(const Fp2& a) { return {negate(a.c0), negate(a.c1)}; }

#if defined(__CUDA_ARCH__)

CUZK_INLINE Fp square(const Fp& a) {
    u32 t[24];
    square_wide(t, a.v);
    return reduce_wide(t);
}

// One body for all products of a kernel: inlined they would take ptxas minutes. Two reductions instead of three:
// Karatsuba on double-width values, c0 lifted by p R where it is negative.
CUZK_CALL Fp2 operator*(Fp2 a, Fp2 b) {
    u32 low[24], high[24], cross[24];
    multiply_wide(low, a.c0.v, b.c0.v);
    multiply_wide(high, a.c1.v, b.c1.v);
    const Fp left = add_unreduced(a.c0, a.c1), right = add_unreduced(b.c0, b.c1);
    multiply_wide(cross, left.v, right.v);
    sub_wide_limbs(cross, low);
    sub_wide_limbs(cross, high);
    const u32 borrow = sub_wide_limbs(low, high);
    Fp top;
#pragma unroll
    for (int i = 0; i < 12; ++i) top.v[i] = low[12 + i];
    add_masked(top.v, Fp::modulus().v, borrow);
#pragma unroll
    for (int i = 0; i < 12; ++i) low[12 + i] = top.v[i];
    return {reduce_wide(low), reduce_wide(cross)};
}

#else

CUZK_CALL Fp2 operator*(Fp2 a, Fp2 b) {
    const Fp low = a.c0 * b.c0, high = a.c1 * b.c1;
    const Fp cross = (a.c0 + a.c1) * (b.c0 + b.c1);
    return {low - high, cross - low - high};
}

#endif

CUZK_CALL Fp2 square(Fp2 a) {
    const Fp half = a.c0 * a.c1, c0 = add_unreduced(a.c0, a.c1) * (a.c0 - a.c1);
    return {c0, half + half};
}

}  // namespace cuzk
