"""Sums of chosen points, without scalars: the `batch_add` stage. One affine addition a point, inversions shared."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.curve import add_pairs, copy_point
from prover.backends.cpu.jit import jit
from prover.backends.cpu.msm import GROUP, ScratchPool
from prover.backends.cpu.ops import ld, st, zero_like
from prover.backends.cpu.points import sum_shifted
from prover.backends.cpu.workers import Tick, Workers, ranges

U64 = npt.NDArray[np.uint64]
LANES = GROUP // 2
"""Partial sums side by side: one inversion for so many additions."""


def batch_sum(points: U64, chosen: npt.NDArray[np.uint32], workers: Workers, tick: Tick | None = None) -> U64:
    """Sum of points[i] over the indices, affine, (2, 6) or (2, 2, 6).

    Args:
        points: (n, 2, 6) or (n, 2, 2, 6); infinity allowed.
        chosen: (m,) indices, in any order, repeats allowed.
    """
    pieces = ranges(len(chosen), max(4 * workers.threads, len(chosen) >> 18), LANES)
    sums = np.zeros((max(1, len(pieces)), *points.shape[1:]), np.uint64)
    pool = ScratchPool(points.shape[1:])

    def task(i: int, low: int, high: int) -> None:
        with pool.borrow() as s:
            _sum_lanes(points, chosen, low, high, sums, i, s.group, s.pairs)

    workers.run([partial(task, i, low, high) for i, (low, high) in enumerate(pieces)], tick)
    return sum_shifted(sums, 0)


@jit
def _sum_lanes(points, chosen, low, high, sums, row, group, pairs):
    """sums[row] = sum over chosen[low:high]; lane k takes every LANES-th point, then the lanes are folded."""
    left, right = pairs.left, pairs.right
    lanes = len(left) // 2
    zero = zero_like(ld(points, 0))
    width = min(lanes, high - low)
    for k in range(width):
        copy_point(points, np.int64(chosen[low + k]), group, k)
    for base in range(low + width, high, lanes):
        count = min(lanes, high - base)
        for k in range(count):
            copy_point(points, np.int64(chosen[base + k]), group, lanes + k)
            left[k], right[k] = k, lanes + k
        add_pairs(group, pairs, count)
    if width == 0:
        st(sums, 2 * row, zero)
        st(sums, 2 * row + 1, zero)
        return
    while width > 1:
        upper = width // 2
        for k in range(upper):
            left[k], right[k] = k, width - upper + k
        add_pairs(group, pairs, upper)
        width -= upper
    copy_point(group, 0, sums, row)
