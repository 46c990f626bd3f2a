"""ChaCha's key stream in whole words; Filecoin draws its graph and its synthetic challenges from it.

Source: RFC 8439, section 2.3 (20 rounds, 96-bit nonce); rand_chacha's 8 rounds with a 64-bit counter and stream 0,
whose first 2^32 blocks are the same as with nonce 0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_MASK = 0xFFFFFFFF
_CONSTANTS = struct.unpack("<4I", b"expand 32-byte k")
_ROUNDS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip


def words(key: bytes, rounds: int, *, nonce: bytes = bytes(12), first_block: int = 0) -> Iterator[int]:
    """The stream's 32-bit words.

    Args:
        key: 32 bytes.
        rounds: even.
        first_block: where to begin, in blocks of 16 words.
    """
    block = first_block
    while True:
        yield from _block(key, rounds, nonce, block)
        block += 1


def _block(key: bytes, rounds: int, nonce: bytes, counter: int) -> list[int]:
    state = [*_CONSTANTS, *struct.unpack("<8I", key), counter & _MASK, *struct.unpack("<3I", nonce)]
    x = list(state)
    for _ in range(rounds // 2):
        for a, b, c, d in _ROUNDS:
            x[a] = (x[a] + x[b]) & _MASK
            x[d] = _rotl(x[d] ^ x[a], 16)
            x[c] = (x[c] + x[d]) & _MASK
            x[b] = _rotl(x[b] ^ x[c], 12)
            x[a] = (x[a] + x[b]) & _MASK
            x[d] = _rotl(x[d] ^ x[a], 8)
            x[c] = (x[c] + x[d]) & _MASK
            x[b] = _rotl(x[b] ^ x[c], 7)
    return [(i + j) & _MASK for i, j in zip(x, state, strict=True)]


def _rotl(value: int, k: int) -> int:
    return (value << k | value >> (32 - k)) & _MASK
