"""How much of a circuit's assignment is neither 0 nor 1 decides what the prove call allocates; it is measured once.

The split of an assignment keeps bits for every wire, scalars for the tail wires, and the tail's bases (see
`prover.backends.cpu.split`). Which wires are in the tail hardly depends on the private inputs, so one witness tells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prover.keys import U64, ProvingKey, Query
from prover.params import FR_LIMBS, FR_MONT

FR_BYTES, G1_BYTES, G2_BYTES, ROW_BYTES = 32, 96, 192, 4


@dataclass(frozen=True, slots=True)
class TailProfile:
    """Tail wires of a circuit, and how many of them each query has a point for."""

    wires: int
    a: int
    b: int
    l: int

    def split_bytes(self, num_wires: int, num_circuits: int) -> int:
        """Bit vectors, tail scalars, and the lists that tie them to their bases."""
        bits = -(-num_wires // 8)
        lists = ROW_BYTES * (self.wires + self.a + 2 * self.b + self.l)
        return num_circuits * (bits + FR_BYTES * self.wires) + bits + lists

    @property
    def bases_bytes(self) -> int:
        """Gathered once for all circuits of a job."""
        return G1_BYTES * (self.a + self.b + self.l) + G2_BYTES * self.b


@dataclass(frozen=True, slots=True)
class HostNeed:
    """What a backend takes from a job's scope during the prove call."""

    split_bytes: int = 0
    tail_bases_bytes: int = 0
    scratch_bytes: int = 0


def measure(key: ProvingKey, assignment: U64) -> TailProfile:
    """The profile of one (num_wires, 4) Montgomery assignment."""
    one = np.array([(FR_MONT >> 64 * i) & (2**64 - 1) for i in range(FR_LIMBS)], np.uint64)
    return of_tail(key, assignment.any(axis=1) & (assignment != one).any(axis=1))


def of_tail(key: ProvingKey, tail: npt.NDArray[np.bool_]) -> TailProfile:
    """The profile of a key whose tail wires are marked, (num_wires,)."""
    a, b, l = (_count(query, tail) for query in (key.a_query, key.b_g1_query, key.l_query))
    return TailProfile(int(tail.sum()), a, b, l)


def _count(query: Query, tail: npt.NDArray[np.bool_]) -> int:
    if query.wires is not None:
        return int(tail[query.wires].sum())
    return int(tail[query.first_wire : query.first_wire + len(query.points)].sum())
