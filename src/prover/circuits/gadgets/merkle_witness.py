"""The wires of Merkle levels in one compiled pass: the recorded choice of place is run, then the hash."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import fr_one, fr_zero, ld_fr, st_fr
from prover.backends.cpu.jit import jit
from prover.circuits.gadgets.merkle import BOTH, NEITHER, Insertion, insertion
from prover.circuits.gadgets.poseidon_witness import poseidon_table, poseidon_wires
from prover.r1cs.chunks import Check, Progress, run_chunks
from prover.r1cs.matrices import U64

I64 = npt.NDArray[np.int64]
_CHUNK_LEVELS = 64
"""Levels between two looks at progress and cancellation: about 5 ms."""


@functools.cache
def _insertion(arity: int) -> Insertion:
    return insertion(arity)


def fill_poseidon_levels(
    arity: int, nodes: I64, wire0: I64, digits: I64, siblings: U64, out: U64, *, path_length: int | None = None,
    progress: Progress | None = None, check: Check | None = None, threads: int = 1,
) -> None:  # fmt: skip
    """Writes levels one after another, so that a node may be the parent of an earlier level of its path.

    Args:
        nodes: (levels,), the wire at each level's port.
        wire0: (levels,), first own wire of each.
        digits: (levels,), place of the node among its parent's children.
        siblings: (levels, arity - 1, 4) Fr, Montgomery, in tree order.
        out: (num_wires, 4) Fr, Montgomery.
        path_length: levels that depend on one another; runs of that many are spread over the threads. None: all.
        progress: told how many levels were done since the last call.
    """
    _fill(arity, nodes, wire0, digits, siblings, out, True, path_length, progress, check, threads)


def fill_ordered_children(
    arity: int, nodes: I64, wire0: I64, digits: I64, siblings: U64, out: U64, *, threads: int = 1
) -> None:
    """The same for independent `ordered_children`, levels without their hash."""
    _fill(arity, nodes, wire0, digits, siblings, out, False, 1, None, None, threads)


def _fill(
    arity: int, nodes: I64, wire0: I64, digits: I64, siblings: U64, out: U64, hashed: bool, path_length: int | None,
    progress: Progress | None, check: Check | None, threads: int,
) -> None:  # fmt: skip
    chosen = _insertion(arity)
    children = np.array(chosen.children, np.int64)
    table = poseidon_table(arity if hashed else 2)
    length = path_length or max(1, len(nodes))
    step = length * max(1, _CHUNK_LEVELS // length)

    def chunk(first: int) -> int:
        part = slice(first, first + step)
        rows = np.ascontiguousarray(siblings[part])
        _fill_levels(table, children, chosen.operations, nodes[part], wire0[part], digits[part], rows, out, hashed)
        return len(rows)

    chunks = [lambda first=first: chunk(first) for first in range(0, len(nodes), step)]  # type: ignore[misc]
    run_chunks(chunks, threads, progress, check)


@jit
def _fill_levels(table, children, operations, nodes, wire0, digits, siblings, out, hashed):  # type: ignore[no-untyped-def]
    arity = len(children)
    num_bits = 0
    while 1 << num_bits < arity:
        num_bits += 1
    state, spare = np.empty((arity + 1, 4), np.uint64), np.empty((arity + 1, 4), np.uint64)
    for level in range(len(nodes)):
        base = wire0[level] - 2
        wire = wire0[level]
        for i in range(num_bits):
            st_fr(out, wire, fr_one() if digits[level] >> i & 1 else fr_zero())
            wire += 1
        for i in range(arity - 1):
            st_fr(out, wire, ld_fr(siblings, level * (arity - 1) + i))
            wire += 1
        for i in range(len(operations)):
            kind, x, y = operations[i, 0], base + operations[i, 1], base + operations[i, 2]
            x_is_one = out[x, 0] != 0
            if kind == NEITHER:
                st_fr(out, wire, fr_zero() if x_is_one or out[y, 0] != 0 else fr_one())
            elif kind == BOTH:
                st_fr(out, wire, fr_one() if x_is_one and out[y, 0] != 0 else fr_zero())
            else:
                chosen = operations[i, 2] if x_is_one else operations[i, 3]
                st_fr(out, wire, ld_fr(out, nodes[level] if chosen == 1 else base + chosen))
            wire += 1
        if hashed:
            for i in range(arity):
                st_fr(state, i + 1, ld_fr(out, base + children[i]))
            poseidon_wires(table, state, spare, out, wire)
