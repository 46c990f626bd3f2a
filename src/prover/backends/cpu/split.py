"""An assignment is taken apart once: zeros cost nothing, ones are a bit vector, the rest are the tail scalars.

A wire is in the tail when it is neither 0 nor 1 in at least one circuit of the job; where it is 0 or 1 in another,
its tail scalar there is 0 and its bit says the rest. Bases of the tail are gathered once for all circuits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from prover.arena import Scope
from prover.backends.cpu.field import fr_one, ld_fr, st_fr
from prover.backends.cpu.jit import jit
from prover.backends.cpu.ops import eq, is_zero, zero_like
from prover.backends.cpu.workers import Workers, ranges
from prover.keys import ProvingKey, Query, QueryName
from prover.run import Run
from prover.wire import Owner, Stage

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]


@dataclass(slots=True)
class TailQuery:
    """The tail's share of one query."""

    bases: U64
    """(t, 2, 6) or (t, 2, 2, 6)"""
    rows: U32
    """(t,), row of the tail scalars for each base."""


@dataclass(slots=True)
class CpuSplit:
    """What `prep_msm` hands to `batch_add` and `tail_msm`; all arrays are views of the job's arena buffers."""

    ones: list[U8]
    """A circuit: bit w & 7 of byte w >> 3 is set where wire w is 1."""
    scalars: list[U64]
    """A circuit: (t, 4) Montgomery, one row a tail wire."""
    wires: U32 | None
    """(t,), rising."""
    queries: dict[QueryName, TailQuery]
    on_close: Callable[[], None] = lambda: None
    """Lets go of whatever else lives in the job's buffers."""

    def close(self) -> None:
        self.on_close()
        self.ones.clear()
        self.scalars.clear()
        self.queries.clear()
        self.wires = None


def split_bytes(num_wires: int, num_circuits: int, tail_wires: int) -> int:
    """Arena bytes of the split vectors, page rounding aside."""
    bits = -(-num_wires // 8)
    return num_circuits * (bits + 32 * tail_wires) + bits + 4 * tail_wires


def split(key: ProvingKey, assignments: Sequence[U64], scope: Scope, run: Run, workers: Workers) -> CpuSplit:
    """Takes the assignments of a job's circuits apart.

    Args:
        assignments: (num_wires, 4) Montgomery each.
    """
    num_wires = key.num_wires
    num_bytes = -(-num_wires // 8)

    def vector(label: str, shape: tuple[int, ...], dtype: npt.DTypeLike, circuit: int | None = None) -> npt.NDArray:
        return scope.array(label, Owner.SPLIT, shape, dtype, circuit=circuit, stage=Stage.PREP_MSM)

    ones: list[U8] = [vector("ones", (num_bytes,), np.uint8, i) for i in range(len(assignments))]
    significant: U8 = vector("significant", (num_bytes,), np.uint8)
    significant[:] = 0
    pieces = ranges(num_bytes, 4 * workers.threads, 64)
    for i, assignment in enumerate(assignments):
        run.check()
        workers.run([partial(_classify, assignment, low, high, ones[i], significant) for low, high in pieces])
    wires: U32 = vector("tail wires", (_count_bits(significant),), np.uint32)
    _list_bits(significant, wires)
    scalars: list[U64] = []
    for i, assignment in enumerate(assignments):
        run.check()
        scalars.append(vector("tail scalars", (len(wires), 4), np.uint64, i))
        cuts = ranges(len(wires), 4 * workers.threads)
        workers.run([partial(_tail_scalars, assignment, wires, low, high, scalars[i]) for low, high in cuts])
    queries = {}
    for done, name in enumerate(QueryName, 1):
        run.check()
        queries[name] = _gather(name, key.query(name), wires, scope, workers)
        run.progress(Stage.PREP_MSM, done, len(QueryName), "queries", what="gathering tail bases")
    return CpuSplit(ones, scalars, wires, queries)


def chosen(query: Query, ones: U8) -> U32:
    """Positions of the query's points whose wire has its bit set."""
    out = np.empty(len(query.points), np.uint32)
    return out[: _chosen(*_wires(query), len(out), ones, out)]


def tail_rows(source: U64, rows: U32) -> U64:
    """source[rows] of a (t, 4) array, outside the GIL."""
    out = np.empty((len(rows), 4), np.uint64)
    _take_rows(source, rows, out)
    return out


def _wires(query: Query) -> tuple[U32, int]:
    """Wire list and first wire for the kernels; an empty list means consecutive wires."""
    return (np.empty(0, np.uint32), query.first_wire) if query.wires is None else (query.wires, 0)


def _gather(name: QueryName, query: Query, tail: U32, scope: Scope, workers: Workers) -> TailQuery:
    wires, first_wire = _wires(query)
    positions, rows = np.empty(len(tail), np.uint32), np.empty(len(tail), np.uint32)
    count = _intersect(wires, first_wire, len(query.points), tail, positions, rows)
    shape = query.points.shape[1:]
    bases: U64 = scope.array(f"tail bases {name}", Owner.TAIL_BASES, (count, *shape), stage=Stage.PREP_MSM)
    kept: U32 = scope.array(f"tail rows {name}", Owner.SPLIT, (count,), np.uint32, stage=Stage.PREP_MSM)
    kept[:] = rows[:count]
    words = int(np.prod(shape))
    flat, target = query.points.reshape(-1, words), bases.reshape(-1, words)
    cuts = ranges(count, 4 * workers.threads)
    workers.run([partial(_take_points, flat, positions, low, high, target) for low, high in cuts])
    return TailQuery(bases, kept)


@jit
def _classify(assignment, low, high, ones, significant):
    """Bytes low..high of both bit vectors; `significant` is or-ed."""
    one = fr_one()
    for byte in range(low, high):
        bits, marks = 0, 0
        for j in range(min(8, len(assignment) - 8 * byte)):
            value = ld_fr(assignment, 8 * byte + j)
            if eq(value, one):
                bits |= 1 << j
            elif not is_zero(value):
                marks |= 1 << j
        ones[byte] = bits
        significant[byte] |= np.uint8(marks)


@jit
def _count_bits(bits):
    count = 0
    for byte in bits:
        rest = np.int64(byte)
        while rest:
            rest &= rest - 1
            count += 1
    return count


@jit
def _list_bits(bits, out):
    count = 0
    for i in range(len(bits)):
        byte = np.int64(bits[i])
        for j in range(8):
            if (byte >> j) & 1:
                out[count] = 8 * i + j
                count += 1


@jit
def _tail_scalars(assignment, wires, low, high, out):
    one = fr_one()
    for k in range(low, high):
        value = ld_fr(assignment, np.int64(wires[k]))
        st_fr(out, k, zero_like(value) if eq(value, one) else value)


@jit
def _intersect(wires, first_wire, count, tail, positions, rows):
    """Positions of a query and rows of the tail that name the same wire; both lists rise."""
    found, at = 0, 0
    for row in range(len(tail)):
        wire = np.int64(tail[row])
        if len(wires) == 0:
            at = wire - first_wire
            if at < 0:
                continue
        else:
            while at < count and np.int64(wires[at]) < wire:
                at += 1
        if at >= count:
            break
        if len(wires) == 0 or np.int64(wires[at]) == wire:
            positions[found] = at
            rows[found] = row
            found += 1
    return found


@jit
def _chosen(wires, first_wire, count, ones, out):
    found = 0
    for i in range(count):
        wire = first_wire + i if len(wires) == 0 else np.int64(wires[i])
        if (np.int64(ones[wire >> 3]) >> (wire & 7)) & 1:
            out[found] = i
            found += 1
    return found


@jit
def _take_points(source, positions, low, high, out):
    for k in range(low, high):
        i = np.int64(positions[k])
        for j in range(source.shape[1]):
            out[k, j] = source[i, j]


@jit
def _take_rows(source, rows, out):
    for k in range(len(rows)):
        st_fr(out, k, ld_fr(source, np.int64(rows[k])))
