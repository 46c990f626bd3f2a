"""Multi-scalar multiplication: digits, buckets, a tree of affine additions and bucket reduction on the device.

Windows are processed in groups that fit the memory budget; a few points a window come back and are joined by `fold`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prover.backends.cuda import sort
from prover.backends.cuda.fold import fold
from prover.backends.cuda.launch import MAX_COUNT, U64, Launcher, Memory, Window, ceil_div
from prover.backends.cuda.sort import Buckets, ScalarSource

MOST_BUCKET, FEWEST_BUCKETS = 256, 1 << 15
"""A plain sum is a tree over buckets of at most so many points, fewer where too few buckets would be left to fill the
card: each round of the tree has a latency of its own."""
REDUCTION_COST = 4.0
"""Cost of a bucket in the reduction, in tree additions (two complete XYZZ additions at their lower rate)."""
LOG_CHUNK_THREADS = 15


@dataclass(frozen=True, slots=True)
class Curve:
    """What differs between G1 and G2."""

    name: str
    coordinate_bytes: int
    sum_threads_per_sm: int
    """Threads of one wave of the addition kernels."""

    @property
    def affine_bytes(self) -> int:
        return 2 * self.coordinate_bytes

    @property
    def xyzz_bytes(self) -> int:
        return 4 * self.coordinate_bytes

    @property
    def op(self) -> str:
        return f"{self.name}_add"

    @property
    def complete_op(self) -> str:
        return f"{self.name}_xyzz_add"

    @property
    def shape(self) -> tuple[int, ...]:
        return (2, 6) if self.name == "g1" else (2, 2, 6)


G1 = Curve("g1", 48, 512)
G2 = Curve("g2", 96, 256)


def choose_window(count: int) -> int:
    """Window bits with the fewest additions for `count` dense scalars, reduction included."""
    return min(
        range(4, 23), key=lambda c: sort.num_windows(c) * (count + REDUCTION_COST * (1 << (c - 1)))
    )


def bytes_per_entry(curve: Curve) -> int:
    """Device memory that one (scalar, window) takes at the peak: lists, pair lists, prefixes and sums."""
    return sort.ENTRY_BYTES + 6 + curve.coordinate_bytes // 2 + curve.affine_bytes // 2


class Msm:
    """MSMs of one curve on one launcher.

    Args:
        budget_bytes: device memory that temporary lists may take; more windows at once fill the card better.
    """

    def __init__(self, launcher: Launcher, curve: Curve, budget_bytes: int) -> None:
        self.launcher, self.curve, self.budget_bytes = launcher, curve, budget_bytes

    def run(self, bases: Memory, source: ScalarSource, window_bits: int | None = None) -> U64:
        """sum of scalar_i times point_i, affine.

        Args:
            bases: affine points; indices of `source` point into them.
        """
        if source.count == 0:
            return np.zeros(self.curve.shape, np.uint64)
        if source.count >= MAX_COUNT:
            raise ValueError(f"an MSM takes fewer than {MAX_COUNT} points, got {source.count}")
        bits = window_bits or choose_window(source.count)
        total = sort.num_windows(bits)
        log_chunk, log_chunks = self._chunking(total << (bits - 1), bits - 1)
        slot_bytes = (log_chunks + 1) * self.curve.xyzz_bytes
        slots = self.launcher.empty(total * slot_bytes)
        per_group = max(1, min(total, self.budget_bytes // (source.count * bytes_per_entry(self.curve))))
        per_group = ceil_div(total, ceil_div(total, per_group))
        for first in range(0, total, per_group):
            windows = min(per_group, total - first)
            buckets = self.sort(source, bits, first, windows)
            sums = self.accumulate(bases, buckets)
            self._reduce(buckets, sums, windows, log_chunk, log_chunks, Window(slots, first * slot_bytes))
        return fold(self._fetch(slots, total, log_chunks + 1), bits, log_chunk)

    def sort(self, source: ScalarSource, bits: int, first: int, windows: int) -> Buckets:
        words = sort.digits(self.launcher, source, bits, first, windows)
        return sort.group_by_bucket(self.launcher, words, source.points, source.count, bits, windows)

    def sum(self, bases: Memory, entries: Memory, count: int) -> U64:
        """Plain sum of `count` signed points, affine."""
        if count == 0:
            return np.zeros(self.curve.shape, np.uint64)
        size = max(4, min(MOST_BUCKET, count // FEWEST_BUCKETS))
        buckets = sort.even_buckets(self.launcher, entries, count, size)
        sums = self.accumulate(bases, buckets)
        log_partials = min(11, max(7, (buckets.num_buckets - 1).bit_length()))
        partials = self.launcher.empty(self.curve.xyzz_bytes << log_partials)
        name = self.curve.name
        self.launcher.launch(
            f"{name}_sum_buckets", (1 << log_partials) // 128, 128, sums, buckets.lengths, buckets.sum_starts,
            buckets.num_buckets, partials, ops=buckets.num_buckets, op=self.curve.complete_op,
        )  # fmt: skip
        slots = self.launcher.empty((log_partials + 1) * self.curve.xyzz_bytes)
        self.launcher.launch(f"{name}_sum_by_bit", (1, 1), 128, partials, partials, log_partials, log_partials, slots)
        return fold(self._fetch(Window(slots, log_partials * self.curve.xyzz_bytes), 1, 1), 1, 0)

    def accumulate(self, bases: Memory, buckets: Buckets) -> Memory:
        """Affine sum of every bucket, at `buckets.sum_starts` (nothing where the bucket is empty)."""
        launcher, name, size = self.launcher, self.curve.name, self.curve.coordinate_bytes
        sums = launcher.empty(max(1, buckets.num_sums) * self.curve.affine_bytes)
        launcher.launch(
            f"{name}_singles", min(ceil_div(buckets.num_buckets, 256), launcher.num_sms * 8), 256, bases,
            buckets.sorted, buckets.lengths, buckets.starts, buckets.sum_starts, buckets.num_buckets, sums,
            moved_bytes=2 * self.curve.affine_bytes * min(buckets.num_buckets, buckets.num_entries),
        )  # fmt: skip
        most = buckets.num_entries // 2
        if most == 0:
            return sums
        left, right, out = (launcher.empty(4 * most) for _ in range(3))
        prefixes = launcher.empty(size * (most + 32))
        wave = launcher.num_sms * self.curve.sum_threads_per_sm
        inverters = launcher.num_sms * 256
        most_threads = _threads(most, wave, 4)
        totals, total_prefixes = (launcher.empty(size * (most_threads + 32)) for _ in range(2))
        for rounds in range((buckets.longest - 1).bit_length()):
            rest = buckets.num_entries >> rounds
            bound = min(most, rest, rest // 2 + buckets.num_buckets // 2 + 1)
            pairs = sort.scan(launcher, buckets.lengths, buckets.num_buckets, 2, rounds)
            launcher.launch(
                "list_pairs", ceil_div(bound, 2048), 256, buckets.lengths, buckets.starts, buckets.sum_starts,
                pairs.prefixes, buckets.num_buckets, pairs.total, buckets.sorted, rounds, left, right, out,
                moved_bytes=bound * 12,
            )  # fmt: skip
            threads = _threads(bound, wave, 4)
            first = "_first" if rounds == 0 else ""
            source = bases if rounds == 0 else sums
            launcher.launch(
                f"{name}_products{first}", ceil_div(threads, 128), 128, source, left, right, pairs.total, wave,
                prefixes, totals, ops=bound, op=f"{name}_coordinate_mul", moved_bytes=bound * (3 * size + 8),
            )  # fmt: skip
            launcher.launch(
                f"{name}_invert", ceil_div(_threads(threads, inverters, 1), 128), 128, pairs.total, wave, inverters,
                totals, total_prefixes,
            )  # fmt: skip
            outs = (left, right, out) if rounds == 0 else (left, right)
            launcher.launch(
                f"{name}_sums{first}", ceil_div(threads, 128), 128, source, *outs, pairs.total, wave, prefixes, totals,
                sums, ops=bound, op=self.curve.op, moved_bytes=bound * (7 * size + 8),
            )  # fmt: skip
        return sums

    def _chunking(self, num_buckets: int, bucket_bits: int) -> tuple[int, int]:
        """log2 of buckets a chunk (long enough to pay, many enough to fill the card) and of chunks a window."""
        log_chunk = max(0, min(6, num_buckets.bit_length() - 1 - LOG_CHUNK_THREADS, bucket_bits))
        return log_chunk, bucket_bits - log_chunk

    def _reduce(
        self, buckets: Buckets, sums: Memory, windows: int, log_chunk: int, log_chunks: int, slots: Memory
    ) -> None:
        chunks = windows << log_chunks
        plain, weighted = (self.launcher.empty(chunks * self.curve.xyzz_bytes) for _ in range(2))
        self.launcher.launch(
            f"{self.curve.name}_reduce_chunks", ceil_div(chunks, 128), 128, sums, buckets.lengths, buckets.sum_starts,
            log_chunk, chunks, plain, weighted, ops=2 * buckets.num_buckets, op=self.curve.complete_op,
        )  # fmt: skip
        self.launcher.launch(
            f"{self.curve.name}_sum_by_bit", (windows, log_chunks + 1), 128, plain, weighted, log_chunks, 0, slots,
            ops=(log_chunks + 2) * chunks // 2, op=self.curve.complete_op,
        )  # fmt: skip

    def _fetch(self, slots: Memory, windows: int, per_window: int) -> U64:
        return self.launcher.download(slots, (windows, per_window, 4, *self.curve.shape[1:]), np.uint64)


def _threads(count: int, wave: int, least: int) -> int:
    """Most threads that any number of elements up to `count` is spread over (see per_thread in accumulate.cuh)."""
    return min(ceil_div(count, least), max(wave, ceil_div(count, 64))) + 64
