"""Many multiples of one generator, for the setup: a table of digit multiples, one batched affine addition a window."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from prover.backends.cpu import points
from prover.backends.cpu.curve import add_pairs
from prover.backends.cpu.digits import MAX_WINDOW, recode
from prover.backends.cpu.jit import jit
from prover.backends.cpu.msm import CHUNK, GROUP, ScratchPool
from prover.backends.cpu.ops import ld, neg, st, zero_like
from prover.backends.cpu.workers import Workers, ranges

U64 = npt.NDArray[np.uint64]
BLOCK = GROUP // 2
"""Results in work at once; the other half of the group holds the table points to add."""


class FixedBase:
    """Multiples of the generators of G1 and G2.

    Args:
        threads: of the pool that this object keeps until `close`.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._workers = Workers(threads)
        self._tables: dict[int, tuple[int, U64]] = {}

    def g1(self, scalars: U64, *, progress: Callable[[int], None] | None = None) -> U64:
        """(n, 2, 6): scalar times the generator of G1, affine Montgomery; scalar zero gives infinity.

        Args:
            scalars: (n, 4) Montgomery.
            progress: called with the points finished so far; may raise to stop.
        """
        return self._multiply(points.g1_generator(), scalars, progress)

    def g2(self, scalars: U64, *, progress: Callable[[int], None] | None = None) -> U64:
        """(n, 2, 2, 6): the same in G2."""
        return self._multiply(points.g2_generator(), scalars, progress)

    def close(self) -> None:
        self._workers.close()

    def _multiply(self, generator: U64, scalars: U64, progress: Callable[[int], None] | None) -> U64:
        out = np.empty((len(scalars), *generator.shape), np.uint64)
        window, table = self._table(generator, len(scalars))
        pool = ScratchPool(generator.shape)
        for low in range(0, len(scalars), CHUNK):
            part = slice(low, low + CHUNK)
            rows = recode(scalars[part], self._workers, window).rows
            blocks = ranges(len(scalars[part]), len(scalars[part]) // BLOCK + 1)
            tasks = [partial(_block, table, rows, first, last, out[part], window, pool) for first, last in blocks]

            def tick(done: int, _total: int, low: int = low, size: int = len(scalars[part])) -> None:
                if progress:
                    progress(low + min(size, done * BLOCK))

            self._workers.run(tasks, tick)
        return out

    def _table(self, generator: U64, count: int) -> tuple[int, U64]:
        """Window and table for so many scalars: row w * 2^(c-1) + m is (m + 1) 2^(cw) times the generator."""

        def cost(c: int) -> int:
            built = self._tables.get(generator.ndim, (0, None))[0] == c
            return -(-255 // c) * (count + (0 if built else 1 << (c - 1)))

        window = min(range(4, MAX_WINDOW + 1), key=cost)
        known = self._tables.get(generator.ndim)
        if known is None or known[0] != window:
            half, windows = 1 << (window - 1), -(-255 // window) + 1
            table = np.empty((windows * half, *generator.shape), np.uint64)
            pool = ScratchPool(generator.shape)

            def fill(w: int) -> None:
                part = table[w * half : (w + 1) * half]
                part[0] = points.multiply(generator, 1 << window * w)
                with pool.borrow() as s:
                    _multiples(part, s.pairs)

            self._workers.run([partial(fill, w) for w in range(windows)])
            known = self._tables[generator.ndim] = (window, table)
        return known


def _block(
    table: U64, rows: npt.NDArray[np.int16], first: int, last: int, out: U64, window: int, pool: ScratchPool
) -> None:
    with pool.borrow() as s:
        _sum_digits(table, rows, first, last, 1 << (window - 1), out, s.group, s.pairs)


@jit
def _multiples(table, pairs):
    """Rows 1.. of a table whose row 0 is P become 2P, 3P, ...: rows k..2k-1 are rows 0..k-1 plus row k-1."""
    left, right = pairs.left, pairs.right
    done, capacity = 1, len(left)
    while done < len(table):
        for low in range(0, done, capacity):
            count = min(capacity, done - low)
            for j in range(count):
                row = done + low + j
                st(table, 2 * row, ld(table, 2 * (low + j)))
                st(table, 2 * row + 1, ld(table, 2 * (low + j) + 1))
                left[j], right[j] = row, done - 1
            add_pairs(table, pairs, count)
        done *= 2


@jit
def _sum_digits(table, rows, first, last, half, out, group, pairs):
    """out[i] = sum over windows of the table rows that digits rows[:, i] name."""
    left, right = pairs.left, pairs.right
    count = last - first
    block = len(left) // 2
    zero = zero_like(ld(table, 0))
    for k in range(count):
        left[k], right[k] = k, block + k
        st(group, 2 * k, zero)
        st(group, 2 * k + 1, zero)
    for w in range(rows.shape[0]):
        for k in range(count):
            digit = np.int64(rows[w, first + k])
            slot = block + k
            if digit == 0:
                st(group, 2 * slot, zero)
                st(group, 2 * slot + 1, zero)
                continue
            row = w * half + abs(digit) - 1
            y = ld(table, 2 * row + 1)
            if digit < 0:
                y = neg(y)
            st(group, 2 * slot, ld(table, 2 * row))
            st(group, 2 * slot + 1, y)
        add_pairs(group, pairs, count)
    for k in range(count):
        st(out, 2 * (first + k), ld(group, 2 * k))
        st(out, 2 * (first + k) + 1, ld(group, 2 * k + 1))
