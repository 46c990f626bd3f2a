// Digits are grouped by bucket in two passes, high bits then low bits, each counted first and scattered after.
//
// Bucket of (window w of the group, digit d) is w 2^(c-1) + |d| - 1. A block counts and ranks its tile in shared memory
// and reserves room with one global atomic a bin, so equal digits (the worst skew) collide only inside a block.
#include "platform.cuh"

namespace cuzk {

constexpr u32 tile_threads = 256, tile_items = 32, tile = tile_threads * tile_items, max_bins = 2048;
constexpr u32 no_bin = 0xffffffffu, sign_mask = 0x80000000u;

// Value that scan mode `mode` adds up for a count: 0 itself, 1 ceil(count / by), 2 the pairs that a bucket has in round `by`.
CUZK_INLINE u32 scan_value(u32 count, u32 mode, u32 by) {
    if (mode == 0) return count;
    if (mode == 1) return (count + by - 1) / by;
    return static_cast<u32>((count + (1ull << by) - 1) >> by) / 2;
}

// Exclusive prefix of one value a thread over a block of 256; `total` is the block's sum.
CUZK_INLINE u32 block_prefix(u32 value, u32& total) {
    CUZK_SHARED u32 warp_sums[8];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
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
#pragma unroll
    for (u32 w = 0; w < 8; ++w) {
        if (w < warp) before += warp_sums[w];
        total += warp_sums[w];
    }
    __syncthreads();
    return before + inclusive - value;
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
CUZK_KERNEL(256, 4)
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
CUZK_KERNEL(256, 2)
scatter_bins(const u32* digits, const u32* points, u32 count, u32 low_bits, u32 bins_per_window, const u32* bin_starts,
             u32* cursors, u64* entries) {
    CUZK_SHARED u32 found[max_bins];
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
    for (u32 b = threadIdx.x; b < bins_per_window; b += tile_threads) {
        const u32 bin = blockIdx.y * bins_per_window + b;
        if (found[b]) found[b] = bin_starts[bin] + atomicAdd(&cursors[bin], found[b]);
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < tile_items; ++i) {
        const u32 value = digit[i] & ~sign_mask, at = start + i * tile_threads;
        if (!value) continue;
        const u32 low = (value - 1) & ((1u << low_bits) - 1), point = points ? points[at] : at;
        entries[found[(value - 1) >> low_bits] + rank[i]] =
            static_cast<u64>(low) << 32 | point | (digit[i] & sign_mask);
    }
}

// Pass 2 count: one block a tile of one bin.
CUZK_KERNEL(256, 4)
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
CUZK_KERNEL(256, 3)
scatter_buckets(const u64* entries, const u32* bin_counts, const u32* bin_starts, const u32* tile_starts, u32 num_bins,
                const u32* num_tiles, u32 low_bits, const u32* bucket_starts, u32* cursors, u32* sorted) {
    CUZK_SHARED u32 found[max_bins];
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
    for (u32 b = threadIdx.x; b < buckets; b += tile_threads) {
        const u32 bucket = (own.bin << low_bits) + b;
        if (found[b]) found[b] = bucket_starts[bucket] + atomicAdd(&cursors[bucket], found[b]);
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < tile_items; ++i) {
        const u32 at = own.begin + threadIdx.x + i * tile_threads;
        if (at < own.end) {
            const u64 entry = entries[at];
            sorted[found[static_cast<u32>(entry >> 32)] + rank[i]] = static_cast<u32>(entry);
        }
    }
}

// The pairs of one round: pair p of bucket b is (j, j + half) of its ceil(length / 2^round) remaining points.
// Round 0 names sorted entries and the place of the sum; later rounds name places among the sums (left is the result's).
CUZK_KERNEL(256, 4)
list_pairs(const u32* lengths, const u32* starts, const u32* sum_starts, const u32* pair_starts, u32 num_buckets,
           const u32* num_pairs, const u32* sorted, u32 round, u32* left, u32* right, u32* out) {
    constexpr u32 run = 8;
    const u32 total = *num_pairs;
    u32 p = global_thread() * run;
    if (p >= total) return;
    const u32 end = total - p < run ? total : p + run;
    u32 bucket = 0, pairs = 0, j = 0, half = 0, high = 0;
    for (; p < end; ++p, ++j) {
        if (j >= pairs) {
            // The last bucket that starts at or before p is the one that holds it: empty ones share its start.
            // It is most often near, so a short walk comes before the search.
            if (high != 0)
                for (u32 step = 0; step < 8 && bucket + 1 < num_buckets && pair_starts[bucket + 1] <= p; ++step)
                    ++bucket;
            high = num_buckets;
            if (bucket + 1 < num_buckets && pair_starts[bucket + 1] > p) high = bucket + 1;
            while (high - bucket > 1) {
                const u32 middle = (bucket + high) / 2;
                if (pair_starts[middle] <= p) bucket = middle;
                else high = middle;
            }
            const u32 length = static_cast<u32>((lengths[bucket] + (1ull << round) - 1) >> round);
            pairs = length / 2, half = length - pairs, j = p - pair_starts[bucket];
        }
        if (round == 0) {
            const u32* own = sorted + starts[bucket];
            left[p] = own[j], right[p] = own[j + half], out[p] = sum_starts[bucket] + j;
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
