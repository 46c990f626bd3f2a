"""`cuzk-prover` as a user runs it: what it prints, what it writes, its exit codes, and one line for every fault."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from prover.cli import main
from prover.files.snarkjs_json import read_proof, read_public, read_verification_key
from prover.files.zcash import decode_proof
from prover.verify import verify

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data" / "snarkjs_2p10"
ZKEY, WTNS, R1CS = DATA / "small.zkey", DATA / "small.wtns", DATA / "small.r1cs"
VK, PROOF, PUBLIC = DATA / "small_vkey.json", DATA / "small_proof.json", DATA / "small_public.json"


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


def cli(*arguments: object) -> Done:
    """One run in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "prover", *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False, timeout=600, env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def main_code(*arguments: object) -> int:
    """Exit code of a run inside this process."""
    try:
        return main([str(a) for a in arguments])
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.fixture
def refused(capfd):
    """Runs a command that must end with code 2 and one line, which is returned."""

    def run(*arguments: object) -> str:
        code = main_code(*arguments)
        out, err = capfd.readouterr()
        assert (code, out) == (2, ""), err
        assert err.startswith("cuzk-prover: ") and err.count("\n") == 1, err
        return err.removeprefix("cuzk-prover: ").rstrip("\n")

    return run


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Path:
    """A folder with our own keys of cubic, and of the fixture's r1cs."""
    folder = tmp_path_factory.mktemp("keys")
    done = cli("setup", "cubic", "--key", folder / "k", "--zkey", folder / "z", "--vk", folder / "v.json")
    assert done.code == 0, done.err
    assert done.out.split() == [str(folder / name) for name in ("k", "z", "v.json")]
    assert "could forge proofs" in done.err
    done = cli("setup", "--r1cs", R1CS, "--zkey", folder / "small.zkey", "--vk", folder / "small.json")
    assert done.code == 0, done.err
    return folder


def test_a_built_in_circuit_from_setup_to_verify(keys, tmp_path):
    outputs = ("--proof", tmp_path / "p.json", "--public", tmp_path / "x.json", "--raw", tmp_path / "p.bin")
    done = cli("prove", "cubic", "--key", keys / "k", *outputs, "--backend", "cpu")
    assert (done.code, done.out) == (0, ""), done.err
    question = ("verify", "--vk", keys / "v.json", "--public", tmp_path / "x.json", "--proof")
    assert cli(*question, tmp_path / "p.json").out == "valid\n"
    assert cli(*question, tmp_path / "p.bin").out == "valid\n"
    written, raw = read_proof(tmp_path / "p.json"), decode_proof((tmp_path / "p.bin").read_bytes())
    assert all((getattr(written, n) == getattr(raw, n)).all() for n in "abc")
    public = json.loads((tmp_path / "x.json").read_text())
    (tmp_path / "y.json").write_text(json.dumps([str(int(public[0]) + 1), *public[1:]]))
    other = cli("verify", "--vk", keys / "v.json", "--public", tmp_path / "y.json", "--proof", tmp_path / "p.json")
    assert other.code == 1 and other.out.startswith("invalid")


def test_a_snarkjs_key_and_witness(keys, tmp_path):
    for zkey, vk in ((ZKEY, VK), (keys / "small.zkey", keys / "small.json")):
        proof, public = tmp_path / "p.json", tmp_path / "x.json"
        done = cli("prove", "--zkey", zkey, "--wtns", WTNS, "--r1cs", R1CS, "--proof", proof, "--public", public)
        assert done.code == 0, done.err
        assert read_public(public) == read_public(PUBLIC)
        assert verify(read_verification_key(vk), read_proof(proof), read_public(public))


def test_json_tells_times_and_proof(keys):
    done = cli("prove", "cubic", "--key", keys / "k", "--json", "--backend", "cpu", "--policy", "sync-4k")
    told = json.loads(done.out)
    assert done.code == 0 and told["verified"] is True and len(told["proof_hex"]) == 384
    assert told["policy"] == "sync-4k"
    parts = sum(told[f"{name}_ms"] for name in ("queue", "setup", "srs", "synth", "outer", "verify"))
    assert parts == pytest.approx(told["total_ms"], rel=0.01)


def test_without_an_output_the_proof_is_printed(keys):
    done = cli("prove", "cubic", "--key", keys / "k", "--backend", "cpu")
    decode_proof(bytes.fromhex(done.out.strip()))


def test_the_reference_backend_agrees(keys, tmp_path):
    done = cli("prove", "cubic", "--key", keys / "k", "--backend", "reference", "--proof", tmp_path / "p.json",
               "--public", tmp_path / "x.json")  # fmt: skip
    assert done.code == 0, done.err
    public = read_public(tmp_path / "x.json")
    assert verify(read_verification_key(keys / "v.json"), read_proof(tmp_path / "p.json"), public)


@pytest.mark.parametrize(
    "arguments",
    [
        ("prove", "--zkey", "BAD", "--wtns", WTNS),
        ("verify", "--vk", VK, "--proof", "BAD", "--public", PUBLIC),
        ("info", "BAD"),
        ("prove", "sudoku:9"),
    ],
)
def test_a_refusal_is_quick_and_small(arguments, tmp_path):
    bad = tmp_path / "bad"
    bad.write_bytes(cut(ZKEY, 1000))
    program = (
        "import re, sys, time\n"
        "from prover.cli import main\n"
        "code = main(sys.argv[1:])\n"
        "peak_kb = int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "print(code, peak_kb / 1024, time.process_time())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *(str(bad if a == "BAD" else a) for a in arguments)], capture_output=True,
        text=True, check=True, timeout=60, env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    code, peak_mib, cpu_s = map(float, done.stdout.split())
    assert code == 2 and done.stderr.count("\n") == 1
    assert peak_mib < 190, f"{peak_mib:.0f} MiB"
    assert cpu_s < 2.0


def test_the_fixture_verifies_and_another_input_does_not(tmp_path):
    done = cli("verify", "--vk", VK, "--proof", PROOF, "--public", PUBLIC)
    assert (done.code, done.out) == (0, "valid\n")
    changed = tmp_path / "public.json"
    values = json.loads(PUBLIC.read_text())
    changed.write_text(json.dumps([*values[:-1], str(int(values[-1]) ^ 1)]))
    done = cli("verify", "--vk", VK, "--proof", PROOF, "--public", changed)
    assert done.code == 1 and done.out.startswith("invalid")


@pytest.mark.parametrize("name", ["small.r1cs", "small.wtns", "small.zkey", "small_vkey.json", "small_proof.json"])
def test_info_says_what_a_file_is(name, capfd):
    assert main_code("info", DATA / name) == 0
    told = capfd.readouterr().out
    assert name in told and "bls12381" in told


def cut(path: Path, at: int) -> bytes:
    return path.read_bytes()[:at]


def flipped(path: Path, at: int) -> bytes:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    return bytes(data)


def edited(path: Path, change) -> bytes:
    value = json.loads(path.read_text())
    change(value)
    return json.dumps(value).encode()


BAD_KEYS = {
    "empty": lambda: b"",
    "cut": lambda: cut(ZKEY, 1000),
    "magic": lambda: b"xkey" + ZKEY.read_bytes()[4:],
    "version": lambda: flipped(ZKEY, 4),
    "text": lambda: b"hello",
}


@pytest.mark.parametrize("fault", BAD_KEYS)
def test_a_bad_zkey_is_named(fault, tmp_path, refused):
    bad = tmp_path / "bad.zkey"
    bad.write_bytes(BAD_KEYS[fault]())
    assert refused("prove", "--zkey", bad, "--wtns", WTNS, "--proof", tmp_path / "p.json").startswith(f"{bad}: ")
    assert refused("info", bad).startswith(f"{bad}: ")
    assert not (tmp_path / "p.json").exists()


BAD_QUESTIONS = {
    "public": {
        "not json": (b"[", ""),
        "not an array": (b"{}", ""),
        "too many": (edited(PUBLIC, lambda v: v.append("1")), "public inputs given"),
        "too few": (edited(PUBLIC, lambda v: v.pop()), "public inputs given"),
        "above r": (edited(PUBLIC, lambda v: v.__setitem__(0, str(1 << 255))), "modulus"),
        "negative": (edited(PUBLIC, lambda v: v.__setitem__(0, "-1")), ""),
    },
    "proof": {
        "protocol": (edited(PROOF, lambda v: v.update(protocol="plonk")), "protocol"),
        "curve": (edited(PROOF, lambda v: v.update(curve="bn128")), "curve"),
        "off the curve": (edited(PROOF, lambda v: v["pi_a"].__setitem__(0, "5")), "pi_a"),
        "missing": (edited(PROOF, lambda v: v.pop("pi_b")), "pi_b"),
        "raw": (b"\xff" * 192, "offset 0"),
    },
    "vk": {
        "no ic": (edited(VK, lambda v: v.pop("IC")), "IC"),
        "short ic": (edited(VK, lambda v: v["IC"].pop()), "IC"),
        "deep": (b"[" * 100_000, ""),
    },
}


@pytest.mark.parametrize(("which", "fault"), [(w, f) for w, faults in BAD_QUESTIONS.items() for f in faults])
def test_a_question_that_cannot_be_asked_is_code_2(which, fault, tmp_path, refused):
    content, text = BAD_QUESTIONS[which][fault]
    bad = tmp_path / f"bad_{which}.json"
    bad.write_bytes(content)
    files = {"vk": VK, "proof": PROOF, "public": PUBLIC} | {which: bad}
    line = refused("verify", *(x for name, path in files.items() for x in (f"--{name}", path)))
    assert line.startswith(f"{bad}: ") and text in line


def test_a_witness_that_breaks_a_constraint_names_the_first(tmp_path):
    data = bytearray(WTNS.read_bytes())
    data[-32] ^= 1
    bad = tmp_path / "bad.wtns"
    bad.write_bytes(data)
    out = tmp_path / "p.json"
    done = cli("prove", "--zkey", ZKEY, "--wtns", bad, "--r1cs", R1CS, "--proof", out, "--backend", "cpu")
    assert done.code == 2 and done.err.count("\n") == 1
    assert "witness does not satisfy constraint" in done.err
    without = cli("prove", "--zkey", ZKEY, "--wtns", bad, "--proof", out, "--backend", "cpu")
    assert without.code == 1 and "does not verify" in without.err and without.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [bad]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("prove",), "name one of CIRCUIT, --zkey and --c1"),
        (("prove", "cubic", "--zkey", ZKEY, "--wtns", WTNS), "name one of"),
        (("prove", "--zkey", ZKEY), "go together"),
        (("prove", "cubic", "--r1cs", R1CS), "--r1cs goes with --zkey"),
        (("prove", "--zkey", ZKEY, "--wtns", WTNS, "--key", ZKEY), "--key belongs to"),
        (("prove", "cubic", "--proof", "/nowhere/p.json"), "folder /nowhere does not exist"),
        (("prove", "cubic", "--proof", "/tmp/x", "--raw", "/tmp/x"), "two outputs have the same path"),
        (("prove", "sudoku:9"), "no built-in circuit 'sudoku'"),
        (("prove", "sha256-chain:0"), "out of range"),
        (("prove", "sha256-chain:999999999999"), "out of range"),
        (("prove", "cubic", "--key", ZKEY), str(ZKEY)),
        (("prove", "cubic", "--key", "/nowhere/k"), "/nowhere/k"),
        (("prove", "--zkey", "/nowhere/z", "--wtns", WTNS), "/nowhere/z"),
        (("prove", "--zkey", WTNS, "--wtns", WTNS), "small.wtns"),
        (("prove", "--zkey", ZKEY, "--wtns", ZKEY), "small.zkey"),
        (("setup", "cubic"), "--key OUT, --zkey OUT"),
        (("setup", "--key", "/tmp/k"), "name one of CIRCUIT, --r1cs and --porep"),
        (("setup", "--r1cs", WTNS, "--key", "/tmp/k"), "small.wtns"),
        (("setup", "cubic", "--key", "/tmp"), "/tmp is a folder"),
        (("verify", "--vk", VK), "required: --proof, --public"),
        (("verify", "--vk", ROOT, "--proof", PROOF, "--public", PUBLIC), str(ROOT)),
        (("info", "/dev/zero"), "/dev/zero"),
        (("info", "/nowhere/f"), "/nowhere/f"),
        (("info", Path(__file__)), "test_cli.py"),
        ((), "required: VERB"),
        (("dance",), "invalid choice: 'dance'"),
    ],
)
def test_wrong_usage_and_wrong_files_are_one_line(arguments, text, refused):
    assert text in refused(*arguments)


def test_a_key_of_another_circuit_is_refused(keys, refused):
    assert "is the key of another circuit" in refused("prove", "sha256-chain:1", "--key", keys / "k")


def test_a_control_character_does_not_reach_the_terminal(refused):
    assert "\x1b" not in refused("info", "/nowhere/\x1b[2J")


def test_a_damaged_key_is_refused(keys, tmp_path, refused):
    data = bytearray((keys / "k").read_bytes())
    data[len(data.rstrip(b"\0")) - 1] ^= 1
    (tmp_path / "k").write_bytes(data)
    assert refused("prove", "cubic", "--key", tmp_path / "k").startswith(str(tmp_path / "k"))


def test_help_and_version_load_nothing_heavy():
    program = (
        "import sys\n"
        "from prover.cli import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: pass\n"
        "print(sorted(m for m in ('numpy', 'numba', 'grpc', 'cupy', 'py_ecc') if m in sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["cuzk-prover 0.1.0", "[]"]


def test_progress_goes_to_a_terminal_only():
    import pty

    inside, outside = pty.openpty()
    process = subprocess.run(
        [sys.executable, "-m", "prover", "setup", "cubic", "--key", "/dev/null"], stderr=outside,
        stdout=subprocess.PIPE, check=False, timeout=120, env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    os.close(outside)
    shown = os.read(inside, 1 << 16).decode()
    os.close(inside)
    assert process.returncode == 0, shown
    assert "setup" in shown and "\r" in shown
