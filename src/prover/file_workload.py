"""A zkey with a witness as a workload: the witness belongs to the key, and satisfies the r1cs where one is given."""

from __future__ import annotations

import os

import numpy as np

from prover.errors import UnsatisfiedWitness
from prover.files.r1cs_file import read_r1cs
from prover.files.wtns import read_wtns, require_length
from prover.files.zkey import Zkey, read_zkey, require_zkey_of
from prover.files.zkey_rows import evaluate_rows
from prover.keys import U64, ProvingKey
from prover.profile import TailProfile, measure
from prover.r1cs.evaluate import describe_row, evaluate_abc, first_unsatisfied
from prover.run import Run
from prover.wire import Stage

Path = str | os.PathLike[str]


class FileWorkload:
    """`num_circuits` proofs of one witness.

    Args:
        zkey: read and checked.
        wtns_path: the assignment.
        r1cs_path: the circuit; without it an unsatisfied witness is noticed only when its proof does not verify.

    Raises:
        BadFile: witness or r1cs is malformed.
        Mismatch: key, witness and r1cs are not of one circuit.
    """

    kind = "file"

    def __init__(
        self, name: str, zkey: Zkey, wtns_path: Path, r1cs_path: Path | None = None, num_circuits: int = 1, *,
        threads: int = 2,
    ) -> None:  # fmt: skip
        self.name, self.num_circuits, self.threads = name, num_circuits, threads
        self._key, self._relation = zkey.key, zkey.relation
        self._witness = read_wtns(wtns_path)
        require_length(self._witness, zkey.key.num_wires, "the zkey")
        self._r1cs = None
        if r1cs_path is not None:
            self._r1cs = read_r1cs(r1cs_path)
            require_zkey_of(zkey, self._r1cs)
        self.num_constraints, self.num_wires = zkey.key.num_constraints, zkey.key.num_wires
        self.num_public, self.domain_size = zkey.key.num_public, zkey.key.domain_size

    def proving_key(self, run: Run) -> ProvingKey:
        return self._key

    def profile(self, key: ProvingKey, run: Run) -> TailProfile:
        return measure(key, self._witness)

    def witness(self, circuit: int, assignment: U64, run: Run) -> None:
        with run.span("copy witness", stage=Stage.WITNESS, circuit=circuit, moved_bytes=2 * assignment.nbytes):
            assignment[:] = self._witness

    def require_satisfied(self, run: Run) -> None:
        """Where the r1cs is at hand, finds an unsatisfied witness before a backend is loaded for it.

        Raises:
            UnsatisfiedWitness: naming the first failing constraint.
        """
        if self._r1cs is not None:
            a, b, c = (np.empty((self.domain_size, 4), np.uint64) for _ in range(3))
            self.eval_abc(0, self._witness, a, b, c, run)

    def eval_abc(self, circuit: int, assignment: U64, a: U64, b: U64, c: U64, run: Run) -> None:
        told = run.counter(Stage.EVAL_ABC, circuit, self.num_constraints, "constraints")
        evaluate = evaluate_rows if self._r1cs is None else evaluate_abc
        with run.span("eval_abc", stage=Stage.EVAL_ABC, circuit=circuit, ops=self.num_constraints, op="constraint"):
            evaluate(
                self._r1cs or self._relation, assignment, a, b, c, progress=told, check=run.check, threads=self.threads
            )
        if self._r1cs is None:
            return
        row = first_unsatisfied(self._r1cs, a, b, c, check=run.check, threads=self.threads)
        if row is not None:
            raise UnsatisfiedWitness(row, describe_row(self._r1cs, row))


def open_zkey(path: Path, run: Run) -> Zkey:
    """A zkey whose points were checked, under Stage.SRS of a command or job."""
    with run.span("read zkey"):
        return read_zkey(path)
