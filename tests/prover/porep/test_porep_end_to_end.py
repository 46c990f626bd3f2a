"""A 2 KiB sector from its data to a proof that others can verify, through the service, with bellperson parameters."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from prover.cli import main
from prover.files.bellperson_vk import read_vk
from prover.files.zcash import decode_proof
from prover.porep.public_inputs import sector_inputs
from prover.porep.vanilla import C1Output
from prover.proto import proving_pb2
from prover.verify import verify

sys.path.insert(0, str(Path(__file__).parents[1]))
from serve.daemon import Daemon

pytestmark = pytest.mark.slow
PARAMS_BYTES = 1_114_707_768
"""The size of the real 2 KiB parameters."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """c1.json, k.params and k.vk; removed at once, for the parameters are large."""
    folder = tmp_path_factory.mktemp("porep")
    run("porep", "make-sector", "2KiB", "--out", folder / "c1.json")
    run("setup", "--porep", "2KiB", "--params", folder / "k.params", "--raw-vk", folder / "k.vk")
    yield folder
    shutil.rmtree(folder)


def run(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0


def test_the_service_proves_a_sector_with_parameters_read_back_from_their_file(
    folder: Path, sector: C1Output, capfd: pytest.CaptureFixture[str]
) -> None:
    assert (folder / "k.params").stat().st_size == PARAMS_BYTES
    prover = Daemon()
    try:
        job_id = prover.submit("", c1_path=str(folder / "c1.json"), key_path=str(folder / "k.params"))
        result = prover.result(job_id, timeout_ms=500_000)
    finally:
        status, said = prover.end()
    assert status == 0, said
    assert result.status == proving_pb2.AwaitProofResponse.COMPLETED, result.error_message
    assert len(result.proof) == 192

    (inputs,) = sector_inputs(sector.proof, sector.replica_id, sector.comm_d, sector.comm_r, sector.seed)
    vk, proof = read_vk(folder / "k.vk"), decode_proof(result.proof)
    assert verify(vk, proof, inputs)
    assert not verify(vk, proof, [*inputs[:-1], inputs[-1] + 1])

    raw = folder / "proof.bin"
    raw.write_bytes(result.proof)
    question = ["porep", "verify", "--vk", folder / "k.vk", "--proof", raw, "--c1"]
    run(*question, folder / "c1.json")
    run("porep", "make-sector", "2KiB", "--seed", "02" * 32, "--out", folder / "other.json")
    assert main([str(argument) for argument in (*question, folder / "other.json")]) == 1
    assert "partition 0 does not hold" in capfd.readouterr().out
