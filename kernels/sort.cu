// Digits are grouped by bucket in two passes, high bits then low bits, each counted first and scattered after.
//
// Bucket of (window w of the group, digit d) is w 2^(c-1) + |d| - 1. A block counts and ranks its tile in shared memory
// and reserves room with one global atomic a bin, so equal digits (the worst skew) collide only inside a block.
#include "platform.cuh"

namespace cuzk {

constexpr u32 tile_threads = 512, tile_items = 16, tile = tile_threads * tile_items, max_bins = 2048;
constexpr u32 no_bin = 0xffffffffu, sign_mask = 0x80000000u;

// Value that scan mode `mode` adds up for a count: 0 itself, 1 ceil(count / by), 2 the pairs that a bucket has in round `by`.
CUZK_INLINE u32 scan_value(u32 count, u32 mode, u32 by) {
    if (mode == 0) return count;
    if (mode == 1) return (count + by - 1) / by;
    return static_cast<u32>((count + (1ull << by) - 1) >> by) / 2;
}

// Exclusive prefix of one value a thread over the block; `total` is the block's sum.
CUZK_INLINE u32 block_prefix(u32 value, u32& total) {
    CUZK_SHARED u32 warp_sums[32];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    u32 inclusive = value;
#pragma unroll
    for (u32 step = 1; step < 32; step *= 2) {
        const u32 other = __shfl_up_sync(0xffffffffu, inclusive, step);
        if (lane >= step) inclusive += other;
    }
    if (lane == 31) warp_sums[warp] = inclusive;
    __syncthreads();
    u32 before = 0;
    total = 0;
    for (u32 w = 0; w < warps; ++w) {
        if (w < warp) before += warp_sums[w];
        total += warp_sums[w];
    }
    __syncthreads();
    return before + inclusive - value;
}

// Largest value of the threads before this one in the block, 0 for the first.
CUZK_INLINE u32 block_largest_before(u32 value) {
    CUZK_SHARED u32 warp_tops[32];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (u32 step = 1; step < 32; step *= 2) {
        const u32 other = __shfl_up_sync(0xffffffffu, value, step);
        if (lane >= step && other > value) value = other;
    }
    if (lane == 31) warp_tops[warp] = value;
    const u32 neighbour = __shfl_up_sync(0xffffffffu, value, 1);
    __syncthreads();
    u32 before = lane == 0 ? 0 : neighbour;
    for (u32 w = 0; w < warp; ++w) before = warp_tops[w] > before ? warp_tops[w] : before;
    __syncthreads();
    return before;
}

// Turns counts of `bins` (at most max_bins) into exclusive prefixes; `reserve(bin, count)` gives a bin's global place.
// shifts[bin] is then what to add to a local place to get the global one.
template <class Reserve>
CUZK_INLINE void local_places(u32* found, u32* shifts, u32 bins, Reserve reserve) {
    constexpr u32 own = max_bins / tile_threads;
    u32 counts[own], sum = 0, total;
#pragma unroll
    for (u32 i = 0; i < own; ++i) {
        const u32 b = threadIdx.x * own + i;
        counts[i] = b < bins ? found[b] : 0;
        sum += counts[i];
    }
    u32 place = block_prefix(sum, total);
#pragma unroll
    for (u32 i = 0; i < own; ++i) {
        const u32 b = threadIdx.x * own + i;
        if (b >= bins) continue;
        found[b] = place;
        if (counts[i]) shifts[b] = reserve(b, counts[i]) - place;
        place += counts[i];
    }
    __syncthreads();
}

struct Tile {
    u32 bin, begin, end;
};

// The tile of a binned list that a block works on; bin = no_bin past the last.
CUZK_INLINE Tile find_tile(const u32* bin_counts, const u32* bin_starts, const u32* tile_starts, u32 num_bins,
                           u32 num_tiles) {
    if (blockIdx.x >= num_tiles) return {no_bin, 0, 0};
    u32 low = 0, high = num_bins;
    while (high - low > 1) {
        const u32 middle = (low + high) / 2;
        if (tile_starts[middle] <= blockIdx.x) low = middle;
        else high = middle;
    }
    const u32 offset = (blockIdx.x - tile_starts[low]) * tile, left = bin_counts[low] - offset;
    const u32 begin = bin_starts[low] + offset;
    return {low, begin, begin + (left < tile ? left : tile)};
}

}  // namespace cuzk

using namespace cuzk;

// Scan, step 1: each block's sum of 2048 values; longest gets the largest count.
CUZK_KERNEL(256, 4)
scan_sums(const u32* counts, u32 n, u32 mode, u32 by, u32* block_sums, u32* longest) {
    u32 sum = 0, most = 0;
    for (u32 i = 0; i < 8; ++i) {
        const u32 at = blockIdx.x * 2048 + i * 256 + threadIdx.x;
        const u32 count = at < n ? counts[at] : 0;
        sum += scan_value(count, mode, by);
        most = count > most ? count : most;
    }
    u32 total;
    block_prefix(sum, total);
    if (threadIdx.x == 0) block_sums[blockIdx.x] = total;
    if (mode != 0) return;
#pragma unroll
    for (u32 step = 16; step > 0; step /= 2) {
        const u32 other = __shfl_down_sync(0xffffffffu, most, step);
        most = other > most ? other : most;
    }
    if (threadIdx.x % 32 == 0 && most > 0) atomicMax(longest, most);
}

// Scan, step 2, one block: exclusive prefix of the block sums in place, and the grand total.
CUZK_KERNEL(256, 1)
scan_blocks(u32* block_sums, u32 num_blocks, u32* grand_total) {
    u32 before = 0;
    for (u32 start = 0; start < num_blocks; start += 2048) {
        u32 own[8], sum = 0, total;
#pragma unroll
        for (u32 i = 0; i < 8; ++i) {
            const u32 at = start + threadIdx.x * 8 + i;
            own[i] = at < num_blocks ? block_sums[at] : 0;
            sum += own[i];
        }
        u32 prefix = before + block_prefix(sum, total);
#pragma unroll
        for (u32 i = 0; i < 8; ++i) {
            const u32 at = start + threadIdx.x * 8 + i;
            if (at < num_blocks) block_sums[at] = prefix;
            prefix += own[i];
        }
        before += total;
    }
    if (threadIdx.x == 0) *grand_total = before;
}

// Scan, step 3: exclusive prefixes of all values.
CUZK_KERNEL(256, 4)
scan_prefixes(const u32* counts, u32 n, u32 mode, u32 by, const u32* block_sums, u32* prefixes) {
    CUZK_SHARED u32 values[2048 + 256];
    // One word of padding every 8 keeps both access patterns free of bank conflicts.
    for (u32 i = 0; i < 8; ++i) {
        const u32 slot = i * 256 + threadIdx.x, at = blockIdx.x * 2048 + slot;
        values[slot + slot / 8] = at < n ? scan_value(counts[at], mode, by) : 0;
    }
    __syncthreads();
    u32 sum = 0, total;
    for (u32 i = 0; i < 8; ++i) sum += values[threadIdx.x * 9 + i];
    u32 prefix = block_sums[blockIdx.x] + block_prefix(sum, total);
    for (u32 i = 0; i < 8; ++i) {
        const u32 value = values[threadIdx.x * 9 + i];
        values[threadIdx.x * 9 + i] = prefix;
        prefix += value;
    }
    __syncthreads();
    for (u32 i = 0; i < 8; ++i) {
        const u32 slot = i * 256 + threadIdx.x, at = blockIdx.x * 2048 + slot;
        if (at < n) prefixes[at] = values[slot + slot / 8];
    }
}

// Pass 1 count: bins are (window, high bits of the bucket); grid (tiles, windows).
CUZK_KERNEL(512, 2)
count_bins(const u32* digits, u32 count, u32 low_bits, u32 bins_per_window, u32* bin_counts) {
    CUZK_SHARED u32 found[max_bins];
    for (u32 b = threadIdx.x; b < bins_per_window; b += tile_threads) found[b] = 0;
    __syncthreads();
    const u32* own = digits + static_cast<u64>(blockIdx.y) * count;
    const u32 start = blockIdx.x * tile + threadIdx.x;
#pragma unroll 4
    for (u32 i = 0; i < tile_items; ++i) {
        const u32 at = start + i * tile_threads, digit = at < count ? own[at] & ~sign_mask : 0;
        if (digit) atomicAdd(&found[(digit - 1) >> low_bits], 1u);
    }
    __syncthreads();
    for (u32 b = threadIdx.x; b < bins_per_window; b += tile_threads)
        if (found[b]) atomicAdd(&bin_counts[blockIdx.y * bins_per_window + b], found[b]);
}

// Pass 1 scatter: entries (low bits, signed point index) into their bins. `points` as in scalar_digits; cursors start 0.
// The tile is ordered in shared memory first, so that a bin's entries leave as one run.
CUZK_KERNEL(512, 2)
scatter_bins(const u32* digits, const u32* points, u32 count, u32 low_bits, u32 bins_per_window, const u32* bin_starts,
             u32* cursors, u64* entries) {
    CUZK_DYNAMIC_SHARED(ordered_quads);
    u64* ordered = reinterpret_cast<u64*>(ordered_quads);
    CUZK_SHARED u32 found[max_bins], shifts[max_bins];
    for (u32 b = threadIdx.x; b < bins_per_window; b += tile_threads) found[b] = 0;
    __syncthreads();
    const u32* own = digits + static_cast<u64>(blockIdx.y) * count;
    const u32 start = blockIdx.x * tile + threadIdx.x;
    u32 digit[tile_items], rank[tile_items];
#pragma unroll
    for (u32 i = 0; i < tile_items; ++i) {
        const u32 at = start + i * tile_threads;
        digit[i] = at < count ? own[at] : 0;
    }
#pragma unroll
    for (u32 i = 0; i < tile_items; ++i) {
        const u32 value = digit[i] & ~sign_mask;
        rank[i] = value ? atomicAdd(&found[(value - 1) >> low_bits], 1u) : 0;
    }
    __syncthreads();
    const u32 last = bins_per_window - 1, last_count = found[last];
    __syncthreads();
    local_places(found, shifts, bins_per_window, [&](u32 b, u32 n) {
        const u32 bin = blockIdx.y * bins_per_window + b;
        return bin_starts[bin] + atomicAdd(&cursors[bin], n);
    });
#pragma unroll
    for (u32 i = 0; i < tile_items; ++i) {
        const u32 value = digit[i] & ~sign_mask, at = start + i * tile_threads;
        if (!value) continue;
        const u32 low = (value - 1) & ((1u << low_bits) - 1), bin = (value - 1) >> low_bits;
        const u32 point = points ? points[at] : at;
        ordered[found[bin] + rank[i]] = static_cast<u64>(bin << 16 | low) << 32 | point | (digit[i] & sign_mask);
    }
    __syncthreads();
    const u32 kept = found[last] + last_count;
    for (u32 at = threadIdx.x; at < kept; at += tile_threads) {
        const u64 entry = ordered[at];
        entries[shifts[static_cast<u32>(entry >> 48)] + at] = entry & 0xffffffffffffull;
    }
}

// Pass 2 count: one block a tile of one bin.
CUZK_KERNEL(512, 2)
count_buckets(const u64* entries, const u32* bin_counts, const u32* bin_starts, const u32* tile_starts, u32 num_bins,
              const u32* num_tiles, u32 low_bits, u32* bucket_counts) {
    CUZK_SHARED u32 found[max_bins];
    const Tile own = find_tile(bin_counts, bin_starts, tile_starts, num_bins, *num_tiles);
    if (own.bin == no_bin) return;
    const u32 buckets = 1u << low_bits;
    for (u32 b = threadIdx.x; b < buckets; b += tile_threads) found[b] = 0;
    __syncthreads();
    for (u32 at = own.begin + threadIdx.x; at < own.end; at += tile_threads)
        atomicAdd(&found[static_cast<u32>(entries[at] >> 32)], 1u);
    __syncthreads();
    for (u32 b = threadIdx.x; b < buckets; b += tile_threads)
        if (found[b]) atomicAdd(&bucket_counts[(own.bin << low_bits) + b], found[b]);
}

// Pass 2 scatter: signed point indices grouped by bucket. cursors start 0.
CUZK_KERNEL(512, 2)
scatter_buckets(const u64* entries, const u32* bin_counts, const u32* bin_starts, const u32* tile_starts, u32 num_bins,
                const u32* num_tiles, u32 low_bits, const u32* bucket_starts, u32* cursors, u32* sorted) {
    CUZK_DYNAMIC_SHARED(ordered_quads);
    u64* ordered = reinterpret_cast<u64*>(ordered_quads);
    CUZK_SHARED u32 found[max_bins], shifts[max_bins];
    const Tile own = find_tile(bin_counts, bin_starts, tile_starts, num_bins, *num_tiles);
    if (own.bin == no_bin) return;
    const u32 buckets = 1u << low_bits;
    for (u32 b = threadIdx.x; b < buckets; b += tile_threads) found[b] = 0;
    __syncthreads();
    u32 rank[tile_items];
#pragma unroll
    for (u32 i = 0; i < tile_items; ++i) {
        const u32 at = own.begin + threadIdx.x + i * tile_threads;
        rank[i] = at < own.end ? atomicAdd(&found[static_cast<u32>(entries[at] >> 32)], 1u) : 0;
    }
    __syncthreads();
    local_places(found, shifts, buckets, [&](u32 b, u32 n) {
        const u32 bucket = (own.bin << low_bits) + b;
        return bucket_starts[bucket] + atomicAdd(&cursors[bucket], n);
    });
#pragma unroll
    for (u32 i = 0; i < tile_items; ++i) {
        const u32 at = own.begin + threadIdx.x + i * tile_threads;
        if (at < own.end) {
            const u64 entry = entries[at];
            ordered[found[static_cast<u32>(entry >> 32)] + rank[i]] = entry;
        }
    }
    __syncthreads();
    for (u32 at = threadIdx.x; at < own.end - own.begin; at += tile_threads) {
        const u64 entry = ordered[at];
        sorted[shifts[static_cast<u32>(entry >> 32)] + at] = static_cast<u32>(entry);
    }
}

// The last bucket that starts at or before pair p: empty ones share its start, so it is the one that holds p.
CUZK_INLINE u32 bucket_of_pair(const u32* pair_starts, u32 num_buckets, u32 p) {
    u32 low = 0, high = num_buckets;
    while (high - low > 1) {
        const u32 middle = (low + high) / 2;
        if (pair_starts[middle] <= p) low = middle;
        else high = middle;
    }
    return low;
}

// The pairs of one round: pair p of bucket b is (j, j + half) of its ceil(length / 2^round) remaining points.
// Round 0 names sorted entries and the place of the sum; later rounds name places among the sums (left is the result's).
// A block lists 2048 pairs: its buckets mark where they start, and a running maximum tells every pair its bucket.
CUZK_KERNEL(256, 4)
list_pairs(const u32* lengths, const u32* starts, const u32* sum_starts, const u32* pair_starts, u32 num_buckets,
           const u32* num_pairs, const u32* sorted, u32 round, u32* left, u32* right, u32* out) {
    constexpr u32 run = 8, block_pairs = 256 * run;
    CUZK_SHARED u32 owner[block_pairs + 256], ends[2];  // one word of padding every 8
    const u32 total = *num_pairs, first = blockIdx.x * block_pairs;
    if (first >= total) return;
    const u32 end = total - first < block_pairs ? total : first + block_pairs;
    if (threadIdx.x < 2) ends[threadIdx.x] = bucket_of_pair(pair_starts, num_buckets, threadIdx.x ? end - 1 : first);
    for (u32 i = threadIdx.x; i < block_pairs + 256; i += 256) owner[i] = 0;
    __syncthreads();
    const u32 first_bucket = ends[0], last_bucket = ends[1];
    // Where buckets are many and pairs few, a search a pair is shorter than a walk over the buckets.
    const bool sparse = last_bucket - first_bucket > 4 * block_pairs;
    for (u32 b = first_bucket + 1 + threadIdx.x; b <= last_bucket && !sparse; b += 256) {
        const u32 slot = pair_starts[b] - first;
        if (scan_value(lengths[b], 2, round) != 0) owner[slot + slot / 8] = b - first_bucket;
    }
    __syncthreads();
    u32 own[run], top = 0;
#pragma unroll
    for (u32 i = 0; i < run; ++i) {
        const u32 mark = owner[threadIdx.x * (run + 1) + i];
        top = mark > top ? mark : top;
        own[i] = top;
    }
    const u32 before = block_largest_before(top);
#pragma unroll
    for (u32 i = 0; i < run; ++i) owner[threadIdx.x * (run + 1) + i] = own[i] > before ? own[i] : before;
    __syncthreads();
    for (u32 i = 0; i < run; ++i) {
        const u32 slot = i * 256 + threadIdx.x, p = first + slot;
        if (p >= end) break;
        u32 bucket = first_bucket + owner[slot + slot / 8];
        if (sparse) bucket += bucket_of_pair(pair_starts + bucket, last_bucket - bucket + 1, p);
        const u32 j = p - pair_starts[bucket];
        const u32 length = static_cast<u32>((lengths[bucket] + (1ull << round) - 1) >> round);
        const u32 half = length - length / 2;
        if (round == 0) {
            const u32* entries = sorted + starts[bucket];
            left[p] = entries[j], right[p] = entries[j + half], out[p] = sum_starts[bucket] + j;
        } else {
            left[p] = sum_starts[bucket] + j, right[p] = left[p] + half;
        }
    }
}

// Buckets of `size` consecutive entries of a list, for a plain sum.
CUZK_KERNEL(256, 4)
even_buckets(u32 count, u32 size, u32 num_buckets, u32* lengths, u32* starts) {
    for (u32 b = global_thread(); b < num_buckets; b += global_threads()) {
        const u32 start = b * size;
        starts[b] = start < count ? start : count;
        lengths[b] = start >= count ? 0 : count - start < size ? count - start : size;
    }
}
