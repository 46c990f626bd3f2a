"""The circuit row by row: what templates stand for, for files, tests and small circuits.

Rows are canonical: wires rise within a row, each stands once, and no coefficient is zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import fr_to_ints
from prover.params import R
from prover.r1cs.build import resolve
from prover.r1cs.matrices import I64, U64, Csr, R1cs, Stamp, Template
from prover.r1cs.record import Coefficients


@dataclass(frozen=True, slots=True)
class Rows:
    """Three plain matrices over the wires of the circuit."""

    a: Csr
    b: Csr
    c: Csr
    table: U64
    """(k, 4) Fr, Montgomery: what `Csr.coefficients` index. Entry 0 is 1, entry 1 is -1."""


def expand(r1cs: R1cs) -> Rows:
    """All constraints of the circuit, without the appended input rows."""
    coefficients = Coefficients()
    values = fr_to_ints(r1cs.table)
    place = np.array([coefficients.index(v) if v else -1 for v in values], np.int64)
    known = {index: value for index, value in zip(place.tolist(), values, strict=True)}
    a, b, c = (_matrix(r1cs, which, place, known, coefficients) for which in range(3))
    return Rows(a, b, c, coefficients.table())


def one_template(r1cs: R1cs) -> R1cs:
    """The same circuit as a single template stamped once, as a file would give it."""
    rows = expand(r1cs)
    # Port 0 is ONE and wire w > 0 is own wire w - 1, so relative and absolute columns are the same.
    template = Template(r1cs.name or "rows", 1, r1cs.num_wires - 1, rows.a, rows.b, rows.c)
    stamp = Stamp(template, np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros((1, 1), np.uint32))
    return R1cs(
        r1cs.num_constraints, r1cs.num_wires, r1cs.num_public, rows.table, (stamp,), r1cs.num_outputs, r1cs.name
    )  # fmt: skip


def _matrix(
    r1cs: R1cs, which: int, place: I64, known: dict[int, int], coefficients: Coefficients
) -> Csr:
    pieces: list[tuple[I64, I64, I64]] = [(np.zeros(0, np.int64),) * 3]
    for stamp in r1cs.stamps:
        template = stamp.template
        matrix = (template.a, template.b, template.c)[which]
        resolved = resolve(matrix.columns, template.num_ports, stamp.wire0, stamp.ports)
        relative = np.repeat(np.arange(template.num_rows), np.diff(matrix.indptr))
        absolute = stamp.row0[:, None] + relative
        repeated = np.tile(place[matrix.coefficients], len(absolute))
        pieces.append((absolute.reshape(-1), resolved.reshape(-1).astype(np.int64), repeated))
    rows, wires, places = (np.concatenate([piece[i] for piece in pieces]) for i in range(3))
    order = np.lexsort((wires, rows))
    rows, wires, places = rows[order], wires[order], places[order]
    keep = places >= 0
    rows, wires, places = rows[keep], wires[keep], places[keep]
    if len(rows):
        rows, wires, places = _merge(rows, wires, places, known, coefficients)
    indptr = np.zeros(r1cs.num_constraints + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=r1cs.num_constraints), out=indptr[1:])
    return Csr(indptr, wires.astype(np.uint32), places.astype(np.uint32))


def _merge(
    rows: I64, wires: I64, places: I64, known: dict[int, int], coefficients: Coefficients
) -> tuple[I64, I64, I64]:
    """Adds up entries of one wire in one row; they meet only where two ports are the same wire."""
    starts = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]) | (wires[1:] != wires[:-1])])
    if len(starts) == len(rows):
        return rows, wires, places
    ends = np.r_[starts[1:], len(rows)]
    merged = places[starts]
    for i in np.flatnonzero(ends - starts > 1):
        total = sum(known[p] for p in places[starts[i] : ends[i]].tolist()) % R
        merged[i] = coefficients.index(total) if total else -1
        known[int(merged[i])] = total
    keep: npt.NDArray[np.bool_] = merged >= 0
    return rows[starts][keep], wires[starts][keep], merged[keep]

