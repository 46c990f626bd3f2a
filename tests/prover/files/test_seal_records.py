"""Every proof in Filecoin's public seal records is read and written back byte for byte."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path

import pytest

from prover.errors import BadFile
from prover.files.zcash import PROOF_BYTES, decode_proofs, encode_proof

AGGREGATES = (14_164, 23_092)
"""SnarkPack aggregates of non-interactive PoRep: no Groth16 proofs."""


def records(folder: Path, version: int) -> list[dict]:
    with lzma.open(folder / f"seal_regression_records-v{version}.jsonl.xz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("version, proofs, aggregates", [(16, 502, 0), (18, 98, 24)])
def test_all_proofs_of_the_records_survive(version: int, proofs: int, aggregates: int, filecoin: Path) -> None:
    found = Counter[str]()
    plain = []
    for record in records(filecoin, version):
        data = bytes(record["proof"])
        if len(data) in AGGREGATES:
            found["aggregate"] += 1
            continue
        assert len(data) == PROOF_BYTES * record["porep_config"]["partitions"]
        plain.append(data)
    joined = b"".join(plain)
    decoded = decode_proofs(joined)
    assert (len(decoded), found["aggregate"]) == (proofs, aggregates)
    assert b"".join(map(encode_proof, decoded)) == joined


def test_fault_in_one_of_many_proofs_is_placed(filecoin: Path) -> None:
    data = b"".join(bytes(record["proof"]) for record in records(filecoin, 16)[:20])
    at = 7 * PROOF_BYTES + 48
    with pytest.raises(BadFile, match=rf"offset {at} \(B of proof 7\)"):
        decode_proofs(data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :])
    for bad in (b"", data[:-1]):
        with pytest.raises(BadFile, match="multiple"):
            decode_proofs(bad)
