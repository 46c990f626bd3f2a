"""`cuzk-prover setup`: a test setup of one circuit; whoever runs it could forge proofs, and the output says so."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from prover.cli_progress import Progress
from prover.errors import BadRequest
from prover.wire import Stage

WARNING = "test setup made by one party, who could forge proofs: for tests only"


def add(verbs: argparse._SubParsersAction) -> None:
    """Declares the verb."""
    parser = verbs.add_parser(
        "setup", help="make a proving key for tests", description="Makes a proving key. " + WARNING.capitalize() + "."
    )
    parser.add_argument("circuit", nargs="?", metavar="CIRCUIT", help="built-in, e.g. sha256-chain:8")
    parser.add_argument("--r1cs", type=Path, metavar="FILE", help="a circom circuit instead (bls12381)")
    parser.add_argument("--porep", metavar="SIZE", help="the PoRep circuit of a sector instead, e.g. 2KiB")
    parser.add_argument("--key", type=Path, metavar="OUT", help="our own key file, mapped when proving")
    parser.add_argument("--zkey", type=Path, metavar="OUT", help="the key for snarkjs")
    parser.add_argument("--vk", type=Path, metavar="OUT", help="verification_key.json")
    parser.add_argument("--params", type=Path, metavar="OUT", help="the key for bellperson; alone or with --raw-vk")
    parser.add_argument("--raw-vk", type=Path, metavar="OUT", help="with --params: bellperson's .vk")
    parser.add_argument("--threads", type=int, default=0, metavar="N")


def run(arguments: argparse.Namespace) -> int:
    """Makes the key and writes what was asked for."""
    named = (arguments.key, arguments.zkey, arguments.vk, arguments.params, arguments.raw_vk)
    outputs = [path for path in named if path is not None]
    if sum(map(bool, (arguments.circuit, arguments.r1cs, arguments.porep))) != 1:
        raise BadRequest("name one of CIRCUIT, --r1cs and --porep")
    if arguments.key is None and arguments.zkey is None and arguments.params is None:
        raise BadRequest("name where the key goes: --key OUT, --zkey OUT or both, or --params OUT")
    if arguments.params is not None and (arguments.key is not None or arguments.zkey is not None):
        raise BadRequest("--params has H in another basis than --key and --zkey: make it in a run of its own")
    if arguments.raw_vk is not None and arguments.params is None:
        raise BadRequest("--raw-vk goes with --params")
    if len({path.absolute() for path in outputs}) < len(outputs):
        raise BadRequest("two outputs have the same path")
    for path in outputs:
        require_folder(path)

    from prover.backends.select import default_threads
    from prover.files.bellperson_vk import write_vk
    from prover.files.container import write_key
    from prover.files.params_file import write_params
    from prover.files.snarkjs_json import write_verification_key
    from prover.files.zkey_write import write_zkey
    from prover.keys import HBasis
    from prover.setup import test_setup

    with Progress() as progress:
        if arguments.r1cs is not None:
            from prover.files.r1cs_file import read_r1cs

            r1cs = read_r1cs(arguments.r1cs)
        elif arguments.porep is not None:
            from prover.porep.circuit import build as build_porep
            from prover.porep.shapes import shape_of

            r1cs = build_porep(shape_of(arguments.porep)).r1cs
        else:
            from prover.circuits.registry import build

            r1cs = build(arguments.circuit).r1cs
        with progress.run.stage(Stage.SETUP):
            key = test_setup(
                r1cs, progress.run, threads=arguments.threads or default_threads(),
                h_basis=HBasis.LAGRANGE_ODD if arguments.params is None else HBasis.MONOMIAL,
            )  # fmt: skip
        if arguments.key is not None:
            write_key(arguments.key, key)
        if arguments.zkey is not None:
            write_zkey(arguments.zkey, key, r1cs)
        if arguments.params is not None:
            write_params(arguments.params, key)
        if arguments.raw_vk is not None:
            write_vk(arguments.raw_vk, key.vk)
        if arguments.vk is not None:
            write_verification_key(arguments.vk, key.vk)
    for path in outputs:
        print(path)
    print(f"cuzk-prover: {WARNING}", file=sys.stderr)
    return 0


def require_folder(path: Path) -> None:
    """Raises BadRequest where an output cannot be put, before any work is done for it."""
    if not path.parent.is_dir():
        raise BadRequest(f"{path}: folder {path.parent} does not exist")
    if path.is_dir():
        raise BadRequest(f"{path} is a folder")
