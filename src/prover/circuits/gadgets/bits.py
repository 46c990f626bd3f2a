"""A bit is a wire, its negation or a constant; constants and negations cost nothing, and each case keeps its own row.

A bit is an integer: 2 * column + negated. ONE (column 0) makes the constants, so `TRUE` is 0 and `FALSE` 1, and `not`
is an exclusive or with 1. Which operand stands in A and which in B is part of a circuit's identity.
Source: bellpepper:crates/bellpepper-core/src/gadgets/boolean.rs (behaviour).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prover.r1cs.record import ONE, Recorder
from prover.r1cs.tape import AND, CH, MAJ, XOR

TRUE, FALSE = 0, 1
Bit = int
Word = Sequence[Bit]
"""32 bits, least significant first."""


def bit_of(column: int) -> Bit:
    """The bit that a column holds."""
    return 2 * column


def column_of(bit: Bit) -> int:
    return bit >> 1


def is_constant(bit: Bit) -> bool:
    return bit < 2


def add_bit(combination: dict[int, int], bit: Bit, factor: int = 1) -> None:
    """combination += factor * bit."""
    if bit == FALSE:
        return
    column = bit >> 1
    if bit & 1:
        combination[ONE] = combination.get(ONE, 0) + factor
        factor = -factor
    combination[column] = combination.get(column, 0) + factor


def combine(*terms: tuple[Bit, int]) -> dict[int, int]:
    """The sum of factor * bit."""
    combination: dict[int, int] = {}
    for bit, factor in terms:
        add_bit(combination, bit, factor)
    return combination


def weigh(bits: Iterable[Bit], scale: int = 1) -> dict[int, int]:
    """The sum of scale * 2^i * bit_i."""
    combination: dict[int, int] = {}
    for bit in bits:
        add_bit(combination, bit, scale)
        scale *= 2
    return combination


def enforce_bit(rec: Recorder, column: int) -> None:
    """(1 - b) * b = 0."""
    rec.enforce({ONE: 1, column: -1}, {column: 1}, {})


def xor(rec: Recorder, a: Bit, b: Bit) -> Bit:
    """2x * y = x + y - c over the raw wires; the negation of a mixed pair goes to the result."""
    if a < 2:
        return b ^ 1 if a == TRUE else b
    if b < 2:
        return a ^ 1 if b == TRUE else a
    mixed = (a ^ b) & 1
    if mixed and a & 1:
        a, b = b, a
    x, y = a >> 1, b >> 1
    c = rec.wire()
    rec.tape.operation(XOR, 2 * x, 2 * y)
    if x == y:
        rec.enforce({x: 2}, {y: 1}, {x: 2, c: -1})
    else:
        rec.enforce({x: 2}, {y: 1}, {x: 1, y: 1, c: -1})
    return 2 * c | mixed


def and_(rec: Recorder, a: Bit, b: Bit) -> Bit:
    """x * y = c; of a mixed pair the plain wire stands in A."""
    if FALSE in (a, b):
        return FALSE
    if a == TRUE:
        return b
    if b == TRUE:
        return a
    if (a ^ b) & a & 1:
        a, b = b, a
    c = rec.wire()
    rec.tape.operation(AND, a, b)
    rec.enforce(combine((a, 1)), combine((b, 1)), {c: 1})
    return 2 * c


def ch(rec: Recorder, a: Bit, b: Bit, c: Bit) -> Bit:
    """a ? b : c."""
    if a < 2 and b < 2 and c < 2:
        return b if a == TRUE else c
    if a == FALSE:
        return c
    if b == FALSE:
        return and_(rec, a ^ 1, c)
    if c == FALSE:
        return and_(rec, a, b)
    if c == TRUE:
        return and_(rec, a, b ^ 1) ^ 1
    if b == TRUE:
        return and_(rec, a ^ 1, c ^ 1) ^ 1
    h = rec.wire()
    rec.tape.operation(CH, a, b, c)
    rec.enforce(combine((b, 1), (c, -1)), combine((a, 1)), combine((2 * h, 1), (c, -1)))
    return 2 * h


def maj(rec: Recorder, a: Bit, b: Bit, c: Bit) -> Bit:
    """The majority; its wire is allocated before that of the conjunction it needs."""
    if a < 2 and b < 2 and c < 2:
        return TRUE if (a, b, c).count(TRUE) >= 2 else FALSE
    if a == FALSE:
        return and_(rec, b, c)
    if b == FALSE:
        return and_(rec, a, c)
    if c == FALSE:
        return and_(rec, a, b)
    if c == TRUE:
        return and_(rec, a ^ 1, b ^ 1) ^ 1
    if b == TRUE:
        return and_(rec, a ^ 1, c ^ 1) ^ 1
    if a == TRUE:
        return and_(rec, b ^ 1, c ^ 1) ^ 1
    m = rec.wire()
    rec.tape.operation(MAJ, a, b, c)
    t = and_(rec, b, c)
    rec.enforce(combine((t, 2), (b, -1), (c, -1)), combine((a, 1)), combine((t, 1), (2 * m, -1)))
    return 2 * m


def rev8(bits: Sequence[Bit]) -> list[Bit]:
    """Pads with constant zeros to whole bytes and reverses the bits of each: field order to SHA-256 order and back."""
    padded = list(bits) + [FALSE] * (-len(bits) % 8)
    return [bit for i in range(0, len(padded), 8) for bit in reversed(padded[i : i + 8])]
