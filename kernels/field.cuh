// Prime field elements are canonical (below the modulus) Montgomery limbs; every function keeps them so.
//
// Device code multiplies 32-bit limbs in carry rows (rows.cuh); host code computes the same values from 64-bit limbs.
// Source of the method: Montgomery 1985; operand scanning with separate even and odd rows.
#pragma once
#include "platform.cuh"
#if defined(__CUDA_ARCH__)
#include "rows.cuh"
#endif

namespace cuzk {

struct FpParams {
    static constexpr int limbs = 12;
    static constexpr u32 negative_inverse = 0xfffcfffdu;  // -p^-1 mod 2^32
    static constexpr u64 negative_inverse_64 = 0x89f3fffcfffcfffdull;
    CUZK_INLINE static constexpr u32 modulus(int i) {
        constexpr u32 m[12] = {0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe, 0xf6b0f624, 0x6730d2a0,
                               0xf38512bf, 0x64774b84, 0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea};
        return m[i];
    }
    CUZK_INLINE static constexpr u32 one(int i) {  // 2^384 mod p
        constexpr u32 m[12] = {0x0002fffd, 0x76090000, 0xc40c0002, 0xebf4000b, 0x53c758ba, 0x5f489857,
                               0x70525745, 0x77ce5853, 0xa256ec6d, 0x5c071a97, 0xfa80e493, 0x15f65ec3};
        return m[i];
    }
};

struct FrParams {
    static constexpr int limbs = 8;
    static constexpr u32 negative_inverse = 0xffffffffu;
    static constexpr u64 negative_inverse_64 = 0xfffffffeffffffffull;
    CUZK_INLINE static constexpr u32 modulus(int i) {
        constexpr u32 m[8] = {0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402,
                              0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753};
        return m[i];
    }
    CUZK_INLINE static constexpr u32 one(int i) {  // 2^256 mod r
        constexpr u32 m[8] = {0xfffffffe, 0x00000001, 0x00034802, 0x5884b7fa,
                              0xecbc4ff5, 0x998c4fef, 0xacc5056f, 0x1824b159};
        return m[i];
    }
};

template <class P>
struct alignas(16) Field {
    using Params = P;
    static constexpr int limbs = P::limbs;
    u32 v[P::limbs];

    CUZK_INLINE static Field zero() {
        Field r;
#pragma unroll
        for (int i = 0; i < limbs; ++i) r.v[i] = 0;
        return r;
    }
    CUZK_INLINE static Field one() {
        Field r;
#pragma unroll
        for (int i = 0; i < limbs; ++i) r.v[i] = P::one(i);
        return r;
    }
    CUZK_INLINE static Field modulus() {
        Field r;
#pragma unroll
        for (int i = 0; i < limbs; ++i) r.v[i] = P::modulus(i);
        return r;
    }
    CUZK_INLINE bool is_zero() const {
        u32 any = 0;
#pragma unroll
        for (int i = 0; i < limbs; ++i) any |= v[i];
        return any == 0;
    }
};

using Fp = Field<FpParams>;
using Fr = Field<FrParams>;

template <class P>
CUZK_INLINE bool operator==(const Field<P>& a, const Field<P>& b) {
    u32 differ = 0;
#pragma unroll
    for (int i = 0; i < P::limbs; ++i) differ |= a.v[i] ^ b.v[i];
    return differ == 0;
}

#if defined(__CUDA_ARCH__)

// a - m where a >= m, else a.
template <class P>
CUZK_INLINE void subtract_once(Field<P>& a) {
    Field<P> less;
    const u32 borrow = sub_limbs(less.v, a.v, Field<P>::modulus().v);
#pragma unroll
    for (int i = 0; i < P::limbs; ++i) a.v[i] = borrow ? a.v[i] : less.v[i];
}

template <class P>
CUZK_INLINE Field<P> operator+(const Field<P>& a, const Field<P>& b) {
    Field<P> r;
    add_limbs(r.v, a.v, b.v);
    subtract_once(r);
    return r;
}

template <class P>
CUZK_INLINE Field<P> operator-(const Field<P>& a, const Field<P>& b) {
    Field<P> r;
    const u32 borrow = sub_limbs(r.v, a.v, b.v);
    add_masked(r.v, Field<P>::modulus().v, borrow);
    return r;
}

CUZK_INLINE void reduce_row(Fp*, u32 (&even)[12], u32 (&odd)[12]) {
    const u32 m = even[0] * FpParams::negative_inverse;
    const Fp p = Fp::modulus();
    mad_odd_row(odd, p.v, m);
    mad_row(even, p.v, m, odd[11]);
}

CUZK_INLINE void reduce_row(Fr*, u32 (&even)[8], u32 (&odd)[8]) { reduce_row_r(even, odd); }

// a b / R + (0 or modulus): below twice the modulus for any b and a + modulus < R; a Fr factor a must be canonical then.
template <class P>
CUZK_INLINE Field<P> mul_lazy(const Field<P>& a, const Field<P>& b) {
    constexpr int n = P::limbs;
    u32 x[n], y[n];
#pragma unroll
    for (int j = 0; j < n; j += 2) {
        const u64 low = static_cast<u64>(a.v[j]) * b.v[0], high = static_cast<u64>(a.v[j + 1]) * b.v[0];
        x[j] = static_cast<u32>(low), x[j + 1] = static_cast<u32>(low >> 32);
        y[j] = static_cast<u32>(high), y[j + 1] = static_cast<u32>(high >> 32);
    }
    reduce_row(static_cast<Field<P>*>(nullptr), x, y);
#pragma unroll
    for (int i = 1; i < n; i += 2) {
        shift_mad_odd_row(x, y[0], a.v, b.v[i]);
        mad_row(y, a.v, b.v[i], x[n - 1]);
        reduce_row(static_cast<Field<P>*>(nullptr), y, x);
        if (i + 1 < n) {
            shift_mad_odd_row(y, x[0], a.v, b.v[i + 1]);
            mad_row(x, a.v, b.v[i + 1], y[n - 1]);
            reduce_row(static_cast<Field<P>*>(nullptr), x, y);
        }
    }
    // n is even, so the last row reduced was y and the odd row is x.
    join_rows(x, y);
    Field<P> r;
#pragma unroll
    for (int i = 0; i < n; ++i) r.v[i] = x[i];
    return r;
}

template <class P>
CUZK_INLINE Field<P> operator*(const Field<P>& a, const Field<P>& b) {
    Field<P> r = mul_lazy(a, b);
    subtract_once(r);
    return r;
}

#else

template <class P>
struct Wide {
    static constexpr int n = P::limbs / 2;
    u64 v[n];
    explicit Wide(const Field<P>& a) {
        for (int i = 0; i < n; ++i) v[i] = a.v[2 * i] | static_cast<u64>(a.v[2 * i + 1]) << 32;
    }
    Field<P> narrow() const {
        Field<P> r;
        for (int i = 0; i < n; ++i) r.v[2 * i] = static_cast<u32>(v[i]), r.v[2 * i + 1] = static_cast<u32>(v[i] >> 32);
        return r;
    }
};

// r = a - b; returns the borrow, 0 or 1.
template <class P>
inline u64 sub_wide(Wide<P>& r, const Wide<P>& a, const Wide<P>& b) {
    unsigned __int128 borrow = 0;
    for (int i = 0; i < Wide<P>::n; ++i) {
        const unsigned __int128 t = static_cast<unsigned __int128>(a.v[i]) - b.v[i] - borrow;
        r.v[i] = static_cast<u64>(t);
        borrow = (t >> 64) & 1;
    }
    return static_cast<u64>(borrow);
}

template <class P>
inline u64 add_wide(Wide<P>& r, const Wide<P>& a, const Wide<P>& b) {
    unsigned __int128 carry = 0;
    for (int i = 0; i < Wide<P>::n; ++i) {
        carry += static_cast<unsigned __int128>(a.v[i]) + b.v[i];
        r.v[i] = static_cast<u64>(carry);
        carry >>= 64;
    }
    return static_cast<u64>(carry);
}

template <class P>
inline void subtract_once(Field<P>& a) {
    const Wide<P> x(a), m(Field<P>::modulus());
    Wide<P> less(a);
    if (!sub_wide(less, x, m)) a = less.narrow();
}

template <class P>
inline Field<P> operator+(const Field<P>& a, const Field<P>& b) {
    Wide<P> r(a);
    add_wide(r, r, Wide<P>(b));
    Field<P> sum = r.narrow();
    subtract_once(sum);
    return sum;
}

template <class P>
inline Field<P> operator-(const Field<P>& a, const Field<P>& b) {
    Wide<P> r(a);
    if (sub_wide(r, r, Wide<P>(b))) add_wide(r, r, Wide<P>(Field<P>::modulus()));
    return r.narrow();
}

template <class P>
inline Field<P> mul_lazy(const Field<P>& a, const Field<P>& b) {
    constexpr int n = Wide<P>::n;
    const Wide<P> x(a), y(b), m(Field<P>::modulus());
    u64 t[n + 2] = {};
    for (int i = 0; i < n; ++i) {
        unsigned __int128 carry = 0;
        for (int j = 0; j < n; ++j) {
            carry += static_cast<unsigned __int128>(x.v[j]) * y.v[i] + t[j];
            t[j] = static_cast<u64>(carry), carry >>= 64;
        }
        carry += t[n];
        t[n] = static_cast<u64>(carry), t[n + 1] = static_cast<u64>(carry >> 64);
        const u64 k = t[0] * P::negative_inverse_64;
        carry = (static_cast<unsigned __int128>(k) * m.v[0] + t[0]) >> 64;
        for (int j = 1; j < n; ++j) {
            carry += static_cast<unsigned __int128>(k) * m.v[j] + t[j];
            t[j - 1] = static_cast<u64>(carry), carry >>= 64;
        }
        carry += t[n];
        t[n - 1] = static_cast<u64>(carry);
        t[n] = t[n + 1] + static_cast<u64>(carry >> 64);
    }
    Wide<P> r(a);
    for (int i = 0; i < n; ++i) r.v[i] = t[i];
    return r.narrow();
}

template <class P>
inline Field<P> operator*(const Field<P>& a, const Field<P>& b) {
    Field<P> r = mul_lazy(a, b);
    subtract_once(r);
    return r;
}

#endif

template <class P>
CUZK_INLINE Field<P> square(const Field<P>& a) {
    return a * a;
}

// a + b as an integer, below 2^limbs: a factor for mul_lazy, not a canonical element.
template <class P>
CUZK_INLINE Field<P> add_unreduced(const Field<P>& a, const Field<P>& b) {
    Field<P> r;
#if defined(__CUDA_ARCH__)
    add_limbs(r.v, a.v, b.v);
#else
    Wide<P> sum(a);
    add_wide(sum, sum, Wide<P>(b));
    r = sum.narrow();
#endif
    return r;
}

template <class P>
CUZK_INLINE Field<P> negate(const Field<P>& a) {
    return a.is_zero() ? a : Field<P>::zero() - a;
}

// The integer that a Montgomery element stands for, as limbs.
template <class P>
CUZK_INLINE Field<P> canonical(const Field<P>& a) {
    Field<P> plain_one = Field<P>::zero();
    plain_one.v[0] = 1;
    return a * plain_one;
}

}  // namespace cuzk
