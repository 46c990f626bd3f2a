"""`cuzk-prover prove`: one proof of a built-in circuit, or of a snarkjs key and witness, verified before it is written.

Inputs are read and checked before a backend is loaded, so that a bad file costs no compile.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from prover.cli_progress import Progress
from prover.cli_setup import require_folder
from prover.errors import BadRequest, Mismatch
from prover.serve.request import BACKENDS
from prover.wire import Policy, Stage

if TYPE_CHECKING:
    from prover.jobs import JobResult
    from prover.keys import ProvingKey
    from prover.r1cs.matrices import R1cs
    from prover.run import Run
    from prover.workload import Workload


def add(verbs: argparse._SubParsersAction) -> None:
    """Declares the verb."""
    parser = verbs.add_parser(
        "prove", help="make one proof and verify it",
        description="Proves a built-in circuit, or a snarkjs zkey with its witness. Without an output the proof is "
        "printed in hex.",
    )  # fmt: skip
    parser.add_argument("circuit", nargs="?", metavar="CIRCUIT", help="built-in, e.g. sha256-chain:8")
    parser.add_argument("--key", type=Path, metavar="FILE", help="its key; default: a test key, made once and kept")
    parser.add_argument("--zkey", type=Path, metavar="FILE", help="a snarkjs key instead (bls12381)")
    parser.add_argument("--wtns", type=Path, metavar="FILE", help="the witness for --zkey")
    parser.add_argument("--r1cs", type=Path, metavar="FILE", help="with --zkey: names the constraint a witness breaks")
    parser.add_argument("--proof", type=Path, metavar="OUT", help="proof.json")
    parser.add_argument("--public", type=Path, metavar="OUT", help="public.json")
    parser.add_argument("--raw", type=Path, metavar="OUT", help="the proof's 192 bytes")
    parser.add_argument("--vk", type=Path, metavar="OUT", help="verification_key.json of the key used")
    parser.add_argument("--backend", choices=("auto", *BACKENDS), default="auto")
    parser.add_argument("--policy", choices=[str(p) for p in Policy], default=str(Policy.SYNC_HUGE))
    parser.add_argument("--threads", type=int, default=0, metavar="N")
    parser.add_argument("--json", action="store_true", help="print times and proof as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Proves, verifies, writes."""
    _check_usage(arguments)
    from prover.backends.select import default_threads, make_backend

    threads = arguments.threads or default_threads()
    with Progress(job_id="cli") as progress:
        workload = _workload(arguments, threads, progress.run)
        backend, why_not_gpu = make_backend(arguments.backend, threads)
        with progress.run.stage(Stage.COMPILE):
            backend.warm_up(progress.run)

        from prover.arena import Arena
        from prover.jobs import Prover

        arena = Arena(progress.run.emit, pool_budget_bytes=0, pinner=getattr(backend, "pinner", None))
        prover = Prover(backend, arena)
        try:
            result = prover.run_job(workload, Policy(arguments.policy), progress.run)
        finally:
            prover.close()
    if arguments.backend == "auto" and why_not_gpu and sys.stderr.isatty():
        print(f"cuzk-prover: on the CPU: {why_not_gpu}", file=sys.stderr)
    _write(arguments, result, workload.proving_key(progress.run))
    return 0


class OneKey:
    """A key cache that holds one key file, whatever circuit asks for it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key: ProvingKey | None = None

    def key_for(self, r1cs: R1cs, run: Run) -> ProvingKey:
        """The file's key.

        Raises:
            BadFile: damaged, or not a key.
            Mismatch: of another circuit.
        """
        from prover.files.container import open_key
        from prover.r1cs.hash import circuit_hash

        if self._key is None:
            key = open_key(self._path)
            if key.circuit_hash != circuit_hash(r1cs):
                raise Mismatch(f"{self._path}: is the key of another circuit than {r1cs.name or 'the one named'}")
            self._key = key
        return self._key


def _check_usage(arguments: argparse.Namespace) -> None:
    if bool(arguments.circuit) == bool(arguments.zkey):
        raise BadRequest("name one of CIRCUIT and --zkey")
    if bool(arguments.zkey) != bool(arguments.wtns):
        raise BadRequest("--zkey and --wtns go together")
    if arguments.key is not None and arguments.zkey is not None:
        raise BadRequest("--key belongs to a built-in circuit and --zkey is a key already")
    if arguments.r1cs is not None and arguments.zkey is None:
        raise BadRequest("--r1cs goes with --zkey")
    outputs = [p for p in (arguments.proof, arguments.public, arguments.raw, arguments.vk) if p is not None]
    if len({path.absolute() for path in outputs}) < len(outputs):
        raise BadRequest("two outputs have the same path")
    for path in outputs:
        require_folder(path)


def _workload(arguments: argparse.Namespace, threads: int, run: Run) -> Workload:
    if arguments.zkey is not None:
        from prover.file_workload import FileWorkload
        from prover.files.zkey import read_zkey

        with run.stage(Stage.SRS):
            zkey = read_zkey(arguments.zkey)
        files = FileWorkload(arguments.zkey.name, zkey, arguments.wtns, arguments.r1cs, threads=threads)
        files.require_satisfied(run)
        return files
    from prover.builtin import BuiltinWorkload
    from prover.keycache import KeyCache

    keys = KeyCache(threads=threads) if arguments.key is None else OneKey(arguments.key)
    workload = BuiltinWorkload(arguments.circuit, 1, keys, threads=threads)
    if arguments.key is not None:
        workload.proving_key(run)
    return workload


def _write(arguments: argparse.Namespace, result: JobResult, key: ProvingKey) -> None:
    from prover.files.atomic import write_bytes
    from prover.files.snarkjs_json import write_proof, write_public, write_verification_key

    if arguments.proof is not None:
        write_proof(arguments.proof, result.proofs[0])
    if arguments.public is not None:
        write_public(arguments.public, result.public_inputs[0])
    if arguments.raw is not None:
        write_bytes(arguments.raw, result.proof_bytes)
    if arguments.vk is not None:
        write_verification_key(arguments.vk, key.vk)
    if arguments.json:
        inputs = [str(value) for value in result.public_inputs[0]]
        about = {"verified": result.verified, "proof_hex": result.proof_bytes.hex(), "public": inputs}
        print(json.dumps(about | result.metrics))
    elif not (arguments.proof or arguments.public or arguments.raw):
        print(result.proof_bytes.hex())
