// Short Weierstrass points over F with a = 0: affine (infinity is all zeros) and XYZZ (infinity is zz = 0).
//
// XYZZ holds x = X/ZZ, y = Y/ZZZ, ZZ^3 = ZZZ^2. Every sum is complete: equal, opposite and infinite inputs are handled.
// Source of the formulas: Explicit-Formulas Database, g1p/auto-shortw-xyzz (add-2008-s, madd-2008-s, dbl-2008-s-1).
#pragma once
#include "fp2.cuh"

namespace cuzk {

template <class F>
struct alignas(16) Affine {
    F x, y;

    CUZK_INLINE static Affine infinity() { return {F::zero(), F::zero()}; }
    CUZK_INLINE bool is_infinity() const { return x.is_zero() && y.is_zero(); }
};

template <class F>
struct alignas(16) Xyzz {
    F x, y, zz, zzz;

    CUZK_INLINE static Xyzz infinity() { return {F::zero(), F::zero(), F::zero(), F::zero()}; }
    CUZK_INLINE bool is_infinity() const { return zz.is_zero(); }
};

// An index into the bases with the point's sign in the top bit.
constexpr u32 sign_bit = 0x80000000u;

template <class F>
CUZK_INLINE Affine<F> load_signed(const Affine<F>* bases, u32 entry) {
    Affine<F> p = load(bases + (entry & ~sign_bit));
    if (entry & sign_bit) p.y = negate(p.y);
    return p;
}

template <class F>
CUZK_INLINE Xyzz<F> to_xyzz(const Affine<F>& p) {
    if (p.is_infinity()) return Xyzz<F>::infinity();
    return {p.x, p.y, F::one(), F::one()};
}

template <class F>
CUZK_CALL Xyzz<F> twice(const Xyzz<F>& p) {
    const F u = p.y + p.y, v = square(u), w = u * v, s = p.x * v, xx = square(p.x), m = xx + xx + xx;
    const F x = square(m) - s - s;
    return {x, m * (s - x) - w * p.y, v * p.zz, w * p.zzz};
}

// a + b with both in XYZZ.
template <class F>
CUZK_CALL Xyzz<F> add(const Xyzz<F>& a, const Xyzz<F>& b) {
    if (a.is_infinity()) return b;
    if (b.is_infinity()) return a;
    const F u1 = a.x * b.zz, s1 = a.y * b.zzz;
    const F p = b.x * a.zz - u1, r = b.y * a.zzz - s1;
    if (p.is_zero()) return r.is_zero() ? twice(a) : Xyzz<F>::infinity();
    const F pp = square(p), ppp = p * pp, q = u1 * pp;
    const F x = square(r) - ppp - q - q;
    return {x, r * (q - x) - s1 * ppp, a.zz * b.zz * pp, a.zzz * b.zzz * ppp};
}

// a + b with b affine.
template <class F>
CUZK_CALL Xyzz<F> add(const Xyzz<F>& a, const Affine<F>& b) {
    if (b.is_infinity()) return a;
    if (a.is_infinity()) return to_xyzz(b);
    const F p = b.x * a.zz - a.x, r = b.y * a.zzz - a.y;
    if (p.is_zero()) return r.is_zero() ? twice(a) : Xyzz<F>::infinity();
    const F pp = square(p), ppp = p * pp, q = a.x * pp;
    const F x = square(r) - ppp - q - q;
    return {x, r * (q - x) - a.y * ppp, a.zz * pp, a.zzz * ppp};
}

}  // namespace cuzk
