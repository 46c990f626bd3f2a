"""One SHA-256 compression is one template for each pattern of constant bits; its rows are those of bellperson's gadget.

Bits go in and come out in the order of the byte stream: each byte, so each word, most significant bit first.
Source: FIPS 180-4, sections 4.1.2, 6.2; bellperson:src/gadgets/sha256.rs (order of allocation).
"""

from __future__ import annotations

from collections.abc import Sequence

from prover.circuits.gadgets.bits import FALSE, TRUE, Bit, Word, bit_of, ch, column_of, maj
from prover.circuits.gadgets.uint32 import MultiEq, add_many, constant_word, rotr, shr, xor_words
from prover.r1cs.matrices import Template
from prover.r1cs.record import Coefficients, Recorder


def _fractional_root_bits(count: int, power: int) -> list[int]:
    """First 32 bits of the fractional parts of the roots (square: 2, cube: 3) of the first primes."""
    primes = [n for n in range(2, 312) if all(n % d for d in range(2, n))][:count]
    roots = []
    for prime in primes:
        target = prime << (32 * power)
        root = int(target ** (1 / power))
        while root**power > target:
            root -= 1
        while (root + 1) ** power <= target:
            root += 1
        roots.append(root & 0xFFFFFFFF)
    return roots


ROUND_CONSTANTS = tuple(_fractional_root_bits(64, 3))
INITIAL_STATE = tuple(_fractional_root_bits(8, 2))


def compression(
    coefficients: Coefficients,
    *,
    initial: bool,
    message: Sequence[int | None] | None = None,
    name: str = "sha256-block",
) -> Template:
    """Records one compression.

    Args:
        initial: the chaining value is the standard's constant, not ports.
        message: 512 entries, 0 or 1 for a constant bit and None for a port; None: all ports.
    Returns:
        Ports: ONE, the 256 bits of the chaining value unless `initial`, then the message's bits that are not
        constant. Outputs: the 256 bits of the new chaining value, every one a wire of its own.
    """
    pattern = [None] * 512 if message is None else list(message)
    num_state = 0 if initial else 256
    rec = Recorder(name, coefficients, 1 + num_state + pattern.count(None))
    ports = iter(range(1 + num_state, rec.num_ports))
    bits = [bit_of(next(ports)) if bit is None else (TRUE if bit else FALSE) for bit in pattern]
    state = (
        [constant_word(word) for word in INITIAL_STATE]
        if initial
        else [[bit_of(1 + 32 * i + 31 - j) for j in range(32)] for i in range(8)]
    )
    words = [list(reversed(bits[32 * i : 32 * i + 32])) for i in range(16)]
    digest = compress(rec, state, words)
    return rec.template([column_of(bit) for word in digest for bit in reversed(word)])


def compress(rec: Recorder, state: Sequence[Word], message: Sequence[Word]) -> list[list[Bit]]:
    """The rows of one compression; words least significant bit first.

    The new a and e of a round stay lists of summands until the next round needs their bits.
    """
    multi_eq = MultiEq(rec)
    w = [list(word) for word in message]
    rec.mark("schedule")
    for i in range(16, 64):
        s0 = _three(rec, rotr(w[i - 15], 7), rotr(w[i - 15], 18), shr(w[i - 15], 3))
        s1 = _three(rec, rotr(w[i - 2], 17), rotr(w[i - 2], 19), shr(w[i - 2], 10))
        w.append(add_many(rec, multi_eq, [w[i - 16], s0, w[i - 7], s1]))
    a_terms: list[Word] = [state[0]]
    e_terms: list[Word] = [state[4]]
    b, c, d = state[1:4]
    f, g, h = state[5:8]
    for i in range(64):
        rec.mark(f"round {i}")
        e = _sum(rec, multi_eq, e_terms)
        big_s1 = _three(rec, rotr(e, 6), rotr(e, 11), rotr(e, 25))
        choice = [ch(rec, x, y, z) for x, y, z in zip(e, f, g, strict=True)]
        a = _sum(rec, multi_eq, a_terms)
        big_s0 = _three(rec, rotr(a, 2), rotr(a, 13), rotr(a, 22))
        majority = [maj(rec, x, y, z) for x, y, z in zip(a, b, c, strict=True)]
        shared = [h, big_s1, choice, constant_word(ROUND_CONSTANTS[i]), w[i]]
        e_terms, a_terms = [*shared, d], [*shared, big_s0, majority]
        h, g, f, d, c, b = g, f, e, c, b, a
    rec.mark("chaining value")
    digest = [add_many(rec, multi_eq, [*a_terms, state[0]])]
    digest += [add_many(rec, multi_eq, pair) for pair in zip(state[1:4], (b, c, d), strict=True)]
    digest.append(add_many(rec, multi_eq, [*e_terms, state[4]]))
    digest += [add_many(rec, multi_eq, pair) for pair in zip(state[5:8], (f, g, h), strict=True)]
    multi_eq.flush()
    return digest


def _three(rec: Recorder, x: Word, y: Word, z: Word) -> list[Bit]:
    return xor_words(rec, xor_words(rec, x, y), z)


def _sum(rec: Recorder, multi_eq: MultiEq, terms: Sequence[Word]) -> list[Bit]:
    return list(terms[0]) if len(terms) == 1 else add_many(rec, multi_eq, terms)
