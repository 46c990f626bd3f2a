"""Multi-scalar multiplication by buckets: every addition of the bucket phase is affine and shares its inversion.

For each window the points are sorted by digit (counting sort), buckets are taken in groups that stay in the L2 cache
and summed as trees, and the buckets are reduced as many short chains side by side; all through `add_pairs`.
Source: Pippenger's bucket method with signed digits; batched affine addition as in eprint 2022/1321 (cuZK) section 2.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.curve import (
    Pairs,
    add_pairs,
    is_infinity,
    xyzz_add,
    xyzz_add_affine,
    xyzz_clear,
    xyzz_double,
    xyzz_to_affine,
)
from prover.backends.cpu.digits import Digits, recode
from prover.backends.cpu.jit import jit
from prover.backends.cpu.ops import ld, neg, st, zero_like
from prover.backends.cpu.points import add, sum_shifted
from prover.backends.cpu.workers import Tick, Workers, ranges

U64 = npt.NDArray[np.uint64]
GROUP = 4096
"""Points summed together: 0.4 MB of G1 points with as much scratch, so that all rounds of a tree stay in L2."""
CHUNK = 1 << 19
"""Scalars recoded at a time: bounds digits and magnitudes to some 35 MB."""
CHAIN = 32
"""Buckets a chain of the reduction: one shared inversion a step of all chains."""


class Scratch:
    """Working memory of one thread for one group of points.

    Args:
        shape: of one point, (2, 6) or (2, 2, 6).
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.group = np.empty((GROUP + 1, *shape), np.uint64)
        """The last slot takes a bucket's earlier part when a later one joins it."""
        self.pairs = Pairs.room(GROUP, shape)
        self.segments = np.empty((GROUP, 3), np.int64)


class ScratchPool:
    """Scratch handed from task to task, so that its pages are faulted in once."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._idle: queue.SimpleQueue[Scratch] = queue.SimpleQueue()

    @contextmanager
    def borrow(self) -> Iterator[Scratch]:
        try:
            scratch = self._idle.get_nowait()
        except queue.Empty:
            scratch = Scratch(self.shape)
        try:
            yield scratch
        finally:
            self._idle.put(scratch)


def msm(
    points: U64, scalars: U64, *, workers: Workers | None = None, threads: int | None = None,
    window: int | None = None, tick: Tick | None = None,
) -> U64:  # fmt: skip
    """Sum of scalar times point, affine, (2, 6) or (2, 2, 6).

    Args:
        points: (n, 2, 6) or (n, 2, 2, 6), affine Montgomery; infinity allowed.
        scalars: (n, 4) Montgomery.
        workers: threads to use; else `threads` of them are made for this call.
        window: bits a digit; by default the cheapest.
        tick: called with (tasks done, tasks) of each chunk; may raise to stop.
    """
    if len(points) != len(scalars):
        raise ValueError(f"{len(points)} points and {len(scalars)} scalars")
    own = workers or Workers(threads)
    try:
        total = np.zeros(points.shape[1:], np.uint64)
        for low in range(0, len(points), CHUNK):
            digits = recode(scalars[low : low + CHUNK], own, window)
            total = add(total, bucket_msm(points[low : low + CHUNK], digits, own, tick))
        return total
    finally:
        if workers is None:
            own.close()


def bucket_msm(points: U64, digits: Digits, workers: Workers, tick: Tick | None = None) -> U64:
    """The sum for recoded scalars; one task a window, or several where there are many threads and few windows."""
    windows, count = digits.rows.shape
    used = [w for w in range(windows) if digits.nonzero[w]]
    cuts = ranges(count, _pieces(len(used), count, 1 << (digits.window - 1), workers.threads))
    sums = np.zeros((len(cuts), windows, *points.shape[1:]), np.uint64)
    pool = ScratchPool(points.shape[1:])

    def task(w: int, i: int, low: int, high: int) -> None:
        with pool.borrow() as scratch:
            _one_window(points[low:high], digits.rows[w, low:high], digits.window, sums[i], w, scratch)

    workers.run([partial(task, w, i, low, high) for w in used for i, (low, high) in enumerate(cuts)], tick)
    total = np.zeros(points.shape[1:], np.uint64)
    for piece in sums:
        total = add(total, sum_shifted(piece, digits.window))
    return total


def _pieces(windows: int, count: int, half: int, threads: int) -> int:
    """Pieces of the points: three tasks a thread keep all threads busy to the end, but each pays for its buckets."""
    if threads == 1 or windows >= 3 * threads:
        return 1
    return max(1, min(-(-3 * threads // max(1, windows)), count // (4 * half)))


def _one_window(points: U64, row: npt.NDArray[np.int16], window: int, sums: U64, w: int, scratch: Scratch) -> None:
    """sums[w] = the sum of one window's digits times the points."""
    half = 1 << (window - 1)
    chains = max(1, half // CHAIN)
    buckets = np.empty((half + 2 * chains, *points.shape[1:]), np.uint64)
    order = np.empty(np.count_nonzero(row), np.int32)
    starts = np.zeros(half + 2, np.int64)
    acc = np.empty((2, 4, *points.shape[2:]), np.uint64)
    s = scratch
    sort_digits(row, starts, order)
    fill_buckets(points, order, starts, buckets, s.group, s.pairs, s.segments)
    _reduce(buckets, chains, s.pairs, acc, sums, w)


@jit
def sort_digits(row, starts, order):
    """Indices of nonzero digits by magnitude; entry 2i + 1 stands for -points[i].

    Bucket m (magnitude m + 1) is then order[starts[m] : starts[m + 1]].
    """
    for i in range(len(row)):
        d = np.int64(row[i])
        if d != 0:
            starts[abs(d) + 1] += 1
    for m in range(2, len(starts)):
        starts[m] += starts[m - 1]
    for i in range(len(row)):
        d = np.int64(row[i])
        if d != 0:
            magnitude = abs(d)
            order[starts[magnitude]] = 2 * i + (d < 0)
            starts[magnitude] += 1


@jit
def _gather(points, order, first, count, group, slot):
    """Copies signed points to group[slot:]."""
    for k in range(count):
        code = order[first + k]
        i = code >> 1
        y = ld(points, 2 * i + 1)
        if code & 1:
            y = neg(y)
        st(group, 2 * (slot + k), ld(points, 2 * i))
        st(group, 2 * (slot + k) + 1, y)


@jit
def sum_segments(segments, count, group, pairs):
    """Sums each segment of a group into its first slot, all segments' trees side by side.

    Args:
        segments: rows (first slot, length, ...).
    """
    stride = 1
    while True:
        m = 0
        for s in range(count):
            first, length = segments[s, 0], segments[s, 1]
            for k in range(stride, length, 2 * stride):
                pairs.left[m] = first + k - stride
                pairs.right[m] = first + k
                m += 1
        if m == 0:
            return
        add_pairs(group, pairs, m)
        stride *= 2


@jit
def fill_buckets(points, order, starts, buckets, group, pairs, segments):
    """buckets[m] = sum of its points. A bucket longer than a group is summed in pieces of one group each."""
    half = len(starts) - 2
    capacity = len(group) - 1
    zero = zero_like(ld(group, 0))
    for m in range(half):
        st(buckets, 2 * m, zero)
        st(buckets, 2 * m + 1, zero)
    m, at = 0, starts[0]
    while m < half:
        used, count = 0, 0
        while m < half and used < capacity:
            remaining = starts[m + 1] - at
            if remaining == 0:
                m += 1
                continue
            taken = min(remaining, capacity - used)
            if taken < remaining and used > 0 and remaining <= capacity:
                break
            _gather(points, order, at, taken, group, used)
            segments[count, 0], segments[count, 1], segments[count, 2] = used, taken, m
            count += 1
            used += taken
            at += taken
        sum_segments(segments, count, group, pairs)
        _deliver(segments, count, group, buckets, pairs)


@jit
def _deliver(segments, count, group, buckets, pairs):
    """buckets[m] += the sum of each segment; only a bucket in pieces occurs twice, in different groups."""
    spare = len(group) - 1
    for s in range(count):
        m, first = segments[s, 2], segments[s, 0]
        if is_infinity(buckets, m):
            st(buckets, 2 * m, ld(group, 2 * first))
            st(buckets, 2 * m + 1, ld(group, 2 * first + 1))
            continue
        st(group, 2 * spare, ld(buckets, 2 * m))
        st(group, 2 * spare + 1, ld(buckets, 2 * m + 1))
        pairs.left[0], pairs.right[0] = first, spare
        add_pairs(group, pairs, 1)
        st(buckets, 2 * m, ld(group, 2 * first))
        st(buckets, 2 * m + 1, ld(group, 2 * first + 1))


@jit
def _reduce(buckets, chains, pairs, acc, sums, w):
    """sums[w] = sum of (m + 1) buckets[m] over the power-of-two part of `buckets` before its 2 * chains spare rows.

    Chain k owns buckets k * length + t and keeps a running and a total sum from the highest t down: the total then
    is sum (t + 1) bucket; the running sum, all of the chain, counts k * length times more.
    """
    left, right = pairs.left, pairs.right
    half = len(buckets) - 2 * chains
    length = half // chains
    zero = zero_like(ld(buckets, 0))
    for k in range(2 * chains):
        st(buckets, 2 * (half + k), zero)
        st(buckets, 2 * (half + k) + 1, zero)
    for k in range(chains):
        left[k] = half + k
        left[chains + k], right[chains + k] = half + chains + k, half + k
    for t in range(length - 1, -1, -1):
        for k in range(chains):
            right[k] = k * length + t
        add_pairs(buckets, pairs, 2 * chains)
    for k in range(chains):
        left[k], right[k] = half + chains + k, half + k
    add_pairs(buckets, pairs, chains)
    xyzz_clear(acc, 0)
    xyzz_clear(acc, 1)
    for k in range(chains - 1, 0, -1):
        xyzz_add_affine(acc, 0, buckets, half + k)
        xyzz_add(acc, 1, 0)
    while length > 1:
        xyzz_double(acc, 1)
        length //= 2
    for k in range(chains):
        xyzz_add_affine(acc, 1, buckets, half + chains + k)
    xyzz_to_affine(acc, 1, sums, w)
