"""Group laws of G1 and G2 for kernels; one source for both, the array's dimension picks the field.

Affine points are rows ``(x, y)`` of a 3-D (G1) or 4-D (G2) array, infinity all zeros. Sums that cannot share an
inversion are kept in XYZZ form (x = X/ZZ, y = Y/ZZZ, ZZ^3 = ZZZ^2), four coordinates a row, infinity ZZ = 0.
Formulas: Explicit-Formulas Database, short Weierstrass, xyzz, dbl-2008-s-1, madd-2008-s, add-2008-s. All branches are
complete: equal and opposite points and infinity give the right sum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import inv
from prover.backends.cpu.jit import jit
from prover.backends.cpu.ops import add, eq, is_zero, ld, mul, mul_inline, neg, one_like, sqr, st, sub, zero_like

U64 = npt.NDArray[np.uint64]
_KEEP_LEFT, _TAKE_RIGHT, _DOUBLE, _CANCEL = 1, 2, 3, 4
"""Additions that are not the plain one."""


class Pairs(NamedTuple):
    """Additions to do together, and their working memory."""

    left: npt.NDArray[np.int64]
    """(m,), rows added to."""
    right: npt.NDArray[np.int64]
    """(m,), rows added."""
    prefix: U64
    """(m, 1, 6) or (m, 1, 2, 6): running products."""
    slope: U64
    """The same shape: denominators."""
    kind: npt.NDArray[np.int8]
    """(m,)"""

    @staticmethod
    def room(count: int, shape: tuple[int, ...]) -> Pairs:
        """Uninitialised, for `count` additions of points of this shape, (2, 6) or (2, 2, 6)."""
        coordinates = (count, 1, *shape[1:])
        return Pairs(
            np.empty(count, np.int64), np.empty(count, np.int64), np.empty(coordinates, np.uint64),
            np.empty(coordinates, np.uint64), np.empty(count, np.int8),
        )  # fmt: skip


@jit
def is_infinity(points, i):
    """Whether affine point i is the point at infinity."""
    return is_zero(ld(points, 2 * i)) and is_zero(ld(points, 2 * i + 1))


@jit
def copy_point(source, i, target, k):
    """target[k] = source[i]."""
    x, y = ld(source, 2 * i), ld(source, 2 * i + 1)
    st(target, 2 * k, x)
    st(target, 2 * k + 1, y)


@jit
def xyzz_clear(acc, k):
    """acc[k] = infinity."""
    zero = zero_like(ld(acc, 4 * k))
    for i in range(4):
        st(acc, 4 * k + i, zero)


@jit
def xyzz_set(acc, k, points, i):
    """acc[k] = points[i], affine."""
    if is_infinity(points, i):
        xyzz_clear(acc, k)
        return
    x = ld(points, 2 * i)
    one = one_like(x)
    st(acc, 4 * k, x)
    st(acc, 4 * k + 1, ld(points, 2 * i + 1))
    st(acc, 4 * k + 2, one)
    st(acc, 4 * k + 3, one)


@jit
def xyzz_double(acc, k):
    """acc[k] = 2 acc[k]."""
    x, y = ld(acc, 4 * k), ld(acc, 4 * k + 1)
    u = add(y, y)
    v = sqr(u)
    w = mul(u, v)
    s = mul(x, v)
    xx = sqr(x)
    m = add(add(xx, xx), xx)
    x3 = sub(sub(sqr(m), s), s)
    st(acc, 4 * k, x3)
    st(acc, 4 * k + 1, sub(mul(m, sub(s, x3)), mul(w, y)))
    st(acc, 4 * k + 2, mul(v, ld(acc, 4 * k + 2)))
    st(acc, 4 * k + 3, mul(w, ld(acc, 4 * k + 3)))


@jit
def xyzz_add_affine(acc, k, points, i):
    """acc[k] += points[i]."""
    if is_infinity(points, i):
        return
    zz = ld(acc, 4 * k + 2)
    if is_zero(zz):
        xyzz_set(acc, k, points, i)
        return
    x1, y1, zzz = ld(acc, 4 * k), ld(acc, 4 * k + 1), ld(acc, 4 * k + 3)
    p = sub(mul(ld(points, 2 * i), zz), x1)
    r = sub(mul(ld(points, 2 * i + 1), zzz), y1)
    if is_zero(p):
        if is_zero(r):
            xyzz_double(acc, k)
        else:
            xyzz_clear(acc, k)
        return
    pp = sqr(p)
    ppp = mul(p, pp)
    q = mul(x1, pp)
    x3 = sub(sub(sub(sqr(r), ppp), q), q)
    st(acc, 4 * k, x3)
    st(acc, 4 * k + 1, sub(mul(r, sub(q, x3)), mul(y1, ppp)))
    st(acc, 4 * k + 2, mul(zz, pp))
    st(acc, 4 * k + 3, mul(zzz, ppp))


@jit
def xyzz_add(acc, k, i):
    """acc[k] += acc[i], k != i."""
    zz2 = ld(acc, 4 * i + 2)
    if is_zero(zz2):
        return
    zz1 = ld(acc, 4 * k + 2)
    if is_zero(zz1):
        for j in range(4):
            st(acc, 4 * k + j, ld(acc, 4 * i + j))
        return
    zzz1, zzz2 = ld(acc, 4 * k + 3), ld(acc, 4 * i + 3)
    u1, s1 = mul(ld(acc, 4 * k), zz2), mul(ld(acc, 4 * k + 1), zzz2)
    p = sub(mul(ld(acc, 4 * i), zz1), u1)
    r = sub(mul(ld(acc, 4 * i + 1), zzz1), s1)
    if is_zero(p):
        if is_zero(r):
            xyzz_double(acc, k)
        else:
            xyzz_clear(acc, k)
        return
    pp = sqr(p)
    ppp = mul(p, pp)
    q = mul(u1, pp)
    x3 = sub(sub(sub(sqr(r), ppp), q), q)
    st(acc, 4 * k, x3)
    st(acc, 4 * k + 1, sub(mul(r, sub(q, x3)), mul(s1, ppp)))
    st(acc, 4 * k + 2, mul(mul(zz1, zz2), pp))
    st(acc, 4 * k + 3, mul(mul(zzz1, zzz2), ppp))


@jit
def xyzz_to_affine(acc, k, points, i):
    """points[i] = acc[k]."""
    zz, zzz = ld(acc, 4 * k + 2), ld(acc, 4 * k + 3)
    inverse = inv(zzz)
    z = mul(zz, inverse)
    st(points, 2 * i, mul(ld(acc, 4 * k), sqr(z)))
    st(points, 2 * i + 1, mul(ld(acc, 4 * k + 1), inverse))


@jit
def add_pairs(points, pairs, count):
    """points[left[j]] += points[right[j]] for j < count, one inversion for all (Montgomery's trick).

    A left index occurs once. A right index may be a left one of a smaller j; it is read before that one is written,
    since the second pass runs backwards. About six products an addition.

    Args:
        pairs: `Pairs` with room for `count`.
    """
    left, right, prefix, slope, kind = pairs.left, pairs.right, pairs.prefix, pairs.slope, pairs.kind
    running = one_like(ld(points, 0))
    for j in range(count):
        a, b = left[j], right[j]
        x1, x2 = ld(points, 2 * a), ld(points, 2 * b)
        d = sub(x2, x1)
        kind[j] = 0
        if is_zero(d) or is_zero(x1) or is_zero(x2):
            kind[j], d = _special(points, a, b, d)
        st(slope, j, d)
        st(prefix, j, running)
        running = mul_inline(running, d)
    running = inv(running)
    for j in range(count - 1, -1, -1):
        a, b = left[j], right[j]
        inverse = mul_inline(running, ld(prefix, j))
        running = mul_inline(running, ld(slope, j))
        k = kind[j]
        if k == _KEEP_LEFT:
            continue
        x1, y1 = ld(points, 2 * a), ld(points, 2 * a + 1)
        x2, y2 = ld(points, 2 * b), ld(points, 2 * b + 1)
        if k == _TAKE_RIGHT:
            st(points, 2 * a, x2)
            st(points, 2 * a + 1, y2)
            continue
        if k == _CANCEL:
            st(points, 2 * a, zero_like(x1))
            st(points, 2 * a + 1, zero_like(x1))
            continue
        rise = sub(y2, y1)
        if k == _DOUBLE:
            xx = sqr(x1)
            rise = add(add(xx, xx), xx)
        gradient = mul_inline(rise, inverse)
        x3 = sub(sub(mul_inline(gradient, gradient), x1), x2)
        st(points, 2 * a, x3)
        st(points, 2 * a + 1, sub(mul_inline(gradient, sub(x1, x3)), y1))


@jit
def double_first(points, pairs, count):
    """points[k] = 2 points[k] for k < count, one inversion for all; seven products each."""
    prefix, slope = pairs.prefix, pairs.slope
    one = one_like(ld(points, 0))
    running = one
    for k in range(count):
        y = ld(points, 2 * k + 1)
        d = add(y, y)
        if is_zero(d):
            d = one
        st(slope, k, d)
        st(prefix, k, running)
        running = mul(running, d)
    running = inv(running)
    for k in range(count - 1, -1, -1):
        inverse = mul(running, ld(prefix, k))
        running = mul(running, ld(slope, k))
        x, y = ld(points, 2 * k), ld(points, 2 * k + 1)
        if is_zero(y):
            st(points, 2 * k, y)
            continue
        xx = sqr(x)
        gradient = mul(add(add(xx, xx), xx), inverse)
        x3 = sub(sub(sqr(gradient), x), x)
        st(points, 2 * k, x3)
        st(points, 2 * k + 1, sub(mul(gradient, sub(x, x3)), y))


@jit
def _special(points, a, b, d):
    """Kind of an addition that is not the plain one, and the factor it contributes to the shared inversion."""
    one = one_like(d)
    if is_infinity(points, b):
        return _KEEP_LEFT, one
    if is_infinity(points, a):
        return _TAKE_RIGHT, one
    if not is_zero(d):
        return 0, d
    y1, y2 = ld(points, 2 * a + 1), ld(points, 2 * b + 1)
    if eq(y1, neg(y2)):
        return _CANCEL, one
    return _DOUBLE, add(y1, y1)
