"""The wires of a Poseidon gadget, in the order the circuit allocates them, in one compiled pass; also the bare hash."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import fr_add, fr_mul, fr_sqr, fr_zero, ints_to_fr, ld_fr, st_fr
from prover.backends.cpu.jit import jit
from prover.circuits.gadgets.poseidon_constants import FULL_ROUNDS, constants
from prover.r1cs.chunks import Check, Progress, run_chunks
from prover.r1cs.matrices import U64

I64 = npt.NDArray[np.int64]


class PoseidonTable(NamedTuple):
    """Constants of one arity as kernels want them, all Fr in Montgomery form."""

    tag: U64
    compressed: U64
    mds: U64
    pre_sparse: U64
    w_hat: U64
    v: U64


@functools.cache
def poseidon_table(arity: int) -> PoseidonTable:
    """The table of one arity; matrices flattened row by row."""
    fixed = constants(arity)
    return PoseidonTable(
        ints_to_fr([fixed.domain_tag]),
        ints_to_fr(fixed.compressed),
        ints_to_fr([x for row in fixed.mds for x in row]),
        ints_to_fr([x for row in fixed.pre_sparse for x in row]),
        ints_to_fr([x for sparse in fixed.sparse for x in sparse.w_hat]),
        ints_to_fr([x for sparse in fixed.sparse for x in sparse.v]),
    )


def num_poseidon_wires(arity: int) -> int:
    """Wires, and constraints, of one hash."""
    width, partial = arity + 1, constants(arity).partial_rounds
    return 3 * (FULL_ROUNDS * width + partial - 1) + FULL_ROUNDS * width + partial - arity


def fill_poseidon(
    arity: int, children: I64, wire0: I64, out: U64, *, progress: Progress | None = None, check: Check | None = None,
    threads: int = 1,
) -> None:  # fmt: skip
    """Writes the wires of independent hashes into a witness that holds their children.

    Args:
        children: (instances, arity), wires.
        wire0: (instances,), first own wire of each.
        out: (num_wires, 4) Fr, Montgomery.
        progress: called with the number of hashes done since the last call.
    """
    table = poseidon_table(arity)
    step = 64

    def chunk(first: int) -> int:
        _fill(table, children[first : first + step], wire0[first : first + step], out)
        return min(step, len(wire0) - first)

    chunks = [lambda first=first: chunk(first) for first in range(0, len(wire0), step)]  # type: ignore[misc]
    run_chunks(chunks, threads, progress, check)


def poseidon_hashes(arity: int, children: U64, *, threads: int = 1) -> U64:
    """Digests (n, 4) of rows of children (n, arity, 4); Fr, Montgomery."""
    out = np.empty((len(children), 4), np.uint64)
    table, width = poseidon_table(arity), num_poseidon_wires(arity)
    step = 256

    def chunk(first: int) -> int:
        _hash(table, np.ascontiguousarray(children[first : first + step]), out[first : first + step], width)
        return 0

    chunks = [lambda first=first: chunk(first) for first in range(0, len(out), step)]  # type: ignore[misc]
    run_chunks(chunks, threads, None, None)
    return out


@jit
def _fill(table, children, wire0, out):  # type: ignore[no-untyped-def]
    width = children.shape[1] + 1
    state, spare = np.empty((width, 4), np.uint64), np.empty((width, 4), np.uint64)
    for instance in range(children.shape[0]):
        for i in range(width - 1):
            st_fr(state, i + 1, ld_fr(out, children[instance, i]))
        poseidon_wires(table, state, spare, out, wire0[instance])


@jit
def _hash(table, children, digests, num_wires):  # type: ignore[no-untyped-def]
    width = children.shape[1] + 1
    state, spare = np.empty((width, 4), np.uint64), np.empty((width, 4), np.uint64)
    wires = np.empty((num_wires, 4), np.uint64)
    for instance in range(children.shape[0]):
        for i in range(width - 1):
            st_fr(state, i + 1, ld_fr(children, instance * (width - 1) + i))
        poseidon_wires(table, state, spare, wires, np.int64(0))
        st_fr(digests, instance, ld_fr(wires, num_wires - 1))


@jit
def poseidon_wires(table, state, spare, out, wire):  # type: ignore[no-untyped-def]
    """Runs one permutation, storing every allocated value; returns the wire behind the last, which is the digest.

    Args:
        table: PoseidonTable.
        state: (width, 4), children from row 1 on; overwritten.
        spare: (width, 4), scratch.
        out, wire: where the wires go.
    """
    width = state.shape[0]
    partial = table.w_hat.shape[0] // width
    tag = fr_add(ld_fr(table.tag, 0), ld_fr(table.compressed, 0))
    square = fr_sqr(tag)
    fifth = fr_mul(fr_sqr(square), tag)
    st_fr(state, 0, fr_add(fifth, ld_fr(table.compressed, width)))
    for i in range(1, width):
        shifted = fr_add(ld_fr(state, i), ld_fr(table.compressed, i))
        wire = _quintic(shifted, ld_fr(table.compressed, width + i), state, i, out, wire)
    _mix(state, spare, table.mds)
    used = 2 * width
    for layer in range(1, 7 + partial + 1):
        is_partial = 4 <= layer < 4 + partial
        for i in range(1 if is_partial else width):
            value = ld_fr(state, i)
            st_fr(out, wire, value)
            if layer == 7 + partial:
                wire = _quintic(value, fr_zero(), state, i, out, wire + 1)
            else:
                wire = _quintic(value, ld_fr(table.compressed, used), state, i, out, wire + 1)
                used += 1
        if is_partial:
            _mix_sparse(state, table.w_hat, table.v, layer - 4)
        elif layer == 3:
            _mix(state, spare, table.pre_sparse)
        else:
            _mix(state, spare, table.mds)
    st_fr(out, wire, ld_fr(state, 1))
    return wire + 1


@jit
def _quintic(value, post, state, cell, out, wire):  # type: ignore[no-untyped-def]
    square = fr_sqr(value)
    fourth = fr_sqr(square)
    fifth = fr_add(fr_mul(fourth, value), post)
    st_fr(out, wire, square)
    st_fr(out, wire + 1, fourth)
    st_fr(out, wire + 2, fifth)
    st_fr(state, cell, fifth)
    return wire + 3


@jit
def _mix(state, spare, matrix):  # type: ignore[no-untyped-def]
    width = state.shape[0]
    for j in range(width):
        total = fr_zero()
        for i in range(width):
            total = fr_add(total, fr_mul(ld_fr(matrix, i * width + j), ld_fr(state, i)))
        st_fr(spare, j, total)
    for i in range(width):
        st_fr(state, i, ld_fr(spare, i))


@jit
def _mix_sparse(state, w_hat, v, layer):  # type: ignore[no-untyped-def]
    width = state.shape[0]
    head = ld_fr(state, 0)
    total = fr_mul(ld_fr(w_hat, layer * width), head)
    for i in range(1, width):
        cell = ld_fr(state, i)
        total = fr_add(total, fr_mul(ld_fr(w_hat, layer * width + i), cell))
        st_fr(state, i, fr_add(cell, fr_mul(ld_fr(v, layer * (width - 1) + i - 1), head)))
    st_fr(state, 0, total)
