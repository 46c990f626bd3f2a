// Fp2 = Fp[u] / (u^2 + 1), c0 first; Karatsuba products.
#pragma once
#include "field.cuh"

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

// One body for all products of a kernel: three inlined Fp products a use would take ptxas minutes.
CUZK_CALL Fp2 operator*(const Fp2& a, const Fp2& b) {
    const Fp low = a.c0 * b.c0, high = a.c1 * b.c1;
    const Fp cross = (a.c0 + a.c1) * (b.c0 + b.c1);
    return {low - high, cross - low - high};
}

CUZK_CALL Fp2 square(const Fp2& a) {
    const Fp cross = a.c0 * a.c1;
    return {(a.c0 + a.c1) * (a.c0 - a.c1), cross + cross};
}

}  // namespace cuzk
