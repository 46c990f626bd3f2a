"""Labels, trees and commitments are those of rust-fil-proofs and of a sector that a real miner sealed."""

from __future__ import annotations

import numpy as np
import pytest

from prover.backends.cpu.field import fr_to_ints, ints_to_fr
from prover.circuits.gadgets.poseidon_constants import permute
from prover.errors import BadRequest
from prover.porep.checks import check_output
from prover.porep.graph import Graph
from prover.porep.labels import prover_id
from prover.porep.sector import SectorNames, label_layer, replicate, sparse
from prover.porep.shapes import Rule, registered, registered_of, shape_of
from prover.porep.trees import Tree, canonical_bytes, poseidon_rows, sha256_rows
from prover.porep.vanilla import C1Output


@pytest.mark.parametrize(
    ("porep_byte", "is_legacy", "num_nodes", "limbs"),
    [
        (0, True, 64, "d3faa96b9a0fba04 ea81a283d106485e e3d51b9afa5ac2b3 0462f4f4f1a68d37"),
        (0, True, 128, "7e191e52c4a8da86 5ae8a1c9e6fac148 ce239f3b88a894b8 234c00d1dc1d53be"),
        (123, False, 64, "abb3f38bb70defcf 777a2e4d7769119f 3448959d495490bc 06021188c7a71cb5"),
        (123, False, 128, "22ab81cf68c4676d 7a77a82fc7c9c189 c6c03d32c1e42d23 0f777c18cc2c55bd"),
    ],
)
def test_the_last_of_eleven_layers_ends_as_in_rust_fil_proofs(
    porep_byte: int, is_legacy: bool, num_nodes: int, limbs: str
) -> None:
    graph = Graph(num_nodes, bytes([porep_byte]) * 32, is_legacy=is_legacy)
    layer: list[bytes] = []
    for number in range(1, 12):
        layer = label_layer(graph, b"\x09" * 32, number, layer)
    assert layer[-1] == b"".join(int(limb, 16).to_bytes(8, "little") for limb in limbs.split())


def test_a_real_sector_of_a_lotus_miner_has_the_comm_r_that_it_published() -> None:
    names = SectorNames(
        1002, 1, bytes.fromhex("c3a1ca12b981a8a59f9a4764edf3398edd239b2afa8ca2bbd57e0091ec193aa0"),
        bytes.fromhex("62a9ec8794bdb9cf9899e3e1fde9dd3c84ecb285bfeeace7fdbf4924b25eba85"),
    )  # fmt: skip
    output = replicate(registered("StackedDrg2KiBV1_1"), names)
    assert output.comm_d.hex() == "fc7e928296e516faade986b28f92d44a4f24b935485223376a799027bc18f833"
    assert output.comm_r.hex() == "b70cfe76f30bdc2abb6b495b6c999f692061800dbc8ac916c66cb5ec3c6f6528"


def test_the_golden_sectors_are_made_again(sector: C1Output, numbered: C1Output) -> None:
    assert sector.replica_id.hex() == "3e75e87332cd5d60132c1f9f9a8362e2e4cf190b46f4fd636fd8864b842d170b"
    assert sector.comm_r.hex() == "77424390b36f74acd595c40d0e341f4fbff18623feaf8ad72fe73d7490d0d65c"
    opened = sector.partitions[0]
    assert canonical_bytes(opened.comm_c).hex() == "341fe7b18303170f67577d8e825f09e2cf6cf4c2b65d4fa2eaf4e2b70eeeb365"
    assert (
        canonical_bytes(opened.comm_r_last).hex() == "90e693754e3cd7d23b1cbb26a69183485d04d7a96e8b0c2fef039a0f09bfef05"
    )
    assert opened.nodes.tolist() == [8, 54]
    assert opened.column_nodes[0].tolist() == [7, 7, 6, 7, 6, 7, 49, 21, 23, 14, 6, 25, 48, 62, 8]
    assert numbered.comm_d.hex() == "57a86a2459b4e38dd4ab3b492a4cc406f636f33d62cd180ca36e1ea6547e5d37"
    assert numbered.comm_r.hex() == "7dfd6cc4471df6f95c1587d466c47f9dd34be9c9238da14fa09ba71c7b669400"
    assert numbered.partitions[0].nodes.tolist() == [54, 16]


def test_comm_r_of_poseidon_is_the_published_hash_of_one_and_zero() -> None:
    limbs = "b339ff6079800b5e ec5907b3dc3094af 93c003cc74a24f26 042f94ffbe786bc3"
    digest = poseidon_rows(ints_to_fr([1, 0]).reshape(1, 2, 4))
    assert canonical_bytes(digest) == b"".join(int(limb, 16).to_bytes(8, "little") for limb in limbs.split())


def test_a_miners_id_is_leb128() -> None:
    assert prover_id(1000) == bytes([0xE8, 0x07]) + bytes(30)
    assert prover_id(0) == bytes(32)
    assert prover_id((1 << 63) - 1) == b"\xff" * 8 + b"\x7f" + bytes(23)


@pytest.mark.parametrize("size", ["2KiB", "8MiB", "512MiB", "64GiB"])
def test_a_sparse_sector_of_any_size_passes_every_check(size: str) -> None:
    proof = registered_of(shape_of(size), is_legacy_graph=size == "64GiB")
    output = sparse(proof, SectorNames(miner_id=7, sector_number=9), threads=2)
    check_output(output, miner_id=7, sector_number=9, threads=2)
    assert len(output.partitions) == proof.partitions
    other = sparse(proof, SectorNames(miner_id=7, sector_number=9), seed=b"other", threads=2)
    assert other.comm_r != output.comm_r and other.replica_id == output.replica_id


def test_a_synthetic_sector_passes_every_check() -> None:
    output = replicate(registered_of(shape_of("2KiB"), Rule.SYNTHETIC), SectorNames())
    check_output(output, miner_id=1000)


def test_what_cannot_be_sealed_or_faked_is_refused() -> None:
    with pytest.raises(BadRequest, match="sparse"):
        replicate(registered_of(shape_of("8MiB")), SectorNames())
    with pytest.raises(BadRequest, match="2048"):
        replicate(registered_of(shape_of("2KiB")), SectorNames(), bytes(2047))
    with pytest.raises(BadRequest, match="comm_r"):
        sparse(registered_of(shape_of("2KiB"), Rule.SYNTHETIC), SectorNames())


def test_a_sparse_tree_is_the_dense_tree_over_its_default() -> None:
    arities = (8, 4, 2)
    leaves = list(range(100, 164))
    kept = [3, 17, 40, 63]
    dense = [leaves[i] if i in kept else 5 for i in range(64)]
    default = ints_to_fr([5])[0]
    tree = Tree(arities, np.array(kept), ints_to_fr(leaves[i] for i in kept), default, poseidon_rows)
    row = dense
    for arity in arities:
        row = [permute(arity, row[i : i + arity]) for i in range(0, len(row), arity)]
    assert fr_to_ints(tree.root[None]) == row
    paths = tree.paths(np.array([0, 17, 62]))
    assert paths.indices == [0, 17, 62]
    assert fr_to_ints(paths.leaves) == [dense[i] for i in (0, 17, 62)]
    assert fr_to_ints(paths.computed_roots(poseidon_rows)) == row * 3


def test_tree_d_of_zeros_is_the_public_one_at_every_size() -> None:
    zeros = Tree((2,) * 6, np.zeros(0, np.int64), np.zeros((0, 4), np.uint64), np.zeros(4, np.uint64), sha256_rows)
    full = Tree((2,) * 6, np.arange(64), np.zeros((64, 4), np.uint64), np.zeros(4, np.uint64), sha256_rows)
    expected = "fc7e928296e516faade986b28f92d44a4f24b935485223376a799027bc18f833"
    assert canonical_bytes(zeros.root).hex() == canonical_bytes(full.root).hex() == expected
