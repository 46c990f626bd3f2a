"""What a job proves: a workload knows its sizes and fills its buffers; the pipeline asks no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from prover.keys import U64, ProvingKey
from prover.profile import TailProfile
from prover.run import Run


class Workload(Protocol):
    """`num_circuits` circuits of one shape that share a proving key."""

    name: str
    kind: str
    """circuit | file | porep"""
    num_circuits: int
    num_constraints: int
    num_wires: int
    num_public: int
    domain_size: int

    def proving_key(self, run: Run) -> ProvingKey:
        """The key, from a file or a cached test setup; made under Stage.SETUP when there is none yet."""

    def profile(self, key: ProvingKey, run: Run) -> TailProfile:
        """How much of an assignment is in the tail: measured, for the prediction of the peak."""

    def witness(self, circuit: int, assignment: U64, run: Run) -> None:
        """Fills (num_wires, 4) Montgomery; progress under Stage.WITNESS."""

    def eval_abc(self, circuit: int, assignment: U64, a: U64, b: U64, c: U64, run: Run) -> None:
        """Fills the (domain_size, 4) row values, appended input rows included, the rest zero.

        Raises:
            UnsatisfiedWitness: naming the first failing constraint.
        """


def public_inputs(workload: Workload, assignment: U64) -> Sequence[int]:
    """The public wires of an assignment, without ONE, as integers."""
    from prover.backends.cpu.field import fr_to_ints

    return fr_to_ints(assignment[1 : workload.num_public + 1])
