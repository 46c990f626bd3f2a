"""The column polynomials at one point, for the setup: column i at tau is the sum of its coefficients times L_row(tau).

One thread owns one matrix, so no two write the same column.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prover.backends.cpu.field import fr_add, fr_mul, fr_sub, ld_fr, st_fr
from prover.backends.cpu.jit import jit
from prover.r1cs.chunks import Check, Progress, run_chunks
from prover.r1cs.evaluate import CHUNK_ROWS
from prover.r1cs.matrices import U64, R1cs


def columns_at(
    r1cs: R1cs, lagrange: U64, *, progress: Progress | None = None, check: Check | None = None, threads: int = 2
) -> tuple[U64, U64, U64]:
    """Columns of A, B and C at tau, each (num_wires, 4) Fr, Montgomery; the appended input rows count in A.

    Args:
        lagrange: (domain_size, 4) Fr, Montgomery: L_row(tau) of the circuit's domain, natural order.
        progress: told how many entries were added since the last call.
        check: called between chunks, in the working threads; raises to stop.
    """
    sums = [np.zeros((r1cs.num_wires, 4), np.uint64) for _ in range(3)]
    sizes = r1cs.nnz
    biggest_first = sorted(range(3), key=lambda which: -sizes[which])
    run_chunks([_task(r1cs, which, lagrange, sums[which], check) for which in biggest_first], threads, progress, check)
    _add_inputs(lagrange, r1cs.num_constraints, r1cs.num_public + 1, sums[0])
    return sums[0], sums[1], sums[2]


def _task(r1cs: R1cs, which: int, lagrange: U64, out: U64, check: Check | None) -> Callable[[], int]:
    def accumulate() -> int:
        for stamp in r1cs.stamps:
            matrix = (stamp.template.a, stamp.template.b, stamp.template.c)[which]
            total = stamp.template.num_rows * len(stamp.row0)
            for first in range(0, total, CHUNK_ROWS):
                if check is not None:
                    check()
                _accumulate(
                    matrix.indptr, matrix.columns, matrix.coefficients, r1cs.table, stamp.ports, stamp.wire0,
                    stamp.row0, first, min(first + CHUNK_ROWS, total), lagrange, out,
                )  # fmt: skip
        return r1cs.nnz[which]

    return accumulate


@jit
def _accumulate(  # type: ignore[no-untyped-def]
    indptr, columns, coefficients, table, ports, wire0, row0, first, last, lagrange, out
):
    rows = len(indptr) - 1
    num_ports = ports.shape[1]
    instance = first // rows
    row = first - instance * rows
    for _ in range(first, last):
        base = wire0[instance] - num_ports
        weight = ld_fr(lagrange, row0[instance] + row)
        for entry in range(indptr[row], indptr[row + 1]):
            column = np.int64(columns[entry])
            wire = base + column
            if column < num_ports:
                wire = np.int64(ports[instance, column])
            place = np.int64(coefficients[entry])
            total = ld_fr(out, wire)
            if place == 0:
                total = fr_add(total, weight)
            elif place == 1:
                total = fr_sub(total, weight)
            else:
                total = fr_add(total, fr_mul(ld_fr(table, place), weight))
            st_fr(out, wire, total)
        row += 1
        if row == rows:
            row = 0
            instance += 1


@jit
def _add_inputs(lagrange, row, count, out):  # type: ignore[no-untyped-def]
    for wire in range(count):
        st_fr(out, wire, fr_add(ld_fr(out, wire), ld_fr(lagrange, row + wire)))
