"""``sha256-chain:N``: the SHA-256 of a private message of 64 N - 9 bytes, N compressions, the digest public.

Each of the N blocks is 512 bits of the message (the last one 440 and the standard's padding as constants) and one
compression of 26 192 rows. The digest is public in the field's own packing: its 256 bits as one little-endian
integer, the low 254 bits in public wire 1 and the top 2 in public wire 2.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import fr_to_ints, ints_to_fr
from prover.backends.cpu.jit import jit
from prover.circuits.circuit import Circuit
from prover.circuits.gadgets.bits import rev8
from prover.circuits.gadgets.scalar import bits, pack_into_inputs
from prover.circuits.gadgets.sha256 import INITIAL_STATE, ROUND_CONSTANTS, compression
from prover.circuits.gadgets.uint32 import CAPACITY
from prover.r1cs.build import Builder
from prover.r1cs.chunks import Check, Progress
from prover.r1cs.matrices import U64, R1cs
from prover.r1cs.record import Coefficients
from prover.r1cs.tape import fill_bits, write_bits

MAX_BLOCKS = 16384
"""2^29 rows."""
_PADDING_BYTES = 9
_LAST_BITS = 512 - 8 * _PADDING_BYTES

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]


def build(num_blocks: int) -> Circuit:
    """The circuit of `num_blocks` compressions."""
    r1cs = _r1cs(num_blocks)
    stamps = [(stamp, stamp.template.name) for stamp in r1cs.stamps]
    blocks = [stamp for stamp, name in stamps if name.startswith("sha256-block")]
    message = [stamp for stamp, name in stamps if name.startswith("message")]

    def witness(
        inputs: bytes, out: U64, *, progress: Progress | None = None, check: Check | None = None, threads: int = 1
    ) -> None:
        block_bytes = np.frombuffer(inputs + padding(len(inputs)), dtype=np.uint8).reshape(num_blocks, 64)
        states = np.empty((num_blocks + 1, 8), np.uint32)
        states[0] = INITIAL_STATE
        _chain(block_bytes, np.array(ROUND_CONSTANTS, np.uint32), states)
        digest = int.from_bytes(states[-1].astype(">u4").tobytes(), "little")
        out[:3] = ints_to_fr([1, digest & (1 << CAPACITY) - 1, digest >> CAPACITY])
        message_bits = np.unpackbits(block_bytes, axis=1)
        state_bits = np.unpackbits(states[:-1].astype(">u4").view(np.uint8), axis=1)
        first = 0
        for stamp in message:
            count = len(stamp.wire0)
            write_bits(message_bits[first : first + count, : stamp.template.num_wires], stamp.wire0, out)
            first += count
            if progress is not None:
                progress(count * stamp.template.num_wires)
        first = 0
        for stamp in blocks:
            template, count = stamp.template, len(stamp.wire0)
            chosen = slice(first, first + count)
            ones = np.ones((count, 1), np.uint8)
            ports = [ones, state_bits[chosen], message_bits[chosen]] if first else [ones, message_bits[chosen]]
            port_bits = np.ascontiguousarray(np.concatenate(ports, axis=1)[:, : template.num_ports])

            def report(instances: int, num_wires: int = template.num_wires) -> None:
                if progress is not None:
                    progress(instances * num_wires)

            fill_bits(template, port_bits, stamp.wire0, out, progress=report, check=check, threads=threads)
            first += count

    return Circuit(f"sha256-chain:{num_blocks}", r1cs, 64 * num_blocks - _PADDING_BYTES, witness, describe)


def describe(public_inputs: U64) -> str:
    """The digest that two public inputs hold, as hexadecimal."""
    low, top = fr_to_ints(public_inputs)
    return f"sha256 = {(low | top << CAPACITY).to_bytes(32, 'little').hex()}"


def padding(length: int) -> bytes:
    """What SHA-256 appends to a message whose length is 55 modulo 64."""
    return b"\x80" + (8 * length).to_bytes(8, "big")


def digest_of(inputs: bytes) -> bytes:
    """What the circuit computes, by the standard library."""
    return hashlib.sha256(inputs).digest()


def _r1cs(num_blocks: int) -> R1cs:
    coefficients = Coefficients()
    builder = Builder(f"sha256-chain:{num_blocks}", 3)
    tail = np.unpackbits(np.frombuffer(padding(64 * num_blocks - _PADDING_BYTES), np.uint8))
    last_pattern = [None] * _LAST_BITS + [int(bit) for bit in tail]
    full = bits(coefficients, 512, "message")
    part = bits(coefficients, _LAST_BITS, "message-end")
    templates = {}
    state: U32 | tuple[()] = ()
    for i in range(num_blocks):
        first, last = i == 0, i == num_blocks - 1
        if (first, last) not in templates:
            templates[first, last] = compression(
                coefficients, initial=first, message=last_pattern if last else None,
                name="sha256-block" + ("-first" if first else "") + ("-last" if last else ""),
            )  # fmt: skip
        message = builder.stamp(part if last else full)
        state = builder.stamp(templates[first, last], [*state, *message])
    digest = [bit >> 1 for bit in rev8([2 * int(column) for column in state])]
    builder.stamp(pack_into_inputs(coefficients, 256, "digest"), [1, 2, *digest])
    return builder.r1cs(coefficients)


@jit
def _chain(blocks, constants, states):  # type: ignore[no-untyped-def]
    """states[i + 1] = compress(states[i], blocks[i]); FIPS 180-4, section 6.2.2."""
    w = np.empty(64, np.uint32)
    for block in range(blocks.shape[0]):
        for i in range(16):
            w[i] = (
                np.uint32(blocks[block, 4 * i]) << np.uint32(24)
                | np.uint32(blocks[block, 4 * i + 1]) << np.uint32(16)
                | np.uint32(blocks[block, 4 * i + 2]) << np.uint32(8)
                | np.uint32(blocks[block, 4 * i + 3])
            )
        for i in range(16, 64):
            x, y = w[i - 15], w[i - 2]
            s0 = _rotr(x, 7) ^ _rotr(x, 18) ^ (x >> np.uint32(3))
            s1 = _rotr(y, 17) ^ _rotr(y, 19) ^ (y >> np.uint32(10))
            w[i] = np.uint32(w[i - 16] + s0 + w[i - 7] + s1)
        a, b, c, d = states[block, 0], states[block, 1], states[block, 2], states[block, 3]
        e, f, g, h = states[block, 4], states[block, 5], states[block, 6], states[block, 7]
        for i in range(64):
            t1 = h + (_rotr(e, 6) ^ _rotr(e, 11) ^ _rotr(e, 25)) + ((e & f) ^ (~e & g)) + constants[i] + w[i]
            t2 = (_rotr(a, 2) ^ _rotr(a, 13) ^ _rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
            h, g, f, e = g, f, e, np.uint32(d + t1)
            d, c, b, a = c, b, a, np.uint32(t1 + t2)
        for i, value in enumerate((a, b, c, d, e, f, g, h)):
            states[block + 1, i] = np.uint32(states[block, i] + value)


@jit
def _rotr(x, k):  # type: ignore[no-untyped-def]
    return np.uint32((x >> np.uint32(k)) | (x << np.uint32(32 - k)))
