"""Which wires a matrix uses is read off the templates: a wire is in a query if some row gives it a nonzero coefficient.

bellperson's `.params` name no wires, so a reader must know them. ONE and the public wires are always in `a`, by the
appended input rows. Source: bellperson, src/groth16/generator.rs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prover.r1cs.matrices import Csr, R1cs

U32 = npt.NDArray[np.uint32]
BLOCK_WIRES = 1 << 20
"""Wires marked at once: 8 MB of places."""
LONG_WIRES = 1 << 10
"""Templates of so many wires are marked instance by instance."""


@dataclass(frozen=True, slots=True)
class Densities:
    """What a `.params` file must be read with."""

    num_wires: int
    num_public: int
    num_constraints: int
    domain_size: int
    a_wires: U32
    """Rising; wires of the `a` query."""
    b_wires: U32
    """Rising; wires of both `b` queries."""
    circuit_hash: bytes = b""


def densities_of(r1cs: R1cs, circuit_hash: bytes = b"") -> Densities:
    """The densities of a circuit, from one look at each template and its instances."""
    a = _used(r1cs, [stamp.template.a for stamp in r1cs.stamps])
    b = _used(r1cs, [stamp.template.b for stamp in r1cs.stamps])
    a[: r1cs.num_public + 1] = True
    return Densities(
        r1cs.num_wires, r1cs.num_public, r1cs.num_constraints, r1cs.domain_size,
        _places(a), _places(b), circuit_hash,
    )  # fmt: skip


def _used(r1cs: R1cs, matrices: list[Csr]) -> npt.NDArray[np.bool_]:
    nonzero: npt.NDArray[np.bool_] = np.any(r1cs.table != 0, axis=1)
    used = np.zeros(r1cs.num_wires, np.bool_)
    for stamp, matrix in zip(r1cs.stamps, matrices, strict=True):
        num_ports = stamp.template.num_ports
        columns = np.unique(matrix.columns[nonzero[matrix.coefficients]]).astype(np.int64)
        for port in columns[columns < num_ports]:
            used[stamp.ports[:, port]] = True
        own = columns[columns >= num_ports] - num_ports
        if len(own) >= LONG_WIRES:
            mask = np.zeros(stamp.template.num_wires, np.bool_)
            mask[own] = True
            for first_wire in stamp.wire0.tolist():
                used[first_wire : first_wire + len(mask)] |= mask
            continue
        step = max(1, BLOCK_WIRES // max(1, len(own)))
        for instance in range(0, len(stamp.wire0), step):
            first = stamp.wire0[instance : instance + step]
            used[(first[:, None] + own[None, :]).ravel()] = True
    return used


def _places(used: npt.NDArray[np.bool_]) -> U32:
    """Indices of the marked wires, rising; never all of them as 64-bit numbers."""
    places = np.empty(np.count_nonzero(used), np.uint32)
    done = 0
    for first in range(0, len(used), BLOCK_WIRES):
        found = np.flatnonzero(used[first : first + BLOCK_WIRES])
        places[done : done + len(found)] = found + first
        done += len(found)
    return places
