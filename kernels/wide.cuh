// Double-width products of Fp. acc[0..2 pairs) += y (x[0], x[2], ..), carry into acc[2 pairs].
#pragma once
#include "field.cuh"

namespace cuzk {

template <int pairs>
CUZK_INLINE void mad_chain(u32* acc, const u32* x, u32 y);

template <>
CUZK_INLINE void mad_chain<1>(u32* acc, const u32* x, u32 y) {
    asm(
        "mad.lo.cc.u32 %0, %3, %4, %0;"
        "madc.hi.cc.u32 %1, %3, %4, %1;"
        "addc.u32 %2, %2, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2])
        : "r"(x[0]), "r"(y));
}

template <>
CUZK_INLINE void mad_chain<2>(u32* acc, const u32* x, u32 y) {
    asm(
        "mad.lo.cc.u32 %0, %5, %7, %0;"
        "madc.hi.cc.u32 %1, %5, %7, %1;"
        "madc.lo.cc.u32 %2, %6, %7, %2;"
        "madc.hi.cc.u32 %3, %6, %7, %3;"
        "addc.u32 %4, %4, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4])
        : "r"(x[0]), "r"(x[2]), "r"(y));
}

template <>
CUZK_INLINE void mad_chain<3>(u32* acc, const u32* x, u32 y) {
    asm(
        "mad.lo.cc.u32 %0, %7, %10, %0;"
        "madc.hi.cc.u32 %1, %7, %10, %1;"
        "madc.lo.cc.u32 %2, %8, %10, %2;"
        "madc.hi.cc.u32 %3, %8, %10, %3;"
        "madc.lo.cc.u32 %4, %9, %10, %4;"
        "madc.hi.cc.u32 %5, %9, %10, %5;"
        "addc.u32 %6, %6, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6])
        : "r"(x[0]), "r"(x[2]), "r"(x[4]), "r"(y));
}

template <>
CUZK_INLINE void mad_chain<4>(u32* acc, const u32* x, u32 y) {
    asm(
        "mad.lo.cc.u32 %0, %9, %13, %0;"
        "madc.hi.cc.u32 %1, %9, %13, %1;"
        "madc.lo.cc.u32 %2, %10, %13, %2;"
        "madc.hi.cc.u32 %3, %10, %13, %3;"
        "madc.lo.cc.u32 %4, %11, %13, %4;"
        "madc.hi.cc.u32 %5, %11, %13, %5;"
        "madc.lo.cc.u32 %6, %12, %13, %6;"
        "madc.hi.cc.u32 %7, %12, %13, %7;"
        "addc.u32 %8, %8, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8])
        : "r"(x[0]), "r"(x[2]), "r"(x[4]), "r"(x[6]), "r"(y));
}

template <>
CUZK_INLINE void mad_chain<5>(u32* acc, const u32* x, u32 y) {
    asm(
        "mad.lo.cc.u32 %0, %11, %16, %0;"
        "madc.hi.cc.u32 %1, %11, %16, %1;"
        "madc.lo.cc.u32 %2, %12, %16, %2;"
        "madc.hi.cc.u32 %3, %12, %16, %3;"
        "madc.lo.cc.u32 %4, %13, %16, %4;"
        "madc.hi.cc.u32 %5, %13, %16, %5;"
        "madc.lo.cc.u32 %6, %14, %16, %6;"
        "madc.hi.cc.u32 %7, %14, %16, %7;"
        "madc.lo.cc.u32 %8, %15, %16, %8;"
        "madc.hi.cc.u32 %9, %15, %16, %9;"
        "addc.u32 %10, %10, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10])
        : "r"(x[0]), "r"(x[2]), "r"(x[4]), "r"(x[6]), "r"(x[8]), "r"(y));
}

template <>
CUZK_INLINE void mad_chain<6>(u32* acc, const u32* x, u32 y) {
    asm(
        "mad.lo.cc.u32 %0, %13, %19, %0;"
        "madc.hi.cc.u32 %1, %13, %19, %1;"
        "madc.lo.cc.u32 %2, %14, %19, %2;"
        "madc.hi.cc.u32 %3, %14, %19, %3;"
        "madc.lo.cc.u32 %4, %15, %19, %4;"
        "madc.hi.cc.u32 %5, %15, %19, %5;"
        "madc.lo.cc.u32 %6, %16, %19, %6;"
        "madc.hi.cc.u32 %7, %16, %19, %7;"
        "madc.lo.cc.u32 %8, %17, %19, %8;"
        "madc.hi.cc.u32 %9, %17, %19, %9;"
        "madc.lo.cc.u32 %10, %18, %19, %10;"
        "madc.hi.cc.u32 %11, %18, %19, %11;"
        "addc.u32 %12, %12, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11]), "+r"(acc[12])
        : "r"(x[0]), "r"(x[2]), "r"(x[4]), "r"(x[6]), "r"(x[8]), "r"(x[10]), "r"(y));
}

// acc += sum of a[i]^2 2^(64 i); the caller's bound excludes a carry out.
CUZK_INLINE void add_squares(u32* acc, const u32 (&a)[12]) {
    asm(
        "mad.lo.cc.u32 %0, %24, %24, %0;"
        "madc.hi.cc.u32 %1, %24, %24, %1;"
        "madc.lo.cc.u32 %2, %25, %25, %2;"
        "madc.hi.cc.u32 %3, %25, %25, %3;"
        "madc.lo.cc.u32 %4, %26, %26, %4;"
        "madc.hi.cc.u32 %5, %26, %26, %5;"
        "madc.lo.cc.u32 %6, %27, %27, %6;"
        "madc.hi.cc.u32 %7, %27, %27, %7;"
        "madc.lo.cc.u32 %8, %28, %28, %8;"
        "madc.hi.cc.u32 %9, %28, %28, %9;"
        "madc.lo.cc.u32 %10, %29, %29, %10;"
        "madc.hi.cc.u32 %11, %29, %29, %11;"
        "madc.lo.cc.u32 %12, %30, %30, %12;"
        "madc.hi.cc.u32 %13, %30, %30, %13;"
        "madc.lo.cc.u32 %14, %31, %31, %14;"
        "madc.hi.cc.u32 %15, %31, %31, %15;"
        "madc.lo.cc.u32 %16, %32, %32, %16;"
        "madc.hi.cc.u32 %17, %32, %32, %17;"
        "madc.lo.cc.u32 %18, %33, %33, %18;"
        "madc.hi.cc.u32 %19, %33, %33, %19;"
        "madc.lo.cc.u32 %20, %34, %34, %20;"
        "madc.hi.cc.u32 %21, %34, %34, %21;"
        "madc.lo.cc.u32 %22, %35, %35, %22;"
        "madc.hi.u32 %23, %35, %35, %23;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11]), "+r"(acc[12]), "+r"(acc[13]), "+r"(acc[14]), "+r"(acc[15]), "+r"(acc[16]), "+r"(acc[17]), "+r"(acc[18]), "+r"(acc[19]), "+r"(acc[20]), "+r"(acc[21]), "+r"(acc[22]), "+r"(acc[23])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(a[8]), "r"(a[9]), "r"(a[10]), "r"(a[11]));
}

// even += odd << 32.
CUZK_INLINE void join_wide(u32* even, const u32* odd) {
    asm(
        "add.cc.u32 %0, %0, %23;"
        "addc.cc.u32 %1, %1, %24;"
        "addc.cc.u32 %2, %2, %25;"
        "addc.cc.u32 %3, %3, %26;"
        "addc.cc.u32 %4, %4, %27;"
        "addc.cc.u32 %5, %5, %28;"
        "addc.cc.u32 %6, %6, %29;"
        "addc.cc.u32 %7, %7, %30;"
        "addc.cc.u32 %8, %8, %31;"
        "addc.cc.u32 %9, %9, %32;"
        "addc.cc.u32 %10, %10, %33;"
        "addc.cc.u32 %11, %11, %34;"
        "addc.cc.u32 %12, %12, %35;"
        "addc.cc.u32 %13, %13, %36;"
        "addc.cc.u32 %14, %14, %37;"
        "addc.cc.u32 %15, %15, %38;"
        "addc.cc.u32 %16, %16, %39;"
        "addc.cc.u32 %17, %17, %40;"
        "addc.cc.u32 %18, %18, %41;"
        "addc.cc.u32 %19, %19, %42;"
        "addc.cc.u32 %20, %20, %43;"
        "addc.cc.u32 %21, %21, %44;"
        "addc.u32 %22, %22, %45;"
        : "+r"(even[1]), "+r"(even[2]), "+r"(even[3]), "+r"(even[4]), "+r"(even[5]), "+r"(even[6]), "+r"(even[7]), "+r"(even[8]), "+r"(even[9]), "+r"(even[10]), "+r"(even[11]), "+r"(even[12]), "+r"(even[13]), "+r"(even[14]), "+r"(even[15]), "+r"(even[16]), "+r"(even[17]), "+r"(even[18]), "+r"(even[19]), "+r"(even[20]), "+r"(even[21]), "+r"(even[22]), "+r"(even[23])
        : "r"(odd[0]), "r"(odd[1]), "r"(odd[2]), "r"(odd[3]), "r"(odd[4]), "r"(odd[5]), "r"(odd[6]), "r"(odd[7]), "r"(odd[8]), "r"(odd[9]), "r"(odd[10]), "r"(odd[11]), "r"(odd[12]), "r"(odd[13]), "r"(odd[14]), "r"(odd[15]), "r"(odd[16]), "r"(odd[17]), "r"(odd[18]), "r"(odd[19]), "r"(odd[20]), "r"(odd[21]), "r"(odd[22]));
}

// a -= b; returns all ones where that borrows, else 0.
CUZK_INLINE u32 sub_wide_limbs(u32* a, const u32* b) {
    u32 borrow;
    asm(
        "sub.cc.u32 %0, %0, %25;"
        "subc.cc.u32 %1, %1, %26;"
        "subc.cc.u32 %2, %2, %27;"
        "subc.cc.u32 %3, %3, %28;"
        "subc.cc.u32 %4, %4, %29;"
        "subc.cc.u32 %5, %5, %30;"
        "subc.cc.u32 %6, %6, %31;"
        "subc.cc.u32 %7, %7, %32;"
        "subc.cc.u32 %8, %8, %33;"
        "subc.cc.u32 %9, %9, %34;"
        "subc.cc.u32 %10, %10, %35;"
        "subc.cc.u32 %11, %11, %36;"
        "subc.cc.u32 %12, %12, %37;"
        "subc.cc.u32 %13, %13, %38;"
        "subc.cc.u32 %14, %14, %39;"
        "subc.cc.u32 %15, %15, %40;"
        "subc.cc.u32 %16, %16, %41;"
        "subc.cc.u32 %17, %17, %42;"
        "subc.cc.u32 %18, %18, %43;"
        "subc.cc.u32 %19, %19, %44;"
        "subc.cc.u32 %20, %20, %45;"
        "subc.cc.u32 %21, %21, %46;"
        "subc.cc.u32 %22, %22, %47;"
        "subc.cc.u32 %23, %23, %48;"
        "subc.u32 %24, 0, 0;"
        : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3]), "+r"(a[4]), "+r"(a[5]), "+r"(a[6]), "+r"(a[7]), "+r"(a[8]), "+r"(a[9]), "+r"(a[10]), "+r"(a[11]), "+r"(a[12]), "+r"(a[13]), "+r"(a[14]), "+r"(a[15]), "+r"(a[16]), "+r"(a[17]), "+r"(a[18]), "+r"(a[19]), "+r"(a[20]), "+r"(a[21]), "+r"(a[22]), "+r"(a[23]), "=r"(borrow)
        : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]), "r"(b[8]), "r"(b[9]), "r"(b[10]), "r"(b[11]), "r"(b[12]), "r"(b[13]), "r"(b[14]), "r"(b[15]), "r"(b[16]), "r"(b[17]), "r"(b[18]), "r"(b[19]), "r"(b[20]), "r"(b[21]), "r"(b[22]), "r"(b[23]));
    return borrow;
}

// Moves acc two limbs down onto m (p[1], p[3], ..); its limb 1 joins `low` first, which decides m.
CUZK_INLINE void shift_reduce_odd_row(u32 (&acc)[12], u32& low, const u32 (&p)[12], u32 negative_inverse, u32& m) {
    asm(
        "add.cc.u32 %12, %12, %1;"
        "mul.lo.u32 %13, %12, %20;"
        "madc.lo.cc.u32 %0, %14, %13, %2;"
        "madc.hi.cc.u32 %1, %14, %13, %3;"
        "madc.lo.cc.u32 %2, %15, %13, %4;"
        "madc.hi.cc.u32 %3, %15, %13, %5;"
        "madc.lo.cc.u32 %4, %16, %13, %6;"
        "madc.hi.cc.u32 %5, %16, %13, %7;"
        "madc.lo.cc.u32 %6, %17, %13, %8;"
        "madc.hi.cc.u32 %7, %17, %13, %9;"
        "madc.lo.cc.u32 %8, %18, %13, %10;"
        "madc.hi.cc.u32 %9, %18, %13, %11;"
        "madc.lo.cc.u32 %10, %19, %13, 0;"
        "madc.hi.u32 %11, %19, %13, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11]), "+r"(low), "=&r"(m)
        : "r"(p[1]), "r"(p[3]), "r"(p[5]), "r"(p[7]), "r"(p[9]), "r"(p[11]), "r"(negative_inverse));
}

// t = a b, 24 limbs.
CUZK_INLINE void multiply_wide(u32 (&t)[24], const u32 (&a)[12], const u32 (&b)[12]) {
    u32 even[26] = {}, odd[24] = {};
#pragma unroll
    for (int i = 0; i < 12; i += 2) {
        mad_chain<6>(even + i, a, b[i]);
        mad_chain<6>(odd + i, a + 1, b[i]);
        mad_chain<6>(odd + i, a, b[i + 1]);
        mad_chain<6>(even + i + 2, a + 1, b[i + 1]);
    }
    join_wide(even, odd);
#pragma unroll
    for (int i = 0; i < 24; ++i) t[i] = even[i];
}

// Row i of a square: a[i] times the doubled limbs above it, odd distances and even ones. The bit that limb i hands up
// when 2a is formed belongs to a[i]^2, not here.
template <int i>
CUZK_INLINE void square_row(u32* even, u32* odd, const u32* a, u32* twice) {
    twice[i + 1] = a[i + 1] << 1;
    mad_chain<(12 - i) / 2>(odd + 2 * i, twice + i + 1, a[i]);
    if constexpr (i < 10) mad_chain<(11 - i) / 2>(even + 2 * i + 2, twice + i + 2, a[i]);
}

// t = a^2, 24 limbs, for a below 2^383: each cross product is taken once, with a doubled factor.
CUZK_INLINE void square_wide(u32 (&t)[24], const u32 (&a)[12]) {
    u32 even[26] = {}, odd[24] = {}, twice[12];
    twice[0] = a[0] << 1;
#pragma unroll
    for (int i = 1; i < 12; ++i) twice[i] = a[i] << 1 | a[i - 1] >> 31;
    square_row<0>(even, odd, a, twice), square_row<1>(even, odd, a, twice), square_row<2>(even, odd, a, twice);
    square_row<3>(even, odd, a, twice), square_row<4>(even, odd, a, twice), square_row<5>(even, odd, a, twice);
    square_row<6>(even, odd, a, twice), square_row<7>(even, odd, a, twice), square_row<8>(even, odd, a, twice);
    square_row<9>(even, odd, a, twice), square_row<10>(even, odd, a, twice);
    add_squares(even, a);
    join_wide(even, odd);
#pragma unroll
    for (int i = 0; i < 24; ++i) t[i] = even[i];
}

// t / R mod p, below p for t below p R.
CUZK_INLINE Fp reduce_wide(const u32 (&t)[24]) {
    const Fp p = Fp::modulus();
    u32 x[12], y[12] = {}, m;
#pragma unroll
    for (int i = 0; i < 12; ++i) x[i] = t[i];
    m = x[0] * FpParams::negative_inverse;
    mad_odd_row(y, p.v, m);
    mad_row(x, p.v, m, y[11]);
#pragma unroll
    for (int i = 1; i < 12; i += 2) {
        shift_reduce_odd_row(x, y[0], p.v, FpParams::negative_inverse, m);
        mad_row(y, p.v, m, x[11]);
        if (i + 1 < 12) {
            shift_reduce_odd_row(y, x[0], p.v, FpParams::negative_inverse, m);
            mad_row(x, p.v, m, y[11]);
        }
    }
    join_rows(x, y);
    Fp low, high;
#pragma unroll
    for (int i = 0; i < 12; ++i) low.v[i] = x[i], high.v[i] = t[12 + i];
    return low + high;
}

}  // namespace cuzk
