"""Graph and challenges are the network's: public digests over whole graphs, and the published vectors."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path

import pytest

from prover.errors import BadRequest
from prover.porep.chacha import words
from prover.porep.challenges import challenges, interactive, synthetic, synthetic_candidate
from prover.porep.graph import Graph
from prover.porep.shapes import REGISTERED, SHAPES, Rule, registered, registered_of, shape_of

RFC_8439_BLOCK = (
    "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
    "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
)


@pytest.mark.parametrize(("name", "is_legacy"), [("StackedDrg2KiBV1", True), ("StackedDrg2KiBV1_1", False)])
def test_every_parent_of_a_2_kib_graph_is_that_of_the_public_parent_cache(
    name: str, is_legacy: bool, filecoin: Path
) -> None:
    proof = registered(name)
    assert proof.is_legacy_graph is is_legacy
    graph = Graph(64, proof.porep_id, is_legacy=is_legacy)
    digest = hashlib.sha256(b"".join(struct.pack("<14I", *graph.parents(node)) for node in range(64))).hexdigest()
    text = b"stacked_graph::StackedGraph{expansion_degree: 8 base_graph: drgraph::BucketGraph{size: 64; degree: 6; "
    key = hashlib.sha256(
        b"poseidon_hasher" + text + b"hasher: poseidon_hasher} }"
        + struct.pack("<4QI", *graph.feistel_keys, 64)
    ).hexdigest()  # fmt: skip
    cache = json.loads((filecoin / "parent_cache.json").read_text())
    assert cache[f"v28-sdr-parent-{key}"] == {"sector_size": 2048, "digest": digest}


def test_parents_lie_where_the_label_can_know_them() -> None:
    for shape in (shape_of("512MiB"), shape_of("64GiB")):
        graph = Graph(shape.num_nodes, registered_of(shape).porep_id, is_legacy=False)
        for node in (1, 2, 3, 1000, shape.num_nodes // 2, shape.num_nodes - 1):
            base, expander = graph.base_parents(node), graph.expander_parents(node)
            assert len(base) == 6 and all(0 <= parent < max(node, 1) for parent in base)
            assert len(expander) == 8 and all(0 <= parent < shape.num_nodes for parent in expander)


def test_the_expander_is_a_permutation() -> None:
    graph = Graph(64, bytes(32), is_legacy=False)
    edges = [parent for node in range(64) for parent in graph.expander_parents(node)]
    assert sorted(edges) == sorted([node for node in range(64) for _ in range(8)])


def test_chacha_is_that_of_the_rfc() -> None:
    stream = words(bytes(range(32)), 20, nonce=bytes.fromhex("000000090000004a00000000"), first_block=1)
    assert struct.pack("<16I", *(next(stream) for _ in range(16))).hex() == RFC_8439_BLOCK


def test_synthetic_challenges_are_those_of_the_published_vector() -> None:
    replica_id, comm_r = (number.to_bytes(32, "little") for number in (55, 101))
    assert [synthetic_candidate(1024, i, replica_id, comm_r) for i in range(3)] == [178, 297, 869]
    drawn = synthetic(1024, range(10), replica_id, comm_r, b"\1" * 32, num_candidates=21)
    assert drawn == [176, 781, 801, 986, 290, 211, 692, 856, 986, 332]


@pytest.mark.parametrize("rule", Rule)
def test_partitions_continue_one_sequence_and_never_open_node_zero(rule: Rule) -> None:
    proof = registered_of(shape_of("32GiB"), rule)
    ids = (b"\5" * 32, b"\6" * 32, b"\7" * 32)
    rows = [challenges(proof, k, *ids) for k in range(3)]
    assert [len(row) for row in rows] == [18, 18, 18]
    assert len({node for row in rows for node in row}) > 50
    assert all(0 < node < proof.shape.num_nodes for row in rows for node in row)
    moved = challenges(proof, 0, ids[0], ids[1], b"\x08" * 32)
    assert (moved == rows[0]) is (rule is Rule.NON_INTERACTIVE)
    assert challenges(proof, 0, b"\x09" * 32, *ids[1:]) != rows[0]


def test_interactive_challenges_do_not_depend_on_comm_r() -> None:
    assert interactive(64, range(2), bytes(32), bytes(32)) == interactive(64, range(4), bytes(32), bytes(32))[:2]


def test_the_twenty_registered_proofs_have_their_numbers() -> None:
    assert [(p.name, p.number) for p in REGISTERED[::5]] == [
        ("StackedDrg2KiBV1", 0),
        ("StackedDrg2KiBV1_1", 5),
        ("StackedDrg2KiBV1_1_Feat_SyntheticPoRep", 10),
        ("StackedDrg2KiBV1_2_Feat_NonInteractivePoRep", 15),
    ]
    assert [p.number for p in REGISTERED] == list(range(20))
    assert registered("StackedDrg32GiBV1_1").porep_id == bytes([8]) + bytes(31)
    assert [registered(f"StackedDrg{size}V1_2_Feat_NonInteractivePoRep").partitions for size in ("2KiB", "32GiB")] == [
        13,
        126,
    ]


def test_shapes_follow_from_the_table() -> None:
    wanted = {
        "2KiB": (6, (8, 8)), "4KiB": (7, (8, 8, 2)), "16KiB": (9, (8, 8, 8)), "32KiB": (10, (8, 8, 8, 2)),
        "8MiB": (18, (8,) * 6), "16MiB": (19, (8,) * 6 + (2,)), "512MiB": (24, (8,) * 8),
        "1GiB": (25, (8,) * 8 + (2,)), "32GiB": (30, (8,) * 10), "64GiB": (31, (8,) * 10 + (2,)),
    }  # fmt: skip
    assert {shape.name: (shape.log_nodes, shape.arities) for shape in SHAPES} == wanted
    assert [shape_of(name).num_inputs for name in ("2 kib", "32GiB")] == [39, 327]


@pytest.mark.parametrize("text", ["", "3KiB", "32", "x" * 500])
def test_a_size_that_does_not_exist_is_refused_with_those_that_do(text: str) -> None:
    with pytest.raises(BadRequest, match="64GiB") as caught:
        shape_of(text)
    assert len(str(caught.value)) < 250


def test_sizes_without_a_registered_proof_are_refused() -> None:
    with pytest.raises(BadRequest, match="4KiB"):
        registered_of(shape_of("4KiB"))
    with pytest.raises(BadRequest, match="unknown"):
        registered("StackedDrg2KiBV2")
