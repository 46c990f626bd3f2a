"""A circom `.r1cs` file and an R1cs of one template hold the same rows: reading then writing gives the same sections.

Source: iden3/r1csfile, doc/r1cs_bin_format.md. Coefficients are plain little-endian integers below r, A*B - C = 0;
wires: ONE, public outputs, public inputs, private inputs, the rest.
"""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import fr_from_mont, fr_to_mont, pack
from prover.backends.cpu.jit import jit
from prover.errors import Mismatch
from prover.files.atomic import atomic_writer
from prover.files.binfile import BinFile, SectionReader, write_binfile
from prover.files.coefficients import CoefficientTable, intern, is_below
from prover.files.plain_rows import plain_rows
from prover.files.primes import why_not_scalar
from prover.params import R
from prover.r1cs.matrices import Csr, R1cs, Stamp, Template

MAGIC, VERSION = b"r1cs", 1
HEADER, CONSTRAINTS, LABELS, GATE_LIST, GATE_USES = 1, 2, 3, 4, 5
SECTIONS = {
    HEADER: "header",
    CONSTRAINTS: "constraints",
    LABELS: "wire labels",
    GATE_LIST: "custom gates",
    GATE_USES: "custom gate uses",
}
FR_BYTES = 32
ENTRY_WORDS = 9
"""u32 wire, 32-byte coefficient."""
BAD_WIRE, BAD_VALUE, FULL = 2, 3, 4


def read_r1cs(path: str | os.PathLike[str]) -> R1cs:
    """The circuit of a `.r1cs` file, as one template stamped once.

    Returns:
        R1cs whose `labels` keep `wire_to_label` and the header's counts, for writing the file again.

    Raises:
        BadFile: any count, size, wire or coefficient that does not fit; another curve; custom gates.
    """
    with BinFile(path, MAGIC, (VERSION,), SECTIONS) as file:
        header = file.section(HEADER)
        _require_prime(header)
        num_wires = header.u32("wire count")
        num_outputs = header.u32("output count")
        num_inputs = header.u32("public input count")
        num_private = header.u32("private input count")
        num_labels = header.u64("label count")
        num_constraints = header.u32("constraint count")
        header.end("the header")
        num_public = num_outputs + num_inputs
        if num_wires < 1 + num_public + num_private:
            raise header.bad(f"{num_wires} wires cannot hold ONE and {num_public + num_private} inputs and outputs", 36)
        for kind in (GATE_LIST, GATE_USES):
            if file.has(kind) and any(_raw(file.section(kind))):
                raise file.section(kind).bad("custom gates are PLONK's and Groth16 has none; compile without them")
        rows = file.section(CONSTRAINTS)
        if num_constraints * 12 > rows.remaining_bytes:
            raise rows.bad(f"{num_constraints} constraints need at least {num_constraints * 12} bytes", 0)
        labels = None
        if file.has(LABELS):
            section = file.section(LABELS)
            if section.remaining_bytes != num_wires * 8:
                raise section.bad(f"holds {section.remaining_bytes} bytes and {num_wires} wires need {num_wires * 8}")
            labels = section.limbs((num_wires,), "the wire labels")
        elif num_wires > 1 + num_public + num_private + rows.remaining_bytes // (4 * ENTRY_WORDS):
            raise header.bad(f"{num_wires} wires are more than the constraints can use", 36)
        template, table = _read_rows(rows, num_constraints, num_wires)
    return R1cs(
        num_constraints=num_constraints,
        num_wires=num_wires,
        num_public=num_public,
        table=table,
        stamps=(Stamp(template, np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros((1, 1), np.uint32)),),
        num_outputs=num_outputs,
        name=os.path.basename(path),
        labels={"wire_to_label": labels, "num_labels": num_labels, "num_private_inputs": num_private},
    )


def write_r1cs(path: str | os.PathLike[str], r1cs: R1cs) -> None:
    """Writes the circuit row by row, sections in circom's order (constraints, header, labels)."""
    rows = plain_rows(r1cs)
    words = _pack_rows(rows.a, rows.b, rows.c, fr_from_mont(rows.table).view(np.uint32).reshape(-1, 8))
    labels = r1cs.labels.get("wire_to_label")
    if labels is None:
        labels = np.arange(r1cs.num_wires, dtype=np.uint64)
    counts = (r1cs.num_wires, r1cs.num_outputs, r1cs.num_public - r1cs.num_outputs)
    header = b"".join(
        (
            FR_BYTES.to_bytes(4, "little"),
            R.to_bytes(FR_BYTES, "little"),
            *(n.to_bytes(4, "little") for n in counts),
            int(str(r1cs.labels.get("num_private_inputs", 0))).to_bytes(4, "little"),
            int(str(r1cs.labels.get("num_labels", r1cs.num_wires))).to_bytes(8, "little"),
            r1cs.num_constraints.to_bytes(4, "little"),
        )
    )
    with atomic_writer(path) as out:
        write_binfile(out, MAGIC, VERSION, [(CONSTRAINTS, [words]), (HEADER, [header]), (LABELS, [np.asarray(labels)])])


def require_same_shape(r1cs: R1cs, num_wires: int, num_public: int, num_constraints: int, what: str) -> None:
    """Raises Mismatch unless a key or witness (`what`) has the circuit's counts."""
    ours = (r1cs.num_wires, r1cs.num_public, r1cs.num_constraints)
    theirs = (num_wires, num_public, num_constraints)
    if ours != theirs:
        raise Mismatch(
            f"{what} is of another circuit: it has {theirs[0]} wires, {theirs[1]} public, {theirs[2]} constraints, and "
            f"{r1cs.name or 'the circuit'} has {ours[0]}, {ours[1]}, {ours[2]}"
        )


def _raw(section: SectionReader) -> bytes:
    return section.raw(min(section.remaining_bytes, 64), "custom gates")


def _require_prime(header: SectionReader) -> None:
    size = header.u32("size of a field element")
    if not 0 < size <= 128 or size % 8:
        raise header.bad(f"a field element of {size} bytes is out of range", 0)
    if fault := why_not_scalar(header.integer(size, "the prime")):
        raise header.bad(fault, 4)
    if size != FR_BYTES:
        raise header.bad(f"field elements of {size} bytes; bls12381 has {FR_BYTES}", 0)


def _read_rows(section: SectionReader, num_rows: int, num_wires: int) -> tuple[Template, npt.NDArray[np.uint64]]:
    if section.remaining_bytes % 4:
        raise section.bad(f"size {section.remaining_bytes} is not a multiple of 4", 0)
    data = section.words((section.remaining_bytes // 4,), "the constraints")
    indptr = np.zeros((3, num_rows + 1), np.int64)
    end = int(_measure(data, indptr))
    if end < 0:
        raise section.bad("a constraint claims more entries than the section holds", -4 * (end + 1))
    if end != len(data):
        raise section.bad(f"{4 * (len(data) - end)} bytes follow the last of {num_rows} constraints", 4 * end)
    counts = [int(indptr[m, -1]) for m in range(3)]
    columns = [np.empty(n, np.uint32) for n in counts]
    indices = [np.empty(n, np.uint32) for n in counts]
    table = CoefficientTable(1, R - 1)
    modulus = pack([R], 4).view(np.uint32).ravel()
    row, position = 0, 0
    while row < num_rows:
        stopped = _extract(
            data, row, position, num_wires, indptr, *columns, *indices,
            table.values, table.slots, table.count, table.seed, modulus,
        )  # fmt: skip
        row, position, table.count, status = (int(x) for x in stopped)
        if status == FULL:
            table.reserve(max(2 * table.count, int((indptr[:, row + 1] - indptr[:, row]).sum())))
        elif status == BAD_WIRE:
            raise section.bad(f"constraint {row} uses wire {data[position]} of only {num_wires}", 4 * position)
        elif status == BAD_VALUE:
            raise section.bad(f"a coefficient of constraint {row} is not below the modulus of Fr", 4 * position)
    a, b, c = (Csr(indptr[m].copy(), columns[m], indices[m]) for m in range(3))
    return Template("r1cs", 1, num_wires - 1, a, b, c), fr_to_mont(table.distinct())


@jit
def _measure(data, indptr):  # type: ignore[no-untyped-def]
    """Fills the row pointers; returns the end position in words, or -1 - position of an impossible count."""
    position, size = np.int64(0), len(data)
    for row in range(indptr.shape[1] - 1):
        for m in range(3):
            if position >= size:
                return -1 - position
            count = np.int64(data[position])
            if count * 9 > size - position - 1:
                return -1 - position
            indptr[m, row + 1] = indptr[m, row] + count
            position += 1 + 9 * count
    return position


@jit
def _extract(
    data, row, position, num_wires, indptr, col_a, col_b, col_c, id_a, id_b, id_c, values, slots, count, seed, modulus
):  # type: ignore[no-untyped-def]  # fmt: skip
    """Copies rows from `row` on; stops at a fault, or when the coefficient table needs room for the next row."""
    num_rows = indptr.shape[1] - 1
    while row < num_rows:
        need = np.int64(0)
        for m in range(3):
            need += indptr[m, row + 1] - indptr[m, row]
        if 2 * (count + need) > len(slots):
            return row, position, count, 4
        for m in range(3):
            columns = col_a if m == 0 else (col_b if m == 1 else col_c)
            indices = id_a if m == 0 else (id_b if m == 1 else id_c)
            position += 1
            for entry in range(indptr[m, row], indptr[m, row + 1]):
                if data[position] >= num_wires:
                    return row, position, count, 2
                if not is_below(data, position + 1, modulus):
                    return row, position + 1, count, 3
                columns[entry] = data[position]
                index, count = intern(data, position + 1, values, slots, count, seed)
                indices[entry] = index
                position += 9
        row += 1
    return row, position, count, 0


def _pack_rows(a: Csr, b: Csr, c: Csr, table: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    num_rows = len(a.indptr) - 1
    out = np.empty(3 * num_rows + ENTRY_WORDS * (a.nnz + b.nnz + c.nnz), np.uint32)
    _fill_rows(
        a.indptr, b.indptr, c.indptr, a.columns, b.columns, c.columns, a.coefficients, b.coefficients, c.coefficients,
        np.ascontiguousarray(table), out,
    )  # fmt: skip
    return out


@jit
def _fill_rows(ptr_a, ptr_b, ptr_c, col_a, col_b, col_c, id_a, id_b, id_c, table, out):  # type: ignore[no-untyped-def]
    position = 0
    for row in range(len(ptr_a) - 1):
        for m in range(3):
            indptr = ptr_a if m == 0 else (ptr_b if m == 1 else ptr_c)
            columns = col_a if m == 0 else (col_b if m == 1 else col_c)
            indices = id_a if m == 0 else (id_b if m == 1 else id_c)
            out[position] = indptr[row + 1] - indptr[row]
            position += 1
            for entry in range(indptr[row], indptr[row + 1]):
                out[position] = columns[entry]
                for i in range(8):
                    out[position + 1 + i] = table[indices[entry], i]
                position += 9
