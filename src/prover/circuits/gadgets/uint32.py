"""Sums of 32-bit words are checked in batches: one row compares as many of them as fit below 2^254.

Source: bellpepper:crates/bellpepper-core/src/gadgets/{uint32,multieq}.rs (behaviour).
"""

from __future__ import annotations

from collections.abc import Sequence

from prover.circuits.gadgets.bits import FALSE, TRUE, Bit, Word, add_bit, enforce_bit, is_constant, xor
from prover.r1cs.record import ONE, Recorder

CAPACITY = 254
"""Bits that always fit an Fr."""


class MultiEq:
    """Collects equalities left = right of numbers below 2^n, shifted side by side into one row."""

    def __init__(self, rec: Recorder) -> None:
        self._rec = rec
        self._used = 0
        self._left: dict[int, int] = {}
        self._right: dict[int, int] = {}

    def enforce_equal(self, num_bits: int, left: Sequence[tuple[Bit, int]], right: Sequence[tuple[Bit, int]]) -> None:
        """Adds one equality of sums of factor * bit; flushes first when it would not fit."""
        if self._used + num_bits >= CAPACITY:
            self.flush()
        for side, terms in ((self._left, left), (self._right, right)):
            for bit, factor in terms:
                add_bit(side, bit, factor << self._used)
        self._used += num_bits

    def flush(self) -> None:
        """Emits the row left * 1 = right, if there is anything to compare."""
        if self._used:
            self._rec.enforce(self._left, {ONE: 1}, self._right)
            self._used, self._left, self._right = 0, {}, {}


def constant_word(value: int) -> list[Bit]:
    return [TRUE if value >> i & 1 else FALSE for i in range(32)]


def rotr(word: Word, k: int) -> list[Bit]:
    return [*word[k:], *word[:k]]


def shr(word: Word, k: int) -> list[Bit]:
    return [*word[k:], *[FALSE] * k]


def xor_words(rec: Recorder, a: Word, b: Word) -> list[Bit]:
    return [xor(rec, x, y) for x, y in zip(a, b, strict=True)]


def add_many(rec: Recorder, multi_eq: MultiEq, words: Sequence[Word]) -> list[Bit]:
    """The sum modulo 2^32; its bits are allocated before the equality is added.

    Args:
        words: 2 to 10 of them. If all are constant, so is the sum and nothing is recorded.
    """
    if all(is_constant(bit) for word in words for bit in word):
        total = sum((bit == TRUE) << i for word in words for i, bit in enumerate(word))
        return constant_word(total & 0xFFFFFFFF)
    num_bits = (len(words) * 0xFFFFFFFF).bit_length()
    left = [(bit, 1 << i) for word in words for i, bit in enumerate(word)]
    columns = rec.wires(num_bits)
    for column in columns:
        enforce_bit(rec, column)
    rec.tape.add(words, num_bits)
    right = [(2 * column, 1 << i) for i, column in enumerate(columns)]
    multi_eq.enforce_equal(num_bits, left, right)
    return [2 * column for column in columns[:32]]
