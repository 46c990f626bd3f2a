"""e(alpha, beta) as snarkjs prints it: Fp12 over Fp6 = Fp2[v]/(v^3 - (1 + u)) over w^2 = v, reduced pairing.

Verifiers recompute it; it is in `verification_key.json` because other readers of that file look for it.
Source of the tower: ffjavascript, src/bls12381.js. py_ecc holds Fp12 as Fp[w]/(w^12 - 2 w^6 + 2), where u = w^6 - 1.
The two libraries' pairings are powers of each other: snarkjs's is py_ecc's to the -3 (its final exponentiation carries
the factor 3 of the fast hard part, and it follows the sign of the curve's parameter). Checked on files of snarkjs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import fp_to_ints
from prover.params import P

Fp12 = list[list[list[int]]]


def pairing_coordinates(g1: npt.NDArray[np.uint64], g2: npt.NDArray[np.uint64]) -> Fp12:
    """e(g1, g2) of Montgomery points (2, 6) and (2, 2, 6) as [Fp6][Fp2][c0, c1] integers."""
    from py_ecc.optimized_bls12_381 import FQ, FQ2, pairing

    x, y = fp_to_ints(g1)
    x0, x1, y0, y1 = fp_to_ints(g2)
    value = pairing((FQ2([x0, x1]), FQ2([y0, y1]), FQ2([1, 0])), (FQ(x), FQ(y), FQ(1)))
    coefficients = [int(c) for c in (value.inv() ** 3).coeffs]
    return [[_fp2(coefficients, k + 2 * j) for j in range(3)] for k in range(2)]


def _fp2(coefficients: list[int], power: int) -> list[int]:
    """The Fp2 factor of w^power: c_power w^power + c_(power+6) w^(power+6) with w^6 = 1 + u."""
    low, high = coefficients[power], coefficients[power + 6]
    return [(low + high) % P, high]
