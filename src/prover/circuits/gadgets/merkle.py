"""One level of a Merkle path is one template: index bits, siblings, the node put among them, the hash of the row.

The node's place is chosen by conditional picks whose order and operands are those of the field's insertion gadget.
What the picks compute is kept as `Insertion.operations`, so witness and rows come from one description.
Source: rust-fil-proofs:storage-proofs-core/src/gadgets/insertion.rs, por.rs (behaviour).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prover.circuits.gadgets.bits import FALSE, enforce_bit, rev8
from prover.circuits.gadgets.poseidon import hash_cells
from prover.circuits.gadgets.scalar import pack_bits, pick, to_bits_le
from prover.circuits.gadgets.sha256 import compression
from prover.circuits.gadgets.uint32 import CAPACITY
from prover.r1cs.build import Block, Builder
from prover.r1cs.matrices import Template
from prover.r1cs.record import ONE, Coefficients, Recorder
from prover.r1cs.tape import I32

PICK, NEITHER, BOTH = range(3)
_TOP_BIT = 248
"""Where bit 255 of a field element, always 0, stands in its 32 bytes of SHA-256 input."""


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
    bits, chosen = record_level(rec, arity)
    rec.mark("hash")
    parent = hash_cells(rec, chosen.children)
    return rec.template([parent, *bits])


def ordered_children(coefficients: Coefficients, arity: int) -> Template:
    """One level without its hash. Port: the node. Outputs: the children in order, then the index bits."""
    rec = Recorder(f"children-{arity}", coefficients, 2)
    bits, chosen = record_level(rec, arity)
    return rec.template([*chosen.children, *bits])


def sha256_level(coefficients: Coefficients) -> Block:
    """One level of the binary SHA-256 tree. Port: the node. Outputs: the parent, then the index bit.

    The children are decomposed again behind their picks; two compressions, the second of padding alone.
    """
    builder = Builder("sha256-level", 2)
    left, right, index = builder.stamp(ordered_children(coefficients, 2), [1])
    to_bits = to_bits_le(coefficients)
    stream: list[int] = []
    for child in (left, right):
        bits = builder.stamp(to_bits, [child])
        stream += [bit >> 1 for bit in rev8([2 * int(column) for column in bits]) if bit != FALSE]
    whole = [0 if i % 256 == _TOP_BIT else None for i in range(512)]
    state = builder.stamp(compression(coefficients, initial=True, message=whole, name="sha256-node"), stream)
    padding = [1] + [0] * 501 + [1] + [0] * 9
    padded = compression(coefficients, initial=False, message=padding, name="sha256-padding")
    digest = builder.stamp(padded, state)
    packed = [bit >> 1 for bit in rev8([2 * int(column) for column in digest])]
    (parent,) = builder.stamp(pack_bits(coefficients, [None] * CAPACITY), packed[:CAPACITY])
    return builder.block([int(parent), int(index)])


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
