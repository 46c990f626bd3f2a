"""A key written is the key opened; any change of its file is noticed, and points are believed only on record."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from prover.errors import BadFile
from prover.files.checked import digest_of
from prover.files.container import HEAD, MAGIC, open_key, write_key
from prover.files.zkey import read_zkey
from prover.keys import HBasis, ProvingKey, Query, VerifyingKey


@pytest.fixture
def key(product: Path) -> ProvingKey:
    return replace(read_zkey(product / "3_fac_final.zkey").key, circuit_hash=bytes(range(32)))


def assert_same(x: object, y: object) -> None:
    if isinstance(x, np.ndarray):
        assert isinstance(y, np.ndarray) and np.array_equal(x, y)
    elif isinstance(x, ProvingKey | VerifyingKey | Query):
        for field in fields(x):
            assert_same(getattr(x, field.name), getattr(y, field.name))
    else:
        assert x == y


def test_key_is_opened_as_it_was_written(key: ProvingKey, tmp_path: Path) -> None:
    write_key(tmp_path / "k", key)
    assert_same(open_key(tmp_path / "k"), key)


def test_larger_key_and_monomial_basis_survive_too(chain: Path, tmp_path: Path) -> None:
    key = read_zkey(chain / "small.zkey").key
    for some in (key, replace(key, h_query=key.h_query[:-1].copy(), h_basis=HBasis.MONOMIAL, is_test_setup=True)):
        write_key(tmp_path / "k", some)
        assert_same(open_key(tmp_path / "k"), some)


def test_arrays_are_pages_of_the_file_that_writing_does_not_change(key: ProvingKey, tmp_path: Path) -> None:
    write_key(tmp_path / "k", key)
    before = (tmp_path / "k").read_bytes()
    opened = open_key(tmp_path / "k")
    for array in (opened.h_query, opened.a_query.points, opened.b_g2_query.points):
        assert array.flags.c_contiguous and array.flags.writeable and not array.flags.owndata
        assert array.ctypes.data % 4096 == 0
    opened.h_query[0] = 0
    assert (tmp_path / "k").read_bytes() == before


def test_opened_key_outlives_its_files_name(key: ProvingKey, tmp_path: Path) -> None:
    write_key(tmp_path / "k", key)
    opened = open_key(tmp_path / "k")
    (tmp_path / "k").unlink()
    assert_same(opened, key)


def test_any_byte_changed_in_header_description_or_points_is_noticed(key: ProvingKey, tmp_path: Path) -> None:
    write_key(tmp_path / "k", key)
    data = (tmp_path / "k").read_bytes()
    size = HEAD.unpack_from(data)[2]
    listed = json.loads(data[HEAD.size : HEAD.size + size])["sections"]
    places = [*range(0, HEAD.size + size, 7), *(offset + 5 for offset, count in listed.values() if count)]
    for at in places:
        (tmp_path / "bad").write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        with pytest.raises(BadFile, match="bad"):
            open_key(tmp_path / "bad")


def test_file_cut_anywhere_before_its_last_point_is_truncated(key: ProvingKey, tmp_path: Path) -> None:
    write_key(tmp_path / "k", key)
    data = (tmp_path / "k").read_bytes()
    for size in (0, 1, 8, 20, HEAD.size, HEAD.size + 40, 4096, 8192, len(data) - 4096):
        (tmp_path / "cut").write_bytes(data[:size])
        with pytest.raises(BadFile):
            open_key(tmp_path / "cut")


def forged(path: Path, out: Path, changes: dict[str, object], patch: tuple[str, int, bytes] | None = None) -> None:
    """The file with another description and section content, and every checksum right again."""
    data = bytearray(path.read_bytes())
    size = HEAD.unpack_from(data)[2]
    described = json.loads(data[HEAD.size : HEAD.size + size])
    if patch:
        name, offset, new = patch
        at = described["sections"][name][0] + offset
        data[at : at + len(new)] = new
        widths = {"g1": 96, "g2": 192, "b_g2": 192, "ic": 96, "a": 96, "b_g1": 96, "l": 96, "h": 96}
        parts = [
            memoryview(bytes(data[where : where + count * widths.get(n, 4)]))
            for n, (where, count) in described["sections"].items()
        ]
        described["digest"] = digest_of(parts).hex()
    described.update(changes)
    text = json.dumps(described).encode()
    data[: HEAD.size + len(text)] = (
        HEAD.pack(MAGIC, 1, len(text), hashlib.blake2b(text, digest_size=32).digest()) + text
    )
    out.write_bytes(data)


def test_points_of_an_unrecorded_file_are_checked_and_those_of_a_recorded_one_are_not(
    key: ProvingKey, tmp_path: Path, no_record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks: list[str] = []
    from prover.files import container

    monkeypatch.setattr(container, "require_points", lambda points, what, *_, **__: checks.append(what))
    write_key(tmp_path / "k", key, points_checked=False)
    open_key(tmp_path / "k")
    assert set(checks) >= {"g1", "g2", "ic", "a", "b_g1", "b_g2", "l", "h"}
    checks.clear()
    write_key(tmp_path / "k", key)
    open_key(tmp_path / "k")
    assert not checks
    for file in no_record.iterdir():
        file.unlink()
    open_key(tmp_path / "k")
    assert checks


def test_forged_point_with_right_checksums_is_refused(key: ProvingKey, tmp_path: Path, no_record: Path) -> None:
    from prover.backends.cpu.field import ints_to_fp

    write_key(tmp_path / "k", key)
    outside = ints_to_fp([0, 2]).tobytes()
    for name in ("a", "h", "l", "ic", "g1"):
        forged(tmp_path / "k", tmp_path / "f", {}, (name, 96, outside))
        with pytest.raises(BadFile, match=f"section {name}.*point 1 .*outside the prime-order subgroup"):
            open_key(tmp_path / "f")


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"curve": "bn128"}, "curve"),
        ({"h_basis": "chebyshev"}, "h_basis"),
        ({"domain_size": 1 << 30}, "section h"),
        ({"domain_size": 1 << 40}, "domain_size"),
        ({"num_public": 1}, "section ic"),
        ({"num_public": "two"}, "num_public"),
        ({"num_wires": 4}, "wires"),
        ({"num_constraints": 1 << 20}, "rows"),
        ({"is_test_setup": 1}, "is_test_setup"),
        ({"circuit_hash": "zz"}, "circuit_hash"),
        ({"sections": {}}, "section"),
        ({"sections": {"h": [4096, 1 << 60]}}, "section h"),
        ({"sections": {"h": [4097, 1]}}, "section h"),
        ({"sections": {"other": [4096, 1]}}, "sections"),
        ({"sections": [1]}, "sections"),
        ({"first_wires": {"a": 0}}, "first_wires"),
    ],
)
def test_forged_description_is_refused_before_memory_is_taken(
    changes: dict[str, object], words: str, key: ProvingKey, tmp_path: Path, no_record: Path
) -> None:
    write_key(tmp_path / "k", key)
    forged(tmp_path / "k", tmp_path / "f", changes)
    with pytest.raises(BadFile, match=words):
        open_key(tmp_path / "f")


def test_wires_must_rise_and_exist(key: ProvingKey, tmp_path: Path, no_record: Path) -> None:
    write_key(tmp_path / "k", key)
    for wires in ([0, 1, 2, 2], [3, 2, 1, 0], [0, 1, 2, 6], [0, 1, 2, 1 << 31]):
        forged(tmp_path / "k", tmp_path / "f", {}, ("a_wires", 0, np.array(wires, "<u4").tobytes()))
        with pytest.raises(BadFile, match="section a"):
            open_key(tmp_path / "f")


def test_digest_is_the_same_on_any_number_of_threads_and_depends_on_the_borders() -> None:
    data = memoryview(bytes(range(256)) * (1 << 17))
    assert digest_of([data], 1) == digest_of([data], 3)
    assert digest_of([data[:10], data[10:]]) != digest_of([data])
    began = time.perf_counter()
    digest_of([data])
    assert time.perf_counter() - began < 2
