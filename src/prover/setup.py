"""A test setup: one process draws the toxic waste, uses it and drops it, so its keys prove nothing to anybody else.

Notation follows Groth16 (eprint 2016/260, section 3.2): u_i, v_i, w_i are the column polynomials of A, B, C at tau.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prover.admission import admit_setup
from prover.backends import FixedBases
from prover.backends.cpu.field import fr_add, fr_mul, ints_to_fr, ld_fr, st_fr
from prover.backends.cpu.fixed_base import FixedBase
from prover.backends.cpu.jit import jit
from prover.errors import WontFit
from prover.files.densities import densities_of
from prover.keys import U64, HBasis, ProvingKey, Query, VerifyingKey
from prover.lagrange import lagrange_at, monomials_at, odd_lagrange_at
from prover.params import ROOT_BELLMAN, ROOT_SNARKJS, R
from prover.r1cs.columns import columns_at
from prover.r1cs.hash import circuit_hash
from prover.r1cs.matrices import R1cs
from prover.run import Run
from prover.wire import Stage

CHUNK = 1 << 18


@dataclass(frozen=True, slots=True)
class ToxicWaste:
    """Whoever knows these forges proofs."""

    tau: int
    alpha: int
    beta: int
    gamma: int
    delta: int

    @staticmethod
    def draw() -> ToxicWaste:
        """Fresh from the OS. gamma is 1, as in snarkjs: it separates nothing that delta does not."""
        tau, alpha, beta, delta = (secrets.randbelow(R - 1) + 1 for _ in range(4))
        return ToxicWaste(tau, alpha, beta, 1, delta)


@dataclass(frozen=True, slots=True)
class SetupScalars:
    """Discrete logarithms of a key's queries, (n, 4) Montgomery each; as secret as the waste."""

    ic: U64
    l: U64
    a: U64
    b: U64
    h: U64
    a_wires: npt.NDArray[np.uint32]
    b_wires: npt.NDArray[np.uint32]
    """Wires that no row of a matrix names are left out of its query."""


def setup_scalars(r1cs: R1cs, waste: ToxicWaste, run: Run, threads: int, h_basis: HBasis) -> SetupScalars:
    """Everything of a setup that is Fr arithmetic."""
    num_inputs = r1cs.num_public + 1
    is_bellman = h_basis is HBasis.MONOMIAL
    root = ROOT_BELLMAN if is_bellman else ROOT_SNARKJS
    run.progress(Stage.SETUP, 0, 1, what="column polynomials at tau")
    lagrange = lagrange_at(waste.tau, r1cs.domain_size, run, threads=threads, root=root)
    u, v, w = columns_at(r1cs, lagrange, check=run.check, threads=threads)
    del lagrange
    ic = _linear(waste, waste.gamma, u[:num_inputs], v[:num_inputs], w[:num_inputs], threads)
    l = _linear(waste, waste.delta, u[num_inputs:], v[num_inputs:], w[num_inputs:], threads)
    del w
    run.check()
    a_wires, b_wires = _present(u), _present(v)
    a, b = u[a_wires], v[b_wires]
    del u, v
    if is_bellman:
        h = monomials_at(waste.tau, r1cs.domain_size, waste.delta)
    else:
        h = odd_lagrange_at(waste.tau, r1cs.domain_size, waste.delta, run, threads=threads)
    return SetupScalars(ic, l, a, b, h, a_wires, b_wires)


def test_setup(
    r1cs: R1cs, run: Run, *, threads: int = 2, waste: ToxicWaste | None = None,
    h_basis: HBasis = HBasis.LAGRANGE_ODD, bases: FixedBases | None = None,
) -> ProvingKey:  # fmt: skip
    """Keys for `r1cs`, on the host.

    Args:
        h_basis: also fixes whose roots of unity the domain has: snarkjs' or bellman's.
        bases: where points are multiplied; the CPU when None. Closed at the end.

    Raises:
        DomainTooLarge: more rows than Fr has roots of unity for.
        WontFit: the key is larger than the host's free memory.
        Cancelled: between chunks.
    """
    try:
        admit_setup(densities_of(r1cs))
    except WontFit:
        if bases is not None:
            bases.close()
        raise
    waste = waste or ToxicWaste.draw()
    scalars = setup_scalars(r1cs, waste, run, threads, h_basis)
    work = len(scalars.h) + len(scalars.l) + len(scalars.a) + len(scalars.b) * 4 + len(scalars.ic)
    bases = bases or FixedBase(threads)
    done = 0

    def points(values: U64, base: Callable[..., U64], weight: int) -> U64:
        nonlocal done
        start = done

        def report(finished: int) -> None:
            run.check()
            run.progress(Stage.SETUP, start + finished * weight, work, "points", what="fixed-base multiplication")

        result = base(values, progress=report)
        done += len(values) * weight
        return result

    try:
        vk, beta_g1, delta_g1 = verifying_key(waste, points(scalars.ic, bases.g1, 1), bases)
        a_query = Query(points(scalars.a, bases.g1, 1), scalars.a_wires)
        b_g1_query = Query(points(scalars.b, bases.g1, 1), scalars.b_wires)
        b_g2_query = Query(points(scalars.b, bases.g2, 3), scalars.b_wires)
        l_query = Query(points(scalars.l, bases.g1, 1), None, r1cs.num_public + 1)
        h_query = points(scalars.h, bases.g1, 1)
    finally:
        bases.close()
    return ProvingKey(
        vk, beta_g1, delta_g1, r1cs.num_wires, r1cs.num_public, r1cs.num_constraints, r1cs.domain_size, a_query,
        b_g1_query, b_g2_query, l_query, h_query, h_basis, circuit_hash(r1cs),
    )  # fmt: skip


def verifying_key(waste: ToxicWaste, ic: U64, bases: FixedBases) -> tuple[VerifyingKey, U64, U64]:
    """The verifying key, with beta and delta in G1 beside it."""
    alpha_g1, beta_g1, delta_g1 = bases.g1(ints_to_fr([waste.alpha, waste.beta, waste.delta]))
    beta_g2, gamma_g2, delta_g2 = bases.g2(ints_to_fr([waste.beta, waste.gamma, waste.delta]))
    return VerifyingKey(alpha_g1, beta_g2, gamma_g2, delta_g2, ic, beta_g1, delta_g1), beta_g1, delta_g1


def _present(columns: U64) -> npt.NDArray[np.uint32]:
    return np.flatnonzero(columns.any(axis=1)).astype(np.uint32)


def _linear(waste: ToxicWaste, divisor: int, u: U64, v: U64, w: U64, threads: int) -> U64:
    """(beta u + alpha v + w) / divisor."""
    inverse = pow(divisor, -1, R)
    factors = ints_to_fr([waste.beta * inverse % R, waste.alpha * inverse % R, inverse])
    out = np.empty_like(u)

    def combine(low: int) -> None:
        part = slice(low, low + CHUNK)
        _combine(u[part], v[part], w[part], factors, out[part])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(combine, range(0, len(u), CHUNK)))
    return out


@jit
def _combine(u, v, w, factors, out):  # type: ignore[no-untyped-def]
    f, g, k = ld_fr(factors, 0), ld_fr(factors, 1), ld_fr(factors, 2)
    for i in range(len(out)):
        value = fr_add(fr_mul(ld_fr(u, i), f), fr_mul(ld_fr(v, i), g))
        st_fr(out, i, fr_add(value, fr_mul(ld_fr(w, i), k)))
