// Bucket sums by a tree of affine additions: in each round every bucket adds its second half onto its first.
//
// One addition costs 5M + 1S: all denominators of a round are inverted together (Montgomery's trick, three passes:
// prefix products, one inversion for each group of threads, and back). A bucket of any length takes part with all its
// pairs, so skewed scalars cost rounds, not work. Equal, opposite and infinite points take a slow branch.
#pragma once
#include "curve.cuh"
#include "inverse.cuh"

namespace cuzk {

// Elements a thread takes when `count` are spread over `threads`, between `least` and 64; the host mirrors this bound.
CUZK_INLINE u32 per_thread(u32 count, u32 threads, u32 least) {
    const u32 share = (count + threads - 1) / threads;
    return share < least ? least : share > 64 ? 64 : share;
}

// Element i of an array that only these kernels use: the 16-byte pieces of 32 neighbours lie side by side, so that a warp
// reads and writes whole lines.
template <class F>
CUZK_INLINE F load_striped(const F* array, u32 i) {
    const Quad* from = reinterpret_cast<const Quad*>(array) + static_cast<u64>(i / 32) * (2 * sizeof(F)) + i % 32;
    Quad pieces[sizeof(F) / 16];
#pragma unroll
    for (u32 k = 0; k < sizeof(F) / 16; ++k) pieces[k] = from[32 * k];
    return load(reinterpret_cast<const F*>(pieces));
}

template <class F>
CUZK_INLINE void store_striped(F* array, u32 i, const F& value) {
    Quad* to = reinterpret_cast<Quad*>(array) + static_cast<u64>(i / 32) * (2 * sizeof(F)) + i % 32;
    Quad pieces[sizeof(F) / 16];
    store(reinterpret_cast<F*>(pieces), value);
#pragma unroll
    for (u32 k = 0; k < sizeof(F) / 16; ++k) to[32 * k] = pieces[k];
}

enum class PairKind { sum, twice, left, right, infinity };

// How a pair adds, and the number that must be inverted for it (never zero).
template <class F>
CUZK_INLINE PairKind classify_pair(const Affine<F>& a, const Affine<F>& b, F& denominator) {
    denominator = b.x - a.x;
    if (!denominator.is_zero() && !a.x.is_zero() && !b.x.is_zero()) return PairKind::sum;
    const bool no_a = a.is_infinity(), no_b = b.is_infinity();
    if (!no_a && !no_b && !denominator.is_zero()) return PairKind::sum;
    PairKind kind = no_a ? PairKind::right : no_b ? PairKind::left : PairKind::infinity;
    denominator = F::one();
    if (kind == PairKind::infinity && a.y == b.y && !a.y.is_zero()) {
        kind = PairKind::twice;
        denominator = a.y + a.y;
    }
    return kind;
}

// Round 0 reads signed base indices; later rounds read places among the bucket sums.
template <class F, bool first>
CUZK_INLINE Affine<F> load_side(const Affine<F>* from, u32 entry) {
    if (first) return load_signed(from, entry);
    return load(from + entry);
}

template <class F, bool first>
CUZK_INLINE void pair_products(const Affine<F>* from, const u32* left, const u32* right, const u32* num_pairs,
                               u32 threads, F* prefixes, F* totals) {
    const u32 count = *num_pairs, share = per_thread(count, threads, 4);
    const u32 t = global_thread(), start = t / 32 * 32 * share + t % 32;
    if (t / 32 * 32 * share >= count) return;
    F running = F::one();
#pragma unroll 1
    for (u32 i = 0; i < share; ++i) {
        const u32 p = start + 32 * i;
        if (p >= count) break;
        store_striped(prefixes, p, running);
        const u32 l = left[p], r = right[p];
        const Affine<F>*a = from + (first ? l & ~sign_bit : l), *b = from + (first ? r & ~sign_bit : r);
        const F ax = load(&a->x), bx = load(&b->x);
        F denominator = bx - ax;
        if (denominator.is_zero() || ax.is_zero() || bx.is_zero())
            classify_pair(load_side<F, first>(from, l), load_side<F, first>(from, r), denominator);
        running = running * denominator;
    }
    store_striped(totals, t, running);
}

// Replaces every total by its inverse.
template <class F>
CUZK_INLINE void invert_totals(const u32* num_pairs, u32 threads, u32 invert_threads, F* totals, F* prefixes) {
    const u32 pairs = *num_pairs, share = per_thread(pairs, threads, 4);
    const u32 count = (pairs + 32 * share - 1) / (32 * share) * 32, own = per_thread(count, invert_threads, 1);
    const u32 t = global_thread(), start = t / 32 * 32 * own + t % 32;
    if (start >= count) return;
    F running = F::one();
    u32 done = 0;
#pragma unroll 1
    for (; done < own && start + 32 * done < count; ++done) {
        store_striped(prefixes, start + 32 * done, running);
        running = running * load_striped(totals, start + 32 * done);
    }
    F back = inverse(running);
#pragma unroll 1
    while (done-- > 0) {
        const F total = load_striped(totals, start + 32 * done);
        store_striped(totals, start + 32 * done, back * load_striped(prefixes, start + 32 * done));
        back = back * total;
    }
}

template <class F, bool first>
CUZK_INLINE void pair_sums(const Affine<F>* from, const u32* left, const u32* right, const u32* out,
                           const u32* num_pairs, u32 threads, const F* prefixes, const F* inverse_totals,
                           Affine<F>* sums) {
    const u32 count = *num_pairs, share = per_thread(count, threads, 4);
    const u32 t = global_thread(), start = t / 32 * 32 * share + t % 32;
    if (start >= count) return;
    u32 last = (count - 1 - start) / 32;
    if (last >= share) last = share - 1;
    F back = load_striped(inverse_totals, t);
#pragma unroll 1
    for (u32 i = last + 1; i-- > 0;) {
        const u32 p = start + 32 * i;
        const Affine<F> a = load_side<F, first>(from, left[p]), b = load_side<F, first>(from, right[p]);
        F denominator;
        const PairKind kind = classify_pair(a, b, denominator);
        const F inverted = back * load_striped(prefixes, p);
        back = back * denominator;
        F numerator = b.y - a.y;
        if (kind == PairKind::twice) {
            const F xx = square(a.x);
            numerator = xx + xx + xx;
        }
        const F slope = numerator * inverted;
        Affine<F> sum;
        sum.x = square(slope) - a.x - b.x;
        sum.y = slope * (a.x - sum.x) - a.y;
        if (kind == PairKind::left) sum = a;
        if (kind == PairKind::right) sum = b;
        if (kind == PairKind::infinity) sum = Affine<F>::infinity();
        store(sums + (first ? out[p] : left[p]), sum);
    }
}

// The middle point of every bucket of odd length, which round 0 pairs with nothing.
template <class F>
CUZK_INLINE void keep_singles(const Affine<F>* bases, const u32* sorted, const u32* lengths, const u32* starts,
                              const u32* sum_starts, u32 num_buckets, Affine<F>* sums) {
    for (u32 b = global_thread(); b < num_buckets; b += global_threads()) {
        const u32 length = lengths[b];
        if (length & 1) store(sums + sum_starts[b] + length / 2, load_signed(bases, sorted[starts[b] + length / 2]));
    }
}

}  // namespace cuzk

// The kernels of one group.
#define CUZK_ACCUMULATE(name, F)                                                                                      \
    CUZK_KERNEL(128, CUZK_PRODUCT_BLOCKS)                                                                             \
    name##_products_first(const cuzk::Affine<F>* from, const u32* left, const u32* right, const u32* num_pairs,       \
                          u32 threads, F* prefixes, F* totals) {                                                      \
        cuzk::pair_products<F, true>(from, left, right, num_pairs, threads, prefixes, totals);                        \
    }                                                                                                                 \
    CUZK_KERNEL(128, CUZK_PRODUCT_BLOCKS)                                                                             \
    name##_products(const cuzk::Affine<F>* from, const u32* left, const u32* right, const u32* num_pairs,             \
                    u32 threads, F* prefixes, F* totals) {                                                            \
        cuzk::pair_products<F, false>(from, left, right, num_pairs, threads, prefixes, totals);                       \
    }                                                                                                                 \
    CUZK_KERNEL(128, 2)                                                                                               \
    name##_invert(const u32* num_pairs, u32 threads, u32 invert_threads, F* totals, F* prefixes) {                    \
        cuzk::invert_totals(num_pairs, threads, invert_threads, totals, prefixes);                                    \
    }                                                                                                                 \
    CUZK_KERNEL(128, CUZK_SUM_BLOCKS)                                                                                 \
    name##_sums_first(const cuzk::Affine<F>* from, const u32* left, const u32* right, const u32* out,                 \
                      const u32* num_pairs, u32 threads, const F* prefixes, const F* totals,                          \
                      cuzk::Affine<F>* sums) {                                                                        \
        cuzk::pair_sums<F, true>(from, left, right, out, num_pairs, threads, prefixes, totals, sums);                 \
    }                                                                                                                 \
    CUZK_KERNEL(128, CUZK_SUM_BLOCKS)                                                                                 \
    name##_sums(const cuzk::Affine<F>* from, const u32* left, const u32* right, const u32* num_pairs, u32 threads,    \
                const F* prefixes, const F* totals, cuzk::Affine<F>* sums) {                                          \
        cuzk::pair_sums<F, false>(from, left, right, left, num_pairs, threads, prefixes, totals, sums);               \
    }                                                                                                                 \
    CUZK_KERNEL(256, 2)                                                                                               \
    name##_singles(const cuzk::Affine<F>* bases, const u32* sorted, const u32* lengths, const u32* starts,            \
                   const u32* sum_starts, u32 num_buckets, cuzk::Affine<F>* sums) {                                   \
        cuzk::keep_singles(bases, sorted, lengths, starts, sum_starts, num_buckets, sums);                            \
    }
