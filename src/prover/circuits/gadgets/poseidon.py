"""One Poseidon hash is one template: neptune's legacy circuit, in which a cell is a wire or a growing combination.

Constraints: 311, 377, 505 and 598 for arity 2, 4, 8 and 11, and as many wires.
Source: neptune:src/circuit.rs (behaviour); section 3 of the constants' derivation in `poseidon_constants`.
"""

from __future__ import annotations

from collections.abc import Sequence

from prover.circuits.gadgets.poseidon_constants import HALF, Sparse, constants
from prover.params import R
from prover.r1cs.matrices import Template
from prover.r1cs.record import ONE, Coefficients, Recorder

Cell = dict[int, int]
"""A combination; a single column with coefficient 1 counts as allocated."""


def poseidon(coefficients: Coefficients, arity: int) -> Template:
    """Records one hash. Ports: ONE, then the `arity` children; output: the digest."""
    rec = Recorder(f"poseidon-{arity}", coefficients, 1 + arity)
    return rec.template([hash_cells(rec, list(range(1, 1 + arity)))])


def hash_cells(rec: Recorder, children: Sequence[int]) -> int:
    """The rows of one hash of allocated columns; returns the digest's column."""
    fixed = constants(len(children))
    width, partial = fixed.width, fixed.partial_rounds
    stream = iter(fixed.compressed)
    cells: list[Cell] = [{ONE: fixed.domain_tag}, *({column: 1} for column in children)]
    pre = [next(stream) for _ in range(width)]
    post = [next(stream) for _ in range(width)]
    rec.mark("full rounds")
    cells[0] = {ONE: (pow(fixed.domain_tag + pre[0], 5, R) + post[0]) % R}
    cells[1:] = [{_quintic(rec, children[i - 1], pre[i], post[i]): 1} for i in range(1, width)]
    cells = _mix(cells, fixed.mds)
    for layer in range(1, HALF):
        cells = [{_quintic(rec, ensure(rec, cell), 0, next(stream)): 1} for cell in cells]
        cells = _mix(cells, fixed.pre_sparse if layer == HALF - 1 else fixed.mds)
    rec.mark("partial rounds")
    for layer in range(partial):
        cells[0] = {_quintic(rec, ensure(rec, cells[0]), 0, next(stream)): 1}
        cells = _mix_sparse(cells, fixed.sparse[layer])
    rec.mark("full rounds")
    for layer in range(HALF):
        is_last = layer == HALF - 1
        cells = [{_quintic(rec, ensure(rec, cell), 0, 0 if is_last else next(stream)): 1} for cell in cells]
        cells = _mix(cells, fixed.mds)
    return ensure(rec, cells[1])


def ensure(rec: Recorder, cell: Cell) -> int:
    """A wire that holds the cell."""
    column = rec.wire()
    rec.enforce(cell, {ONE: 1}, {column: 1})
    return column


def _quintic(rec: Recorder, column: int, pre: int, post: int) -> int:
    """(x + pre)^5 + post as a wire, in three rows."""
    shifted = {column: 1, ONE: pre} if pre else {column: 1}
    square, fourth, fifth = rec.wire(), rec.wire(), rec.wire()
    rec.enforce(shifted, shifted, {square: 1})
    rec.enforce({square: 1}, {square: 1}, {fourth: 1})
    rec.enforce(shifted, {fourth: 1}, {fifth: 1, ONE: -post} if post else {fifth: 1})
    return fifth


def _mix(cells: Sequence[Cell], matrix: Sequence[Sequence[int]]) -> list[Cell]:
    mixed = []
    for j in range(len(cells)):
        total: Cell = {}
        for cell, row in zip(cells, matrix, strict=True):
            _accumulate(total, cell, row[j])
        mixed.append(total)
    return mixed


def _mix_sparse(cells: Sequence[Cell], sparse: Sparse) -> list[Cell]:
    first: Cell = {}
    for cell, factor in zip(cells, sparse.w_hat, strict=True):
        _accumulate(first, cell, factor)
    mixed = [first]
    for cell, factor in zip(cells[1:], sparse.v, strict=True):
        total = dict(cell)
        _accumulate(total, cells[0], factor)
        mixed.append(total)
    return mixed


def _accumulate(total: Cell, cell: Cell, factor: int) -> None:
    for column, value in cell.items():
        total[column] = (total.get(column, 0) + value * factor) % R
