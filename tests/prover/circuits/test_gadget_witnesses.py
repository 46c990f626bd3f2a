"""A witness made by the compiled passes satisfies the recorded rows and says what the plain computation says."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest
from r1cs_oracle import rows_of, value_of

from prover.backends.cpu.field import fr_to_ints, ints_to_fr
from prover.circuits.gadgets.bits import FALSE, TRUE, and_, ch, maj, xor
from prover.circuits.gadgets.merkle import ordered_children, poseidon_level, sha256_level
from prover.circuits.gadgets.merkle_witness import fill_ordered_children, fill_poseidon_levels
from prover.circuits.gadgets.poseidon import poseidon
from prover.circuits.gadgets.poseidon_constants import permute
from prover.circuits.gadgets.poseidon_witness import fill_poseidon, num_poseidon_wires, poseidon_hashes
from prover.circuits.gadgets.scalar_witness import fill_pack, fill_to_bits
from prover.circuits.gadgets.sha256 import compression
from prover.params import R
from prover.r1cs.build import Builder
from prover.r1cs.evaluate import evaluate_abc, first_unsatisfied
from prover.r1cs.matrices import R1cs
from prover.r1cs.record import Coefficients, Recorder
from prover.r1cs.tape import fill_bits, gather_bits

VECTORS = {
    2: "396508d75e76a56b739e0fd902efe161a6fba9339d05a69d2e203c369a02e7ff",
    4: "58a54b10a9e5848a00db3c6579229399fb6b4605bf1327ec019814ff6662075d",
    8: "2394611da3a5de5512010042116770774b682e9d9cc4aed92a9934f56d38a5e6",
    11: "0c0fc1b2e5227f286ca537e232ebe87a09f3dcd8ccb08fc1cee3bbc32b693163",
}
"""neptune's `hash_values`: the hash of 0, 1, .. arity - 1."""


def broken_row(r1cs: R1cs, witness: np.ndarray) -> int | None:
    sides = [np.empty((r1cs.domain_size, 4), np.uint64) for _ in range(3)]
    evaluate_abc(r1cs, witness, *sides)
    return first_unsatisfied(r1cs, *sides)


@pytest.mark.parametrize("arity", VECTORS)
def test_poseidon_agrees_with_neptune_and_the_plain_permutation(arity: int) -> None:
    rng = random.Random(arity)
    rows = [list(range(arity)), [rng.randrange(R) for _ in range(arity)]]
    hashes = fr_to_ints(poseidon_hashes(arity, ints_to_fr(v for row in rows for v in row).reshape(2, arity, 4)))
    assert f"{hashes[0]:064x}" == VECTORS[arity]
    assert hashes == [permute(arity, row) for row in rows]


@pytest.mark.parametrize("arity", VECTORS)
def test_poseidon_wires_satisfy_the_circuit(arity: int) -> None:
    rng = random.Random(arity)
    coefficients = Coefficients()
    builder = Builder("hashes")
    children = builder.wires(3 * arity).reshape(3, arity)
    digests = builder.stamp(poseidon(coefficients, arity), children)
    r1cs = builder.r1cs(coefficients)
    assert r1cs.num_constraints == 3 * num_poseidon_wires(arity)
    witness = np.zeros((r1cs.num_wires, 4), np.uint64)
    values = [rng.randrange(R) for _ in range(3 * arity)]
    witness[: 1 + 3 * arity] = ints_to_fr([1, *values])
    fill_poseidon(arity, children.astype(np.int64), r1cs.stamps[0].wire0, witness, threads=2)
    assert broken_row(r1cs, witness) is None
    expected = [permute(arity, values[arity * i : arity * (i + 1)]) for i in range(3)]
    assert fr_to_ints(witness[digests[:, 0]]) == expected


@pytest.mark.parametrize("arity", [2, 4, 8])
def test_every_place_in_a_merkle_row_is_reached(arity: int) -> None:
    coefficients = Coefficients()
    level, children = poseidon_level(coefficients, arity), ordered_children(coefficients, arity)
    builder = Builder("levels")
    nodes = builder.wires(2 * arity)
    parents = builder.stamp(level, nodes[:arity, None])
    placed = builder.stamp(children, nodes[arity:, None])
    r1cs = builder.r1cs(coefficients)
    witness = np.zeros((r1cs.num_wires, 4), np.uint64)
    siblings = list(range(100, 99 + arity))
    witness[: 1 + 2 * arity] = ints_to_fr([1, *([7] * 2 * arity)])
    rows = np.tile(ints_to_fr(siblings), (arity, 1, 1))
    digits = np.arange(arity)
    for fill, part, stamp in (
        (fill_poseidon_levels, nodes[:arity], r1cs.stamps[0]),
        (fill_ordered_children, nodes[arity:], r1cs.stamps[1]),
    ):
        fill(arity, part.astype(np.int64), stamp.wire0, digits, rows, witness)
    assert broken_row(r1cs, witness) is None
    for digit in range(arity):
        expected = [*siblings[:digit], 7, *siblings[digit:]]
        assert fr_to_ints(witness[placed[digit, :arity]]) == expected
        assert fr_to_ints(witness[parents[digit]]) == [permute(arity, expected), *(digit >> i & 1 for i in range(3))][
            : 1 + arity.bit_length() - 1
        ]


def test_a_sha256_level_hashes_two_field_elements() -> None:
    rng = random.Random(9)
    coefficients = Coefficients()
    builder = Builder("levels")
    nodes = builder.wires(2)
    outputs = builder.stamp(sha256_level(coefficients), nodes[:, None])
    r1cs = builder.r1cs(coefficients)
    stamps = {stamp.template.name: stamp for stamp in r1cs.stamps}
    witness = np.zeros((r1cs.num_wires, 4), np.uint64)
    leaves, siblings = [[rng.randrange(R) for _ in range(2)] for _ in range(2)]
    witness[:3] = ints_to_fr([1, *leaves])
    fill_ordered_children(
        2, nodes.astype(np.int64), stamps["children-2"].wire0, np.array([0, 1]),
        ints_to_fr(siblings).reshape(2, 1, 4), witness,
    )  # fmt: skip
    decomposed = stamps["to-bits"]
    fill_to_bits(decomposed.ports[:, 1].astype(np.int64), decomposed.wire0, witness)
    for name in ("sha256-node", "sha256-padding"):
        stamp = stamps[name]
        fill_bits(stamp.template, gather_bits(witness, stamp.ports), stamp.wire0, witness)
    fill_pack(stamps["pack"].ports[:, 1:].astype(np.int64), stamps["pack"].wire0, witness)
    assert broken_row(r1cs, witness) is None
    for i, pair in enumerate([(leaves[0], siblings[0]), (siblings[1], leaves[1])]):
        digest = hashlib.sha256(b"".join(v.to_bytes(32, "little") for v in pair)).digest()
        parent = int.from_bytes(digest, "little") & (1 << 254) - 1
        assert fr_to_ints(witness[outputs[i]]) == [parent, i]


@pytest.mark.parametrize("gadget", [xor, and_, ch, maj])
def test_every_case_of_a_bit_gadget_computes_its_function(gadget) -> None:  # type: ignore[no-untyped-def]
    plain = {
        xor: lambda a, b: a ^ b,
        and_: lambda a, b: a & b,
        ch: lambda a, b, c: (a & b) | ((1 - a) & c),
        maj: lambda a, b, c: int(a + b + c >= 2),
    }[gadget]
    arity = 2 if gadget in (xor, and_) else 3
    references = [TRUE, FALSE]
    for code in range((2 + 2) ** arity):
        kinds = [code // 4**i % 4 for i in range(arity)]
        coefficients = Coefficients()
        rec = Recorder("gadget", coefficients, 1 + arity)
        operands = [references[k] if k < 2 else 2 * (1 + i) + (k - 2) for i, k in enumerate(kinds)]
        result = gadget(rec, *operands)
        builder = Builder("gadget")
        ports = builder.wires(arity)
        builder.stamp(rec.template(), ports)
        r1cs = builder.r1cs(coefficients)
        for assignment in range(2**arity):
            values = [assignment >> i & 1 for i in range(arity)]
            witness = np.zeros((r1cs.num_wires, 4), np.uint64)
            witness[: 1 + arity] = ints_to_fr([1, *values])
            stamp = r1cs.stamps[0]
            if stamp.template.tape is not None:
                fill_bits(stamp.template, gather_bits(witness, stamp.ports), stamp.wire0, witness)
            bits = fr_to_ints(witness)
            meant = [(1, 0, v, 1 - v)[k] for k, v in zip(kinds, values, strict=True)]
            assert bits[result >> 1] ^ (result & 1) == plain(*meant)
            for a, b, c in rows_of(r1cs):
                assert value_of(a, bits) * value_of(b, bits) % R == value_of(c, bits)


def test_one_compression_of_random_state_and_message_satisfies_its_rows() -> None:
    coefficients = Coefficients()
    template = compression(coefficients, initial=False)
    builder = Builder("block")
    outputs = builder.stamp(template, builder.wires(768))
    r1cs = builder.r1cs(coefficients)
    witness = np.zeros((r1cs.num_wires, 4), np.uint64)
    rng = np.random.default_rng(3)
    witness[:769] = ints_to_fr([1, *rng.integers(0, 2, 768).tolist()])
    stamp = r1cs.stamps[0]
    fill_bits(template, gather_bits(witness, stamp.ports), stamp.wire0, witness)
    assert broken_row(r1cs, witness) is None
    assert len(set(outputs.tolist())) == 256
