"""Every compiled pass of synthesis and of the setup's columns is run once on the smallest circuits, one step each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prover.circuits import poseidon_merkle, sha256_chain
from prover.circuits.circuit import Circuit
from prover.r1cs.columns import columns_at
from prover.r1cs.evaluate import evaluate_abc, first_unsatisfied
from prover.r1cs.hash import circuit_hash
from prover.run import Run
from prover.wire import Stage


def warm_up(run: Run) -> None:
    """Compiles the passes, or loads them from the cache, with progress under Stage.COMPILE.

    Raises:
        Cancelled: between two steps.
    """
    chain, path = sha256_chain.build(1), poseidon_merkle.build(1)
    r1cs = chain.r1cs
    sides = [np.zeros((r1cs.domain_size, 4), np.uint64) for _ in range(3)]
    witness = np.zeros((r1cs.num_wires, 4), np.uint64)
    steps: list[tuple[str, Callable[[], object]]] = [
        ("SHA-256 witness", lambda: _fill(chain)),
        ("Poseidon witness", lambda: _fill(path)),
        ("rows of a circuit", lambda: evaluate_abc(r1cs, witness, *sides)),
        ("constraint check", lambda: first_unsatisfied(r1cs, *sides)),
        ("columns of a circuit", lambda: columns_at(r1cs, sides[0], threads=1)),
        ("circuit hash", lambda: circuit_hash(path.r1cs)),
    ]
    for done, (what, step) in enumerate(steps):
        run.check()
        run.progress(Stage.COMPILE, done, len(steps), "kernels", what=what)
        step()
    run.progress(Stage.COMPILE, len(steps), len(steps), "kernels", what="synthesis")


def _fill(circuit: Circuit) -> None:
    out = np.zeros((circuit.r1cs.num_wires, 4), np.uint64)
    circuit.witness(circuit.sample(b""), out)
