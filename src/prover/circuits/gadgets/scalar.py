"""The small gadgets that join field elements and bits, with bellpepper's placement of operands.

Source: bellpepper:crates/bellpepper-core/src/gadgets/num.rs and rust-fil-proofs:storage-proofs-core/src/gadgets
(behaviour).
"""

from __future__ import annotations

from collections.abc import Sequence

from prover.circuits.gadgets.bits import Bit, combine, enforce_bit, weigh
from prover.circuits.gadgets.uint32 import CAPACITY
from prover.params import R
from prover.r1cs.matrices import Template
from prover.r1cs.record import ONE, Coefficients, Recorder

NUM_BITS = R.bit_length()
"""255: bits of an Fr."""


def bits(coefficients: Coefficients, count: int, name: str = "bits") -> Template:
    """`count` bits that come from outside the circuit, each wire followed by its row; outputs: the bits in order."""
    rec = Recorder(name, coefficients)
    return rec.template([_new_bit(rec) for _ in range(count)])


def to_bits_le(coefficients: Coefficients, name: str = "to-bits") -> Template:
    """255 bits of the port, least significant first; not checked to be below r. Outputs: the bits."""
    rec = Recorder(name, coefficients, 2)
    columns = [_new_bit(rec) for _ in range(NUM_BITS)]
    total = weigh([2 * column for column in columns])
    rec.enforce({}, {}, total | {1: -1})
    return rec.template(columns)


def pack_bits(coefficients: Coefficients, pattern: Sequence[Bit | None], name: str = "pack") -> Template:
    """One wire holding the first 254 bits of the pattern, least significant first; output: that wire.

    Args:
        pattern: constants, or None for a port.
    """
    taken = list(pattern)[:CAPACITY]
    rec = Recorder(name, coefficients, 1 + taken.count(None))
    total = weigh(_place(taken, 1))
    packed = rec.wire()
    rec.enforce(total, {ONE: 1}, {packed: 1})
    return rec.template([packed])


def pack_into_inputs(coefficients: Coefficients, count: int, name: str = "pack-inputs") -> Template:
    """Binds public wires to bits, 254 of them to a wire. Ports: the public wires, then the `count` bits."""
    num_inputs = -(-count // CAPACITY)
    rec = Recorder(name, coefficients, 1 + num_inputs + count)
    ports = [2 * (1 + num_inputs + i) for i in range(count)]
    for i in range(num_inputs):
        rec.enforce(weigh(ports[CAPACITY * i : CAPACITY * (i + 1)]), {ONE: 1}, {1 + i: 1})
    return rec.template()


def inputize(coefficients: Coefficients) -> Template:
    """Binds public port 1 to the wire at port 2."""
    return _binding("inputize", coefficients)


def equal(coefficients: Coefficients) -> Template:
    """port 1 = port 2."""
    return _binding("equal", coefficients)


def add(coefficients: Coefficients) -> Template:
    """One wire, port 1 + port 2; output: that wire."""
    rec = Recorder("add", coefficients, 3)
    total = rec.wire()
    rec.enforce({1: 1, 2: 1}, {ONE: 1}, {total: 1})
    return rec.template([total])


def pick(rec: Recorder, condition: int, if_true: int, if_false: int) -> int:
    """A new wire: condition ? if_true : if_false, all columns."""
    chosen = rec.wire()
    difference = {if_false: 1, if_true: -1} if if_false != if_true else {}
    remainder = {if_false: 1, chosen: -1}
    rec.enforce(difference, combine((2 * condition, 1)), remainder)
    return chosen


def _binding(name: str, coefficients: Coefficients) -> Template:
    rec = Recorder(name, coefficients, 3)
    rec.enforce({1: 1}, {ONE: 1}, {2: 1})
    return rec.template()


def _new_bit(rec: Recorder) -> int:
    column = rec.wire()
    enforce_bit(rec, column)
    return column


def _place(pattern: Sequence[Bit | None], first_port: int) -> list[Bit]:
    ports = iter(range(first_port, first_port + len(pattern)))
    return [2 * next(ports) if bit is None else bit for bit in pattern]
