"""A key names its basis and keeps every point in one form: affine, Montgomery limbs, infinity all zeros.

Notation follows Groth16 (eprint 2016/260, section 3.2) with u_i, v_i, w_i the column polynomials of A, B, C at tau.
Shapes: a G1 point is (2, 6) uint64, a G2 point (2, 2, 6) with c0 first.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]


class HBasis(StrEnum):
    """What the H query holds; keys of one basis do not prove with scalars of the other."""

    LAGRANGE_ODD = "lagrange-odd"
    """snarkjs: L_{2i+1}(tau)/delta of the doubled domain, n points; scalars are a*b - c on the odd points."""
    MONOMIAL = "monomial"
    """bellman: tau^i Z(tau)/delta, n - 1 points; scalars are the coefficients of (a*b - c)/Z."""


class QueryName(StrEnum):
    A = "a"
    B_G1 = "b_g1"
    B_G2 = "b_g2"
    L = "l"


@dataclass(frozen=True, slots=True)
class Query:
    """Points of one query and the wires they belong to."""

    points: U64
    """(m, 2, 6) or (m, 2, 2, 6)."""
    wires: U32 | None = None
    """(m,), rising: wire of each point. None: point i belongs to wire `first_wire + i`."""
    first_wire: int = 0


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    alpha_g1: U64
    beta_g2: U64
    gamma_g2: U64
    delta_g2: U64
    ic: U64
    """(num_public + 1, 2, 6): [(beta u_i + alpha v_i + w_i)/gamma]_1 for ONE and the public wires."""
    beta_g1: U64 | None = None
    delta_g1: U64 | None = None
    """Only files that carry them (bellperson .vk) need these two."""

    @property
    def num_public(self) -> int:
        """Public inputs without ONE."""
        return len(self.ic) - 1


@dataclass(frozen=True, slots=True)
class ProvingKey:
    vk: VerifyingKey
    beta_g1: U64
    delta_g1: U64
    num_wires: int
    """ONE, public wires, private wires."""
    num_public: int
    """Without ONE."""
    num_constraints: int
    """Without the num_public + 1 appended input rows."""
    domain_size: int
    """Power of two >= num_constraints + num_public + 1."""
    a_query: Query
    """[u_i]_1; wires whose u_i is zero may be left out."""
    b_g1_query: Query
    """[v_i]_1, likewise."""
    b_g2_query: Query
    """[v_i]_2, likewise."""
    l_query: Query
    """[(beta u_i + alpha v_i + w_i)/delta]_1 for the private wires."""
    h_query: U64
    h_basis: HBasis
    circuit_hash: bytes
    """SHA-256 identity of the R1CS (`R1cs.hash`); empty where the file carries none."""
    is_test_setup: bool = True
    """Made by this program from toxic waste that one process knew."""

    @property
    def size_bytes(self) -> int:
        queries = (self.a_query, self.b_g1_query, self.b_g2_query, self.l_query)
        return self.h_query.nbytes + sum(q.points.nbytes for q in queries)

    def query(self, name: QueryName) -> Query:
        return {
            QueryName.A: self.a_query,
            QueryName.B_G1: self.b_g1_query,
            QueryName.B_G2: self.b_g2_query,
            QueryName.L: self.l_query,
        }[name]


@dataclass(frozen=True, slots=True)
class Proof:
    """A in G1, B in G2, C in G1; affine Montgomery."""

    a: U64
    b: U64
    c: U64
