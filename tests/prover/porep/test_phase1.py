"""Genuine parameters, whose tau nobody here knows, prove; the phase-1 file is read whole or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from prover import wire
from prover.arena import Arena
from prover.backends.cpu.backend import CpuBackend
from prover.backends.cpu.points import add, g1_generator
from prover.builtin import BuiltinWorkload
from prover.circuits.registry import build
from prover.errors import BadFile, Mismatch
from prover.files.params_file import write_params
from prover.jobs import Prover
from prover.key_file import KeyFile
from prover.porep.phase1 import Phase1, parameters, read_phase1
from prover.run import silent
from prover.verify import PreparedKey


@pytest.fixture(scope="module")
def phase1(filecoin: Path) -> Phase1:
    """filecoin-phase2's file for 1 024 rows."""
    return read_phase1(filecoin / "phase1radix2m10")


def test_the_lagrange_points_sum_to_the_generator(phase1: Phase1) -> None:
    total = np.zeros((2, 6), np.uint64)
    for point in phase1.lagrange_g1:
        total = add(total, point)
    assert phase1.num_rows == 1024 and (total == g1_generator()).all()


def test_genuine_parameters_survive_their_file_and_prove(phase1: Phase1, tmp_path: Path) -> None:
    circuit = build("poseidon-merkle:1")
    key = parameters(circuit.r1cs, phase1)
    write_params(tmp_path / "genuine.params", key)
    prover = Prover(CpuBackend(2), Arena(lambda _event: None, 0))
    try:
        job = BuiltinWorkload(circuit, 2, KeyFile(tmp_path / "genuine.params"), seed=b"fixed")
        result = prover.run_job(job, wire.Policy.SYNC_4K, silent())
    finally:
        prover.close()
    verifier = PreparedKey(key.vk)
    assert result.verified and len(result.proof_bytes) == 2 * 192
    first, second = result.proofs
    assert verifier.verify(first, result.public_inputs[0])
    assert not verifier.verify(second, result.public_inputs[0])


def test_a_circuit_of_another_domain_is_a_mismatch(phase1: Phase1) -> None:
    with pytest.raises(Mismatch, match="2048 rows and the phase-1 output has 1024"):
        parameters(build("poseidon-merkle:2").r1cs, phase1)


def test_a_damaged_file_is_refused(filecoin: Path, tmp_path: Path) -> None:
    data = (filecoin / "phase1radix2m10").read_bytes()
    bad = tmp_path / "bad"
    for content in (b"", data[:-1], data + b"\0", data[:-96]):
        bad.write_bytes(content)
        with pytest.raises(BadFile, match="no phase-1 output"):
            read_phase1(bad)
    at = 384 + 5 * 96
    bad.write_bytes(data[:at] + data[:48] + data[at + 48 :])
    with pytest.raises(BadFile, match=f"offset {at}"):
        read_phase1(bad)
