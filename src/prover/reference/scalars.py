"""Fr on Python integers: conversions, the transform by its definition and by halving, the quotient's scalars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from prover.keys import HBasis
from prover.params import COSET_BELLMAN, FR_MONT, ROOT_BELLMAN, ROOT_SNARKJS, R, root_of_unity

U64 = npt.NDArray[np.uint64]
_FROM_MONT = pow(FR_MONT, -1, R)


def from_array(array: U64) -> list[int]:
    """Integers of an (n, 4) Montgomery array."""
    data = np.ascontiguousarray(array).tobytes()
    return [int.from_bytes(data[i : i + 32], "little") * _FROM_MONT % R for i in range(0, len(data), 32)]


def to_array(values: Sequence[int]) -> U64:
    """The (n, 4) Montgomery array."""
    data = b"".join((v * FR_MONT % R).to_bytes(32, "little") for v in values)
    return np.frombuffer(data, np.uint64).reshape(-1, 4).copy()


def evaluate(coefficients: Sequence[int], x: int) -> int:
    """The polynomial at x."""
    total = 0
    for c in reversed(coefficients):
        total = (total * x + c) % R
    return total


def dft(coefficients: Sequence[int], root: int, shift: int = 1) -> list[int]:
    """Evaluations at shift * w^i by definition, w of order len(coefficients)."""
    omega = root_of_unity(len(coefficients).bit_length() - 1, root)
    return [evaluate(coefficients, shift * pow(omega, i, R) % R) for i in range(len(coefficients))]


def ntt(coefficients: Sequence[int], omega: int) -> list[int]:
    """Evaluations at omega^i by halving; omega has order len(coefficients)."""
    if len(coefficients) == 1:
        return list(coefficients)
    even = ntt(coefficients[0::2], omega * omega % R)
    odd = ntt(coefficients[1::2], omega * omega % R)
    upper, lower, factor = [], [], 1
    for x, y in zip(even, odd, strict=True):
        upper.append((x + factor * y) % R)
        lower.append((x - factor * y) % R)
        factor = factor * omega % R
    return upper + lower


def intt(evaluations: Sequence[int], omega: int) -> list[int]:
    """Coefficients from evaluations at omega^i."""
    scale = pow(len(evaluations), -1, R)
    return [v * scale % R for v in ntt(evaluations, pow(omega, -1, R))]


def h_scalars(a: Sequence[int], b: Sequence[int], c: Sequence[int], basis: HBasis) -> list[int]:
    """What the H query is multiplied with, from row values on the domain.

    Lagrange basis: a b - c on the odd points of the doubled domain. Monomial basis: coefficients of (a b - c)/Z, found
    on bellman's coset, where Z is the constant 7^n - 1.
    """
    n = len(a)
    log_size = n.bit_length() - 1
    root = ROOT_SNARKJS if basis is HBasis.LAGRANGE_ODD else ROOT_BELLMAN
    omega = root_of_unity(log_size, root)
    shift = root_of_unity(log_size + 1, root) if basis is HBasis.LAGRANGE_ODD else COSET_BELLMAN
    on_coset = []
    for column in (a, b, c):
        coefficients = intt(column, omega)
        on_coset.append(ntt([v * pow(shift, i, R) % R for i, v in enumerate(coefficients)], omega))
    difference = [(x * y - z) % R for x, y, z in zip(*on_coset, strict=True)]
    if basis is HBasis.LAGRANGE_ODD:
        return difference
    scale = pow(pow(shift, n, R) - 1, -1, R)
    coefficients = intt([v * scale % R for v in difference], omega)
    return [v * pow(shift, -i, R) % R for i, v in enumerate(coefficients)]
