"""What the circuit needs of a C1 output, as arrays; the rest of that output repeats it, and is compared when read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prover.porep.shapes import PARENTS, RegisteredProof
from prover.porep.trees import Paths
from prover.r1cs.matrices import I64, U64

COLUMNS = PARENTS + 1
"""A challenge opens the columns of its 14 parents in graph order, then its own."""


@dataclass(frozen=True, slots=True)
class Partition:
    """The openings of one partition; values are Fr, Montgomery, in the order of the challenges."""

    nodes: I64
    """(challenges,)"""
    data: Paths
    """Tree D, a path a challenge."""
    replica: Paths
    """Tree R_last, a path a challenge."""
    columns: Paths
    """Tree C, COLUMNS paths a challenge."""
    rows: U64
    """(challenges, COLUMNS, layers, 4): labels of the columns, layer 1 first."""
    column_nodes: I64
    """(challenges, COLUMNS): the nodes that the columns say they are of."""

    @property
    def num_challenges(self) -> int:
        return len(self.nodes)

    @property
    def comm_c(self) -> U64:
        """(4,)"""
        return self.columns.roots[COLUMNS - 1]

    @property
    def comm_r_last(self) -> U64:
        """(4,)"""
        return self.replica.roots[0]

    def public_inputs(self, replica_id: int, comm_d: int, comm_r: int) -> list[int]:
        """What the circuit makes public of these openings, ONE left out."""
        inputs = [replica_id, comm_d, comm_r]
        places = np.array(self.columns.indices, dtype=np.int64).reshape(-1, COLUMNS).tolist()
        opened = zip(self.nodes.tolist(), self.data.indices, self.replica.indices, places, strict=True)
        for node, data, replica, columns in opened:
            inputs += [data, *columns[:PARENTS], node, replica, columns[PARENTS]]
        return inputs


@dataclass(frozen=True, slots=True)
class C1Output:
    """A C1 output whose format was checked."""

    proof: RegisteredProof
    partitions: tuple[Partition, ...]
    comm_r: bytes
    comm_d: bytes
    replica_id: bytes
    seed: bytes
    ticket: bytes
    sector_number: int | None = None
    """Only the wrapper names it."""
    source: str = "C1 output"
    """What messages call it."""
