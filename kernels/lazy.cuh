// Fr elements that may stand r too high (below 2r), as inside a transform: butterflies, and products by prepared constants.
//
// A constant w comes with w' = floor(w 2^256 / r). With q = floor(a w' / 2^256) or one less, a w - q r lies in
// [0, r (1 + a / 2^256 + 2^-28)): below 2r for a below 2r. Three half products, 86 wide and 14 narrow 32-bit ones, take the
// place of Montgomery's 112 wide. Source: Shoup's method (Harvey 2014, "Faster arithmetic for number-theoretic
// transforms", section 2), here with the places below 2^192 of a w' left out.
#pragma once
#include "field.cuh"
#if defined(__CUDA_ARCH__)
#include "wide.cuh"
#endif

namespace cuzk {

CUZK_INLINE Fr twice_modulus() {
    return {{0x00000002, 0xfffffffe, 0xfffcb7fd, 0xa77b4805, 0x1343b00a, 0x6673b010, 0x533afa90, 0xe7db4ea6}};
}

// (a, b) becomes (a + b, a - b), all below 2r.
CUZK_INLINE void butterfly(Fr& a, Fr& b) {
#if defined(__CUDA_ARCH__)
    Fr difference, sum;
    add_masked(difference.v, twice_modulus().v, sub_limbs(difference.v, a.v, b.v));
    u32 too_high;
    asm("add.cc.u32 %0, %9, %17;"
        "addc.cc.u32 %1, %10, %18;"
        "addc.cc.u32 %2, %11, %19;"
        "addc.cc.u32 %3, %12, %20;"
        "addc.cc.u32 %4, %13, %21;"
        "addc.cc.u32 %5, %14, %22;"
        "addc.cc.u32 %6, %15, %23;"
        "addc.cc.u32 %7, %16, %24;"
        "addc.u32 %8, 0, 0;"
        : "=r"(sum.v[0]), "=r"(sum.v[1]), "=r"(sum.v[2]), "=r"(sum.v[3]), "=r"(sum.v[4]), "=r"(sum.v[5]), "=r"(sum.v[6]),
          "=r"(sum.v[7]), "=r"(too_high)
        : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(a.v[4]), "r"(a.v[5]), "r"(a.v[6]), "r"(a.v[7]),
          "r"(b.v[0]), "r"(b.v[1]), "r"(b.v[2]), "r"(b.v[3]), "r"(b.v[4]), "r"(b.v[5]), "r"(b.v[6]), "r"(b.v[7]));
    // The top limb tells, but once in 2^32: a whole comparison would cost as much as the sum.
    const u32 top = twice_modulus().v[7];
    too_high |= sum.v[7] > top;
    if (sum.v[7] == top) {
        Fr less;
        too_high |= ~sub_limbs(less.v, sum.v, twice_modulus().v);
    }
    // one() is 2^256 - 2r, so adding it takes 2r away.
    add_masked(sum.v, Fr::one().v, too_high);
    a = sum, b = difference;
#else
    const Wide<FrParams> x(a), y(b), m(twice_modulus());
    Wide<FrParams> difference(a), sum(a);
    if (sub_wide(difference, x, y)) add_wide(difference, difference, m);
    // a - (2r - b) does not fit 256 bits as a + b might: its borrow says that a + b is below 2r.
    sub_wide(sum, m, y);
    if (sub_wide(sum, x, sum)) add_wide(sum, sum, m);
    a = sum.narrow(), b = difference.narrow();
#endif
}

// The canonical value of one below 2r.
CUZK_INLINE Fr settle(Fr a) {
    subtract_once(a);
    return a;
}

// Plain integers, not Montgomery forms; a product has the form of its other factor.
struct alignas(16) Constant {
    Fr value;
    Fr quotient;  // floor(value 2^256 / r)
};

#if defined(__CUDA_ARCH__)

// acc[0..2 pairs) += y (x[0], x[2], ..), then the low half of one more product where `tail` is 1; carries out are dropped.
template <int pairs, int tail>
CUZK_INLINE void mad_open(u32* acc, const u32* x, u32 y);

template <>
CUZK_INLINE void mad_open<1, 0>(u32* acc, const u32* x, u32 y) {
    asm(
        "mad.lo.cc.u32 %0, %2, %3, %0;"
        "madc.hi.u32 %1, %2, %3, %1;"
        : "+r"(acc[0]), "+r"(acc[1])
        : "r"(x[0]), "r"(y));
}

template <>
CUZK_INLINE void mad_open<2, 0>(u32* acc, const u32* x, u32 y) {
    asm(
        "mad.lo.cc.u32 %0, %4, %6, %0;"
        "madc.hi.cc.u32 %1, %4, %6, %1;"
        "madc.lo.cc.u32 %2, %5, %6, %2;"
        "madc.hi.u32 %3, %5, %6, %3;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3])
        : "r"(x[0]), "r"(x[2]), "r"(y));
}

template <>
CUZK_INLINE void mad_open<3, 0>(u32* acc, const u32* x, u32 y) {
    asm(
        "mad.lo.cc.u32 %0, %6, %9, %0;"
        "madc.hi.cc.u32 %1, %6, %9, %1;"
        "madc.lo.cc.u32 %2, %7, %9, %2;"
        "madc.hi.cc.u32 %3, %7, %9, %3;"
        "madc.lo.cc.u32 %4, %8, %9, %4;"
        "madc.hi.u32 %5, %8, %9, %5;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5])
        : "r"(x[0]), "r"(x[2]), "r"(x[4]), "r"(y));
}

template <>
CUZK_INLINE void mad_open<4, 0>(u32* acc, const u32* x, u32 y) {
    asm(
        "mad.lo.cc.u32 %0, %8, %12, %0;"
        "madc.hi.cc.u32 %1, %8, %12, %1;"
        "madc.lo.cc.u32 %2, %9, %12, %2;"
        "madc.hi.cc.u32 %3, %9, %12, %3;"
        "madc.lo.cc.u32 %4, %10, %12, %4;"
        "madc.hi.cc.u32 %5, %10, %12, %5;"
        "madc.lo.cc.u32 %6, %11, %12, %6;"
        "madc.hi.u32 %7, %11, %12, %7;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7])
        : "r"(x[0]), "r"(x[2]), "r"(x[4]), "r"(x[6]), "r"(y));
}

template <>
CUZK_INLINE void mad_open<0, 1>(u32* acc, const u32* x, u32 y) {
    asm(
        "mad.lo.u32 %0, %1, %2, %0;"
        : "+r"(acc[0])
        : "r"(x[0]), "r"(y));
}

template <>
CUZK_INLINE void mad_open<1, 1>(u32* acc, const u32* x, u32 y) {
    asm(
        "mad.lo.cc.u32 %0, %3, %5, %0;"
        "madc.hi.cc.u32 %1, %3, %5, %1;"
        "madc.lo.u32 %2, %4, %5, %2;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2])
        : "r"(x[0]), "r"(x[2]), "r"(y));
}

template <>
CUZK_INLINE void mad_open<2, 1>(u32* acc, const u32* x, u32 y) {
    asm(
        "mad.lo.cc.u32 %0, %5, %8, %0;"
        "madc.hi.cc.u32 %1, %5, %8, %1;"
        "madc.lo.cc.u32 %2, %6, %8, %2;"
        "madc.hi.cc.u32 %3, %6, %8, %3;"
        "madc.lo.u32 %4, %7, %8, %4;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4])
        : "r"(x[0]), "r"(x[2]), "r"(x[4]), "r"(y));
}

template <>
CUZK_INLINE void mad_open<3, 1>(u32* acc, const u32* x, u32 y) {
    asm(
        "mad.lo.cc.u32 %0, %7, %11, %0;"
        "madc.hi.cc.u32 %1, %7, %11, %1;"
        "madc.lo.cc.u32 %2, %8, %11, %2;"
        "madc.hi.cc.u32 %3, %8, %11, %3;"
        "madc.lo.cc.u32 %4, %9, %11, %4;"
        "madc.hi.cc.u32 %5, %9, %11, %5;"
        "madc.lo.u32 %6, %10, %11, %6;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6])
        : "r"(x[0]), "r"(x[2]), "r"(x[4]), "r"(x[6]), "r"(y));
}

// Row i of the low half of x y: limbs 0..7 of products of even places in `even`, limbs 1..7 of the others in `odd`.
template <int i>
CUZK_INLINE void low_row(u32 (&even)[8], u32 (&odd)[7], const u32 (&x)[8], u32 y) {
    constexpr int e = i + i % 2, o = i + 1 - i % 2;
    if constexpr (e < 8) mad_open<(8 - e) / 2, 0>(even + e, x + (e - i), y);
    if constexpr (o < 8) mad_open<(7 - o) / 2, 1>(odd + o - 1, x + (o - i), y);
}

// Row i of the limbs from 6 up of x y, with limb 6 in even[0] and limb 7 in odd[0]; limb 14 of `odd`'s products carries to 15.
template <int i>
CUZK_INLINE void high_row(u32 (&even)[11], u32 (&odd)[9], const u32 (&x)[8], u32 y) {
    constexpr int first = i < 6 ? 6 : i;  // the least place with a product
    constexpr int e = first % 2 ? first + 1 : first, o = first % 2 ? first : first + 1;
    mad_chain<(i + 9 - e) / 2>(even + e - 6, x + (e - i), y);
    if constexpr (o <= i + 7) mad_chain<(i + 9 - o) / 2>(odd + o - 7, x + (o - i), y);
}

// w a mod r, below 2r for a below 2r.
CUZK_INLINE Fr mul_constant(const Constant& w, const Fr& a) {
    u32 q[8];
    {
        u32 even[11] = {}, odd[9] = {};
        const u32(&y)[8] = w.quotient.v;
        high_row<0>(even, odd, a.v, y[0]), high_row<1>(even, odd, a.v, y[1]), high_row<2>(even, odd, a.v, y[2]);
        high_row<3>(even, odd, a.v, y[3]), high_row<4>(even, odd, a.v, y[4]), high_row<5>(even, odd, a.v, y[5]);
        high_row<6>(even, odd, a.v, y[6]), high_row<7>(even, odd, a.v, y[7]);
        u32 dropped;
        asm("add.cc.u32 %0, %9, %18;"
            "addc.cc.u32 %1, %10, %19;"
            "addc.cc.u32 %2, %11, %20;"
            "addc.cc.u32 %3, %12, %21;"
            "addc.cc.u32 %4, %13, %22;"
            "addc.cc.u32 %5, %14, %23;"
            "addc.cc.u32 %6, %15, %24;"
            "addc.cc.u32 %7, %16, %25;"
            "addc.u32 %8, %17, %26;"
            : "=r"(dropped), "=r"(q[0]), "=r"(q[1]), "=r"(q[2]), "=r"(q[3]), "=r"(q[4]), "=r"(q[5]), "=r"(q[6]),
              "=r"(q[7])
            : "r"(even[1]), "r"(even[2]), "r"(even[3]), "r"(even[4]), "r"(even[5]), "r"(even[6]), "r"(even[7]),
              "r"(even[8]), "r"(even[9]), "r"(odd[0]), "r"(odd[1]), "r"(odd[2]), "r"(odd[3]), "r"(odd[4]),
              "r"(odd[5]), "r"(odd[6]), "r"(odd[7]), "r"(odd[8]));
    }
    // a w + q (2^256 - r), whose limbs 0 and 1 are 2^32 - 1 and 0: q 2^32 joins the odd row, and q leaves at the end.
    u32 even[8] = {}, odd[7];
#pragma unroll
    for (int i = 0; i < 7; ++i) odd[i] = q[i];
    const u32(&y)[8] = w.value.v;
    low_row<0>(even, odd, a.v, y[0]), low_row<1>(even, odd, a.v, y[1]), low_row<2>(even, odd, a.v, y[2]);
    low_row<3>(even, odd, a.v, y[3]), low_row<4>(even, odd, a.v, y[4]), low_row<5>(even, odd, a.v, y[5]);
    low_row<6>(even, odd, a.v, y[6]), low_row<7>(even, odd, a.v, y[7]);
    low_row<2>(even, odd, q, 0x0001a401u), low_row<3>(even, odd, q, 0xac425bfdu), low_row<4>(even, odd, q, 0xf65e27fau);
    low_row<5>(even, odd, q, 0xccc627f7u), low_row<6>(even, odd, q, 0xd66282b7u), low_row<7>(even, odd, q, 0x8c1258acu);
    Fr r;
    asm("add.cc.u32 %0, %0, %7;"
        "addc.cc.u32 %1, %1, %8;"
        "addc.cc.u32 %2, %2, %9;"
        "addc.cc.u32 %3, %3, %10;"
        "addc.cc.u32 %4, %4, %11;"
        "addc.cc.u32 %5, %5, %12;"
        "addc.u32 %6, %6, %13;"
        : "+r"(even[1]), "+r"(even[2]), "+r"(even[3]), "+r"(even[4]), "+r"(even[5]), "+r"(even[6]), "+r"(even[7])
        : "r"(odd[0]), "r"(odd[1]), "r"(odd[2]), "r"(odd[3]), "r"(odd[4]), "r"(odd[5]), "r"(odd[6]));
    sub_limbs(r.v, even, q);
    return r;
}

#else

inline Fr mul_constant(const Constant& w, const Fr& a) {
    using W = Wide<FrParams>;
    const W x(a), y(w.value), z(w.quotient), m(Fr::modulus());
    u64 t[8] = {};
    for (int i = 0; i < 4; ++i) {
        unsigned __int128 carry = 0;
        for (int j = 0; j < 4; ++j) {
            carry += static_cast<unsigned __int128>(x.v[j]) * z.v[i] + t[i + j];
            t[i + j] = static_cast<u64>(carry), carry >>= 64;
        }
        t[i + 4] = static_cast<u64>(carry);
    }
    W low(a);
    for (int k = 0; k < 4; ++k) low.v[k] = 0;
    for (int i = 0; i < 4; ++i) {
        unsigned __int128 carry = 0;
        for (int j = 0; i + j < 4; ++j) {
            carry += static_cast<unsigned __int128>(x.v[j]) * y.v[i] + low.v[i + j];
            low.v[i + j] = static_cast<u64>(carry), carry >>= 64;
        }
        unsigned __int128 borrow = 0;
        for (int j = 0; i + j < 4; ++j) {
            const unsigned __int128 product = static_cast<unsigned __int128>(m.v[j]) * t[4 + i] + borrow;
            borrow = (product >> 64) + (low.v[i + j] < static_cast<u64>(product));
            low.v[i + j] -= static_cast<u64>(product);
        }
    }
    return low.narrow();
}

#endif

}  // namespace cuzk
