"""`cuzk-prover porep`: makes C1 outputs without a network, says whether one holds together, verifies sector proofs."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from prover.cli_progress import Progress
from prover.cli_setup import require_folder
from prover.errors import BadFile, BadRequest

if TYPE_CHECKING:
    from prover.keys import VerifyingKey

DIGEST = re.compile(r"[0-9a-fA-F]{64}")


def add(verbs: argparse._SubParsersAction) -> None:
    """Declares the verb and its own verbs."""
    parser = verbs.add_parser(
        "porep", help="make or check a PoRep C1 output, verify a sector's proof",
        description="Makes a C1 output (c1.json) for tests, checks one by plain hashing, or verifies a sector's proof.",
    )  # fmt: skip
    tasks = parser.add_subparsers(dest="task", metavar="TASK", required=True)
    make = tasks.add_parser(
        "make-sector", help="seal a small sector, or fake one of any size, and open its challenges",
        description="Sectors up to 32 KiB are sealed; with --sparse the labels of the opened nodes' parents are "
        "invented instead, so that a C1 output of any size takes seconds and no disk. Either satisfies the circuit.",
    )  # fmt: skip
    make.add_argument("size", metavar="SIZE", help="2KiB, 8MiB, 512MiB, 32GiB or 64GiB")
    make.add_argument("--out", type=Path, required=True, metavar="FILE", help="the wrapper JSON, c1.json")
    make.add_argument("--sparse", action="store_true", help="fake the sector; needed from 8 MiB on")
    make.add_argument("--data", type=Path, metavar="FILE", help="the sector's bytes, fr32-padded; default: zeros")
    make.add_argument("--miner-id", type=int, default=1000, metavar="N")
    make.add_argument("--sector-number", type=int, default=1, metavar="N")
    make.add_argument("--ticket", default="01" * 32, metavar="HEX")
    make.add_argument("--seed", default="01" * 32, metavar="HEX")
    make.add_argument("--rule", choices=("interactive", "synthetic"), default="interactive")
    make.add_argument("--threads", type=int, default=0, metavar="N")
    verify = tasks.add_parser(
        "verify", help="check a sector's proof, 192 bytes a partition",
        description="Public inputs are derived from commitments, seed and graph; the openings are not looked at. "
        "Exit code 0 valid, 1 invalid, 2 bad input.",
    )  # fmt: skip
    verify.add_argument("--vk", type=Path, required=True, metavar="FILE", help=".vk, or verification_key.json")
    verify.add_argument("--proof", type=Path, required=True, metavar="FILE", help="what prove --raw wrote")
    verify.add_argument("--c1", type=Path, required=True, metavar="FILE", help="the C1 output it is of")
    check = tasks.add_parser("check", help="recompute everything that a C1 output says")
    check.add_argument("c1", type=Path, metavar="FILE")
    check.add_argument("--miner-id", type=int, metavar="N", help="replica_id must be this miner's")
    check.add_argument("--sector-number", type=int, metavar="N", help="and this sector's")
    check.add_argument("--threads", type=int, default=0, metavar="N")


def run(arguments: argparse.Namespace) -> int:
    """Does one task."""
    if arguments.task == "verify":
        return _verify(arguments)
    for name in ("miner_id", "sector_number"):
        value = getattr(arguments, name)
        if value is not None and not 0 <= value < 1 << 63:
            raise BadRequest(f"--{name.replace('_', '-')} {value} is out of range")
    return _make(arguments) if arguments.task == "make-sector" else _check(arguments)


def _make(arguments: argparse.Namespace) -> int:
    require_folder(arguments.out)
    if arguments.sparse and arguments.data is not None:
        raise BadRequest("--data belongs to a sealed sector; a sparse one holds zeros")
    names = (arguments.miner_id, arguments.sector_number, _digest(arguments, "ticket"), _digest(arguments, "seed"))

    from prover.backends.select import default_threads
    from prover.porep.c1_write import write_c1
    from prover.porep.sector import SectorNames, replicate, sparse
    from prover.porep.shapes import Rule, registered_of, shape_of

    shape = shape_of(arguments.size)
    proof = registered_of(shape, Rule(arguments.rule))
    threads = arguments.threads or default_threads()
    with Progress() as progress:
        if arguments.sparse:
            output = sparse(proof, SectorNames(*names), run=progress.run, threads=threads)
        else:
            data = None if arguments.data is None else _data(arguments.data, shape.sector_bytes)
            output = replicate(proof, SectorNames(*names), data, run=progress.run, threads=threads)
        write_c1(arguments.out, output)
    print(f"{arguments.out}: {proof.name}, {proof.partitions} partitions, comm_r {output.comm_r.hex()}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from prover.backends.select import default_threads
    from prover.porep.c1_read import read_c1
    from prover.porep.checks import check_output

    with Progress() as progress:
        output = read_c1(arguments.c1)
        check_output(
            output, run=progress.run, threads=arguments.threads or default_threads(), miner_id=arguments.miner_id,
            sector_number=arguments.sector_number,
        )  # fmt: skip
    opened = sum(partition.num_challenges for partition in output.partitions)
    print(f"{arguments.c1}: {output.proof.name}, {len(output.partitions)} partitions, {opened} challenges")
    print(f"comm_d {output.comm_d.hex()}\ncomm_r {output.comm_r.hex()}\nreplica_id {output.replica_id.hex()}")
    print("everything that it says was recomputed and holds")
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    from prover.files.binfile import open_regular
    from prover.files.zcash import PROOF_BYTES, decode_proofs
    from prover.porep.c1_read import read_c1
    from prover.porep.public_inputs import sector_inputs
    from prover.verify import PreparedKey

    output = read_c1(arguments.c1)
    count = output.proof.partitions
    with open_regular(arguments.proof) as file:
        data = file.read(count * PROOF_BYTES + 1)
    if len(data) != count * PROOF_BYTES:
        raise BadFile(arguments.proof, "", f"has not the {count} x {PROOF_BYTES} bytes of a {output.proof.name} proof")
    key = PreparedKey(_verifying_key(arguments.vk))
    inputs = sector_inputs(output.proof, output.replica_id, output.comm_d, output.comm_r, output.seed)
    for k, proof in enumerate(decode_proofs(data, arguments.proof)):
        if not key.verify(proof, inputs[k]):
            print(f"invalid: the proof of partition {k} does not hold for this key and this sector")
            return 1
    print(f"valid: {count} partitions")
    return 0


def _verifying_key(path: Path) -> VerifyingKey:
    from prover.files.bellperson_vk import read_vk
    from prover.files.binfile import open_regular
    from prover.files.snarkjs_json import read_verification_key

    with open_regular(path) as file:
        is_json = file.read(64).lstrip().startswith(b"{")
    return read_verification_key(path) if is_json else read_vk(path)


def _digest(arguments: argparse.Namespace, name: str) -> bytes:
    text: str = getattr(arguments, name)
    if not DIGEST.fullmatch(text):
        raise BadRequest(f"--{name} {text[:70]!r} is not 64 hexadecimal digits")
    return bytes.fromhex(text)


def _data(path: Path, size_bytes: int) -> bytes:
    from prover.files.binfile import open_regular
    from prover.files.canonical import first_not_fr
    from prover.porep.trees import raw_values

    with open_regular(path) as file:
        data = file.read(size_bytes + 1)
    if len(data) != size_bytes:
        raise BadFile(path, "", f"has not the {size_bytes} bytes of the sector")
    bad = first_not_fr(raw_values(data))
    if bad >= 0:
        raise BadFile(path, f"offset {32 * bad}", "32 bytes that are not below r: the data is not fr32-padded")
    return data
