// Carry chains in PTX: a 32x32 product enters its row as mad.lo.cc + madc.hi.cc, which ptxas fuses to one IMAD.WIDE.U32.X.
//
// Limbs of even and of odd index accumulate in separate rows, so that both halves of every product are neighbours.
// Each chain is one asm statement: the carry flag never crosses a statement. Rows are regular; 12 limbs serve Fp, 8 Fr.
#pragma once
#include "platform.cuh"

namespace cuzk {

// acc += y * (x[0], x[2], ..), carry into top.
CUZK_INLINE void mad_row(u32 (&acc)[12], const u32 (&x)[12], u32 y, u32& top) {
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
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11]), "+r"(top)
        : "r"(x[0]), "r"(x[2]), "r"(x[4]), "r"(x[6]), "r"(x[8]), "r"(x[10]), "r"(y));
}

// acc += y * (x[1], x[3], ..); the caller's bound excludes a carry out.
CUZK_INLINE void mad_odd_row(u32 (&acc)[12], const u32 (&x)[12], u32 y) {
    asm(
        "mad.lo.cc.u32 %0, %12, %18, %0;"
        "madc.hi.cc.u32 %1, %12, %18, %1;"
        "madc.lo.cc.u32 %2, %13, %18, %2;"
        "madc.hi.cc.u32 %3, %13, %18, %3;"
        "madc.lo.cc.u32 %4, %14, %18, %4;"
        "madc.hi.cc.u32 %5, %14, %18, %5;"
        "madc.lo.cc.u32 %6, %15, %18, %6;"
        "madc.hi.cc.u32 %7, %15, %18, %7;"
        "madc.lo.cc.u32 %8, %16, %18, %8;"
        "madc.hi.cc.u32 %9, %16, %18, %9;"
        "madc.lo.cc.u32 %10, %17, %18, %10;"
        "madc.hi.u32 %11, %17, %18, %11;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11])
        : "r"(x[1]), "r"(x[3]), "r"(x[5]), "r"(x[7]), "r"(x[9]), "r"(x[11]), "r"(y));
}

// Moves acc two limbs down onto y * (x[1], x[3], ..); its limb 1 joins `low`, and that carry goes in first.
CUZK_INLINE void shift_mad_odd_row(u32 (&acc)[12], u32& low, const u32 (&x)[12], u32 y) {
    asm(
        "add.cc.u32 %12, %12, %1;"
        "madc.lo.cc.u32 %0, %13, %19, %2;"
        "madc.hi.cc.u32 %1, %13, %19, %3;"
        "madc.lo.cc.u32 %2, %14, %19, %4;"
        "madc.hi.cc.u32 %3, %14, %19, %5;"
        "madc.lo.cc.u32 %4, %15, %19, %6;"
        "madc.hi.cc.u32 %5, %15, %19, %7;"
        "madc.lo.cc.u32 %6, %16, %19, %8;"
        "madc.hi.cc.u32 %7, %16, %19, %9;"
        "madc.lo.cc.u32 %8, %17, %19, %10;"
        "madc.hi.cc.u32 %9, %17, %19, %11;"
        "madc.lo.cc.u32 %10, %18, %19, 0;"
        "madc.hi.u32 %11, %18, %19, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11]), "+r"(low)
        : "r"(x[1]), "r"(x[3]), "r"(x[5]), "r"(x[7]), "r"(x[9]), "r"(x[11]), "r"(y));
}

// odd += even >> 32.
CUZK_INLINE void join_rows(u32 (&odd)[12], const u32 (&even)[12]) {
    asm(
        "add.cc.u32 %0, %0, %12;"
        "addc.cc.u32 %1, %1, %13;"
        "addc.cc.u32 %2, %2, %14;"
        "addc.cc.u32 %3, %3, %15;"
        "addc.cc.u32 %4, %4, %16;"
        "addc.cc.u32 %5, %5, %17;"
        "addc.cc.u32 %6, %6, %18;"
        "addc.cc.u32 %7, %7, %19;"
        "addc.cc.u32 %8, %8, %20;"
        "addc.cc.u32 %9, %9, %21;"
        "addc.cc.u32 %10, %10, %22;"
        "addc.u32 %11, %11, 0;"
        : "+r"(odd[0]), "+r"(odd[1]), "+r"(odd[2]), "+r"(odd[3]), "+r"(odd[4]), "+r"(odd[5]), "+r"(odd[6]), "+r"(odd[7]), "+r"(odd[8]), "+r"(odd[9]), "+r"(odd[10]), "+r"(odd[11])
        : "r"(even[1]), "r"(even[2]), "r"(even[3]), "r"(even[4]), "r"(even[5]), "r"(even[6]), "r"(even[7]), "r"(even[8]), "r"(even[9]), "r"(even[10]), "r"(even[11]));
}

CUZK_INLINE void add_limbs(u32 (&r)[12], const u32 (&a)[12], const u32 (&b)[12]) {
    asm(
        "add.cc.u32 %0, %12, %24;"
        "addc.cc.u32 %1, %13, %25;"
        "addc.cc.u32 %2, %14, %26;"
        "addc.cc.u32 %3, %15, %27;"
        "addc.cc.u32 %4, %16, %28;"
        "addc.cc.u32 %5, %17, %29;"
        "addc.cc.u32 %6, %18, %30;"
        "addc.cc.u32 %7, %19, %31;"
        "addc.cc.u32 %8, %20, %32;"
        "addc.cc.u32 %9, %21, %33;"
        "addc.cc.u32 %10, %22, %34;"
        "addc.u32 %11, %23, %35;"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]), "=r"(r[8]), "=r"(r[9]), "=r"(r[10]), "=r"(r[11])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(a[8]), "r"(a[9]), "r"(a[10]), "r"(a[11]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]), "r"(b[8]), "r"(b[9]), "r"(b[10]), "r"(b[11]));
}

// r = a - b; returns all ones where that borrows, else 0.
CUZK_INLINE u32 sub_limbs(u32 (&r)[12], const u32 (&a)[12], const u32 (&b)[12]) {
    u32 borrow;
    asm(
        "sub.cc.u32 %0, %13, %25;"
        "subc.cc.u32 %1, %14, %26;"
        "subc.cc.u32 %2, %15, %27;"
        "subc.cc.u32 %3, %16, %28;"
        "subc.cc.u32 %4, %17, %29;"
        "subc.cc.u32 %5, %18, %30;"
        "subc.cc.u32 %6, %19, %31;"
        "subc.cc.u32 %7, %20, %32;"
        "subc.cc.u32 %8, %21, %33;"
        "subc.cc.u32 %9, %22, %34;"
        "subc.cc.u32 %10, %23, %35;"
        "subc.cc.u32 %11, %24, %36;"
        "subc.u32 %12, 0, 0;"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]), "=r"(r[8]), "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(borrow)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(a[8]), "r"(a[9]), "r"(a[10]), "r"(a[11]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]), "r"(b[8]), "r"(b[9]), "r"(b[10]), "r"(b[11]));
    return borrow;
}

// r += m where mask is not 0.
CUZK_INLINE void add_masked(u32 (&r)[12], const u32 (&m)[12], u32 mask) {
    asm(
        "{ .reg .pred q;"
        "setp.ne.u32 q, %24, 0;"
        "@q add.cc.u32 %0, %0, %12;"
        "@q addc.cc.u32 %1, %1, %13;"
        "@q addc.cc.u32 %2, %2, %14;"
        "@q addc.cc.u32 %3, %3, %15;"
        "@q addc.cc.u32 %4, %4, %16;"
        "@q addc.cc.u32 %5, %5, %17;"
        "@q addc.cc.u32 %6, %6, %18;"
        "@q addc.cc.u32 %7, %7, %19;"
        "@q addc.cc.u32 %8, %8, %20;"
        "@q addc.cc.u32 %9, %9, %21;"
        "@q addc.cc.u32 %10, %10, %22;"
        "@q addc.u32 %11, %11, %23; }"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "+r"(r[8]), "+r"(r[9]), "+r"(r[10]), "+r"(r[11])
        : "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3]), "r"(m[4]), "r"(m[5]), "r"(m[6]), "r"(m[7]), "r"(m[8]), "r"(m[9]), "r"(m[10]), "r"(m[11]), "r"(mask));
}

// acc += y * (x[0], x[2], ..), carry into top.
CUZK_INLINE void mad_row(u32 (&acc)[8], const u32 (&x)[8], u32 y, u32& top) {
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
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]), "+r"(top)
        : "r"(x[0]), "r"(x[2]), "r"(x[4]), "r"(x[6]), "r"(y));
}

// acc += y * (x[1], x[3], ..); the caller's bound excludes a carry out.
CUZK_INLINE void mad_odd_row(u32 (&acc)[8], const u32 (&x)[8], u32 y) {
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
        : "r"(x[1]), "r"(x[3]), "r"(x[5]), "r"(x[7]), "r"(y));
}

// Moves acc two limbs down onto y * (x[1], x[3], ..); its limb 1 joins `low`, and that carry goes in first.
CUZK_INLINE void shift_mad_odd_row(u32 (&acc)[8], u32& low, const u32 (&x)[8], u32 y) {
    asm(
        "add.cc.u32 %8, %8, %1;"
        "madc.lo.cc.u32 %0, %9, %13, %2;"
        "madc.hi.cc.u32 %1, %9, %13, %3;"
        "madc.lo.cc.u32 %2, %10, %13, %4;"
        "madc.hi.cc.u32 %3, %10, %13, %5;"
        "madc.lo.cc.u32 %4, %11, %13, %6;"
        "madc.hi.cc.u32 %5, %11, %13, %7;"
        "madc.lo.cc.u32 %6, %12, %13, 0;"
        "madc.hi.u32 %7, %12, %13, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]), "+r"(low)
        : "r"(x[1]), "r"(x[3]), "r"(x[5]), "r"(x[7]), "r"(y));
}

// odd += even >> 32.
CUZK_INLINE void join_rows(u32 (&odd)[8], const u32 (&even)[8]) {
    asm(
        "add.cc.u32 %0, %0, %8;"
        "addc.cc.u32 %1, %1, %9;"
        "addc.cc.u32 %2, %2, %10;"
        "addc.cc.u32 %3, %3, %11;"
        "addc.cc.u32 %4, %4, %12;"
        "addc.cc.u32 %5, %5, %13;"
        "addc.cc.u32 %6, %6, %14;"
        "addc.u32 %7, %7, 0;"
        : "+r"(odd[0]), "+r"(odd[1]), "+r"(odd[2]), "+r"(odd[3]), "+r"(odd[4]), "+r"(odd[5]), "+r"(odd[6]), "+r"(odd[7])
        : "r"(even[1]), "r"(even[2]), "r"(even[3]), "r"(even[4]), "r"(even[5]), "r"(even[6]), "r"(even[7]));
}

CUZK_INLINE void add_limbs(u32 (&r)[8], const u32 (&a)[8], const u32 (&b)[8]) {
    asm(
        "add.cc.u32 %0, %8, %16;"
        "addc.cc.u32 %1, %9, %17;"
        "addc.cc.u32 %2, %10, %18;"
        "addc.cc.u32 %3, %11, %19;"
        "addc.cc.u32 %4, %12, %20;"
        "addc.cc.u32 %5, %13, %21;"
        "addc.cc.u32 %6, %14, %22;"
        "addc.u32 %7, %15, %23;"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
}

// r = a - b; returns all ones where that borrows, else 0.
CUZK_INLINE u32 sub_limbs(u32 (&r)[8], const u32 (&a)[8], const u32 (&b)[8]) {
    u32 borrow;
    asm(
        "sub.cc.u32 %0, %9, %17;"
        "subc.cc.u32 %1, %10, %18;"
        "subc.cc.u32 %2, %11, %19;"
        "subc.cc.u32 %3, %12, %20;"
        "subc.cc.u32 %4, %13, %21;"
        "subc.cc.u32 %5, %14, %22;"
        "subc.cc.u32 %6, %15, %23;"
        "subc.cc.u32 %7, %16, %24;"
        "subc.u32 %8, 0, 0;"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]), "=r"(borrow)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
    return borrow;
}

// r += m where mask is not 0.
CUZK_INLINE void add_masked(u32 (&r)[8], const u32 (&m)[8], u32 mask) {
    asm(
        "{ .reg .pred q;"
        "setp.ne.u32 q, %16, 0;"
        "@q add.cc.u32 %0, %0, %8;"
        "@q addc.cc.u32 %1, %1, %9;"
        "@q addc.cc.u32 %2, %2, %10;"
        "@q addc.cc.u32 %3, %3, %11;"
        "@q addc.cc.u32 %4, %4, %12;"
        "@q addc.cc.u32 %5, %5, %13;"
        "@q addc.cc.u32 %6, %6, %14;"
        "@q addc.u32 %7, %7, %15; }"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7])
        : "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3]), "r"(m[4]), "r"(m[5]), "r"(m[6]), "r"(m[7]), "r"(mask));
}

// Adds m r to the number whose even limbs are `even` and odd limbs (one limb higher) `odd`, m = -even[0] mod 2^32.
//
// r = 2^64 - 2^32 + 1 in its two low limbs, so those cost no product: m joins limb 0, and m 2^32 - m joins limbs 1 and 2.
CUZK_INLINE void reduce_row_r(u32 (&even)[8], u32 (&odd)[8]) {
    u32 m, high;
    asm("sub.cc.u32 %0, 0, %2;"
        "subc.u32 %1, %0, 0;"
        : "=&r"(m), "=r"(high)
        : "r"(even[0]));
    asm("add.cc.u32 %0, %0, %8;"
        "addc.cc.u32 %1, %1, %9;"
        "madc.lo.cc.u32 %2, %11, %10, %2;"
        "madc.hi.cc.u32 %3, %11, %10, %3;"
        "madc.lo.cc.u32 %4, %12, %10, %4;"
        "madc.hi.cc.u32 %5, %12, %10, %5;"
        "madc.lo.cc.u32 %6, %13, %10, %6;"
        "madc.hi.u32 %7, %13, %10, %7;"
        : "+r"(odd[0]), "+r"(odd[1]), "+r"(odd[2]), "+r"(odd[3]), "+r"(odd[4]), "+r"(odd[5]), "+r"(odd[6]), "+r"(odd[7])
        : "r"(even[0]), "r"(high), "r"(m), "r"(0x53bda402u), "r"(0x3339d808u), "r"(0x73eda753u));
    asm("add.cc.u32 %0, %0, %9;"
        "addc.cc.u32 %1, %1, 0;"
        "madc.lo.cc.u32 %2, %10, %9, %2;"
        "madc.hi.cc.u32 %3, %10, %9, %3;"
        "madc.lo.cc.u32 %4, %11, %9, %4;"
        "madc.hi.cc.u32 %5, %11, %9, %5;"
        "madc.lo.cc.u32 %6, %12, %9, %6;"
        "madc.hi.cc.u32 %7, %12, %9, %7;"
        "addc.u32 %8, %8, 0;"
        : "+r"(even[0]), "+r"(even[1]), "+r"(even[2]), "+r"(even[3]), "+r"(even[4]), "+r"(even[5]), "+r"(even[6]),
          "+r"(even[7]), "+r"(odd[7])
        : "r"(m), "r"(0xfffe5bfeu), "r"(0x09a1d805u), "r"(0x299d7d48u));
}

}  // namespace cuzk
