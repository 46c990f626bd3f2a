"""Signed digits of scalars become lists of point indices grouped by bucket, skew or not.

The kernels are in `kernels/scalars.cu` and `kernels/sort.cu`; this file sizes them and owns the lists.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prover.backends.cuda.launch import FR_BYTES, Launcher, Memory, Window, ceil_div

TILE = 8192
TILE_THREADS = 512
SCAN_BLOCK = 2048
MAX_LOW_BITS = 11
"""A block's table has 2^11 counters."""
SCALAR_BITS = 255
"""Folded scalars have 254 bits; one more leaves no carry out of the last window."""
ENTRY_BYTES = 16
"""Digit, binned entry and sorted index of one (scalar, window)."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Exclusive prefixes of counts and their total (both on the device)."""

    prefixes: Memory
    total: Memory


@dataclass(frozen=True, slots=True)
class Buckets:
    """Point indices grouped by bucket, and where every bucket's sums will lie."""

    num_buckets: int
    num_entries: int
    longest: int
    num_sums: int
    """Places among the sums after round 0: sum of ceil(length / 2)."""
    sorted: Memory
    """u32, sign in bit 31."""
    lengths: Memory
    starts: Memory
    sum_starts: Memory


@dataclass(frozen=True, slots=True)
class ScalarSource:
    """Which scalars belong to which points: point i has scalar `wires[i]`, or first_wire + i without `wires`."""

    scalars: Memory
    """(n, 4) Montgomery Fr."""
    count: int
    points: Memory | None = None
    """u32, indices of the points taken; None takes all."""
    wires: Memory | None = None
    first_wire: int = 0


def num_windows(window_bits: int) -> int:
    return ceil_div(SCALAR_BITS, window_bits)


def scan(launcher: Launcher, counts: Memory, n: int, mode: int, by: int = 1, longest: Memory | None = None) -> Scan:
    """Prefixes of f(count): mode 0 count, 1 ceil(count / by), 2 pairs in round `by`."""
    blocks = ceil_div(n, SCAN_BLOCK)
    sums, total, prefixes = launcher.empty(4 * blocks), launcher.empty(4), launcher.empty(4 * n)
    launcher.launch("scan_sums", blocks, 256, counts, n, mode, by, sums, longest, moved_bytes=4 * n)
    launcher.launch("scan_blocks", 1, 256, sums, blocks, total)
    launcher.launch("scan_prefixes", blocks, 256, counts, n, mode, by, sums, prefixes, moved_bytes=8 * n)
    return Scan(prefixes, total)


def digits(launcher: Launcher, source: ScalarSource, window_bits: int, first_window: int, windows: int) -> Memory:
    """Digit words of some windows, window-major (windows, count) u32."""
    out = launcher.empty(4 * source.count * windows)
    launcher.launch(
        "scalar_digits", min(ceil_div(source.count, 256), launcher.num_sms * 16), 256, source.scalars, source.points,
        source.wires, source.first_wire, source.count, window_bits, first_window, windows, out,
        ops=source.count, op="fr_mul", moved_bytes=source.count * (FR_BYTES + 4 * windows),
    )  # fmt: skip
    return out


def group_by_bucket(
    launcher: Launcher, digit_words: Memory, points: Memory | None, count: int, window_bits: int, windows: int
) -> Buckets:
    """Groups `windows` windows of `count` digit words; bucket of (w, digit) is w 2^(c-1) + |digit| - 1."""
    bucket_bits = window_bits - 1
    low_bits = min(ceil_div(bucket_bits, 2), MAX_LOW_BITS) if bucket_bits > 8 else bucket_bits
    bins_per_window = 1 << (bucket_bits - low_bits)
    num_bins, num_buckets = windows * bins_per_window, windows << bucket_bits
    tiles = ceil_div(count, TILE)
    moved = 4 * count * windows

    bin_counts = launcher.zeros(4 * num_bins)
    launcher.launch(
        "count_bins", (tiles, windows), TILE_THREADS, digit_words, count, low_bits, bins_per_window, bin_counts,
        moved_bytes=moved,
    )  # fmt: skip
    bin_starts = scan(launcher, bin_counts, num_bins, 0, 1, launcher.zeros(4))
    entries, cursors = launcher.empty(8 * count * windows), launcher.zeros(4 * num_bins)
    launcher.launch(
        "scatter_bins", (tiles, windows), TILE_THREADS, digit_words, points, count, low_bits, bins_per_window,
        bin_starts.prefixes, cursors, entries, shared_bytes=8 * TILE, moved_bytes=3 * moved,
    )  # fmt: skip
    tile_starts = scan(launcher, bin_counts, num_bins, 1, TILE)
    lengths = launcher.zeros(4 * num_buckets)
    lists = (entries, bin_counts, bin_starts.prefixes, tile_starts.prefixes, num_bins, tile_starts.total, low_bits)
    blocks = tiles * windows + num_bins
    launcher.launch("count_buckets", blocks, TILE_THREADS, *lists, lengths, moved_bytes=2 * moved)
    longest = launcher.zeros(4)
    starts = scan(launcher, lengths, num_buckets, 0, 1, longest)
    out, cursors = launcher.empty(4 * count * windows), launcher.zeros(4 * num_buckets)
    launcher.launch(
        "scatter_buckets", blocks, TILE_THREADS, *lists, starts.prefixes, cursors, out, shared_bytes=8 * TILE,
        moved_bytes=3 * moved,
    )  # fmt: skip
    return finish_buckets(launcher, num_buckets, out, lengths, starts, longest)


def finish_buckets(
    launcher: Launcher, num_buckets: int, entries: Memory, lengths: Memory, starts: Scan, longest: Memory
) -> Buckets:
    """Places of the sums, and the three counts that the host needs to size the rounds (one synchronisation)."""
    sum_starts = scan(launcher, lengths, num_buckets, 1, 2)
    num_entries, most, num_sums = (
        int(launcher.download(m, (1,), np.uint32)[0]) for m in (starts.total, longest, sum_starts.total)
    )
    return Buckets(
        num_buckets, num_entries, most, num_sums, entries, lengths, starts.prefixes, sum_starts.prefixes
    )


def even_buckets(launcher: Launcher, entries: Memory, count: int, size: int) -> Buckets:
    """Cuts a list of signed point indices into buckets of `size`, for a plain sum."""
    num_buckets = ceil_div(count, size)
    lengths, starts = launcher.empty(4 * num_buckets), launcher.empty(4 * num_buckets)
    launcher.launch("even_buckets", ceil_div(num_buckets, 256), 256, count, size, num_buckets, lengths, starts)
    sum_starts = scan(launcher, lengths, num_buckets, 1, 2)
    num_sums = (count // size) * ceil_div(size, 2) + ceil_div(count % size, 2)
    return Buckets(num_buckets, count, min(size, count), num_sums, entries, lengths, starts, sum_starts.prefixes)


@dataclass(frozen=True, slots=True)
class Classes:
    """Points of one query by the kind of their scalar; zeros are in neither list."""

    ones: Memory
    """Signed point indices of scalars 1 and -1."""
    num_ones: int
    tail: Memory
    """Point indices of all other scalars."""
    num_tail: int


def classify(launcher: Launcher, source: ScalarSource) -> Classes:
    """One pass over the scalars; both lists share one allocation of 8 bytes a point."""
    both, counts = launcher.empty(max(8 * source.count, 8)), launcher.zeros(8)
    tail = Window(both, 4 * source.count)
    if source.count:
        launcher.launch(
            "classify_scalars", min(ceil_div(source.count, 256), launcher.num_sms * 8), 256, source.scalars,
            source.wires, source.first_wire, source.count, both, tail, counts,
            ops=source.count, op="fr_mul", moved_bytes=source.count * (FR_BYTES + 4),
        )  # fmt: skip
    num_ones, num_tail = (int(v) for v in launcher.download(counts, (2,), np.uint32))
    return Classes(both, num_ones, tail, num_tail)
