"""A built-in circuit as a workload: one R1CS, a different witness for every circuit of the job."""

from __future__ import annotations

import secrets
from typing import Protocol

import numpy as np

from prover.circuits.circuit import Circuit
from prover.circuits.registry import build
from prover.errors import UnsatisfiedWitness
from prover.keys import U64, ProvingKey
from prover.profile import TailProfile, measure
from prover.r1cs.evaluate import describe_row, evaluate_abc, first_unsatisfied
from prover.r1cs.matrices import R1cs
from prover.run import Run
from prover.wire import Stage

_profiles: dict[bytes, TailProfile] = {}
"""By circuit hash; a handful of numbers each."""


class KeySource(Protocol):
    """Where the key of a circuit comes from: a cache of test keys, or one file."""

    def key_for(self, r1cs: R1cs, run: Run) -> ProvingKey: ...


class BuiltinWorkload:
    """One job of a built-in circuit.

    Args:
        circuit: built, or its name as the user writes it, e.g. ``sha256-chain:8``.
        seed: makes the private inputs; fresh from the OS when None.

    Raises:
        UnknownCircuit: no such circuit, or its parameter is out of range.
    """

    kind = "circuit"

    def __init__(
        self, circuit: Circuit | str, num_circuits: int, keys: KeySource, *, threads: int = 2, seed: bytes | None = None
    ) -> None:
        self.circuit = build(circuit) if isinstance(circuit, str) else circuit
        self.name, self.num_circuits, self.keys, self.threads = self.circuit.name, num_circuits, keys, threads
        self._seed = seed or secrets.token_bytes(32)
        r1cs = self.circuit.r1cs
        self.num_constraints, self.num_wires, self.num_public = r1cs.num_constraints, r1cs.num_wires, r1cs.num_public
        self.domain_size = r1cs.domain_size

    def proving_key(self, run: Run) -> ProvingKey:
        return self.keys.key_for(self.circuit.r1cs, run)

    def profile(self, key: ProvingKey, run: Run) -> TailProfile:
        known = _profiles.get(key.circuit_hash)
        if known is None:
            assignment = np.empty((self.num_wires, 4), np.uint64)
            inputs = self.circuit.sample(self._seed, self.num_circuits)
            self.circuit.witness(inputs, assignment, check=run.check, threads=self.threads)
            known = _profiles[key.circuit_hash] = measure(key, assignment)
        return known

    def witness(self, circuit: int, assignment: U64, run: Run) -> None:
        inputs = self.circuit.sample(self._seed, circuit)
        with run.span(
            "witness", stage=Stage.WITNESS, circuit=circuit, ops=self.num_wires, op="wire",
            moved_bytes=assignment.nbytes,
        ):  # fmt: skip
            self.circuit.witness(
                inputs, assignment, progress=run.counter(Stage.WITNESS, circuit, self.num_wires, "wires"),
                check=run.check, threads=self.threads,
            )  # fmt: skip

    def eval_abc(self, circuit: int, assignment: U64, a: U64, b: U64, c: U64, run: Run) -> None:
        r1cs = self.circuit.r1cs
        with run.span(
            "eval_abc", stage=Stage.EVAL_ABC, circuit=circuit, ops=self.num_constraints, op="constraint",
            moved_bytes=sum(r1cs.nnz) * 32 + 3 * a.nbytes,
        ):  # fmt: skip
            evaluate_abc(
                r1cs, assignment, a, b, c, check=run.check, threads=self.threads,
                progress=run.counter(Stage.EVAL_ABC, circuit, self.num_constraints, "constraints"),
            )  # fmt: skip
        row = first_unsatisfied(r1cs, a, b, c, check=run.check, threads=self.threads)
        if row is not None:
            raise UnsatisfiedWitness(row, describe_row(r1cs, row))
