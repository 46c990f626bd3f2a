"""Section 4 of a zkey lists the entries of A and B in any order; here they are rows again, and c is a*b.

An entry is u32 matrix (0 = A, 1 = B), u32 row, u32 wire, 32-byte coefficient v R^2 mod r.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import fr_from_mont, fr_mul, fr_to_mont, ld_fr, pack, st_fr
from prover.backends.cpu.jit import jit
from prover.files.binfile import SectionReader
from prover.files.coefficients import CoefficientTable, intern, is_below
from prover.files.plain_rows import plain_rows
from prover.params import FR_MONT, R
from prover.r1cs.chunks import Check, Progress, run_chunks
from prover.r1cs.evaluate import evaluate_abc
from prover.r1cs.expand import expand
from prover.r1cs.matrices import Csr, R1cs, Stamp, Template

U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]
ENTRY_WORDS = 11
ONE_STORED = FR_MONT * FR_MONT % R
CHUNK_ROWS = 1 << 16
FAULTS = {
    1: "matrix is neither 0 (A) nor 1 (B)",
    2: "constraint is outside the domain",
    3: "signal is not a wire of the circuit",
    4: "coefficient is not below the modulus of Fr",
}


def read_rows(section: SectionReader, num_wires: int, num_public: int, domain_size: int) -> R1cs:
    """A and B of the circuit as one template; its C is empty.

    Raises:
        BadFile: an entry out of range, or last rows that do not bind ONE and the public wires.
    """
    count = section.u32("the entry count")
    if count * ENTRY_WORDS * 4 != section.remaining_bytes:
        raise section.bad(f"{count} entries need {count * 44} bytes and the section has {section.remaining_bytes}", 0)
    entries = section.words((count, ENTRY_WORDS), "the entries")
    modulus = pack([R], 4).view(np.uint32).ravel()
    indptr = np.zeros((2, domain_size + 1), np.int64)
    bad = int(_count(entries, num_wires, domain_size, modulus, indptr))
    if bad >= 0:
        index, fault = divmod(bad, 8)
        raise section.bad(f"entry {index}: {FAULTS[fault]}", 4 + 44 * index)
    np.cumsum(indptr, axis=1, out=indptr)
    columns = [np.empty(int(indptr[m, -1]), np.uint32) for m in range(2)]
    indices = [np.empty(int(indptr[m, -1]), np.uint32) for m in range(2)]
    table = CoefficientTable(ONE_STORED, R - ONE_STORED)
    cursors = indptr[:, :-1].copy()
    done = 0
    while done < count:
        table.reserve(max(1 << 16, table.count))
        done, table.count = map(int, _place(
            entries, done, cursors, *columns, *indices, table.values, table.slots, table.count, table.seed,
        ))  # fmt: skip
    last_row = int(entries[:, 1].max()) if count else -1
    num_constraints = last_row - num_public
    if num_constraints < 0 or not _binds_inputs(indptr, columns[0], indices[0], num_constraints, num_public):
        raise section.bad(f"the last {num_public + 1} rows do not bind ONE and the public wires; the key is unsound")
    a, b = (
        Csr(
            indptr[m, : num_constraints + 1].copy(),
            columns[m][: indptr[m, num_constraints]],
            indices[m][: indptr[m, num_constraints]],
        )
        for m in range(2)
    )
    nothing = np.empty(0, np.uint32)
    c = Csr(np.zeros(num_constraints + 1, np.int64), nothing, nothing)
    return R1cs(
        num_constraints=num_constraints,
        num_wires=num_wires,
        num_public=num_public,
        table=fr_from_mont(table.distinct()),
        stamps=(
            Stamp(
                Template("zkey", 1, num_wires - 1, a, b, c),
                np.zeros(1, np.int64),
                np.ones(1, np.int64),
                np.zeros((1, 1), np.uint32),
            ),
        ),
        name="zkey",
    )


def evaluate_rows(
    relation: R1cs, witness: U64, a: U64, b: U64, c: U64, *, progress: Progress | None = None,
    check: Check | None = None, threads: int = 1,
) -> None:  # fmt: skip
    """Row values of a zkey's circuit: a and b from its rows, c = a * b; see `prover.r1cs.evaluate.evaluate_abc`."""
    evaluate_abc(relation, witness, a, b, c, progress=progress, check=check, threads=threads)
    end = relation.num_constraints

    def multiply(first: int) -> int:
        _multiply(a, b, c, first, min(first + CHUNK_ROWS, end))
        return 0

    chunks = [lambda first=first: multiply(first) for first in range(0, end, CHUNK_ROWS)]  # type: ignore[misc]
    run_chunks(chunks, threads, None, check)


def pack_entries(r1cs: R1cs) -> npt.NDArray[np.uint32]:
    """Section 4 without its count, (entries, 11): row by row, A before B, the binding rows last.

    Order of snarkjs, so that a key read from it is written back byte for byte.
    """
    rows = plain_rows(r1cs)
    stored = fr_to_mont(rows.table).view(np.uint32).reshape(-1, 8)
    out = np.zeros((rows.a.nnz + rows.b.nnz + r1cs.num_public + 1, ENTRY_WORDS), np.uint32)
    _fill(
        rows.a.indptr, rows.a.columns, rows.a.coefficients, rows.b.indptr, rows.b.columns, rows.b.coefficients,
        stored, out,
    )  # fmt: skip
    inputs = out[rows.a.nnz + rows.b.nnz :]
    inputs[:, 1] = r1cs.num_constraints + np.arange(len(inputs))
    inputs[:, 2] = np.arange(len(inputs))
    inputs[:, 3:] = pack([ONE_STORED], 4).view(np.uint32)
    return out


def first_difference(relation: R1cs, r1cs: R1cs) -> str:
    """Where A or B of two circuits of one shape differ first, as a phrase; empty if they agree."""
    ours, theirs = expand(relation), expand(r1cs)
    for name, x, y in (("A", ours.a, theirs.a), ("B", ours.b, theirs.b)):
        if not np.array_equal(x.indptr, y.indptr):
            row = int(np.flatnonzero(x.indptr != y.indptr)[0]) - 1
            return f"constraint {row} has another number of entries in {name}"
        same = x.columns == y.columns
        same &= (ours.table[x.coefficients] == theirs.table[y.coefficients]).all(axis=1)
        if not same.all():
            row = int(np.searchsorted(x.indptr, np.flatnonzero(~same)[0], side="right")) - 1
            return f"constraint {row} has other entries in {name}"
    return ""


def _binds_inputs(indptr: npt.NDArray[np.int64], columns: U32, indices: U32, first_row: int, num_public: int) -> bool:
    n = num_public + 1
    starts = indptr[0, first_row : first_row + n + 1]
    return (
        bool((np.diff(starts) == 1).all())
        and bool((columns[starts[:-1]] == np.arange(n)).all())
        and not indices[starts[:-1]].any()
        and indptr[1, first_row] == indptr[1, first_row + n]
    )


@jit
def _count(entries, num_wires, domain_size, modulus, counts):  # type: ignore[no-untyped-def]
    """Entries of each row, one place to the right; or 8 * index + fault of the first bad entry, -1 for none."""
    flat = entries.reshape(-1)
    for i in range(entries.shape[0]):
        if entries[i, 0] > 1:
            return 8 * i + 1
        if entries[i, 1] >= domain_size:
            return 8 * i + 2
        if entries[i, 2] >= num_wires:
            return 8 * i + 3
        if not is_below(flat, 11 * i + 3, modulus):
            return 8 * i + 4
        counts[entries[i, 0], entries[i, 1] + 1] += 1
    return -1


@jit
def _place(  # type: ignore[no-untyped-def]
    entries, first, cursors, col_a, col_b, id_a, id_b, values, slots, count, seed
):
    flat = entries.reshape(-1)
    for i in range(first, entries.shape[0]):
        if 2 * (count + 1) > len(slots):
            return i, count
        index, count = intern(flat, 11 * i + 3, values, slots, count, seed)
        m, row = entries[i, 0], entries[i, 1]
        at = cursors[m, row]
        cursors[m, row] = at + 1
        if m == 0:
            col_a[at] = entries[i, 2]
            id_a[at] = index
        else:
            col_b[at] = entries[i, 2]
            id_b[at] = index
    return entries.shape[0], count


@jit
def _multiply(a, b, c, first, last):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        st_fr(c, i, fr_mul(ld_fr(a, i), ld_fr(b, i)))


@jit
def _fill(ptr_a, col_a, id_a, ptr_b, col_b, id_b, stored, out):  # type: ignore[no-untyped-def]
    at = 0
    for row in range(len(ptr_a) - 1):
        for m in range(2):
            indptr = ptr_a if m == 0 else ptr_b
            columns = col_a if m == 0 else col_b
            indices = id_a if m == 0 else id_b
            for entry in range(indptr[row], indptr[row + 1]):
                out[at, 0] = m
                out[at, 1] = row
                out[at, 2] = columns[entry]
                for i in range(8):
                    out[at, 3 + i] = stored[indices[entry], i]
                at += 1
