"""`cuzk-prover prove`: one proof of a built-in circuit, or of a snarkjs key and witness, verified before it is written.

Inputs are read and checked before a backend is loaded, so that a bad file costs no compile.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from prover import cli_backend
from prover.cli_progress import Progress
from prover.cli_setup import require_folder
from prover.errors import BadRequest
from prover.gpu_list import parse_gpus
from prover.wire import Policy, Stage

if TYPE_CHECKING:
    from prover.builtin import KeySource
    from prover.jobs import JobResult
    from prover.keys import ProvingKey
    from prover.porep.workload import PorepWorkload
    from prover.run import Run
    from prover.workload import Workload


TYPES = ("circuit", "file", "porep")


def add(verbs: argparse._SubParsersAction) -> None:
    """Declares the verb."""
    parser = verbs.add_parser(
        "prove", help="make one proof and verify it",
        description="Proves a built-in circuit, a snarkjs zkey with its witness, or the partitions of a PoRep C1 "
        "output. Without an output the proof is printed in hex.",
    )  # fmt: skip
    parser.add_argument("circuit", nargs="?", metavar="CIRCUIT", help="built-in, e.g. sha256-chain:8")
    parser.add_argument("--key", type=Path, metavar="FILE", help="its key; default: a test key, made once and kept")
    parser.add_argument("--zkey", type=Path, metavar="FILE", help="a snarkjs key instead (bls12381)")
    parser.add_argument("--wtns", type=Path, metavar="FILE", help="the witness for --zkey")
    parser.add_argument("--r1cs", type=Path, metavar="FILE", help="with --zkey: names the constraint a witness breaks")
    parser.add_argument("--type", choices=TYPES, help="what is proved; default: what the other options name")
    parser.add_argument("--c1", type=Path, metavar="FILE", help="a PoRep C1 output (c1.json) instead")
    parser.add_argument("--miner-id", type=int, metavar="N", help="with --c1: its replica_id must be this miner's")
    parser.add_argument("--sector-number", type=int, metavar="N", help="with --c1: and this sector's")
    parser.add_argument("--partition", type=int, metavar="K", help="with --c1: prove this partition alone")
    parser.add_argument("--check", action="store_true",
                        help="with --c1: evaluate every constraint and name the first that fails; prove nothing")
    parser.add_argument("--proof", type=Path, metavar="OUT", help="proof.json")
    parser.add_argument("--public", type=Path, metavar="OUT", help="public.json")
    parser.add_argument("--raw", type=Path, metavar="OUT", help="the proofs, 192 bytes each")
    parser.add_argument("--vk", type=Path, metavar="OUT", help="verification_key.json of the key used")
    cli_backend.add(parser)
    parser.add_argument("--policy", choices=[str(p) for p in Policy], default=str(Policy.SYNC_HUGE))
    parser.add_argument("--threads", type=int, default=0, metavar="N")
    parser.add_argument("--json", action="store_true", help="print times and proof as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Proves, verifies, writes."""
    _check_usage(arguments)
    from prover.backends.select import default_threads, make_backend

    threads, gpus = arguments.threads or default_threads(), parse_gpus(arguments.gpus, arguments.backend)
    if arguments.check:
        return _check_constraints(arguments, threads)
    with Progress(job_id="cli") as progress:
        workload = _workload(arguments, threads, progress.run)
        backend, why_not_gpu = make_backend(arguments.backend, threads, arguments.placement, gpus)
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


def _check_usage(arguments: argparse.Namespace) -> None:
    inputs = (arguments.circuit, arguments.zkey, arguments.c1)
    given = [kind for kind, value in zip(TYPES, inputs, strict=True) if value]
    if len(given) != 1:
        raise BadRequest("name one of CIRCUIT, --zkey and --c1")
    if arguments.type not in (None, given[0]):
        raise BadRequest(f"--type {arguments.type} and the input of a {given[0]} do not go together")
    of_porep = (arguments.miner_id, arguments.sector_number, arguments.partition, arguments.check or None)
    if arguments.c1 is None and any(value is not None for value in of_porep):
        raise BadRequest("--miner-id, --sector-number, --partition and --check go with --c1")
    for name in ("miner_id", "sector_number", "partition"):
        if not 0 <= (getattr(arguments, name) or 0) < 1 << 63:
            raise BadRequest(f"--{name.replace('_', '-')} {getattr(arguments, name)} is out of range")
    if bool(arguments.zkey) != bool(arguments.wtns):
        raise BadRequest("--zkey and --wtns go together")
    if arguments.key is not None and arguments.zkey is not None:
        raise BadRequest("--key belongs to a circuit and --zkey is a key already")
    if arguments.r1cs is not None and arguments.zkey is None:
        raise BadRequest("--r1cs goes with --zkey")
    outputs = [p for p in (arguments.proof, arguments.public, arguments.raw, arguments.vk) if p is not None]
    if len({path.absolute() for path in outputs}) < len(outputs):
        raise BadRequest("two outputs have the same path")
    for path in outputs:
        require_folder(path)


def _keys(arguments: argparse.Namespace, threads: int) -> KeySource:
    if arguments.key is not None:
        from prover.key_file import KeyFile

        return KeyFile(arguments.key)
    from prover.keycache import KeyCache

    return KeyCache(threads=threads)


def _porep(arguments: argparse.Namespace, threads: int, run: Run) -> PorepWorkload:
    from prover.porep.job import open_job

    with run.stage(Stage.SETUP):
        workload = open_job(
            arguments.c1, _keys(arguments, threads), run, miner_id=arguments.miner_id,
            sector_number=arguments.sector_number, threads=threads, checked=not arguments.check,
            partitions=None if arguments.partition is None else [arguments.partition],
        )  # fmt: skip
    if workload.num_circuits > 1 and (arguments.proof or arguments.public):
        raise BadRequest(f"--proof and --public hold one proof, and this is {workload.num_circuits}: use --raw")
    return workload


def _check_constraints(arguments: argparse.Namespace, threads: int) -> int:
    """Evaluates every constraint instead of proving; the circuit alone judges the C1 output."""
    from prover.porep.workload import check_constraints

    with Progress(job_id="cli") as progress:
        workload = _porep(arguments, threads, progress.run)
        held = check_constraints(workload, progress.run)
    print(f"{workload.name}: {workload.num_circuits} partitions, all {held:,} constraints hold")
    return 0


def _workload(arguments: argparse.Namespace, threads: int, run: Run) -> Workload:
    if arguments.c1 is not None:
        return _porep(arguments, threads, run)
    if arguments.zkey is not None:
        from prover.file_workload import FileWorkload
        from prover.files.zkey import read_zkey

        with run.stage(Stage.SRS):
            zkey = read_zkey(arguments.zkey)
        files = FileWorkload(arguments.zkey.name, zkey, arguments.wtns, arguments.r1cs, threads=threads)
        files.require_satisfied(run)
        return files
    from prover.builtin import BuiltinWorkload

    keys = _keys(arguments, threads)
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
        every = [[str(value) for value in inputs] for inputs in result.public_inputs]
        inputs = every if len(every) > 1 else every[0]
        about = {"verified": result.verified, "proof_hex": result.proof_bytes.hex(), "public": inputs}
        print(json.dumps(about | result.metrics))
    elif not (arguments.proof or arguments.public or arguments.raw):
        print(result.proof_bytes.hex())
