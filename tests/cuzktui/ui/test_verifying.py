"""The key `v` checks bytes, not words: a proof that was altered, or belongs to other inputs, is told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuzktui.model import store
from cuzktui.model.snapshot import JobView
from cuzktui.verifying import verify_job
from prover.errors import BadRequest
from prover.files.snarkjs_json import read_proof, read_public
from prover.files.zcash import encode_proof
from prover.wire import JobEnded, Outcome

FIXTURE = Path(__file__).parents[2] / "data" / "snarkjs_3fac"


def job_of(proof_hex: str, public: list[str], key: str | None = str(FIXTURE / "verification_key.json")) -> JobView:
    ended = JobEnded(
        t_ns=1,
        job_id="job-1",
        outcome=Outcome.PROVED,
        proof_hex=proof_hex,
        public_inputs=[public],
        metrics={"key_file": key},
    )
    (job,) = store.apply(store.empty(), ended).jobs
    return job


@pytest.fixture(scope="module")
def proof_hex() -> str:
    return encode_proof(read_proof(FIXTURE / "proof.json")).hex()


@pytest.fixture(scope="module")
def public() -> list[str]:
    return [str(value) for value in read_public(FIXTURE / "public.json")]


def test_a_good_proof_is_told_valid(proof_hex: str, public: list[str]) -> None:
    assert "1 proof valid" in verify_job(job_of(proof_hex, public))


def test_other_public_inputs_are_told_not_valid(proof_hex: str, public: list[str]) -> None:
    changed = [str(int(public[0]) + 1), *public[1:]]
    with pytest.raises(BadRequest, match="proof 0 is not valid"):
        verify_job(job_of(proof_hex, changed))


def test_an_altered_proof_is_told_not_valid(proof_hex: str, public: list[str]) -> None:
    with pytest.raises(BadRequest, match="proof 0 is not valid"):
        verify_job(job_of(proof_hex[:-2] + ("00" if proof_hex[-2:] != "00" else "01"), public))


def test_what_cannot_be_checked_is_said(proof_hex: str, public: list[str]) -> None:
    with pytest.raises(BadRequest, match="key file is not known"):
        verify_job(job_of(proof_hex, public, key=None))
    with pytest.raises(BadRequest, match="191 proof bytes"):
        verify_job(job_of(proof_hex[:-2], public))
    with pytest.raises(BadRequest, match="not hexadecimal"):
        verify_job(job_of("zz", public))
