"""The oracle as a backend: Python integers only, for circuits of a few hundred wires; every sum is term by term."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from prover.arena import Scope
from prover.backends import FixedBases, ResidentKey, Scalars, Split
from prover.backends.cpu.fixed_base import FixedBase
from prover.keys import U64, ProvingKey, Query, QueryName
from prover.profile import HostNeed, TailProfile
from prover.reference.groups import G1, G2, Group
from prover.reference.scalars import from_array, h_scalars
from prover.run import Run
from prover.wire import Stage

T = TypeVar("T")


@dataclass(slots=True)
class ReferenceKey:
    key: ProvingKey

    def close(self) -> None:
        """Nothing of its own to give back."""


@dataclass(slots=True)
class ReferenceScalars:
    values: list[int]

    def close(self) -> None:
        self.values.clear()


@dataclass(slots=True)
class ReferenceSplit:
    assignments: list[list[int]] = field(default_factory=list)
    """Integers by circuit and wire."""

    def close(self) -> None:
        self.assignments.clear()


class ReferenceBackend:
    """Implements `prover.backends.Backend`."""

    name = "reference"
    devices = ("reference (Python integers)",)
    lost = ""

    def warm_up(self, run: Run) -> None:
        run.progress(Stage.COMPILE, 1, 1, "kernels", what="nothing to compile")

    def load_key(self, key: ProvingKey, run: Run) -> ReferenceKey:
        run.check()
        return ReferenceKey(key)

    def each(self, key: ResidentKey, count: int, work: Callable[[int], T]) -> list[T]:
        return [work(circuit) for circuit in range(count)]

    def ntt_h(self, key: ResidentKey, a: U64, b: U64, c: U64, run: Run, circuit: int) -> ReferenceScalars:
        n = key.key.domain_size
        with run.span("ntt_h", stage=Stage.NTT_H, circuit=circuit, ops=3 * n * (n.bit_length() - 1), op="fr_mul"):
            return ReferenceScalars(h_scalars(from_array(a), from_array(b), from_array(c), key.key.h_basis))

    def msm_h(self, key: ResidentKey, h: Scalars, run: Run, circuit: int) -> U64:
        assert isinstance(h, ReferenceScalars)
        query = Query(key.key.h_query)
        return _sum(G1, query, h.values[: len(query.points)], "msm h", run, Stage.MSM_H, circuit)

    def prep_msm(self, key: ResidentKey, assignments: Sequence[U64], scope: Scope, run: Run) -> ReferenceSplit:
        with run.span("split", stage=Stage.PREP_MSM, ops=key.key.num_wires * len(assignments), op="wire"):
            return ReferenceSplit([from_array(assignment) for assignment in assignments])

    def batch_add(self, key: ResidentKey, split: Split, query: QueryName, run: Run, circuit: int) -> U64:
        assert isinstance(split, ReferenceSplit)
        ones = [int(value == 1) for value in split.assignments[circuit]]
        return self._query_sum(key, query, ones, "batch_add", Stage.BATCH_ADD, run, circuit)

    def tail_msm(self, key: ResidentKey, split: Split, query: QueryName, run: Run, circuit: int) -> U64:
        assert isinstance(split, ReferenceSplit)
        tail = [0 if value == 1 else value for value in split.assignments[circuit]]
        return self._query_sum(key, query, tail, "msm", Stage.TAIL_MSM, run, circuit)

    def host_need(self, key: ProvingKey, tail: TailProfile, num_circuits: int) -> HostNeed:
        return HostNeed()

    def fixed_bases(self) -> FixedBases:
        return FixedBase(1)

    def close(self) -> None:
        """Holds nothing."""

    def _query_sum(
        self, key: ResidentKey, name: QueryName, by_wire: list[int], what: str, stage: Stage, run: Run, circuit: int
    ) -> U64:
        query = key.key.query(name)
        wires = range(query.first_wire, query.first_wire + len(query.points)) if query.wires is None else query.wires
        group, stage = (G2, Stage.B_G2_MSM) if name is QueryName.B_G2 else (G1, stage)
        return _sum(group, query, [by_wire[int(w)] for w in wires], f"{what} {name}", run, stage, circuit)


def _sum(group: Group, query: Query, scalars: list[int], what: str, run: Run, stage: Stage, circuit: int) -> U64:
    """Only points with a nonzero scalar are converted: most wires of a real circuit are zero."""
    used = [i for i, scalar in enumerate(scalars) if scalar]
    total = None
    with run.span(what, stage=stage, circuit=circuit, ops=len(used), op="point_mul"):
        for done, i in enumerate(used, 1):
            run.check()
            total = group.add(total, group.mul(group.from_array(query.points[i : i + 1])[0], scalars[i]))
            if done % 64 == 0:
                run.progress(stage, done, len(used), "points", circuit=circuit, what=what)
    return group.to_array([total])[0]
