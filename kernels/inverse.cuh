// 1/a in Fp by 30 batches of 30 constant-time division steps; 1/0 is 0.
//
// Source: Bernstein and Yang, "Fast constant-time gcd computation and modular inversion" (2019), with the half-delta
// variant: 381-bit inputs need at most (45907*381 + 26313)/19929 = 878 steps; 900 are made. Numbers are 13 signed limbs
// of 30 bits, so that a 2x2 matrix of 30 steps (entries at most 2^30) times a limb fits 64 signed bits.
#pragma once
#include "fp2.cuh"

namespace cuzk {

namespace gcd {

constexpr int limbs = 13;
constexpr i32 mask = (1 << 30) - 1;

struct Number {
    i32 v[limbs];
};

struct Matrix {
    i32 u, v, q, r;
};

CUZK_INLINE Number from_limbs(const u32 (&a)[12]) {
    Number n;
#pragma unroll
    for (int i = 0; i < limbs; ++i) {
        const int bit = 30 * i, word = bit / 32, shift = bit % 32;
        u64 window = a[word];
        if (word + 1 < 12) window |= static_cast<u64>(a[word + 1]) << 32;
        n.v[i] = static_cast<i32>(static_cast<u32>(window >> shift)) & mask;
    }
    return n;
}

CUZK_INLINE void to_limbs(u32 (&a)[12], const Number& n) {
#pragma unroll
    for (int i = 0; i < 12; ++i) {
        const int bit = 32 * i, word = bit / 30, shift = bit % 30;
        u64 window = static_cast<u32>(n.v[word]);
        window |= static_cast<u64>(static_cast<u32>(n.v[word + 1])) << 30;
        if (word + 2 < limbs) window |= static_cast<u64>(static_cast<u32>(n.v[word + 2])) << 60;
        a[i] = static_cast<u32>(window >> shift);
    }
}

// Thirty division steps on the low limbs; zeta = -(delta + 1/2).
CUZK_INLINE i32 divide_steps(i32 zeta, u32 f, u32 g, Matrix& t) {
    u32 u = 1, v = 0, q = 0, r = 1;
#pragma unroll 2
    for (int i = 0; i < 30; ++i) {
        u32 swap = static_cast<u32>(zeta >> 31);
        const u32 odd = 0u - (g & 1);
        g += ((f ^ swap) - swap) & odd;
        q += ((u ^ swap) - swap) & odd;
        r += ((v ^ swap) - swap) & odd;
        swap &= odd;
        zeta = static_cast<i32>(static_cast<u32>(zeta) ^ swap) - 1;
        f += g & swap, u += q & swap, v += r & swap;
        g >>= 1, u <<= 1, v <<= 1;
    }
    t = {static_cast<i32>(u), static_cast<i32>(v), static_cast<i32>(q), static_cast<i32>(r)};
    return zeta;
}

// (f, g) = t (f, g) / 2^30, exact.
CUZK_INLINE void apply(const Matrix& t, Number& f, Number& g) {
    i64 cf = (static_cast<i64>(t.u) * f.v[0] + static_cast<i64>(t.v) * g.v[0]) >> 30;
    i64 cg = (static_cast<i64>(t.q) * f.v[0] + static_cast<i64>(t.r) * g.v[0]) >> 30;
#pragma unroll
    for (int i = 1; i < limbs; ++i) {
        cf += static_cast<i64>(t.u) * f.v[i] + static_cast<i64>(t.v) * g.v[i];
        cg += static_cast<i64>(t.q) * f.v[i] + static_cast<i64>(t.r) * g.v[i];
        f.v[i - 1] = static_cast<i32>(cf) & mask, cf >>= 30;
        g.v[i - 1] = static_cast<i32>(cg) & mask, cg >>= 30;
    }
    f.v[limbs - 1] = static_cast<i32>(cf), g.v[limbs - 1] = static_cast<i32>(cg);
}

// (d, e) = t (d, e) / 2^30 mod p, both kept in (-2p, p).
CUZK_INLINE void apply_mod(const Matrix& t, Number& d, Number& e, const Number& p) {
    constexpr u32 inverse = 0x00030003u;  // p^-1 mod 2^30
    const i32 sign_d = d.v[limbs - 1] >> 31, sign_e = e.v[limbs - 1] >> 31;
    i32 md = (t.u & sign_d) + (t.v & sign_e), me = (t.q & sign_d) + (t.r & sign_e);
    i64 cd = static_cast<i64>(t.u) * d.v[0] + static_cast<i64>(t.v) * e.v[0];
    i64 ce = static_cast<i64>(t.q) * d.v[0] + static_cast<i64>(t.r) * e.v[0];
    md -= static_cast<i32>((inverse * static_cast<u32>(cd) + static_cast<u32>(md)) & mask);
    me -= static_cast<i32>((inverse * static_cast<u32>(ce) + static_cast<u32>(me)) & mask);
    cd = (cd + static_cast<i64>(p.v[0]) * md) >> 30;
    ce = (ce + static_cast<i64>(p.v[0]) * me) >> 30;
#pragma unroll
    for (int i = 1; i < limbs; ++i) {
        cd += static_cast<i64>(t.u) * d.v[i] + static_cast<i64>(t.v) * e.v[i] + static_cast<i64>(p.v[i]) * md;
        ce += static_cast<i64>(t.q) * d.v[i] + static_cast<i64>(t.r) * e.v[i] + static_cast<i64>(p.v[i]) * me;
        d.v[i - 1] = static_cast<i32>(cd) & mask, cd >>= 30;
        e.v[i - 1] = static_cast<i32>(ce) & mask, ce >>= 30;
    }
    d.v[limbs - 1] = static_cast<i32>(cd), e.v[limbs - 1] = static_cast<i32>(ce);
}

// Adds p where `when` is all ones, flips the sign where `flip` is all ones, and carries.
CUZK_INLINE void adjust(Number& n, const Number& p, i32 when, i32 flip) {
    i32 carry = 0;
#pragma unroll
    for (int i = 0; i < limbs; ++i) {
        const i32 t = (((n.v[i] + (p.v[i] & when)) ^ flip) - flip) + carry;
        n.v[i] = i + 1 < limbs ? t & mask : t;
        carry = t >> 30;
    }
}

}  // namespace gcd

CUZK_CALL Fp inverse(const Fp& a) {
    using namespace gcd;
    const Number p = from_limbs(Fp::modulus().v);
    Number f = p, g = from_limbs(a.v), d = {}, e = {};
    e.v[0] = 1;
    i32 zeta = -1;
#pragma unroll 1
    for (int batch = 0; batch < 30; ++batch) {
        Matrix t;
        const u32 f_low = static_cast<u32>(f.v[0]) | static_cast<u32>(f.v[1]) << 30;
        const u32 g_low = static_cast<u32>(g.v[0]) | static_cast<u32>(g.v[1]) << 30;
        zeta = divide_steps(zeta, f_low, g_low, t);
        apply_mod(t, d, e, p);
        apply(t, f, g);
    }
    // f is now 1 or -1 and d = f / a, in (-2p, p).
    adjust(d, p, d.v[limbs - 1] >> 31, f.v[limbs - 1] >> 31);
    adjust(d, p, d.v[limbs - 1] >> 31, 0);
    Fp plain;
    to_limbs(plain.v, d);
    // `a` stood for a' R, so `plain` is a'^-1 R^-1: two products with R^2 bring it to a'^-1 R.
    constexpr u32 square_limbs[12] = {0x1c341746, 0xf4df1f34, 0x09d104f1, 0x0a76e6a6, 0x4c95b6d5, 0x8de5476c,
                                      0x939d83c0, 0x67eb88a9, 0xb519952d, 0x9a793e85, 0x92cae3aa, 0x11988fe5};
    Fp r_square;
#pragma unroll
    for (int i = 0; i < 12; ++i) r_square.v[i] = square_limbs[i];
    return plain * r_square * r_square;
}

// 1/(c0 + c1 u) = (c0 - c1 u) / (c0^2 + c1^2).
CUZK_INLINE Fp2 inverse(const Fp2& a) {
    const Fp norm = inverse(a.c0 * a.c0 + a.c1 * a.c1);
    return {a.c0 * norm, negate(a.c1 * norm)};
}

}  // namespace cuzk
