"""``poseidon-merkle:DEPTH``: a leaf's path to the public root of an oct-tree of 8^DEPTH leaves, hashed by Poseidon.

Row for row the field's PoR circuit (rust-fil-proofs, arity 8, one base tree): the leaf is the first private wire,
the path's index is public wire 1 and the root public wire 2; 530 rows a level and 3 more.
"""

from __future__ import annotations

import numpy as np

from prover.backends.cpu.field import fr_to_ints, ints_to_fr
from prover.circuits.circuit import Circuit
from prover.circuits.gadgets.merkle import poseidon_level
from prover.circuits.gadgets.merkle_witness import fill_poseidon_levels
from prover.circuits.gadgets.scalar import equal, inputize, pack_into_inputs
from prover.params import R
from prover.r1cs.build import Builder
from prover.r1cs.chunks import Check, Progress
from prover.r1cs.matrices import U64
from prover.r1cs.record import Coefficients

ARITY = 8
_DIGIT_BITS = 3
MAX_DEPTH = 84
"""The index must fit one public input: 3 * 84 = 252 bits."""
_VALUE_BYTES = 48
"""Bytes reduced modulo r to one value: the bias is below 2^-128."""


def build(depth: int) -> Circuit:
    """The circuit of one path of `depth` levels.

    Its inputs are one byte a level, whose low three bits are the index digit, then the leaf and the siblings, 48
    bytes each, reduced modulo r.
    """
    coefficients = Coefficients()
    builder = Builder(f"poseidon-merkle:{depth}", 3)
    level = poseidon_level(coefficients, ARITY)
    leaf = node = builder.wire()
    index: list[int] = []
    nodes, wire0 = np.empty(depth, np.int64), np.empty(depth, np.int64)
    for i in range(depth):
        nodes[i], wire0[i] = node, builder.num_ports + builder.num_wires
        node, *digit = (int(column) for column in builder.stamp(level, [node], label=f"level {i}"))
        index += digit
    builder.stamp(pack_into_inputs(coefficients, len(index), "index"), [1, *index])
    root = builder.wire()
    builder.stamp(equal(coefficients), [node, root])
    builder.stamp(inputize(coefficients), [2, root])
    r1cs = builder.r1cs(coefficients)
    input_bytes = depth + _VALUE_BYTES * (1 + (ARITY - 1) * depth)

    def witness(
        inputs: bytes, out: U64, *, progress: Progress | None = None, check: Check | None = None, threads: int = 1
    ) -> None:
        digits = np.frombuffer(inputs[:depth], np.uint8).astype(np.int64) % ARITY
        raw = inputs[depth:input_bytes]
        values = ints_to_fr(
            int.from_bytes(raw[i : i + _VALUE_BYTES], "little") % R for i in range(0, len(raw), _VALUE_BYTES)
        )
        siblings = values[1:].reshape(depth, ARITY - 1, 4)
        packed = sum(int(digit) << (_DIGIT_BITS * i) for i, digit in enumerate(digits))
        out[:2] = ints_to_fr([1, packed])
        out[leaf] = values[0]
        if check is not None:
            check()
        fill_poseidon_levels(ARITY, nodes, wire0, digits, siblings, out)
        if progress is not None:
            progress(len(out))
        out[root] = out[node]
        out[2] = out[root]

    return Circuit(builder.name, r1cs, input_bytes, witness, describe)


def describe(public_inputs: U64) -> str:
    """Index and root that two public inputs hold."""
    index, root = fr_to_ints(public_inputs)
    return f"leaf {index}, root = {root:064x}"
