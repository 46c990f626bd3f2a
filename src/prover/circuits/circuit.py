"""A built-in circuit is an R1CS with the one function that fills its witness; nothing else knows its layout."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from prover.r1cs.chunks import Check, Progress
from prover.r1cs.matrices import U64, R1cs


class FillWitness(Protocol):
    """Writes every wire of one instance."""

    def __call__(
        self, inputs: bytes, out: U64, *, progress: Progress | None = None, check: Check | None = None, threads: int = 1
    ) -> None:
        """Fills a witness.

        Args:
            inputs: the circuit's private data, `Circuit.input_bytes` long.
            out: (num_wires, 4) Fr, Montgomery; written whole, out[0] = 1.
            progress: told how many wires were done since the last call.
            check: called between chunks; raises to stop.
        """


@dataclass(frozen=True, slots=True)
class Circuit:
    name: str
    """As a user writes it: ``sha256-chain:8``."""
    r1cs: R1cs
    input_bytes: int
    """Length of the private data."""
    witness: FillWitness
    describe: Callable[[U64], str]
    """What the public inputs of a witness say, in words: ``sha256 = 9f86d0...``."""

    def sample(self, seed: bytes, index: int = 0) -> bytes:
        """Private data for the index-th circuit of a job: SHAKE-256 of seed and index, so no two are alike."""
        return hashlib.shake_256(seed + index.to_bytes(8, "little")).digest(self.input_bytes)

    def public_inputs(self, witness: U64) -> U64:
        """(num_public, 4) Fr, Montgomery: the public wires of a witness, a copy."""
        return witness[1 : 1 + self.r1cs.num_public].copy()
