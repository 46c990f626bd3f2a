"""Square roots of y^2 = x^3 + b for many x at once; an x without a point is reported, never answered.

p is 3 mod 4, so a root in Fp is a power: v^((p + 1) / 4), checked by squaring. In Fp2 (the complex method), with
v = a + bu and s = sqrt(a^2 + b^2), the root is t + b / (2t) u where t^2 = (a + s) / 2 or (a - s) / 2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import fp_zero, inv_prime, ld_fp, pack, st_fp
from prover.backends.cpu.jit import jit
from prover.backends.cpu.ops import add, eq, fp2_c0, fp2_c1, fp2_join, halve, is_zero, mul, neg, one_like, sqr, sub
from prover.params import P

U64 = npt.NDArray[np.uint64]


@jit
def _power(x, exponent):  # type: ignore[no-untyped-def]
    """x^exponent in Fp, two bits a step."""
    result = one_like(x)
    x2 = sqr(x)
    x3 = mul(x2, x)
    started = False
    for i in range(5, -1, -1):
        limb = exponent[i]
        for k in range(62, -1, -2):
            digit = (limb >> np.uint64(k)) & np.uint64(3)
            if started:
                result = sqr(sqr(result))
            if digit == 1:
                result = mul(result, x)
                started = True
            elif digit == 2:
                result = mul(result, x2)
                started = True
            elif digit == 3:
                result = mul(result, x3)
                started = True
    return result


@jit
def _roots_g1(x, y, skip, b, exponent):  # type: ignore[no-untyped-def]
    four = ld_fp(b, 0)
    for i in range(len(skip)):
        if skip[i]:
            continue
        v = ld_fp(x, i)
        square = add(mul(sqr(v), v), four)
        root = _power(square, exponent)
        if not eq(sqr(root), square):
            return i
        st_fp(y, i, root)
    return -1


@jit
def _roots_g2(x, y, skip, b, exponent):  # type: ignore[no-untyped-def]
    four = ld_fp(b, 0)
    for i in range(len(skip)):
        if skip[i]:
            continue
        v = fp2_join(ld_fp(x, 2 * i), ld_fp(x, 2 * i + 1))
        square = add(mul(sqr(v), v), fp2_join(four, four))
        real, imaginary = fp2_c0(square), fp2_c1(square)
        norm = add(sqr(real), sqr(imaginary))
        s = _power(norm, exponent)
        if not eq(sqr(s), norm):
            return i
        half = halve(add(real, s))
        t = _power(half, exponent)
        if not eq(sqr(t), half):
            half = halve(sub(real, s))
            t = _power(half, exponent)
        if is_zero(t):
            # Only 0 and negative real numbers get here: sqrt(-k) = sqrt(k) u.
            root = fp2_join(fp_zero(), _power(neg(real), exponent))
        else:
            root = fp2_join(t, mul(halve(imaginary), inv_prime(t)))
        if not eq(sqr(root), square):
            return i
        st_fp(y, 2 * i, fp2_c0(root))
        st_fp(y, 2 * i + 1, fp2_c1(root))
    return -1


@jit
def negate_where(values, which):  # type: ignore[no-untyped-def]
    """Replaces row i of Montgomery (n, k, 6) by its negation where which[i]."""
    k = values.shape[1]
    for i in range(len(which)):
        if which[i]:
            for j in range(k):
                st_fp(values, k * i + j, neg(ld_fp(values, k * i + j)))


def roots_g1(x: U64, y: U64, skip: npt.NDArray[np.bool_], b: U64) -> int:
    """Fills y, (n, 6) Montgomery, with a root of x^3 + b; returns the first index that has none, or -1.

    Args:
        skip: (n,), rows to leave alone.
        b: (6,), Montgomery.
    """
    return int(_roots_g1(x, y, skip, b, pack([(P + 1) // 4], 6)[0]))


def roots_g2(x: U64, y: U64, skip: npt.NDArray[np.bool_], b: U64) -> int:
    """The same over Fp2, (n, 2, 6) with c0 first, for x^3 + b (1 + u)."""
    return int(_roots_g2(x, y, skip, b, pack([(P + 1) // 4], 6)[0]))
