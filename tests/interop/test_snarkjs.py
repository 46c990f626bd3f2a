"""Two programs that share nothing but the formats accept each other's keys and proofs, and refuse the same lies."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from prover.cli import main
from prover.files.r1cs_file import write_r1cs
from prover.files.wtns import write_wtns

DATA = Path(__file__).parents[1] / "data"
CHAIN = DATA / "snarkjs_2p10"
PRODUCT = DATA / "snarkjs_3fac"
pytestmark = pytest.mark.node
Snarkjs = Callable[..., subprocess.CompletedProcess[str]]


def accepts(snarkjs: Snarkjs, vk: Path, public: Path, proof: Path) -> bool:
    done = snarkjs("groth16", "verify", vk, public, proof)
    verdict = "OK!" in done.stdout
    assert verdict or "nvalid" in done.stdout, done.stdout + done.stderr
    assert (done.returncode == 0) is verdict
    return verdict


def we_accept(vk: Path, public: Path, proof: Path) -> bool:
    code = main(["verify", "--vk", str(vk), "--proof", str(proof), "--public", str(public)])
    assert code in (0, 1)
    return code == 0


def changed(public: Path, index: int, out: Path) -> Path:
    values = json.loads(public.read_text())
    values[index] = str(int(values[index]) + 1)
    out.write_text(json.dumps(values))
    return out


def product_witness(path: Path) -> Path:
    """The witness of 3 * 11 * 17, which the fixture comes without."""
    from prover.backends.cpu.field import ints_to_fr

    write_wtns(path, ints_to_fr([1, 561, 3, 11, 17, 33]))
    return path


@pytest.fixture(params=["chain", "product"])
def fixture(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path, Path]:
    """zkey, witness and verification key as snarkjs made them."""
    if request.param == "chain":
        return CHAIN / "small.zkey", CHAIN / "small.wtns", CHAIN / "small_vkey.json"
    return PRODUCT / "3_fac_final.zkey", product_witness(tmp_path / "w.wtns"), PRODUCT / "verification_key.json"


def prove(zkey: Path, wtns: Path, folder: Path, *more: str) -> tuple[Path, Path]:
    proof, public = folder / "proof.json", folder / "public.json"
    arguments = ["--zkey", str(zkey), "--wtns", str(wtns), "--proof", str(proof), "--public", str(public)]
    assert main(["prove", "--backend", "cpu", *arguments, *more]) == 0
    return proof, public


def test_snarkjs_accepts_our_proof_from_its_key_and_refuses_every_other_public_input(
    fixture: tuple[Path, Path, Path], snarkjs: Snarkjs, tmp_path: Path
) -> None:
    zkey, wtns, vk = fixture
    proof, public = prove(zkey, wtns, tmp_path)
    assert accepts(snarkjs, vk, public, proof)
    for i in range(len(json.loads(public.read_text()))):
        lie = changed(public, i, tmp_path / "lie.json")
        assert not accepts(snarkjs, vk, lie, proof)
        assert not we_accept(vk, lie, proof)


def test_fixtures_own_proofs_verify_here() -> None:
    assert we_accept(CHAIN / "small_vkey.json", CHAIN / "small_public.json", CHAIN / "small_proof.json")
    assert we_accept(PRODUCT / "verification_key.json", PRODUCT / "public.json", PRODUCT / "proof.json")
    assert not we_accept(CHAIN / "small_vkey.json", CHAIN / "small_public.json", PRODUCT / "proof.json")


def test_snarkjs_proves_with_a_zkey_of_our_setup_and_both_sides_accept(snarkjs: Snarkjs, tmp_path: Path) -> None:
    zkey, vk = tmp_path / "ours.zkey", tmp_path / "vk.json"
    assert main(["setup", "--r1cs", str(CHAIN / "small.r1cs"), "--zkey", str(zkey), "--vk", str(vk)]) == 0
    proof, public = tmp_path / "theirs.json", tmp_path / "theirs_public.json"
    done = snarkjs("groth16", "prove", zkey, CHAIN / "small.wtns", proof, public)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(public.read_text()) == json.loads((CHAIN / "small_public.json").read_text())
    assert accepts(snarkjs, vk, public, proof) and we_accept(vk, public, proof)
    lie = changed(public, 0, tmp_path / "lie.json")
    assert not accepts(snarkjs, vk, lie, proof) and not we_accept(vk, lie, proof)
    ours, ours_public = prove(zkey, CHAIN / "small.wtns", tmp_path, "--r1cs", str(CHAIN / "small.r1cs"))
    assert accepts(snarkjs, vk, ours_public, ours)


def test_snarkjs_exports_the_same_verification_key_from_our_zkey_as_we_do(snarkjs: Snarkjs, tmp_path: Path) -> None:
    zkey, vk = tmp_path / "ours.zkey", tmp_path / "vk.json"
    assert main(["setup", "--r1cs", str(CHAIN / "small.r1cs"), "--zkey", str(zkey), "--vk", str(vk)]) == 0
    done = snarkjs("zkey", "export", "verificationkey", zkey, tmp_path / "exported.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "exported.json").read_text() == vk.read_text()


def test_built_in_circuit_goes_through_both_provers(snarkjs: Snarkjs, tmp_path: Path) -> None:
    zkey, vk, wtns = tmp_path / "cubic.zkey", tmp_path / "vk.json", tmp_path / "cubic.wtns"
    assert main(["setup", "cubic", "--zkey", str(zkey), "--vk", str(vk)]) == 0
    import numpy as np

    from prover.circuits.registry import build

    circuit = build("cubic")
    witness = np.empty((circuit.r1cs.num_wires, 4), np.uint64)
    circuit.witness(b"interop", witness)
    write_wtns(wtns, witness)
    proof, public = tmp_path / "p.json", tmp_path / "i.json"
    done = snarkjs("groth16", "prove", zkey, wtns, proof, public)
    assert done.returncode == 0, done.stdout + done.stderr
    assert we_accept(vk, public, proof) and accepts(snarkjs, vk, public, proof)
    write_r1cs(tmp_path / "cubic.r1cs", circuit.r1cs)
    ours, ours_public = prove(zkey, wtns, tmp_path, "--r1cs", str(tmp_path / "cubic.r1cs"))
    assert accepts(snarkjs, vk, ours_public, ours)


def test_snarkjs_reads_the_r1cs_that_we_write(snarkjs: Snarkjs, tmp_path: Path) -> None:
    from prover.circuits.registry import build

    circuit = build("sha256-chain:1").r1cs
    write_r1cs(tmp_path / "sha.r1cs", circuit)
    done = snarkjs("r1cs", "info", tmp_path / "sha.r1cs")
    assert done.returncode == 0, done.stdout + done.stderr
    for fact in ("bls12-381", f"Constraints: {circuit.num_constraints}", f"Wires: {circuit.num_wires}"):
        assert fact in done.stdout, done.stdout
