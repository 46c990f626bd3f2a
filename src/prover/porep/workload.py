"""A PoRep job: one circuit a partition, its witness from a C1 output that was checked before anything is proved."""

from __future__ import annotations

import numpy as np

from prover.builtin import KeySource
from prover.errors import UnsatisfiedWitness
from prover.keys import U64, ProvingKey
from prover.porep.circuit import StackedCircuit, build
from prover.porep.vanilla import C1Output
from prover.porep.witness import fill_witness
from prover.profile import TailProfile, of_tail
from prover.r1cs.evaluate import describe_row, evaluate_abc, first_unsatisfied
from prover.run import Run
from prover.wire import Stage

_BIT_TEMPLATES = ("field-bits", "to-bits", "challenge-bits")
"""Besides those with a tape."""


class PorepWorkload:
    """The partitions of one sector, or some of them.

    Args:
        output: what `prover.porep.checks` has passed.
        circuit: of the sector's shape; built when None.
        partitions: which to prove; all when None.
    """

    kind = "porep"

    def __init__(
        self, output: C1Output, keys: KeySource, *, circuit: StackedCircuit | None = None, threads: int = 2,
        partitions: list[int] | None = None,
    ) -> None:  # fmt: skip
        self.output, self.keys, self.threads = output, keys, threads
        self.circuit = circuit or build(output.proof.shape)
        self.partitions = list(range(len(output.partitions))) if partitions is None else partitions
        self.num_circuits = len(self.partitions)
        r1cs = self.circuit.r1cs
        self.name, self.domain_size = r1cs.name, r1cs.domain_size
        self.num_constraints, self.num_wires, self.num_public = r1cs.num_constraints, r1cs.num_wires, r1cs.num_public

    def proving_key(self, run: Run) -> ProvingKey:
        return self.keys.key_for(self.circuit.r1cs, run)

    def profile(self, key: ProvingKey, run: Run) -> TailProfile:
        """Every wire that is no bit, by the circuit alone: which of them happen to be 0 or 1 hardly matters."""
        labels = self.circuit.r1cs.labels
        known = labels.get("tail profile")
        if not isinstance(known, TailProfile):
            known = labels["tail profile"] = self._profile(key)
        return known

    def _profile(self, key: ProvingKey) -> TailProfile:
        tail = np.ones(self.num_wires, np.bool_)
        tail[0] = False
        for stamp in self.circuit.r1cs.stamps:
            template = stamp.template
            if template.tape is not None or template.name in _BIT_TEMPLATES:
                for first in stamp.wire0.tolist():
                    tail[first : first + template.num_wires] = False

        return of_tail(key, tail)

    def witness(self, circuit: int, assignment: U64, run: Run) -> None:
        told = run.counter(Stage.WITNESS, circuit, self.num_wires, "wires")
        with run.span(
            "witness", stage=Stage.WITNESS, circuit=circuit, ops=self.num_wires, op="wire",
            moved_bytes=assignment.nbytes,
        ):  # fmt: skip
            fill_witness(
                self.circuit, self.output, self.partitions[circuit], assignment, told=told, check=run.check,
                threads=self.threads,
            )  # fmt: skip

    def eval_abc(self, circuit: int, assignment: U64, a: U64, b: U64, c: U64, run: Run) -> None:
        r1cs = self.circuit.r1cs
        told = run.counter(Stage.EVAL_ABC, circuit, self.num_constraints, "constraints")
        with run.span(
            "eval_abc", stage=Stage.EVAL_ABC, circuit=circuit, ops=self.num_constraints, op="constraint",
            moved_bytes=sum(r1cs.nnz) * 32 + 3 * a.nbytes,
        ):  # fmt: skip
            evaluate_abc(
                r1cs, assignment, a, b, c, check=run.check, threads=self.threads, progress=told
            )
        row = first_unsatisfied(r1cs, a, b, c, check=run.check, threads=self.threads)
        if row is not None:
            place = f"partition {self.partitions[circuit]}, {describe_row(r1cs, row)}"
            raise UnsatisfiedWitness(row, place)


def check_constraints(workload: PorepWorkload, run: Run) -> int:
    """Evaluates every constraint of every partition; nothing is proved and no key is needed.

    Returns:
        How many constraints hold, all partitions together.
    Raises:
        UnsatisfiedWitness: names partition, challenge, layer and gadget of the first that does not.
    """
    rows = (workload.domain_size, 4)
    assignment = np.empty((workload.num_wires, 4), np.uint64)
    a, b, c = (np.empty(rows, np.uint64) for _ in range(3))
    for i in range(workload.num_circuits):
        with run.stage(Stage.WITNESS, i):
            workload.witness(i, assignment, run)
        with run.stage(Stage.EVAL_ABC, i):
            workload.eval_abc(i, assignment, a, b, c, run)
    return workload.num_circuits * workload.num_constraints
