"""Templates of the PoRep circuit are recorded once and found again, so that equal gadgets merge into one stamp."""

from __future__ import annotations

from collections.abc import Sequence

from prover.circuits.gadgets import merkle, poseidon, scalar, sha256
from prover.circuits.gadgets.bits import FALSE, TRUE, Bit, bit_of, column_of, is_constant, rev8
from prover.circuits.gadgets.uint32 import CAPACITY
from prover.r1cs.build import Block, Builder
from prover.r1cs.matrices import Template
from prover.r1cs.record import Coefficients

BLOCK_BITS = 512


class Gadgets:
    """The recorded gadgets of one circuit.

    Args:
        coefficients: the circuit's table.
    """

    def __init__(self, coefficients: Coefficients) -> None:
        self.coefficients = coefficients
        self.to_bits = scalar.to_bits_le(coefficients, "field-bits")
        self.node_bits = scalar.bits(coefficients, 64, "challenge-bits")
        self.equal = scalar.equal(coefficients)
        self.inputize = scalar.inputize(coefficients)
        self.add = scalar.add(coefficients)
        self.pack = scalar.pack_bits(coefficients, [None] * CAPACITY, "label")
        self.sha256_level = merkle.sha256_level(coefficients)
        self._hashes: dict[int, Template] = {}
        self._levels: dict[int, Template] = {}
        self._inputs: dict[int, Template] = {}
        self._compressions: dict[tuple[bool, tuple[int | None, ...]], Template] = {}

    def hash(self, arity: int) -> Template:
        """Poseidon."""
        if arity not in self._hashes:
            self._hashes[arity] = poseidon.poseidon(self.coefficients, arity)
        return self._hashes[arity]

    def level(self, arity: int) -> Template:
        """One level of a Poseidon tree."""
        if arity not in self._levels:
            self._levels[arity] = merkle.poseidon_level(self.coefficients, arity)
        return self._levels[arity]

    def packed_input(self, count: int) -> Template:
        """Binds one public wire to `count` bits."""
        if count not in self._inputs:
            self._inputs[count] = scalar.pack_into_inputs(self.coefficients, count, "index")
        return self._inputs[count]

    def compression(self, *, initial: bool, pattern: Sequence[int | None], name: str) -> Template:
        """SHA-256 of one block with these constant bits."""
        key = (initial, tuple(pattern))
        if key not in self._compressions:
            self._compressions[key] = sha256.compression(
                self.coefficients, initial=initial, message=pattern, name=name
            )  # fmt: skip
        return self._compressions[key]


def inclusion(gadgets: Gadgets, builder: Builder, levels: Sequence[Template | Block], ports: Sequence[int]) -> None:
    """A path whose index is public.

    Args:
        levels: leaf to root; outputs are the parent, then the index bits.
        ports: columns of the leaf, the public index, the root.
    """
    node, index, root = ports
    bits: list[int] = []
    for level in levels:
        node, *digit = (int(column) for column in builder.stamp(level, [node]))
        bits += digit
    builder.stamp(gadgets.packed_input(len(bits)), [index, *bits])
    builder.stamp(gadgets.equal, [node, root])


def create_label(
    gadgets: Gadgets, builder: Builder, replica: Sequence[Bit], parents: Sequence[Sequence[Bit]], layer: int,
    node: Sequence[Bit],
) -> int:  # fmt: skip
    """The label of a node, as a wire.

    Args:
        replica, parents: bits in the order of the byte stream, 256 each; 37 parents.
        layer: counted from 1; constant in the circuit.
        node: 64 bits, least significant first.
    """
    head = [*replica, *_constant(layer, 32), *reversed(node)]
    head += [FALSE] * (BLOCK_BITS - len(head))
    digest = _sha256(gadgets, builder, [*head, *(bit for parent in parents for bit in parent)])
    packed = rev8([bit_of(column) for column in digest])[:CAPACITY]
    (label,) = builder.stamp(gadgets.pack, [column_of(bit) for bit in packed])
    return int(label)


def stream_bits(columns: Sequence[int]) -> list[Bit]:
    """The 256 bits of a field element in the order of its byte stream, from its 255 bit wires."""
    return rev8([bit_of(int(column)) for column in columns])


def _sha256(gadgets: Gadgets, builder: Builder, message: Sequence[Bit]) -> list[int]:
    """Columns of the digest of whole bytes; the message must need more than one block."""
    bits = [*message, TRUE]
    bits += [FALSE] * (-(len(bits) + 64) % BLOCK_BITS)
    bits += _constant(len(message), 64)
    state: list[int] = []
    for first in range(0, len(bits), BLOCK_BITS):
        block = bits[first : first + BLOCK_BITS]
        pattern = [int(bit == TRUE) if is_constant(bit) else None for bit in block]
        part = "first" if first == 0 else "last" if first + BLOCK_BITS == len(bits) else "middle"
        template = gadgets.compression(initial=first == 0, pattern=pattern, name=f"label-{part}")
        ports = [column_of(bit) for bit in block if not is_constant(bit)]
        state = [int(column) for column in builder.stamp(template, [*state, *ports])]
    return state


def _constant(value: int, count: int) -> list[Bit]:
    """Bits of a number, most significant first."""
    return [TRUE if value >> (count - 1 - i) & 1 else FALSE for i in range(count)]
