"""Lagrange polynomials at a point outside their domain, for setups: L_i(tau) = Z(tau)/size * x_i/(tau - x_i)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from prover.backends.cpu.field import fr_inv, fr_mul, fr_one, fr_sub, ints_to_fr, ld_fr, powers, st_fr
from prover.backends.cpu.jit import jit
from prover.keys import U64
from prover.params import ROOT_SNARKJS, R, root_of_unity
from prover.run import Run

CHUNK = 1 << 14


def lagrange_at(tau: int, domain_size: int, run: Run, *, threads: int = 2, root: int = ROOT_SNARKJS) -> U64:
    """L_i(tau) of the domain {omega^i}, natural order, (domain_size, 4) Montgomery.

    Args:
        tau: not a domain_size-th root of unity.
    """
    omega = root_of_unity(domain_size.bit_length() - 1, root)
    scale = (pow(tau, domain_size, R) - 1) * pow(domain_size, -1, R) % R
    return _at_points(1, omega, domain_size, tau, scale, run, threads)


def odd_lagrange_at(tau: int, domain_size: int, delta: int, run: Run, *, threads: int = 2) -> U64:
    """L_{2i+1}(tau)/delta of the domain of twice the size: the H query of snarkjs, (domain_size, 4) Montgomery.

    Source: snarkjs groth16 proves with (a b - c) on the odd points, where it does not vanish.
    """
    step = root_of_unity(domain_size.bit_length())
    scale = (pow(tau, 2 * domain_size, R) - 1) * pow(2 * domain_size * delta, -1, R) % R
    return _at_points(step, step * step % R, domain_size, tau, scale, run, threads)


def monomials_at(tau: int, domain_size: int, delta: int) -> U64:
    """tau^i Z(tau)/delta for i below domain_size - 1: the H query of bellman, Montgomery."""
    scale = (pow(tau, domain_size, R) - 1) * pow(delta, -1, R) % R
    return powers(tau, domain_size - 1, scale)


def _at_points(first: int, step: int, count: int, tau: int, scale: int, run: Run, threads: int) -> U64:
    out = np.empty((count, 4), np.uint64)

    def fill(start: int) -> None:
        run.check()
        stop = min(start + CHUNK, count)
        x0 = first * pow(step, start, R) % R
        constants = ints_to_fr([x0, step, tau, scale])
        _lagrange_chunk(out[start:stop], np.empty((stop - start, 4), np.uint64), constants)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, range(0, count, CHUNK)))
    return out


@jit
def _lagrange_chunk(out, prefix, constants):  # type: ignore[no-untyped-def]
    """out[i] = scale x_i/(tau - x_i); one inversion for the chunk. `constants`: x_0, step, tau, scale."""
    x = ld_fr(constants, 0)
    step = ld_fr(constants, 1)
    tau = ld_fr(constants, 2)
    scale = ld_fr(constants, 3)
    product = fr_one()
    for i in range(len(out)):
        st_fr(prefix, i, product)
        st_fr(out, i, x)
        product = fr_mul(product, fr_sub(tau, x))
        x = fr_mul(x, step)
    inverse = fr_inv(product)
    for i in range(len(out) - 1, -1, -1):
        x = ld_fr(out, i)
        difference_inverse = fr_mul(inverse, ld_fr(prefix, i))
        inverse = fr_mul(inverse, fr_sub(tau, x))
        st_fr(out, i, fr_mul(fr_mul(x, scale), difference_inverse))
