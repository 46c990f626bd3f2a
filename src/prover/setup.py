"""A test setup: one process draws the toxic waste, uses it and drops it, so its keys prove nothing to anybody else.

Notation of Groth16 (eprint 2016/260, section 3.2): u_i, v_i, w_i are the column polynomials of A, B, C at tau.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prover.backends.cpu.field import fr_add, fr_mul, ints_to_fr, ld_fr, st_fr
from prover.backends.cpu.fixed_base import FixedBase
from prover.backends.cpu.jit import jit
from prover.keys import U64, HBasis, ProvingKey, Query, VerifyingKey
from prover.lagrange import lagrange_at, monomials_at, odd_lagrange_at
from prover.params import ROOT_BELLMAN, ROOT_SNARKJS, R
from prover.r1cs.columns import columns_at
from prover.r1cs.hash import circuit_hash
from prover.r1cs.matrices import R1cs
from prover.run import Run
from prover.wire import Stage


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


def test_setup(
    r1cs: R1cs, run: Run, *, threads: int = 2, waste: ToxicWaste | None = None, h_basis: HBasis = HBasis.LAGRANGE_ODD
) -> ProvingKey:
    """Keys for `r1cs`, wires that no row of a matrix names left out of its query.

    Args:
        h_basis: also fixes whose roots of unity the domain has: snarkjs' or bellman's.

    Raises:
        DomainTooLarge: more rows than Fr has roots of unity for.
        Cancelled: between chunks.
    """
    waste = waste or ToxicWaste.draw()
    num_public, domain_size = r1cs.num_public, r1cs.domain_size
    is_bellman = h_basis is HBasis.MONOMIAL
    root = ROOT_BELLMAN if is_bellman else ROOT_SNARKJS
    lagrange = lagrange_at(waste.tau, domain_size, run, threads=threads, root=root)
    u, v, w = columns_at(r1cs, lagrange, threads=threads)
    del lagrange
    run.check()
    over_gamma = _linear(waste, 1, u[: num_public + 1], v[: num_public + 1], w[: num_public + 1])
    over_delta = _linear(waste, waste.delta, u[num_public + 1 :], v[num_public + 1 :], w[num_public + 1 :])
    del w
    if is_bellman:
        h = monomials_at(waste.tau, domain_size, waste.delta)
    else:
        h = odd_lagrange_at(waste.tau, domain_size, waste.delta, run, threads=threads)

    a_wires, b_wires = _present(u), _present(v)
    work = len(h) + len(over_delta) + len(a_wires) + len(b_wires) * 4 + num_public + 1
    bases = FixedBase(threads)
    done = 0

    def points(scalars: U64, base: Callable[..., U64], weight: int) -> U64:
        nonlocal done
        start = done

        def report(finished: int) -> None:
            run.check()
            run.progress(Stage.SETUP, start + finished * weight, work, "points", what="fixed-base multiplication")

        result = base(scalars, progress=report)
        done += len(scalars) * weight
        return result

    singles = ints_to_fr([waste.alpha, waste.beta, waste.delta])
    alpha_g1, beta_g1, delta_g1 = bases.g1(singles)
    beta_g2, gamma_g2, delta_g2 = bases.g2(ints_to_fr([waste.beta, waste.gamma, waste.delta]))
    ic = points(over_gamma, bases.g1, 1)
    return ProvingKey(
        vk=VerifyingKey(alpha_g1, beta_g2, gamma_g2, delta_g2, ic, beta_g1, delta_g1),
        beta_g1=beta_g1,
        delta_g1=delta_g1,
        num_wires=r1cs.num_wires,
        num_public=num_public,
        num_constraints=r1cs.num_constraints,
        domain_size=domain_size,
        a_query=Query(points(u[a_wires], bases.g1, 1), a_wires),
        b_g1_query=Query(points(v[b_wires], bases.g1, 1), b_wires),
        b_g2_query=Query(points(v[b_wires], bases.g2, 3), b_wires),
        l_query=Query(points(over_delta, bases.g1, 1), None, num_public + 1),
        h_query=points(h, bases.g1, 1),
        h_basis=h_basis,
        circuit_hash=circuit_hash(r1cs),
    )


def _present(columns: U64) -> np.ndarray:
    return np.flatnonzero(columns.any(axis=1)).astype(np.uint32)


def _linear(waste: ToxicWaste, divisor: int, u: U64, v: U64, w: U64) -> U64:
    """(beta u + alpha v + w) / divisor."""
    inverse = pow(divisor, -1, R)
    factors = ints_to_fr([waste.beta * inverse % R, waste.alpha * inverse % R, inverse])
    out = np.empty_like(u)
    _combine(np.ascontiguousarray(u), np.ascontiguousarray(v), np.ascontiguousarray(w), factors, out)
    return out


@jit
def _combine(u, v, w, factors, out):  # type: ignore[no-untyped-def]
    f, g, k = ld_fr(factors, 0), ld_fr(factors, 1), ld_fr(factors, 2)
    for i in range(len(out)):
        value = fr_add(fr_mul(ld_fr(u, i), f), fr_mul(ld_fr(v, i), g))
        st_fr(out, i, fr_add(value, fr_mul(ld_fr(w, i), k)))
