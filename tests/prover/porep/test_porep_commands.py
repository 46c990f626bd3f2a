"""`cuzk-prover porep`, `prove --type porep` and the service refuse what is wrong in one line and make no key for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from porep_samples import NUMBERED

from prover.cli import main
from prover.porep.c1_read import read_c1
from prover.porep.c1_write import inner_json, wrapper_json
from prover.porep.vanilla import C1Output
from prover.proto import proving_pb2

sys.path.insert(0, str(Path(__file__).parents[1]))
from serve.daemon import Daemon

Status = proving_pb2.AwaitProofResponse.Status
Refused = Callable[..., str]


def run(*arguments: object) -> int:
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.fixture
def refused(capfd: pytest.CaptureFixture[str]) -> Refused:
    """Runs a command that must end with code 2 and one line, which is returned."""

    def command(*arguments: object) -> str:
        code = run(*arguments)
        out, err = capfd.readouterr()
        assert (code, out) == (2, ""), err
        assert err.startswith("cuzk-prover: ") and err.count("\n") == 1, err
        return err

    return command


@pytest.fixture
def c1(tmp_path: Path, numbered: C1Output) -> Path:
    (tmp_path / "c1.json").write_bytes(wrapper_json(numbered))
    return tmp_path / "c1.json"


@pytest.fixture
def tampered(tmp_path: Path, numbered: C1Output) -> Path:
    """A row of one parent is another."""
    inner = json.loads(inner_json(numbered))
    parent = inner["vanilla_proofs"]["StackedDrg2KiBV1"][0][1]["replica_column_proofs"]["exp_parents"][4]
    parent["column"]["rows"][0][0] ^= 1
    (tmp_path / "tampered.json").write_bytes(json.dumps(inner).encode())
    return tmp_path / "tampered.json"


def test_a_sector_is_made_checked_and_its_constraints_hold(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data").write_bytes(NUMBERED)
    out = tmp_path / "c1.json"
    assert run("porep", "make-sector", "2KiB", "--data", tmp_path / "data", "--out", out) == 0
    assert "7dfd6cc4471df6f95c1587d466c47f9dd34be9c9238da14fa09ba71c7b669400" in capfd.readouterr().out
    assert run("porep", "check", out, "--miner-id", 1000, "--sector-number", 1) == 0
    assert "2 challenges" in capfd.readouterr().out
    assert run("prove", "--type", "porep", "--c1", out, "--check") == 0
    assert "all 2,687,921 constraints hold" in capfd.readouterr().out


def test_info_tells_a_c1_output(c1: Path, tampered: Path, refused: Refused, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("info", c1) == 0
    out = capfd.readouterr().out
    assert "PoRep C1 output" in out and "StackedDrg2KiBV1_1" in out and "2,048 bytes, number 1" in out
    assert "check of copies" in refused("info", tampered)


def test_a_sparse_sector_of_8_mib_holds(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "c1.json"
    names = ("--miner-id", 7, "--sector-number", 8, "--ticket", "0a" * 32, "--seed", "0b" * 32)
    assert run("porep", "make-sector", "8MiB", "--sparse", "--out", out, *names) == 0
    output = read_c1(out)
    assert (output.ticket, output.seed, output.sector_number) == (b"\x0a" * 32, b"\x0b" * 32, 8)
    assert run("porep", "check", out, "--miner-id", 7) == 0
    assert run("prove", "--c1", out, "--check", "--threads", 2) == 0
    assert "all 3,844,929 constraints hold" in capfd.readouterr().out


def test_a_tampered_output_is_refused_by_name_or_by_constraint(tampered: Path, refused: Refused) -> None:
    assert "check of copies: partition 0, challenge 1, labeling_proofs[1] parents" in refused("prove", "--c1", tampered)
    assert "check of copies" in refused("porep", "check", tampered)
    assert "partition 0, challenge 1, expander parent 4, equal" in refused("prove", "--c1", tampered, "--check")


def test_another_miner_is_refused(c1: Path, refused: Refused) -> None:
    assert "check of replica_id" in refused("prove", "--c1", c1, "--miner-id", 1001)
    assert "2 was asked for" in refused("prove", "--c1", c1, "--sector-number", 2)


def test_wrong_usage_is_one_line(c1: Path, tmp_path: Path, refused: Refused) -> None:
    cases = [
        (("prove", "--c1", c1, "cubic"), "name one of"),
        (("prove", "--type", "file", "--c1", c1), "--type file"),
        (("prove", "cubic", "--check"), "go with --c1"),
        (("prove", "cubic", "--miner-id", 3), "go with --c1"),
        (("prove", "--c1", c1, "--partition", 1), "partition 1 is not one of 0 to 0"),
        (("prove", "--c1", c1, "--miner-id", -1), "out of range"),
        (("prove", "--c1", tmp_path), "not a regular file"),
        (("prove", "--c1", c1, "--key", tmp_path / "none"), "cannot be read"),
        (("porep",), "TASK"),
        (("porep", "make-sector", "3KiB", "--out", tmp_path / "o"), "no sector size"),
        (("porep", "make-sector", "8MiB", "--out", tmp_path / "o"), "sparse"),
        (("porep", "make-sector", "2KiB", "--out", tmp_path / "no" / "o"), "does not exist"),
        (("porep", "make-sector", "2KiB", "--out", tmp_path / "o", "--seed", "0x"), "--seed"),
        (("porep", "make-sector", "2KiB", "--out", tmp_path / "o", "--data", c1), "2048 bytes"),
        (("porep", "make-sector", "2KiB", "--out", tmp_path / "o", "--sparse", "--data", c1), "--data belongs"),
        (("setup", "--porep", "3KiB", "--params", tmp_path / "o"), "no sector size"),
        (("setup", "cubic", "--params", tmp_path / "o", "--key", tmp_path / "k"), "another basis"),
        (("setup", "cubic", "--key", tmp_path / "k", "--raw-vk", tmp_path / "v"), "--raw-vk goes with"),
    ]
    for arguments, text in cases:
        assert text in refused(*arguments), arguments
    (tmp_path / "data").write_bytes(b"\xff" * 2048)
    wide = ("--out", tmp_path / "o", "--data", tmp_path / "data")
    assert "offset 0: 32 bytes that are not below r" in refused("porep", "make-sector", "2KiB", *wide)
    assert not (tmp_path / "o").exists()


def test_a_key_that_the_host_cannot_hold_is_not_begun(
    tmp_path: Path, c1: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prover.admission.host_available_bytes", lambda: 1 << 30)
    monkeypatch.setenv("CUZKTUI_CACHE_DIR", str(tmp_path))
    told = "needs 1.7 GB at its peak and the host has 1.1 GB; name a key that exists"
    assert told in refused("setup", "--porep", "2KiB", "--key", tmp_path / "k")
    assert told in refused("prove", "--c1", c1, "--backend", "reference")
    assert not (tmp_path / "k").exists()


def test_bellperson_parameters_of_a_small_circuit_prove(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    params, vk = tmp_path / "cubic.params", tmp_path / "cubic.vk"
    assert run("setup", "cubic", "--params", params, "--raw-vk", vk, "--vk", tmp_path / "vk.json") == 0
    outputs = ("--proof", tmp_path / "p.json", "--public", tmp_path / "x.json", "--raw", tmp_path / "p.bin")
    assert run("prove", "cubic", "--key", params, "--backend", "cpu", *outputs) == 0
    for proof in ("p.json", "p.bin"):
        question = ("--vk", tmp_path / "vk.json", "--public", tmp_path / "x.json", "--proof", tmp_path / proof)
        assert run("verify", *question) == 0
    assert run("prove", "poseidon-merkle:1", "--key", params, "--backend", "cpu") == 2
    assert "parameters are of another circuit" in capfd.readouterr().err


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    prover = Daemon()
    yield prover
    status, said = prover.end()
    assert status == 0, said


def test_the_service_refuses_a_tampered_output_by_name(daemon: Daemon, tampered: Path) -> None:
    job_id = daemon.submit("", c1_path=str(tampered))
    result = daemon.result(job_id)
    assert result.status == Status.FAILED
    assert "check of copies: partition 0, challenge 1" in result.error_message


def test_an_upstream_request_carries_the_output_and_its_sector(daemon: Daemon, c1: Path, tampered: Path) -> None:
    def ask(request_id: str, data: bytes, **fields: int) -> str:
        request = proving_pb2.SubmitProofRequest(
            request_id=request_id, proof_kind=proving_pb2.POREP_SEAL_COMMIT, vanilla_proof=data, **fields
        )
        result = daemon.engine.Prove(proving_pb2.ProveRequest(submit=request), timeout=120).result
        assert result.status == Status.FAILED and result.proof == b""
        return str(result.error_message)

    assert "check of copies" in ask("a", tampered.read_bytes())
    assert "check of replica_id" in ask("b", c1.read_bytes(), miner_id=1001)
    assert "2 was asked for" in ask("c", c1.read_bytes(), miner_id=1000, sector_number=2)
    assert "not the JSON of a C1 output" in ask("d", b"")
