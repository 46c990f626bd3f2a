"""Gadgets are those of bellperson and neptune: public counts, and hashes over every row, wire and coefficient.

Figures of rust-fil-proofs, bellperson and neptune tests; the hashes are bellpepper's `cs.hash` of independently
written circuits that reproduce those counts.
"""

from __future__ import annotations

import pytest
from r1cs_oracle import bellpepper_hash, rows_of

from prover.circuits import registry
from prover.circuits.gadgets.merkle import ordered_children, poseidon_level, sha256_level
from prover.circuits.gadgets.poseidon import poseidon
from prover.circuits.gadgets.scalar import bits, equal, inputize, pack_into_inputs, to_bits_le
from prover.circuits.gadgets.sha256 import INITIAL_STATE, ROUND_CONSTANTS, compression
from prover.r1cs.build import Builder
from prover.r1cs.matrices import R1cs
from prover.r1cs.record import Coefficients


def hash_of(r1cs: R1cs) -> str:
    num_inputs = r1cs.num_public + 1
    return bellpepper_hash(rows_of(r1cs), num_inputs, r1cs.num_wires - num_inputs)


def por(levels: list, coefficients: Coefficients, *, public_root: bool = True) -> R1cs:
    """The PoR circuit around given levels: leaf, levels, index, root."""
    builder = Builder("por", 3 if public_root else 2)
    node = builder.wire()
    index: list[int] = []
    for level in levels:
        node, *digit = (int(column) for column in builder.stamp(level, [node]))
        index += digit
    builder.stamp(pack_into_inputs(coefficients, len(index)), [1, *index])
    root = builder.wire()
    builder.stamp(equal(coefficients), [node, root])
    if public_root:
        builder.stamp(inputize(coefficients), [2, root])
    return builder.r1cs(coefficients)


@pytest.mark.parametrize(
    ("arity", "constraints", "nnz", "digest"),
    [
        (2, 311, (2119, 313, 386), "658f013f99360e164ad8e7f96290944601cc064f93c153d9ea7ac1275927175f"),
        (4, 377, (2573, 381, 467), "2360602a7c4555d454b46891236273f4ae308090bc916fdcef1fb81d00ebbe70"),
        (8, 505, (3598, 513, 624), "ab50aeda63344f7125999ef5c4af7777380b9015ec82ad48bac2213e9353b163"),
        (11, 598, (4462, 609, 738), "e94a28106cbb9a718e525f0f2593ce3b138350047854ebcc3c83472ed482a6f6"),
    ],
)
def test_poseidon_is_the_legacy_circuit(arity: int, constraints: int, nnz: tuple, digest: str) -> None:
    coefficients = Coefficients()
    builder = Builder("poseidon")
    builder.stamp(poseidon(coefficients, arity), builder.wires(arity))
    r1cs = builder.r1cs(coefficients)
    assert (r1cs.num_constraints, r1cs.num_wires) == (constraints, 1 + arity + constraints)
    assert r1cs.nnz == nnz
    assert hash_of(r1cs) == digest


@pytest.mark.parametrize(
    ("options", "constraints", "wires"),
    [
        ({"initial": True}, 25_840, 25_814),
        ({"initial": False}, 26_192, 26_166),
        ({"initial": True, "message": [0] * 512}, 0, 0),
        ({"initial": False, "message": [1] + [0] * 501 + [1] + [0] * 9}, 19_034, 19_014),
    ],
    ids=["first block", "middle block", "all constant", "padding block"],
)
def test_compressions_have_the_public_counts(options: dict, constraints: int, wires: int) -> None:
    template = compression(Coefficients(), **options)
    assert (template.num_rows, template.num_wires) == (constraints, wires)


def test_a_label_block_has_the_counts_of_porep() -> None:
    message = [0 if i % 256 == 248 else None for i in range(512)]
    template = compression(Coefficients(), initial=False, message=message)
    assert (template.num_rows, template.num_wires) == (26_184, 26_158)
    assert (template.a.nnz, template.b.nnz, template.c.nnz) == (60_833, 26_184, 57_662)


def test_constants_are_those_of_the_standard() -> None:
    assert INITIAL_STATE[0] == 0x6A09E667 and INITIAL_STATE[7] == 0x5BE0CD19
    assert ROUND_CONSTANTS[0] == 0x428A2F98 and ROUND_CONSTANTS[63] == 0xC67178F2


def test_sha256_of_512_bits_is_bellpersons() -> None:
    coefficients = Coefficients()
    builder = Builder("sha256")
    message = builder.stamp(bits(coefficients, 512), [])
    state = builder.stamp(compression(coefficients, initial=True), message)
    one_block = builder.r1cs(coefficients)
    assert (one_block.num_wires - 1, one_block.num_constraints) == (26_326, 26_352)
    assert hash_of(one_block) == "a91be46c89fe4cb18f85d99956bf9b1afe0a96d1b6c960a30d4e9dcafcf501ba"
    padding = [1] + [0] * 501 + [1] + [0] * 9
    builder.stamp(compression(coefficients, initial=False, message=padding), state)
    both = builder.r1cs(coefficients)
    assert (both.num_wires - 1, both.num_constraints) == (45_340, 512 + 44_874)
    assert hash_of(both) == "39b920088193af138e8d3494179b1d9a20442bb23e28e65028b068c6a9e48771"


@pytest.mark.parametrize(
    ("arities", "constraints", "digest"),
    [
        ([2] * 6, 1_887, ""),
        ([4] * 3, 1_164, ""),
        ([8, 8], 1_063, "3bd8cb4719e1ce8b020c078159a77bd5cf9d8eca04ed094eaca290c621f10a20"),
        ([8, 8, 2], 1_377, ""),
        ([8, 8, 4, 2], 1_764, ""),
        ([8, 8, 8], 1_593, "eca5c6440650cc590e477789dbbcc685627355c9c5dc6008dcb9fc6bfb8d34b8"),
        ([8, 8, 8, 2], 1_907, "1aaf5b3ff8221455ad5ba57746f23db956a2de780213b68d65d8ea0165607e84"),
    ],
)
def test_por_circuits_over_poseidon_have_the_public_counts(arities: list[int], constraints: int, digest: str) -> None:
    coefficients = Coefficients()
    levels = {arity: poseidon_level(coefficients, arity) for arity in set(arities)}
    public = por([levels[arity] for arity in arities], coefficients)
    private = por([levels[arity] for arity in arities], coefficients, public_root=False)
    assert (public.num_constraints, private.num_constraints) == (constraints, constraints - 1)
    if digest:
        assert hash_of(public) == digest


def test_the_por_circuit_over_sha256_has_the_public_count() -> None:
    coefficients = Coefficients()
    r1cs = por([sha256_level(coefficients)] * 6, coefficients)
    assert (r1cs.num_constraints, r1cs.num_wires - 3) == (272_295, 272_012)
    assert hash_of(r1cs) == "06101b213e985a06aa97367fb756d504912d2edfa7169fe7390f3563e2b7bdbf"


def test_poseidon_merkle_is_the_por_circuit() -> None:
    r1cs = registry.build("poseidon-merkle:2").r1cs
    assert hash_of(r1cs) == "3bd8cb4719e1ce8b020c078159a77bd5cf9d8eca04ed094eaca290c621f10a20"


@pytest.mark.parametrize(("arity", "picks"), [(2, 2), (4, 8), (8, 22)])
def test_insertion_has_the_public_counts(arity: int, picks: int) -> None:
    index_bits = arity.bit_length() - 1
    template = ordered_children(Coefficients(), arity)
    assert template.num_rows == index_bits + picks
    assert template.num_wires == index_bits + arity - 1 + picks


def test_decomposition_is_255_bits_and_one_row() -> None:
    template = to_bits_le(Coefficients())
    assert (template.num_rows, template.num_wires, template.a.nnz) == (256, 255, 510)
