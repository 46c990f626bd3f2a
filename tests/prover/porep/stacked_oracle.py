"""bellpepper's `TestConstraintSystem::hash` of a large circuit, over numpy arrays a block of rows at a time.

BLAKE2s-256 over u64 big-endian counts of inputs (ONE included), aux and constraints; then for each row, for A, B and
C, u64 number of terms and for each, inputs before aux by rising index: 'I' or 'A', u64 index, 32 bytes big-endian.
"""

from __future__ import annotations

import hashlib
import struct

import numpy as np

from prover.backends.cpu.field import fr_to_ints
from prover.r1cs.expand import expand
from prover.r1cs.matrices import Csr, R1cs

TERM_BYTES = 41
BLOCK_ROWS = 1 << 14


def bellpepper_digest(r1cs: R1cs) -> str:
    """The hash as hexadecimal."""
    inputs = r1cs.num_public + 1
    rows = expand(r1cs)
    raw = b"".join(value.to_bytes(32, "big") for value in fr_to_ints(rows.table))
    values = np.frombuffer(raw, np.uint8).reshape(-1, 32)
    digest = hashlib.blake2s(struct.pack(">3Q", inputs, r1cs.num_wires - inputs, r1cs.num_constraints))
    matrices = (rows.a, rows.b, rows.c)
    for first in range(0, r1cs.num_constraints, BLOCK_ROWS):
        digest.update(_block(matrices, values, inputs, first, min(first + BLOCK_ROWS, r1cs.num_constraints)))
    return digest.hexdigest()


def _block(matrices: tuple[Csr, ...], values: np.ndarray, inputs: int, first: int, last: int) -> bytes:
    counts = np.stack([np.diff(m.indptr[first : last + 1]) for m in matrices], axis=1)
    line_bytes = 8 + TERM_BYTES * counts.reshape(-1)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(line_bytes)])
    out = np.zeros(starts[-1], np.uint8)
    out[starts[:-1, None] + np.arange(8)] = counts.reshape(-1).astype(">u8")[:, None].view(np.uint8)
    for which, matrix in enumerate(matrices):
        begin, end = matrix.indptr[first], matrix.indptr[last]
        count = counts[:, which]
        within = np.arange(end - begin) - np.repeat(np.cumsum(count) - count, count)
        at = np.repeat(starts[which:-1:3], count) + 8 + TERM_BYTES * within
        wires = matrix.columns[begin:end].astype(np.int64)
        is_input = wires < inputs
        out[at] = np.where(is_input, ord("I"), ord("A"))
        index = np.where(is_input, wires, wires - inputs).astype(">u8")
        out[at[:, None] + np.arange(1, 9)] = index[:, None].view(np.uint8)
        out[at[:, None] + np.arange(9, 41)] = values[matrix.coefficients[begin:end]]
    return out.tobytes()
