// The field and curve functions one by one, for checks against Python integers and for measuring their throughput.
#include "called.cuh"
#include "curve.cuh"
#include "lazy.cuh"

using namespace cuzk;

// r[i] = a[i] op b[i]; op: 0 product, 1 sum, 2 difference, 3 inverse of a, 4 canonical form of a, 5 square of a, 6 -a.
template <class F>
CUZK_INLINE F field_op(const F& a, const F& b, u32 op) {
    if (op == 0) return a * b;
    if (op == 1) return a + b;
    if (op == 2) return a - b;
    if (op == 5) return square(a);
    return negate(a);
}

CUZK_KERNEL(128, 2)
fr_ops(const Fr* a, const Fr* b, u32 op, u32 n, Fr* r) {
    for (u32 i = global_thread(); i < n; i += global_threads())
        store(r + i, op == 4 ? canonical(load(a + i)) : field_op(load(a + i), load(b + i), op));
}

// r[i] = w[i] a[i], canonical.
CUZK_KERNEL(128, 2)
fr_constant_products(const Constant* w, const Fr* a, u32 n, Fr* r) {
    for (u32 i = global_thread(); i < n; i += global_threads()) {
        const Fr value = mul_constant(load(w + i), load(a + i));
        store(r + i, settle(value));
    }
}

// (a[i], b[i]), any values below 2r, become their sum and difference, below 2r.
CUZK_KERNEL(128, 2)
fr_butterflies(Fr* a, Fr* b, u32 n) {
    for (u32 i = global_thread(); i < n; i += global_threads()) {
        Fr x = load(a + i), y = load(b + i);
        butterfly(x, y);
        store(a + i, x), store(b + i, y);
    }
}

CUZK_KERNEL(128, 2)
fp_ops(const Fp* a, const Fp* b, u32 op, u32 n, Fp* r) {
    for (u32 i = global_thread(); i < n; i += global_threads()) {
        const Fp x = load(a + i);
        store(r + i, op == 3 ? inverse(x) : op == 4 ? canonical(x) : field_op(x, load(b + i), op));
    }
}

CUZK_KERNEL(128, 2)
fp2_ops(const Fp2* a, const Fp2* b, u32 op, u32 n, Fp2* r) {
    for (u32 i = global_thread(); i < n; i += global_threads()) {
        const Fp2 x = load(a + i);
        store(r + i, op == 3 ? inverse(x) : field_op(x, load(b + i), op));
    }
}

// r[i] = a[i] + b[i] as affine points; mixed: b is taken affine, else through XYZZ with another ZZ.
template <class F>
CUZK_INLINE void point_sums(const Affine<F>* a, const Affine<F>* b, u32 mixed, u32 n, Affine<F>* r) {
    for (u32 i = global_thread(); i < n; i += global_threads()) {
        const Affine<F> p = load(a + i), q = load(b + i);
        Xyzz<F> sum = to_xyzz(p);
        if (mixed) {
            sum = add(sum, q);
        } else {
            Xyzz<F> other = to_xyzz(q);
            const F z = F::one() + F::one(), zz = square(z), zzz = zz * z;
            if (!other.is_infinity()) other = {other.x * zz, other.y * zzz, zz, zzz};
            sum = add(sum, other);
        }
        const F z = inverse(sum.zzz), zz = square(z * sum.zz);
        store(r + i, sum.is_infinity() ? Affine<F>::infinity() : Affine<F>{sum.x * zz, sum.y * z});
    }
}

CUZK_KERNEL(128, 2)
g1_sums_probe(const Affine<CalledFp>* a, const Affine<CalledFp>* b, u32 mixed, u32 n, Affine<CalledFp>* r) {
    point_sums(a, b, mixed, n, r);
}

CUZK_KERNEL(128, 1)
g2_sums_probe(const Affine<Fp2>* a, const Affine<Fp2>* b, u32 mixed, u32 n, Affine<Fp2>* r) {
    point_sums(a, b, mixed, n, r);
}

// Throughput: every thread makes 2 `count` products in a chain.
CUZK_KERNEL(256, 2)
fr_constant_chain(Fr* values, const Constant* w, u32 count) {
    Fr a = load(values + 2 * global_thread()), b = load(values + 2 * global_thread() + 1);
    const Constant c = load(w);
#pragma unroll 4
    for (u32 i = 0; i < count; ++i) a = mul_constant(c, a), b = mul_constant(c, b);
    store(values + 2 * global_thread(), a), store(values + 2 * global_thread() + 1, b);
}

CUZK_KERNEL(128, 4)
fp_product_chain(Fp* values, u32 count) {
    Fp a = load(values + 2 * global_thread()), b = load(values + 2 * global_thread() + 1);
#pragma unroll 4
    for (u32 i = 0; i < count; ++i) a = a * b, b = b * a;
    store(values + 2 * global_thread(), a), store(values + 2 * global_thread() + 1, b);
}

CUZK_KERNEL(128, 2)
fp2_product_chain(Fp2* values, u32 count) {
    Fp2 a = load(values + 2 * global_thread()), b = load(values + 2 * global_thread() + 1);
#pragma unroll 1
    for (u32 i = 0; i < count; ++i) a = a * b, b = b * a;
    store(values + 2 * global_thread(), a), store(values + 2 * global_thread() + 1, b);
}

// partial[t] = sum of a[i] b[i] over the i that thread t takes.
CUZK_KERNEL(256, 2)
fr_dot(const Fr* a, const Fr* b, u32 n, Fr* partial) {
    Fr sum = Fr::zero();
    for (u32 i = global_thread(); i < n; i += global_threads()) sum = sum + load(a + i) * load(b + i);
    store(partial + global_thread(), sum);
}

// Uniform Fr elements (Montgomery form) from a counter: splitmix64 limbs, top limb cut to 254 bits, so below r.
CUZK_KERNEL(256, 4)
fr_random(u64 seed, u32 n, Fr* r) {
    for (u32 i = global_thread(); i < n; i += global_threads()) {
        Fr value;
        for (u32 k = 0; k < 4; ++k) {
            u64 z = seed + (4ull * i + k + 1) * 0x9e3779b97f4a7c15ull;
            z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
            z = (z ^ z >> 27) * 0x94d049bb133111ebull;
            z ^= z >> 31;
            value.v[2 * k] = static_cast<u32>(z), value.v[2 * k + 1] = static_cast<u32>(z >> 32);
        }
        value.v[7] &= 0x3fffffffu;
        store(r + i, value);
    }
}

// Turns uniform elements into a witness-like mix by the low bits of `dice`: 45 % 0, 35 % 1, 8 % a byte, 2 % -1, 10 % kept.
CUZK_KERNEL(256, 4)
fr_witness(const Fr* dice, u32 n, Fr* values) {
    for (u32 i = global_thread(); i < n; i += global_threads()) {
        const u32 face = dice[i].v[1] % 100, byte = dice[i].v[2] % 254 + 2;
        if (face >= 90) continue;
        Fr value = Fr::zero();
        if (face >= 88) value = Fr::zero() - Fr::one();
        else if (face >= 80)
            for (u32 bit = 8; bit-- > 0;) {
                value = value + value;
                if (byte >> bit & 1) value = value + Fr::one();
            }
        else if (face >= 45) value = Fr::one();
        store(values + i, value);
    }
}
