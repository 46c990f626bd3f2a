"""An R1CS is a list of templates, each stamped at many places; the rows of one matrix are never materialised.

A template's columns are relative: column c < num_ports is `ports[instance, c]` (port 0 is the wire ONE), and
column c >= num_ports is the instance's own wire `wire0[instance] + c - num_ports`. Row i of an instance is row
`row0[instance] + i` of the circuit. Wires: 0 = ONE, then the public wires, then the private ones.
The num_public + 1 rows `wire_s * 0 = 0` that bind the public wires are not constraints of the circuit: they
follow it in the domain and are added by the quotient and the setup.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from prover.r1cs.tape import BitTape

U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Csr:
    """One sparse matrix of a template: entries of row i are indptr[i]:indptr[i+1]."""

    indptr: I64
    """(rows + 1,)"""
    columns: U32
    """(nnz,), relative."""
    coefficients: U32
    """(nnz,), index into the circuit's coefficient table."""

    @property
    def nnz(self) -> int:
        return len(self.columns)


@dataclass(frozen=True, slots=True)
class Template:
    """A gadget recorded once."""

    name: str
    num_ports: int
    """Column 0 is the port ONE, so at least 1."""
    num_wires: int
    """Wires that each instance allocates."""
    a: Csr
    b: Csr
    c: Csr
    outputs: tuple[int, ...] = ()
    """Relative columns that a circuit wires on, in the gadget's own order."""
    marks: tuple[tuple[int, str], ...] = ()
    """(first row, name) of its parts, rising: what a broken constraint is called."""
    tape: BitTape | None = None
    """How to compute its wires, where all of them are bits."""

    @property
    def num_rows(self) -> int:
        return len(self.a.indptr) - 1


@dataclass(frozen=True, slots=True)
class Stamp:
    """Instances of one template."""

    template: Template
    row0: I64
    """(instances,)"""
    wire0: I64
    """(instances,)"""
    ports: U32
    """(instances, num_ports), wires of the circuit; column 0 is all zeros (ONE)."""


@dataclass(frozen=True, slots=True)
class R1cs:
    num_constraints: int
    num_wires: int
    num_public: int
    """Without ONE; outputs first where a format tells them apart."""
    table: U64
    """(k, 4) Fr, Montgomery: the distinct coefficients. Entry 0 is 1, entry 1 is -1."""
    stamps: tuple[Stamp, ...]
    """Together they cover rows 0 .. num_constraints - 1 once each."""
    num_outputs: int = 0
    """How many of the public wires are outputs (circom)."""
    name: str = ""
    labels: dict[str, object] = field(default_factory=dict)
    """What a builder wants to remember; ``places`` (`prover.r1cs.build.Places`) names ranges of rows."""

    @property
    def domain_size(self) -> int:
        return 1 << max(1, (self.num_constraints + self.num_public).bit_length())

    @property
    def nnz(self) -> tuple[int, int, int]:
        """Entries of A, B, C without the appended input rows."""
        counts = [(len(s.row0), s.template) for s in self.stamps]
        return (
            sum(n * t.a.nnz for n, t in counts),
            sum(n * t.b.nnz for n, t in counts),
            sum(n * t.c.nnz for n, t in counts),
        )
