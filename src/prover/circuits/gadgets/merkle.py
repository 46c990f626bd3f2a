"""One level of a Merkle path is one template: index bits, siblings, the node put among them, the hash of the row.

The node's place is chosen by conditional picks whose order and operands are those of the field's insertion gadget.
What the picks compute is kept as `Insertion.operations`, so witness and rows come from one description.
Source: rust-fil-proofs:storage-proofs-core/src/gadgets/insertion.rs, por.rs (behaviour).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prover.circuits.gadgets.bits import enforce_bit
from prover.circuits.gadgets.poseidon import hash_cells
from prover.circuits.gadgets.scalar import pick
from prover.r1cs.matrices import Template
from prover.r1cs.record import ONE, Coefficients, Recorder
from prover.r1cs.tape import I32

PICK, NEITHER, BOTH = range(3)


@dataclass(frozen=True, slots=True)
class Insertion:
    """A recorded choice of place.

    Columns count from the level's own: 0 is ONE, 1 the node, then index bits, siblings and the picks' wires.
    """

    children: tuple[int, ...]
    """Columns of the ordered children."""
    operations: I32
    """(n, 4): PICK condition, if true, if false; NEITHER and BOTH of two bits. Each makes the next wire."""


def poseidon_level(coefficients: Coefficients, arity: int) -> Template:
    """One level hashed by Poseidon. Port: the node. Outputs: the parent, then the index bits, lowest first."""
    rec = Recorder(f"poseidon-level-{arity}", coefficients, 2)
    index = record_level(rec, arity)
    rec.mark("hash")
    parent = hash_cells(rec, index[1].children)
    return rec.template([parent, *index[0]])


def ordered_children(coefficients: Coefficients, arity: int) -> Template:
    """One level without its hash. Port: the node. Outputs: the children in order, then the index bits."""
    rec = Recorder(f"children-{arity}", coefficients, 2)
    bits, insertion = record_level(rec, arity)
    return rec.template([*insertion.children, *bits])


def insertion(arity: int) -> Insertion:
    """The choice of place for one arity: 2, 4 or 8."""
    return record_level(Recorder("insertion", Coefficients(), 2), arity)[1]


def record_level(rec: Recorder, arity: int) -> tuple[list[int], Insertion]:
    """Records index bits, siblings and picks for the node at column 1; returns bits and choice."""
    rec.mark("index bits")
    bits = []
    for _ in range(arity.bit_length() - 1):
        bits.append(rec.wire())
        enforce_bit(rec, bits[-1])
    siblings = list(rec.wires(arity - 1))
    rec.mark("insertion")
    return bits, _insert(rec, 1, siblings, bits)


def _insert(rec: Recorder, x: int, s: list[int], b: list[int]) -> Insertion:
    operations: list[tuple[int, int, int, int]] = []

    def choose(condition: int, if_true: int, if_false: int) -> int:
        operations.append((PICK, condition, if_true, if_false))
        return pick(rec, condition, if_true, if_false)

    if len(s) == 1:
        children = [choose(b[0], s[0], x), choose(b[0], x, s[0])]
    elif len(s) == 3:
        children = [
            choose(b[1], s[0], choose(b[0], s[0], x)),
            choose(b[1], s[1], choose(b[0], x, s[0])),
            choose(b[1], choose(b[0], s[2], x), s[1]),
            choose(b[1], choose(b[0], x, s[2]), s[2]),
        ]
    else:
        neither, both = rec.wire(), rec.wire()
        rec.enforce({ONE: 1, b[0]: -1}, {ONE: 1, b[1]: -1}, {neither: 1})
        rec.enforce({b[0]: 1}, {b[1]: 1}, {both: 1})
        operations += [(NEITHER, b[0], b[1], 0), (BOTH, b[0], b[1], 0)]
        children = [
            choose(b[2], s[0], choose(neither, x, s[0])),
            choose(b[2], s[1], choose(b[1], s[1], choose(b[0], x, s[0]))),
            choose(b[2], s[2], choose(b[1], choose(b[0], s[2], x), s[1])),
            choose(b[2], s[3], choose(both, x, s[2])),
            choose(b[2], choose(neither, x, s[4]), s[3]),
            choose(b[2], choose(b[1], s[5], choose(b[0], x, s[4])), s[4]),
            choose(b[2], choose(b[1], choose(b[0], s[6], x), s[5]), s[5]),
            choose(b[2], choose(both, x, s[6]), s[6]),
        ]
    return Insertion(tuple(children), np.array(operations, dtype=np.int32))
