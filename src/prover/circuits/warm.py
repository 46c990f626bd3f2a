"""Every compiled pass of synthesis and of the setup's columns is run once on the smallest circuits, one step each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prover.circuits import poseidon_merkle, sha256_chain
from prover.circuits.circuit import Circuit
from prover.circuits.gadgets.poseidon_witness import fill_poseidon, num_poseidon_wires, poseidon_hashes
from prover.circuits.gadgets.scalar import NUM_BITS
from prover.circuits.gadgets.scalar_witness import fill_pack, fill_to_bits
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
        ("bits of field elements", _convert),
        ("Poseidon of rows", _hash),
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


def _convert() -> None:
    out = np.zeros((NUM_BITS + 2, 4), np.uint64)
    first = np.ones(1, np.int64)
    fill_to_bits(np.zeros(1, np.int64), first, out)
    fill_pack(np.arange(1, 1 + NUM_BITS)[None, :], first + NUM_BITS, out)


def _hash() -> None:
    out = np.zeros((3 + num_poseidon_wires(2), 4), np.uint64)
    fill_poseidon(2, np.array([[1, 2]], np.int64), np.array([3], np.int64), out)
    poseidon_hashes(2, np.zeros((1, 2, 4), np.uint64))
