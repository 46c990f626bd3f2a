"""`cuzk-prover verify`: 0 the proof is valid, 1 it is not, 2 the question cannot be asked."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from prover.errors import Mismatch

if TYPE_CHECKING:
    from prover.keys import Proof, VerifyingKey


def add(verbs: argparse._SubParsersAction) -> None:
    """Declares the verb."""
    parser = verbs.add_parser("verify", help="check a proof", description="Exit code 0 valid, 1 invalid, 2 bad input.")
    parser.add_argument("--vk", type=Path, required=True, metavar="FILE", help="verification_key.json, or a whole key")
    parser.add_argument("--proof", type=Path, required=True, metavar="FILE", help="proof.json, or its 192 bytes")
    parser.add_argument("--public", type=Path, required=True, metavar="FILE", help="public.json")


def run(arguments: argparse.Namespace) -> int:
    """Reads all three files, then checks the pairing."""
    from prover.files.snarkjs_json import read_public, require_public_count
    from prover.verify import verify

    vk = _read_vk(arguments.vk)
    public = read_public(arguments.public)
    try:
        require_public_count(public, vk)
    except Mismatch as error:
        raise Mismatch(f"{arguments.public}: {error}") from error
    is_valid = verify(vk, _read_proof(arguments.proof), public)
    print("valid" if is_valid else "invalid: the proof does not hold for this key and these public inputs")
    return 0 if is_valid else 1


def _read_vk(path: Path) -> VerifyingKey:
    """The verifying key of a snarkjs JSON file, of our own key container or of a zkey."""
    from prover.files.binfile import open_regular
    from prover.files.container import MAGIC, open_key
    from prover.files.snarkjs_json import read_verification_key
    from prover.files.zkey import read_zkey

    with open_regular(path) as file:
        head = file.read(len(MAGIC))
    if head == MAGIC:
        return open_key(path).vk
    return read_zkey(path).key.vk if head.startswith(b"zkey") else read_verification_key(path)


def _read_proof(path: Path) -> Proof:
    from prover.files.binfile import open_regular
    from prover.files.snarkjs_json import read_proof
    from prover.files.zcash import PROOF_BYTES, decode_proof

    with open_regular(path) as file:
        data = file.read(PROOF_BYTES + 1)
    if len(data) == PROOF_BYTES and not data.lstrip().startswith(b"{"):
        return decode_proof(data, path)
    return read_proof(path)
