// Multiples of one point by many scalars: 32 windows of 8 bits from a table, for setups and for test points.
#pragma once
#include "curve.cuh"
#include "inverse.cuh"

namespace cuzk {

constexpr u32 table_windows = 32, table_digits = 255;

template <class F>
CUZK_INLINE Affine<F> to_affine(const Xyzz<F>& p) {
    if (p.is_infinity()) return Affine<F>::infinity();
    const F z = inverse(p.zzz), zz = square(z * p.zz);
    return {p.x * zz, p.y * z};
}

// table[255 w + d - 1] = d 2^(8 w) base.
template <class F>
CUZK_INLINE void fill_table(const Affine<F>* base, Affine<F>* table) {
    const u32 entry = global_thread();
    if (entry >= table_windows * table_digits) return;
    const u32 window = entry / table_digits, digit = entry % table_digits + 1;
    const Affine<F> p = load(base);
    Xyzz<F> total = Xyzz<F>::infinity();
#pragma unroll 1
    for (u32 bit = 8; bit-- > 0;) {
        total = twice(total);
        if (digit >> bit & 1) total = add(total, p);
    }
#pragma unroll 1
    for (u32 i = 0; i < 8 * window; ++i) total = twice(total);
    store(table + entry, to_affine(total));
}

// points[i] = scalars[i] base.
template <class F>
CUZK_INLINE void multiply_table(const Affine<F>* table, const Fr* scalars, u32 n, Affine<F>* points) {
    for (u32 i = global_thread(); i < n; i += global_threads()) {
        const Fr s = canonical(load(scalars + i));
        Xyzz<F> total = Xyzz<F>::infinity();
#pragma unroll 1
        for (u32 window = 0; window < table_windows; ++window) {
            u32 limb = 0;
#pragma unroll
            for (u32 k = 0; k < 8; ++k) limb = k == window / 4 ? s.v[k] : limb;
            const u32 digit = limb >> (8 * (window % 4)) & 255;
            if (digit) total = add(total, load(table + window * table_digits + digit - 1));
        }
        store(points + i, to_affine(total));
    }
}

}  // namespace cuzk

#define CUZK_FIXED_BASE(name, F)                                                                                      \
    CUZK_KERNEL(128, CUZK_TABLE_BLOCKS)                                                                               \
    name##_fill_table(const cuzk::Affine<F>* base, cuzk::Affine<F>* table) { cuzk::fill_table(base, table); }         \
    CUZK_KERNEL(128, CUZK_TABLE_BLOCKS)                                                                               \
    name##_multiply_table(const cuzk::Affine<F>* table, const cuzk::Fr* scalars, u32 n, cuzk::Affine<F>* points) {    \
        cuzk::multiply_table(table, scalars, n, points);                                                              \
    }
