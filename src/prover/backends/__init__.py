"""Where the operations of the protocol run is a Backend with a handful of verbs; the pipeline sees nothing finer.

Values cross this seam in one form: Fr (n, 4) and points affine, Montgomery limbs, C-contiguous, infinity all zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from prover.arena import Scope
from prover.keys import ProvingKey, QueryName
from prover.profile import HostNeed, TailProfile
from prover.run import Run

T = TypeVar("T")
U64 = npt.NDArray[np.uint64]


class FixedBases(Protocol):
    """Multiples of the generators of G1 and G2, wherever they are computed; scalars (n, 4) Montgomery."""

    def g1(self, scalars: U64, *, progress: Callable[[int], None] | None = None) -> U64: ...
    def g2(self, scalars: U64, *, progress: Callable[[int], None] | None = None) -> U64: ...
    def close(self) -> None: ...


class ResidentKey(Protocol):
    """A proving key where the backend wants it (mapped file, host memory, HBM)."""

    key: ProvingKey

    def close(self) -> None: ...


class Split(Protocol):
    """The assignments of a job taken apart: zeros, ones (bit vectors), tail scalars and gathered tail bases."""

    def close(self) -> None:
        """Drops every view of arena memory, so that its buffers can be released."""


class Scalars(Protocol):
    """n Fr scalars that live where the backend lives."""

    def close(self) -> None: ...


class Backend(Protocol):
    """Six verbs. Each emits its own spans through `run` and looks at `run.check()` between chunks."""

    name: str
    """cpu | cuda | reference"""

    @property
    def devices(self) -> tuple[str, ...]:
        """What the screen calls where it computes: `cpu (2 threads)`, `cuda:0 NVIDIA H200`."""

    @property
    def lost(self) -> str:
        """Why nothing can run here any more in this process, and what to do; empty while it can."""

    def warm_up(self, run: Run) -> None:
        """Compiles or loads every kernel that a proof needs, with progress under Stage.COMPILE."""

    def load_key(self, key: ProvingKey, run: Run) -> ResidentKey: ...

    def each(self, key: ResidentKey, count: int, work: Callable[[int], T]) -> list[T]:
        """work(i) of every circuit i, in order of i: one after another, or those of several cards beside each other.

        Raises:
            whatever `work` raises first, once nothing of the rest is running.
        """

    def ntt_h(self, key: ResidentKey, a: U64, b: U64, c: U64, run: Run, circuit: int) -> Scalars:
        """Scalars for the H query in the key's basis, from row values in natural order.

        Args:
            a, b, c: (domain_size, 4), rows past the constraints zero but for the appended input rows of `a`;
                overwritten.
        """

    def msm_h(self, key: ResidentKey, h: Scalars, run: Run, circuit: int) -> U64:
        """Sum of h_i H_i, (2, 6)."""

    def prep_msm(self, key: ResidentKey, assignments: Sequence[U64], scope: Scope, run: Run) -> Split:
        """Takes each (num_wires, 4) assignment apart; big vectors come from `scope`."""

    def batch_add(self, key: ResidentKey, split: Split, query: QueryName, run: Run, circuit: int) -> U64:
        """Sum of the query's points whose scalar is one."""

    def tail_msm(self, key: ResidentKey, split: Split, query: QueryName, run: Run, circuit: int) -> U64:
        """Sum of scalar times point over the significant scalars."""

    def host_need(self, key: ProvingKey, tail: TailProfile, num_circuits: int) -> HostNeed:
        """Host memory that `prep_msm` will take from the scope."""

    def fixed_bases(self) -> FixedBases:
        """Multiples of the generators, for a test setup."""

    def close(self) -> None: ...
