"""A 2 KiB sector from its data to a proof that others can verify, through the service."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from prover.cli import main
from prover.files.snarkjs_json import read_verification_key
from prover.files.zcash import decode_proof
from prover.porep.public_inputs import sector_inputs
from prover.porep.vanilla import C1Output
from prover.proto import proving_pb2
from prover.verify import verify

sys.path.insert(0, str(Path(__file__).parents[1]))
from serve.daemon import Daemon

pytestmark = pytest.mark.slow

@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """c1.json, k.key and vk.json; removed at once, for the key has a gigabyte."""
    folder = tmp_path_factory.mktemp("porep")
    run("porep", "make-sector", "2KiB", "--out", folder / "c1.json")
    run("setup", "--porep", "2KiB", "--key", folder / "k.key", "--vk", folder / "vk.json")
    yield folder
    shutil.rmtree(folder)


def run(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0


def test_the_service_proves_a_sector_and_anybody_can_verify_it(
    folder: Path, sector: C1Output, capfd: pytest.CaptureFixture[str]
) -> None:
    prover = Daemon()
    try:
        job_id = prover.submit("", c1_path=str(folder / "c1.json"), key_path=str(folder / "k.key"))
        result = prover.result(job_id, timeout_ms=500_000)
    finally:
        status, said = prover.end()
    assert status == 0, said
    assert result.status == proving_pb2.AwaitProofResponse.COMPLETED, result.error_message
    assert len(result.proof) == 192

    (inputs,) = sector_inputs(sector.proof, sector.replica_id, sector.comm_d, sector.comm_r, sector.seed)
    vk, proof = read_verification_key(folder / "vk.json"), decode_proof(result.proof)
    assert verify(vk, proof, inputs)
    assert not verify(vk, proof, [*inputs[:-1], inputs[-1] + 1])

    raw = folder / "proof.bin"
    raw.write_bytes(result.proof)
    question = ["porep", "verify", "--vk", folder / "vk.json", "--proof", raw, "--c1"]
    run(*question, folder / "c1.json")
    run("porep", "make-sector", "2KiB", "--seed", "02" * 32, "--out", folder / "other.json")
    assert main([str(argument) for argument in (*question, folder / "other.json")]) == 1
    assert "partition 0 does not hold" in capfd.readouterr().out
