"""Every kind of file is told from its bytes, whatever its name; what is none is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from prover.errors import BadFile
from prover.files.bellperson_vk import decode_vk, write_vk
from prover.files.container import write_key
from prover.files.identify import identify
from prover.files.zkey import read_zkey


def test_each_kind_is_told_with_its_sizes(chain: Path, product: Path, filecoin: Path, tmp_path: Path) -> None:
    write_key(tmp_path / "own", read_zkey(chain / "small.zkey").key)
    porep = json.loads((filecoin / "porep_2kib_verify.json").read_text())
    write_vk(tmp_path / "vk", decode_vk(bytes.fromhex(porep["vk_hex"])))
    (tmp_path / "vk48").write_bytes(bytes.fromhex(porep["vk_hex"]))
    (tmp_path / "proofs").write_bytes(bytes.fromhex(porep["proof_hex"]) * 10)
    expected = {
        chain / "small.r1cs": ("constraint system", "1,001"),
        chain / "small.wtns": ("witness", "1,004"),
        chain / "small.zkey": ("proving key", "1,024 (2^10)"),
        product / "3_fac_final.zkey": ("proving key", "lagrange-odd"),
        chain / "small_proof.json": ("proof", "groth16"),
        chain / "small_public.json": ("public inputs", "2"),
        chain / "small_vkey.json": ("verification key", "2"),
        tmp_path / "own": ("proving key of this program", "lagrange-odd"),
        tmp_path / "vk": ("verifying key", "39"),
        tmp_path / "vk48": ("verifying key", "39"),
        tmp_path / "proofs": ("raw Groth16 proofs", "10 of 192 bytes"),
    }
    for i, (path, (kind, fact)) in enumerate(expected.items()):
        shutil.copy(path, tmp_path / f"nameless{i}")
        report = identify(tmp_path / f"nameless{i}")
        assert kind in report.kind
        assert fact in [value for _, value in report.facts], report
        assert report.checks and ("curve", "bls12381") in report.facts
        assert all("\n" not in line for line in report.lines())


def test_damaged_file_is_no_better_for_being_identified(chain: Path, tmp_path: Path) -> None:
    data = bytearray((chain / "small.zkey").read_bytes())
    data[-2000] ^= 1
    (tmp_path / "bad.zkey").write_bytes(data)
    with pytest.raises(BadFile, match=r"bad\.zkey"):
        identify(tmp_path / "bad.zkey")


@pytest.mark.parametrize("content", [b"", b"\0", b"hello", bytes(192), bytes(868), b"PK\3\4" * 9000, b"{}", b"{"])
def test_what_is_none_of_them_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "what").write_bytes(content)
    with pytest.raises(BadFile, match="what"):
        identify(tmp_path / "what")
