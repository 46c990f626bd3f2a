"""A stored value is canonical or refused: limbs are an integer below the modulus, points are members of their group."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import fp_to_ints, pack, unpack
from prover.backends.cpu.jit import jit
from prover.errors import InvalidPoint, ProverError
from prover.params import B_G1, P, R
from prover.verify import g1, g2

U64 = npt.NDArray[np.uint64]
FEW = 256
"""Up to this many points a library call each is quicker than loading, or worse compiling, a kernel."""
Fault = Callable[[str, int], ProverError]
"""Makes the error for (what is wrong, index of the value or point)."""


@jit
def _first_not_below(limbs, modulus):  # type: ignore[no-untyped-def]
    n, k = limbs.shape
    for i in range(n):
        below = False
        for j in range(k - 1, -1, -1):
            if limbs[i, j] != modulus[j]:
                below = limbs[i, j] < modulus[j]
                break
        if not below:
            return i
    return -1


def first_not_fr(limbs: U64) -> int:
    """Index of the first (n, 4) value that is not below r, or -1."""
    return int(_first_not_below(limbs.reshape(-1, 4), pack([R], 4)[0]))


def first_not_fp(limbs: U64) -> int:
    """Index of the first coordinate, counted over the flattened (..., 6) array, that is not below p, or -1."""
    if limbs.size <= 24 * FEW:
        return next((i for i, value in enumerate(unpack(limbs.reshape(-1, 6))) if value >= P), -1)
    return int(_first_not_below(limbs.reshape(-1, 6), pack([P], 6)[0]))


def require_coordinates(points: U64, what: str, fault: Fault) -> None:
    """Raises the fault for the first point (n, 2, 6) or (n, 2, 2, 6) with a coordinate that is not below p."""
    bad = first_not_fp(points)
    if bad >= 0:
        i = bad // (points[0].size // 6)
        raise fault(f"point {i} of {what} has a coordinate that is not below the modulus of Fp", i)


def require_points(points: U64, what: str, fault: Fault, *, allow_infinity: bool = True) -> None:
    """Raises the fault for the first point that is no member of G1 (n, 2, 6) or G2 (n, 2, 2, 6).

    Args:
        points: affine Montgomery, infinity all zeros.
        allow_infinity: False where the protocol needs a point other than infinity.
    """
    if not len(points):
        return
    require_coordinates(points, what, fault)
    if not allow_infinity:
        infinite = np.flatnonzero(~points.reshape(len(points), -1).any(axis=1))
        if len(infinite):
            i = int(infinite[0])
            raise fault(f"point {i} of {what} is the point at infinity, which no sound key or proof has there", i)
    bad = _first_outsider_of_few(points) if len(points) <= FEW else _first_outsider(points)
    if bad >= 0:
        why = "is outside the prime-order subgroup" if is_on_curve(points[bad]) else "is not on the curve"
        raise fault(f"point {bad} of {what} {why}; the file is damaged or forged", bad)


def _first_outsider_of_few(points: U64) -> int:
    """Index of the first point that is no member, or -1, by the verifier's library: nothing to compile."""
    decide = g1 if points.ndim == 3 else g2
    for i, point in enumerate(points):
        try:
            if point.any():
                decide(point, "point")
        except InvalidPoint:
            return i
    return -1


def _first_outsider(points: U64) -> int:
    from prover.backends.cpu.check import first_bad_g1, first_bad_g2

    return int(first_bad_g1(points) if points.ndim == 3 else first_bad_g2(points))


def is_on_curve(point: U64) -> bool:
    """Whether one affine Montgomery point, (2, 6) or (2, 2, 6), satisfies its curve's equation (infinity does)."""
    v = fp_to_ints(point)
    if not any(v):
        return True
    if len(v) == 2:
        return (v[1] * v[1] - v[0] ** 3 - B_G1) % P == 0
    (x0, x1), (y0, y1) = (v[0], v[1]), (v[2], v[3])
    s0, s1 = x0 * x0 - x1 * x1, 2 * x0 * x1
    return (y0 * y0 - y1 * y1 - s0 * x0 + s1 * x1 - B_G1) % P == 0 and (
        2 * y0 * y1 - s0 * x1 - s1 * x0 - B_G1
    ) % P == 0
