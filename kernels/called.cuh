// Fp with one body for all products of a kernel: a complete addition inlines fourteen, which overflows the instruction cache.
#pragma once
#include "fp2.cuh"
#include "inverse.cuh"

namespace cuzk {

struct alignas(16) CalledFp {
    Fp value;

    CUZK_INLINE static CalledFp zero() { return {Fp::zero()}; }
    CUZK_INLINE static CalledFp one() { return {Fp::one()}; }
    CUZK_INLINE bool is_zero() const { return value.is_zero(); }
};

CUZK_INLINE bool operator==(const CalledFp& a, const CalledFp& b) { return a.value == b.value; }
CUZK_INLINE CalledFp operator+(const CalledFp& a, const CalledFp& b) { return {a.value + b.value}; }
CUZK_INLINE CalledFp operator-(const CalledFp& a, const CalledFp& b) { return {a.value - b.value}; }
CUZK_INLINE CalledFp negate(const CalledFp& a) { return {negate(a.value)}; }
CUZK_CALL CalledFp operator*(CalledFp a, CalledFp b) { return {a.value * b.value}; }
CUZK_CALL CalledFp square(CalledFp a) { return {square(a.value)}; }
CUZK_INLINE CalledFp inverse(const CalledFp& a) { return {inverse(a.value)}; }

}  // namespace cuzk
