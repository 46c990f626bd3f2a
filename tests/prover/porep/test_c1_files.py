"""A C1 output is read back as it was written, and what is none is refused with its place."""

from __future__ import annotations

import base64
import json
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from prover.errors import BadFile, BadVanillaProof, ProverError
from prover.params import R
from prover.porep.c1_read import MAX_BYTES, parse_c1, read_c1
from prover.porep.c1_write import inner_json, wrapper_json, write_c1
from prover.porep.checks import check_output
from prover.porep.sector import SectorNames, sparse
from prover.porep.shapes import registered
from prover.porep.vanilla import C1Output


@pytest.fixture(scope="module")
def tree(numbered: C1Output) -> str:
    """The inner JSON as text, to be parsed, changed and written by each test."""
    return inner_json(numbered).decode()


def test_wrapper_and_inner_json_say_the_same(numbered: C1Output, tmp_path: Path) -> None:
    inner = inner_json(numbered)
    write_c1(tmp_path / "c1.json", numbered)
    from_file, bare = read_c1(tmp_path / "c1.json"), parse_c1(inner)
    assert inner_json(from_file) == inner_json(bare) == inner
    assert (from_file.sector_number, bare.sector_number) == (1, None)
    wrapper = json.loads((tmp_path / "c1.json").read_bytes())
    assert wrapper.keys() == {"SectorNum", "Phase1Out", "SectorSize"}
    assert (wrapper["SectorNum"], wrapper["SectorSize"]) == (1, 2048)
    assert base64.b64decode(wrapper["Phase1Out"], validate=True) == inner


def test_the_inner_json_has_serdes_layout(numbered: C1Output) -> None:
    inner = json.loads(inner_json(numbered))
    assert list(inner) == [
        "registered_proof", "vanilla_proofs", "comm_r", "comm_d", "replica_id", "seed", "ticket",
    ]  # fmt: skip
    assert inner["registered_proof"] == "StackedDrg2KiBV1_1"
    ((opening, _),) = inner["vanilla_proofs"]["StackedDrg2KiBV1"]
    assert list(opening) == [
        "comm_d_proofs", "comm_r_last_proof", "replica_column_proofs", "labeling_proofs", "encoding_proof",
    ]  # fmt: skip
    assert list(opening["comm_d_proofs"]["data"]) == ["Single"]
    single = opening["comm_d_proofs"]["data"]["Single"]
    assert list(single) == ["root", "leaf", "path"]
    assert len(single["path"]["path"]) == 6 and list(single["path"]["path"][0]) == ["hashes", "index"]
    column = opening["replica_column_proofs"]["c_x"]["column"]
    assert list(column) == ["index", "rows", "_h"] and column["index"] == 54 and column["_h"] is None
    label = opening["labeling_proofs"][1]
    assert list(label) == ["parents", "layer_index", "node"]
    assert (len(label["parents"]), label["layer_index"], label["node"]) == (37, 2, 54)
    assert opening["encoding_proof"] == label


@pytest.mark.parametrize(("name", "variant"), [("StackedDrg8MiBV1", "Single"), ("StackedDrg64GiBV1_1", "Top")])
def test_every_kind_of_tree_survives(name: str, variant: str) -> None:
    output = sparse(registered(name), SectorNames(sector_number=2**40), threads=2)
    inner = inner_json(output)
    assert f'"{variant}"'.encode() in inner
    again = parse_c1(wrapper_json(output))
    assert again.sector_number == 2**40 and inner_json(again) == inner


def test_members_may_come_in_any_order_and_others_may_be_there(tree: str, numbered: C1Output) -> None:
    parsed = json.loads(tree)
    mixed = {"more": [1.5, None], **dict(reversed(list(parsed.items())))}
    assert inner_json(parse_c1(json.dumps(mixed).encode())) == inner_json(numbered)


Change = Callable[[dict], object]


def opening_of(inner: dict, challenge: int = 1) -> dict:
    found: dict = inner["vanilla_proofs"]["StackedDrg2KiBV1"][0][challenge]
    return found


def _set(where: Callable[[dict], dict | list], key: str | int, value: object) -> Change:
    def change(inner: dict) -> None:
        where(inner)[key] = value  # type: ignore[index]

    return change


FAULTS: dict[str, tuple[Change, str]] = {
    "unknown proof": (_set(lambda i: i, "registered_proof", "StackedDrg3KiBV1"), "registered_proof.*unknown"),
    "another family": (
        lambda i: i["vanilla_proofs"].update(StackedDrg8MiBV1=i["vanilla_proofs"].pop("StackedDrg2KiBV1")),
        "vanilla_proofs: holds StackedDrg8MiBV1",
    ),
    "aggregate": (
        _set(lambda i: i, "registered_proof", "StackedDrg2KiBV1_2_Feat_NonInteractivePoRep"),
        "aggregate",
    ),
    "two partitions": (
        lambda i: i["vanilla_proofs"]["StackedDrg2KiBV1"].append([]),
        "holds 2 partitions, and StackedDrg2KiBV1_1 has 1",
    ),
    "one challenge": (lambda i: i["vanilla_proofs"]["StackedDrg2KiBV1"][0].pop(), "partition 0: opens 1 challenges"),
    "short digest": (lambda i: i["comm_r"].pop(), r"length >= 32.*comm_r"),
    "no byte": (_set(lambda i: i["comm_d"], 3, 256), r"<= 255.*comm_d"),
    "text for a digest": (_set(lambda i: i, "seed", "00" * 32), r"array.*seed"),
    "missing member": (lambda i: i.pop("ticket"), "ticket"),
    "opening of another type": (
        _set(lambda i: i["vanilla_proofs"]["StackedDrg2KiBV1"][0], 1, 7),
        "partition 0, challenge 1: is not the JSON",
    ),
    "layer too many": (
        lambda i: opening_of(i)["labeling_proofs"].append(opening_of(i)["encoding_proof"]),
        "challenge 1, labeling_proofs: has 3 layers",
    ),
    "row missing": (
        lambda i: opening_of(i)["replica_column_proofs"]["exp_parents"][2]["column"]["rows"].pop(),
        r"challenge 1, exp_parents\[2\] rows: has 1 of 2",
    ),
    "parent missing": (lambda i: opening_of(i)["replica_column_proofs"]["drg_parents"].pop(), "length >= 6"),
    "another tree": (
        lambda i: opening_of(i).update(comm_r_last_proof={"data": {}}),
        "challenge 1, comm_r_last_proof: holds no tree where single is expected",
    ),
    "level missing": (
        lambda i: opening_of(i)["comm_d_proofs"]["data"]["Single"]["path"]["path"].pop(),
        r"challenge 1, comm_d_proofs path: has levels \[5\] where \[6\]",
    ),
    "sibling missing": (
        lambda i: opening_of(i)["replica_column_proofs"]["c_x"]["inclusion_proof"]["data"]["Single"]["path"]["path"][
            1
        ]["hashes"].pop(),
        r"challenge 1, c_x path\[1\]: has 6 hashes",
    ),
    "index too large": (
        lambda i: opening_of(i)["comm_d_proofs"]["data"]["Single"]["path"]["path"][4].update(index=2),
        r"path\[4\]: has 1 hashes and index 2 where the arity is 2",
    ),
    "negative node": (lambda i: opening_of(i)["labeling_proofs"][0].update(node=-1), "node"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_format_is_named_by_place(fault: str, tree: str) -> None:
    change, text = FAULTS[fault]
    inner = json.loads(tree)
    change(inner)
    with pytest.raises(BadFile, match=text) as caught:
        parse_c1(json.dumps(inner).encode(), "c1.json")
    assert str(caught.value).startswith("c1.json: ") and len(str(caught.value)) < 400


def test_a_value_that_is_no_field_element_is_named(tree: str) -> None:
    inner = json.loads(tree)
    path = opening_of(inner)["replica_column_proofs"]["exp_parents"][7]["inclusion_proof"]["data"]["Single"]["path"]
    path["path"][1]["hashes"][6] = list(R.to_bytes(32, "little"))
    with pytest.raises(BadVanillaProof, match=r"challenge 1, exp_parents\[7\] path\[1\].hashes\[6\]") as caught:
        parse_c1(json.dumps(inner).encode())
    assert caught.value.check == "values"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda o: o["labeling_proofs"][1]["parents"][20].__setitem__(0, 9), r"labeling_proofs\[1\] parents: differ"),
        (lambda o: o["labeling_proofs"][1].update(node=53), r"labeling_proofs\[1\]: is of layer 2, node 53"),
        (lambda o: o["labeling_proofs"][0].update(layer_index=2), r"labeling_proofs\[0\]: is of layer 2"),
        (lambda o: o["encoding_proof"]["parents"][0].__setitem__(0, 9), "encoding_proof: differs"),
    ],
)
def test_members_that_repeat_others_must_agree_with_them(change: Callable, text: str, tree: str) -> None:
    inner = json.loads(tree)
    opening = opening_of(inner)
    opening["labeling_proofs"] = json.loads(json.dumps(opening["labeling_proofs"]))
    change(opening)
    data = json.dumps(inner).encode()
    with pytest.raises(BadVanillaProof, match=text) as caught:
        parse_c1(data)
    assert caught.value.check == "copies"
    assert len(parse_c1(data, check_copies=False).partitions) == 1


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "not the JSON"),
        (b"{}", "neither Phase1Out nor registered_proof"),
        (b"[]", "not the JSON"),
        (b"\xff\xfe", "not the JSON"),
        (b'{"SectorNum":1,"Phase1Out":"!!","SectorSize":2048}', "base64|not the JSON"),
        (b'{"SectorNum":1,"Phase1Out":"e30=","SectorSize":2048}', "Phase1Out"),
        (b'{"SectorNum":-1,"Phase1Out":"e30=","SectorSize":2048}', "SectorNum"),
        (b'{"registered_proof":' + b"[" * 100_000, "not the JSON"),
    ],
)
def test_what_is_no_c1_output_is_refused_in_one_line(data: bytes, text: str) -> None:
    with pytest.raises(BadFile, match=text) as caught:
        parse_c1(data, "c1.json")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_a_wrapper_of_another_size_is_refused(numbered: C1Output) -> None:
    wrapper = json.loads(wrapper_json(numbered))
    with pytest.raises(BadFile, match="SectorSize: is 4096"):
        parse_c1(json.dumps(wrapper | {"SectorSize": 4096}).encode())


def test_every_cut_of_a_file_is_refused(numbered: C1Output) -> None:
    inner = inner_json(numbered)
    for end in range(1, len(inner), 4999):
        with pytest.raises(BadFile):
            parse_c1(inner[:end])


def test_a_huge_or_swollen_file_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as out:
        out.truncate(MAX_BYTES + 1)
    with pytest.raises(BadFile, match="at most"):
        read_c1(tmp_path / "huge")
    swollen = b'{"registered_proof":"x","comm_r":[' + b"0," * (17 << 20) + b"0]}"
    tracemalloc.start()
    with pytest.raises(BadFile, match="values"):
        parse_c1(swollen)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 1 << 20


def test_a_folder_or_nothing_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(BadFile, match=str(path)):
            read_c1(path)


def test_no_change_of_a_byte_or_member_passes_or_crashes(numbered: C1Output, tree: str) -> None:
    rng = random.Random(5)
    inner = tree.encode()
    parsed = json.loads(tree)
    for _ in range(150):
        data = bytearray(inner)
        data[rng.randrange(len(data))] = rng.randrange(256)
        _refused_or_equal(bytes(data), inner)
        at: dict | list = parsed
        while isinstance(at[key := _any_key(at, rng)], dict | list):  # type: ignore[index]
            at = at[key]  # type: ignore[index]
        kept = at[key]  # type: ignore[index]
        at[key] = rng.choice([0, 255, -1, 256, 1 << 64, 1.5, None, "x", [], {}])  # type: ignore[index]
        _refused_or_equal(json.dumps(parsed, separators=(",", ":")).encode(), inner)
        at[key] = kept  # type: ignore[index]


def _any_key(part: dict | list, rng: random.Random) -> str | int:
    return rng.choice(list(part)) if isinstance(part, dict) else rng.randrange(len(part))


def _refused_or_equal(data: bytes, inner: bytes) -> None:
    try:
        output = parse_c1(data)
        check_output(output, miner_id=1000, sector_number=1)
    except ProverError as error:
        assert len(str(error)) < 500
    else:
        assert inner_json(output) == inner
