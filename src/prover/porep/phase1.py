"""Parameters of a small circuit from a phase-1 output, whose tau, alpha and beta nobody here knows; gamma = delta = 1.

The file, `phase1radix2mK` for m = 2^K rows, has alpha_g1, beta_g1, beta_g2, then m points each of L_i(tau) in G1, in
G2, alpha L_i(tau), beta L_i(tau), and m - 1 points tau^i (tau^m - 1); all uncompressed, the domain that of bellman.
Without a second phase delta is public, so these parameters are sound only as far as a test of the format goes.
Source: filecoin-phase2:src/{lib,small}.rs; the notation of the setup is that of `prover.setup`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial

import numpy as np

from prover.backends.cpu import points
from prover.backends.cpu.field import fr_to_ints
from prover.errors import BadFile, Mismatch
from prover.files.binfile import open_regular
from prover.files.densities import densities_of
from prover.files.queries import compact
from prover.files.zcash import decode_g1, decode_g2
from prover.keys import U64, HBasis, ProvingKey, Query, VerifyingKey
from prover.params import R
from prover.r1cs.expand import Rows, expand
from prover.r1cs.hash import circuit_hash
from prover.r1cs.matrices import Csr, R1cs

G1_BYTES, G2_BYTES = 96, 192
MAX_ROWS = 1 << 14
"""Every entry of a matrix costs a scalar multiplication here."""


@dataclass(frozen=True, slots=True)
class Phase1:
    """Points of one power of tau."""

    alpha_g1: U64
    beta_g1: U64
    beta_g2: U64
    lagrange_g1: U64
    """(m, 2, 6)"""
    lagrange_g2: U64
    """(m, 2, 2, 6)"""
    alpha_lagrange: U64
    beta_lagrange: U64
    h: U64
    """(m - 1, 2, 6)"""

    @property
    def num_rows(self) -> int:
        return len(self.lagrange_g1)


def read_phase1(path: str | os.PathLike[str]) -> Phase1:
    """The points of a phase-1 output, every one a member of its group.

    Raises:
        BadFile: of a size that no number of rows gives, or a point that is none.
    """
    with open_regular(path) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        fixed, per_row = 2 * G1_BYTES + G2_BYTES, 4 * G1_BYTES + G2_BYTES
        num_rows, rest = divmod(size_bytes - fixed + G1_BYTES, per_row)
        if rest or num_rows < 2 or num_rows & (num_rows - 1):
            raise BadFile(path, "", f"{size_bytes} bytes are no phase-1 output of a power of two of rows")
        if num_rows > MAX_ROWS:
            raise BadFile(path, "", f"is for {num_rows} rows, and at most {MAX_ROWS} are taken")
        data = file.read(size_bytes)
    if len(data) != size_bytes:
        raise BadFile(path, "", "shrank while it was read")
    parts, offset = [], 0
    counts = ((1, 1), (1, 1), (1, 2), (num_rows, 1), (num_rows, 2), (num_rows, 1), (num_rows, 1), (num_rows - 1, 1))
    for count, degree in counts:
        end = offset + count * degree * G1_BYTES
        decode = decode_g1 if degree == 1 else decode_g2
        parts.append(decode(data[offset:end], partial(_fault, path, offset, degree * G1_BYTES), compressed=False))
        offset = end
    alpha_g1, beta_g1, beta_g2, *rest_parts = parts
    return Phase1(alpha_g1[0], beta_g1[0], beta_g2[0], *rest_parts)


def parameters(r1cs: R1cs, phase1: Phase1) -> ProvingKey:
    """The proving key of a circuit whose domain is the phase's.

    Raises:
        Mismatch: it needs another domain.
    """
    if r1cs.domain_size != phase1.num_rows:
        raise Mismatch(f"{r1cs.name} needs {r1cs.domain_size} rows and the phase-1 output has {phase1.num_rows}")
    rows = expand(r1cs)
    num_wires, num_public = r1cs.num_wires, r1cs.num_public
    a = _columns(rows, rows.a, phase1.lagrange_g1, num_wires)
    linear = _columns(rows, rows.a, phase1.beta_lagrange, num_wires)
    for wire in range(num_public + 1):
        row = r1cs.num_constraints + wire
        a[wire] = points.add(a[wire], phase1.lagrange_g1[row])
        linear[wire] = points.add(linear[wire], phase1.beta_lagrange[row])
    for matrix, basis in ((rows.b, phase1.alpha_lagrange), (rows.c, phase1.lagrange_g1)):
        for wire, point in enumerate(_columns(rows, matrix, basis, num_wires)):
            if point.any():
                linear[wire] = points.add(linear[wire], point)
    densities = densities_of(r1cs)
    b_g1 = _columns(rows, rows.b, phase1.lagrange_g1, num_wires)
    b_g2 = _columns(rows, rows.b, phase1.lagrange_g2, num_wires)
    one_g1, one_g2 = points.g1_generator(), points.g2_generator()
    return ProvingKey(
        vk=VerifyingKey(
            phase1.alpha_g1, phase1.beta_g2, one_g2, one_g2, linear[: num_public + 1].copy(), phase1.beta_g1, one_g1
        ),
        beta_g1=phase1.beta_g1,
        delta_g1=one_g1,
        num_wires=num_wires,
        num_public=num_public,
        num_constraints=r1cs.num_constraints,
        domain_size=r1cs.domain_size,
        a_query=Query(a[densities.a_wires], densities.a_wires),
        b_g1_query=Query(b_g1[densities.b_wires], densities.b_wires),
        b_g2_query=Query(b_g2[densities.b_wires], densities.b_wires),
        l_query=compact(linear[num_public + 1 :].copy(), num_public + 1),
        h_query=phase1.h,
        h_basis=HBasis.MONOMIAL,
        circuit_hash=circuit_hash(r1cs),
    )


def _columns(rows: Rows, matrix: Csr, basis: U64, num_wires: int) -> U64:
    """For each wire the sum of its coefficients times the row's point."""
    values = fr_to_ints(rows.table)
    sums = np.zeros((num_wires, *basis.shape[1:]), np.uint64)
    row_of = np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr))
    entries = zip(row_of.tolist(), matrix.columns.tolist(), matrix.coefficients.tolist(), strict=True)
    for row, wire, place in entries:
        value, point = values[place], basis[row]
        term = point if value == 1 else points.negate(point) if value == R - 1 else points.multiply(point, value)
        sums[wire] = points.add(sums[wire], term)
    return sums


def _fault(path: object, offset: int, size_bytes: int, why: str, index: int) -> BadFile:
    return BadFile(path, f"offset {offset + index * size_bytes}", why)
