"""The meaning of an R1CS by plain integers, the oracle of the compiled passes."""

from __future__ import annotations

import hashlib

from prover.backends.cpu.field import fr_to_ints
from prover.params import R
from prover.r1cs.matrices import R1cs

Row = tuple[dict[int, int], dict[int, int], dict[int, int]]


def rows_of(r1cs: R1cs) -> list[Row]:
    """Every constraint, read off the definition in `prover.r1cs.matrices` instance by instance."""
    table = fr_to_ints(r1cs.table)
    rows: list[Row | None] = [None] * r1cs.num_constraints
    for stamp in r1cs.stamps:
        template = stamp.template
        for instance in range(len(stamp.row0)):
            for i in range(template.num_rows):
                sides = []
                for matrix in (template.a, template.b, template.c):
                    terms: dict[int, int] = {}
                    for entry in range(matrix.indptr[i], matrix.indptr[i + 1]):
                        column = int(matrix.columns[entry])
                        if column < template.num_ports:
                            wire = int(stamp.ports[instance, column])
                        else:
                            wire = int(stamp.wire0[instance]) + column - template.num_ports
                        terms[wire] = (terms.get(wire, 0) + table[matrix.coefficients[entry]]) % R
                    sides.append({wire: value for wire, value in terms.items() if value})
                row = int(stamp.row0[instance]) + i
                assert rows[row] is None, f"row {row} stands twice"
                rows[row] = (sides[0], sides[1], sides[2])
    assert None not in rows
    return rows  # type: ignore[return-value]


def value_of(terms: dict[int, int], witness: list[int]) -> int:
    return sum(value * witness[wire] for wire, value in terms.items()) % R


def bellpepper_hash(rows: list[Row], num_inputs: int, num_aux: int) -> str:
    """bellpepper's `TestConstraintSystem::hash`: BLAKE2s-256 over counts and sorted rows, big-endian."""
    digest = hashlib.blake2s()
    for count in (num_inputs, num_aux, len(rows)):
        digest.update(count.to_bytes(8, "big"))
    for row in rows:
        for terms in row:
            digest.update(len(terms).to_bytes(8, "big"))
            for wire, value in sorted(terms.items()):
                kind, index = (b"I", wire) if wire < num_inputs else (b"A", wire - num_inputs)
                digest.update(kind + index.to_bytes(8, "big") + value.to_bytes(32, "big"))
    return digest.hexdigest()
