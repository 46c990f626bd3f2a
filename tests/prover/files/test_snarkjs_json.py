"""snarkjs's JSON is read, verified, written back character for character; malformed JSON ends in one line."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from prover.errors import BadFile, Mismatch
from prover.files.snarkjs_json import (
    read_proof,
    read_public,
    read_verification_key,
    require_public_count,
    write_proof,
    write_public,
    write_verification_key,
)
from prover.files.zkey import read_zkey
from prover.params import P, R
from prover.verify import verify

FILES = {"chain": ("small_proof.json", "small_public.json", "small_vkey.json"),
         "product": ("proof.json", "public.json", "verification_key.json")}  # fmt: skip
BOTH = pytest.mark.parametrize("folder", FILES)


def load(folder: str, request: pytest.FixtureRequest) -> tuple[Path, Path, Path]:
    base = request.getfixturevalue(folder)
    proof, public, vkey = (base / name for name in FILES[folder])
    return proof, public, vkey


@BOTH
def test_snarkjss_own_proof_verifies_and_no_other_public_input_does(
    folder: str, request: pytest.FixtureRequest
) -> None:
    paths = load(folder, request)
    proof, public, vk = read_proof(paths[0]), read_public(paths[1]), read_verification_key(paths[2])
    assert verify(vk, proof, public)
    for i in range(len(public)):
        assert not verify(vk, proof, [(v + 1) % R if i == j else v for j, v in enumerate(public)])


@BOTH
def test_every_file_is_written_back_as_snarkjs_wrote_it(
    folder: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    paths = load(folder, request)
    write_proof(tmp_path / "p", read_proof(paths[0]))
    write_public(tmp_path / "i", read_public(paths[1]))
    write_verification_key(tmp_path / "v", read_verification_key(paths[2]))
    for ours, theirs in zip("piv", paths, strict=True):
        assert json.loads((tmp_path / ours).read_text()) == json.loads(theirs.read_text())
        if folder == "chain":
            assert (tmp_path / ours).read_text() == theirs.read_text()


def test_verification_key_exported_from_the_zkey_is_the_one_snarkjs_exports(chain: Path, tmp_path: Path) -> None:
    write_verification_key(tmp_path / "v.json", read_zkey(chain / "small.zkey").key.vk)
    assert (tmp_path / "v.json").read_text() == (chain / "small_vkey.json").read_text()


def test_wrong_number_of_public_inputs_is_a_mismatch(chain: Path) -> None:
    with pytest.raises(Mismatch, match="1 public inputs given, the verification key takes 2"):
        require_public_count([7], read_verification_key(chain / "small_vkey.json"))


def edited(path: Path, change: Callable[[dict], object]) -> bytes:
    document = json.loads(path.read_text())
    return json.dumps(change(document) or document).encode()


def set_at(*keys: object) -> Callable[[object], Callable[[dict], None]]:
    def to(value: object) -> Callable[[dict], None]:
        def change(document: dict) -> None:
            for key in keys[:-1]:
                document = document[key]  # type: ignore[index]
            document[keys[-1]] = value  # type: ignore[index]

        return change

    return to


PROOF_FAULTS: dict[str, tuple[Callable[[dict], object], str]] = {
    "no pi_a": (lambda d: d.pop("pi_a") and None, "pi_a: field is missing"),
    "no protocol": (lambda d: d.pop("protocol") and None, "protocol: field is missing"),
    "plonk": (set_at("protocol")("plonk"), "only 'groth16'"),
    "bn128": (set_at("curve")("bn128"), "not supported here yet"),
    "curve is a number": (set_at("curve")(5), "not supported"),
    "two coordinates": (set_at("pi_a")(["1", "2"]), "pi_a: has 2 elements where 3"),
    "pi_b like pi_a": (set_at("pi_b")(["1", "2", "1"]), "pi_b[0]: is a JSON string where an array"),
    "x = p": (set_at("pi_a", 0)(str(P)), "pi_a[0]: value is not below"),
    "negative": (set_at("pi_a", 0)("-5"), "pi_a[0]"),
    "hexadecimal": (set_at("pi_a", 0)("0x12"), "pi_a[0]"),
    "other digits": (set_at("pi_a", 0)("٣"), "pi_a[0]"),
    "empty": (set_at("pi_a", 0)(""), "pi_a[0]"),
    "very long": (set_at("pi_a", 0)("1" * 100_000), "pi_a[0]"),
    "null": (set_at("pi_a", 0)(None), "pi_a[0]: is a JSON null"),
    "boolean": (set_at("pi_a", 0)(True), "pi_a[0]: is a JSON boolean"),
    "z = 2": (set_at("pi_a", 2)("2"), "pi_a[2]: is not 1"),
    "G2 z": (set_at("pi_b", 2)(["1", "1"]), "pi_b[2]: is not 1"),
    "off the curve": (set_at("pi_a")(["1", "2", "1"]), "not on the curve"),
    "outside the subgroup": (set_at("pi_a")(["0", "2", "1"]), "outside the prime-order subgroup"),
    "infinity": (set_at("pi_c")(["0", "1", "0"]), "infinity"),
    "an array": (lambda d: [d], "is a JSON array where an object"),
}


@pytest.mark.parametrize("name", PROOF_FAULTS)
def test_fault_of_a_proof_is_named(name: str, chain: Path, tmp_path: Path) -> None:
    change, words = PROOF_FAULTS[name]
    (tmp_path / "proof.json").write_bytes(edited(chain / "small_proof.json", change))
    with pytest.raises(BadFile) as caught:
        read_proof(tmp_path / "proof.json")
    assert words in str(caught.value) and "proof.json" in str(caught.value) and "\n" not in str(caught.value)


KEY_FAULTS: dict[str, tuple[Callable[[dict], object], str]] = {
    "IC too short": (lambda d: d["IC"].pop() and None, "IC: has 2 elements where 3"),
    "absurd nPublic": (set_at("nPublic")(1 << 40), "nPublic"),
    "nPublic as a fraction": (set_at("nPublic")(2.0), "fraction"),
    "IC point outside the subgroup": (set_at("IC", 2)(["0", "2", "1"]), "IC[2]: point 2 of IC is outside"),
    "gamma is infinity": (set_at("vk_gamma_2")([["0", "0"], ["1", "0"], ["0", "0"]]), "infinity"),
    "delta off the curve": (set_at("vk_delta_2", 0)(["1", "1"]), "vk_delta_2: point 0 of vk_delta_2 is not on the"),
    "bn128": (set_at("curve")("bn128"), "not supported here yet"),
}


@pytest.mark.parametrize("name", KEY_FAULTS)
def test_fault_of_a_verification_key_is_named(name: str, chain: Path, tmp_path: Path) -> None:
    change, words = KEY_FAULTS[name]
    (tmp_path / "vk.json").write_bytes(edited(chain / "small_vkey.json", change))
    with pytest.raises(BadFile) as caught:
        read_verification_key(tmp_path / "vk.json")
    assert words in str(caught.value) and "vk.json" in str(caught.value)


TEXTS = {
    "empty": b"",
    "cut": b'["1", "2"',
    "not UTF-8": b'["\xff\xfe"]',
    "UTF-16": '["1"]'.encode("utf-16"),
    "NaN": b"[NaN]",
    "huge integer": b"[" + b"9" * 20_000 + b"]",
    "exponent": b"[1e5]",
    "deep": b"[" * 100_000,
    "deep and closed": b"[" * 50_000 + b"]" * 50_000,
    "endless string": b'["' + b'\\"' * 1_000_000,
    "not below r": json.dumps([str(R)]).encode(),
    "an object": b"{}",
    "nested": b'[["1"]]',
    "many": b"[" + b"[]," * 650_000 + b"[]]",
    "too large": b'["1"' + b" " * (3 << 20) + b"]",
}


@pytest.mark.parametrize("name", TEXTS)
def test_malformed_public_inputs_are_refused_quickly_and_in_little_memory(name: str, tmp_path: Path) -> None:
    path = tmp_path / "public.json"
    path.write_bytes(TEXTS[name])
    began = time.process_time()
    with pytest.raises(BadFile) as caught:
        read_public(path)
    assert time.process_time() - began < 2
    tracemalloc.start()
    with pytest.raises(BadFile):
        read_public(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 << 20
    assert "public.json" in str(caught.value) and "\n" not in str(caught.value)


def test_key_given_twice_is_refused(chain: Path, tmp_path: Path) -> None:
    text = (chain / "small_proof.json").read_text()
    (tmp_path / "twice.json").write_text(text.replace('"protocol"', '"curve": "bls12381", "protocol"'))
    with pytest.raises(BadFile, match="curve: field is given twice"):
        read_proof(tmp_path / "twice.json")


def test_byte_order_mark_and_plain_integers_are_legal(tmp_path: Path) -> None:
    (tmp_path / "public.json").write_bytes(b'\xef\xbb\xbf[ "12", 13 ]')
    assert read_public(tmp_path / "public.json") == [12, 13]
