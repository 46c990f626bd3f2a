"""Row values a, b, c come from the templates block by block; no row of the circuit is ever materialised.

Wires of 0 and 1 and coefficients of 1 and -1 cost additions only, which is most of a bit-heavy circuit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prover.backends.cpu.field import (
    fr_add,
    fr_eq,
    fr_is_zero,
    fr_mul,
    fr_one,
    fr_sub,
    fr_zero,
    ld_fr,
    st_fr,
)
from prover.backends.cpu.jit import jit
from prover.r1cs.build import Places
from prover.r1cs.chunks import Check, Progress, run_chunks
from prover.r1cs.matrices import U64, R1cs, Stamp

CHUNK_ROWS = 1 << 16
"""Rows between two looks at progress and cancellation: a few milliseconds."""


def evaluate_abc(
    r1cs: R1cs, witness: U64, a: U64, b: U64, c: U64, *, progress: Progress | None = None, check: Check | None = None,
    threads: int = 1,
) -> None:  # fmt: skip
    """Row values of A, B and C at a witness, in natural order.

    Args:
        witness: (num_wires, 4) Fr, Montgomery, witness[0] = 1.
        a, b, c: (domain_size, 4), written whole: rows behind the constraints are zero but for the
            num_public + 1 appended input rows of `a`.
        progress: told how many rows were done since the last call.
        check: called between chunks; raises to stop.
    """
    chunks: list[Callable[[], int]] = []
    for stamp in r1cs.stamps:
        rows = stamp.template.num_rows
        total = rows * len(stamp.row0)
        for first in range(0, total, CHUNK_ROWS):
            chunks.append(_chunk(stamp, r1cs.table, witness, a, b, c, first, min(first + CHUNK_ROWS, total)))
    run_chunks(chunks, threads, progress, check)
    num_inputs = r1cs.num_public + 1
    end = r1cs.num_constraints
    a[end : end + num_inputs] = witness[:num_inputs]
    for values, used in ((a, end + num_inputs), (b, end), (c, end)):
        values[used:] = 0


def first_unsatisfied(
    r1cs: R1cs, a: U64, b: U64, c: U64, *, check: Check | None = None, threads: int = 1
) -> int | None:
    """The first constraint with a * b != c, or None.

    Args:
        a, b, c: at least (num_constraints, 4), as `evaluate_abc` left them.
    """
    found: list[int] = []

    def look(first: int) -> int:
        last = min(first + CHUNK_ROWS, r1cs.num_constraints)
        row = int(_first_bad(a, b, c, first, last))
        if row >= 0:
            found.append(row)
        return last - first

    chunks = [lambda first=first: look(first) for first in range(0, r1cs.num_constraints, CHUNK_ROWS)]  # type: ignore[misc]
    run_chunks(chunks, threads, None, check)
    return min(found, default=None)


def describe_row(r1cs: R1cs, row: int) -> str:
    """What a constraint is called: places of the circuit, then template, instance, row within it and its part."""
    words = []
    places = r1cs.labels.get("places")
    if isinstance(places, Places):
        words += places.names(row)
    for stamp in r1cs.stamps:
        template = stamp.template
        instance = int(np.searchsorted(stamp.row0, row, side="right")) - 1
        if instance >= 0 and row < stamp.row0[instance] + template.num_rows:
            relative = row - int(stamp.row0[instance])
            part = [name for first, name in template.marks if first <= relative][-1:]
            words += [f"{template.name} {instance}", *part, f"row {relative} of {template.num_rows}"]
    return ", ".join(words)


def _chunk(
    stamp: Stamp, table: U64, witness: U64, a: U64, b: U64, c: U64, first: int, last: int
) -> Callable[[], int]:
    template = stamp.template

    def evaluate() -> int:
        for matrix, out in ((template.a, a), (template.b, b), (template.c, c)):
            _evaluate(
                matrix.indptr, matrix.columns, matrix.coefficients, table, stamp.ports, stamp.wire0, stamp.row0,
                first, last, witness, out,
            )  # fmt: skip
        return last - first

    return evaluate


@jit
def _evaluate(  # type: ignore[no-untyped-def]
    indptr, columns, coefficients, table, ports, wire0, row0, first, last, witness, out
):
    rows = len(indptr) - 1
    num_ports = ports.shape[1]
    one = fr_one()
    instance = first // rows
    row = first - instance * rows
    for _ in range(first, last):
        base = wire0[instance] - num_ports
        total = fr_zero()
        for entry in range(indptr[row], indptr[row + 1]):
            column = np.int64(columns[entry])
            wire = base + column
            if column < num_ports:
                wire = np.int64(ports[instance, column])
            value = ld_fr(witness, wire)
            place = np.int64(coefficients[entry])
            if place == 0:
                total = fr_add(total, value)
            elif place == 1:
                total = fr_sub(total, value)
            elif fr_eq(value, one):
                total = fr_add(total, ld_fr(table, place))
            elif not fr_is_zero(value):
                total = fr_add(total, fr_mul(ld_fr(table, place), value))
        st_fr(out, row0[instance] + row, total)
        row += 1
        if row == rows:
            row = 0
            instance += 1


@jit
def _first_bad(a, b, c, first, last):  # type: ignore[no-untyped-def]
    one = fr_one()
    for row in range(first, last):
        x, y, z = ld_fr(a, row), ld_fr(b, row), ld_fr(c, row)
        if fr_eq(y, one):
            if not fr_eq(x, z):
                return row
        elif fr_is_zero(x) or fr_is_zero(y):
            if not fr_is_zero(z):
                return row
        elif not fr_eq(fr_mul(x, y), z):
            return row
    return -1
