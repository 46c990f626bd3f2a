"""Arithmetic of Fr, Fp and Fp2: every value in Montgomery form and below its modulus.

Inside kernels (`jit`), a value is opaque; `ld_fr(array, i)` and `st_fr(array, i, value)` move element i between it and
a C-contiguous uint64 array of any shape: i counts elements, so rows of ``(n, 4)`` and a flat view read alike. Bounds
are not checked. The names with a prefix are the generic operations of `ops`.

At Python level, arrays are ``(n, 4)`` (Fr) or ``(n, 6)`` (Fp) uint64.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba.extending import overload

from prover.backends.cpu.jit import jit
from prover.backends.cpu.limbs import FP, FP2, FR, make_constant, make_load
from prover.backends.cpu.ops import (
    add,
    eq,
    fp2_c0,
    fp2_c1,
    fp2_join,
    halve,
    halve_raw,
    is_odd_raw,
    is_zero,
    less_raw,
    modulus_like,
    mul,
    neg,
    one_like,  # noqa: F401 (kernels elsewhere take it from here)
    raw_from_u64,
    sqr,
    square_of_r_like,
    st,
    sub,
    sub_raw,
    zero_like,
)
from prover.params import FP_MONT, FR_MONT, P, R

U64 = npt.NDArray[np.uint64]

ld_fr, ld_fp, ld_fp2 = make_load(FR), make_load(FP), make_load(FP2)
st_fr = st_fp = st_fp2 = st
fr_zero, fr_one = make_constant(FR, 0), make_constant(FR, FR.mont)
fp_zero, fp_one = make_constant(FP, 0), make_constant(FP, FP.mont)
fp2_zero, fp2_one = make_constant(FP2, 0), make_constant(FP2, FP2.mont)
fr_mul = fp_mul = fp2_mul = mul
fr_sqr = fp_sqr = fp2_sqr = sqr
fr_add = fp_add = fp2_add = add
fr_sub = fp_sub = fp2_sub = sub
fr_neg = fp_neg = fp2_neg = neg
fr_eq = fp_eq = fp2_eq = eq
fr_is_zero = fp_is_zero = fp2_is_zero = is_zero


@jit
def fr_from_u64(x):
    """Fr of a non-negative machine integer (uint64)."""
    return mul(raw_from_u64(fr_zero(), np.uint64(x)), square_of_r_like(fr_zero()))


@jit
def inv_prime(x):
    """1/x in Fr or Fp by binary Euclid on the stored integers; 0 for 0.

    Starting the first cofactor at R^2 instead of 1 gives the inverse in Montgomery form: R^2 / (xR) = R/x.
    """
    if is_zero(x):
        return x
    u, v = x, modulus_like(x)
    f, g = square_of_r_like(x), zero_like(x)
    while not is_zero(u):
        if not is_odd_raw(u):
            u = halve_raw(u)
            f = halve(f)
        elif not less_raw(u, v):
            u = halve_raw(sub_raw(u, v))
            f = halve(sub(f, g))
        else:
            t = halve_raw(sub_raw(v, u))
            w = halve(sub(g, f))
            v = u
            g = f
            u = t
            f = w
    return g


fr_inv = fp_inv = inv_prime


@jit
def fp2_inv(x):
    """1/x = conjugate / norm; 0 for 0."""
    a, b = fp2_c0(x), fp2_c1(x)
    scale = inv_prime(add(sqr(a), sqr(b)))
    return fp2_join(mul(a, scale), neg(mul(b, scale)))


def inv(x: Any) -> Any:
    """1/x in any of the three fields, 0 for 0; exists inside kernels only."""
    raise TypeError("inv works on kernel values only")


@overload(inv)
def _inv(x):
    if x == FP2:
        return lambda x: fp2_inv(x)  # noqa: PLW0108 (numba wants a function of the same signature)
    return (lambda x: inv_prime(x)) if x in (FR, FP) else None  # noqa: PLW0108


@jit
def _scale_fr(array, out, factor):
    k = ld_fr(factor, 0)
    for i in range(array.shape[0]):
        st_fr(out, i, mul(ld_fr(array, i), k))


@jit
def _scale_fp(array, out, factor):
    k = ld_fp(factor, 0)
    for i in range(array.size // 6):
        st_fp(out, i, mul(ld_fp(array, i), k))


@jit
def _powers(base, first, out):
    b, value = ld_fr(base, 0), ld_fr(first, 0)
    for i in range(out.shape[0]):
        st_fr(out, i, value)
        value = mul(value, b)


@jit
def _batch_inverse(values, prefix):
    running = fr_one()
    n = values.shape[0]
    for i in range(n):
        st_fr(prefix, i, running)
        x = ld_fr(values, i)
        if not is_zero(x):
            running = mul(running, x)
    running = inv_prime(running)
    for i in range(n - 1, -1, -1):
        x = ld_fr(values, i)
        if not is_zero(x):
            st_fr(values, i, mul(running, ld_fr(prefix, i)))
            running = mul(running, x)


def pack(values: Iterable[int], limbs: int) -> U64:
    """Little-endian limbs of non-negative integers as they are, (n, limbs)."""
    data = b"".join(int(v).to_bytes(8 * limbs, "little") for v in values)
    return np.frombuffer(data, dtype="<u8").reshape(-1, limbs).copy()


def unpack(array: U64) -> list[int]:
    """The integers that rows of little-endian limbs stand for, as they are."""
    data, width = np.ascontiguousarray(array).tobytes(), 8 * array.shape[-1]
    return [int.from_bytes(data[i : i + width], "little") for i in range(0, len(data), width)]


def fr_to_mont(array: U64) -> U64:
    """Canonical (n, 4) to Montgomery form, a new array."""
    out = np.empty_like(array, order="C")
    _scale_fr(np.ascontiguousarray(array), out, pack([FR_MONT * FR_MONT % R], 4))
    return out


def fr_from_mont(array: U64) -> U64:
    """Montgomery (n, 4) to canonical form, a new array."""
    out = np.empty_like(array, order="C")
    _scale_fr(np.ascontiguousarray(array), out, pack([1], 4))
    return out


def fp_to_mont(array: U64) -> U64:
    """Canonical (..., 6) to Montgomery form, a new array; points and single coordinates alike."""
    out = np.empty_like(array, order="C")
    _scale_fp(np.ascontiguousarray(array).reshape(-1, 6), out.reshape(-1, 6), pack([FP_MONT * FP_MONT % P], 6))
    return out


def fp_from_mont(array: U64) -> U64:
    """Montgomery (..., 6) to canonical form, a new array."""
    out = np.empty_like(array, order="C")
    _scale_fp(np.ascontiguousarray(array).reshape(-1, 6), out.reshape(-1, 6), pack([1], 6))
    return out


def ints_to_fr(values: Iterable[int]) -> U64:
    """Montgomery (n, 4) of integers, reduced modulo r."""
    return pack([v * FR_MONT % R for v in values], 4)


def fr_to_ints(array: U64) -> list[int]:
    """Integers below r of a Montgomery (n, 4) array."""
    back = pow(FR_MONT, -1, R)
    return [v * back % R for v in unpack(array)]


def ints_to_fp(values: Iterable[int]) -> U64:
    """Montgomery (n, 6) of integers, reduced modulo p."""
    return pack([v * FP_MONT % P for v in values], 6)


def fp_to_ints(array: U64) -> list[int]:
    """Integers below p of a Montgomery (..., 6) array, flattened."""
    back = pow(FP_MONT, -1, P)
    return [v * back % P for v in unpack(array)]


def powers(base: int, count: int, first: int = 1) -> U64:
    """first * base^i for i below count, Montgomery (count, 4)."""
    out = np.empty((count, 4), np.uint64)
    power_sequence(base, first, out)
    return out


def power_sequence(base: int, first: int, out: U64) -> None:
    """out[i] = first * base^i, Montgomery."""
    _powers(ints_to_fr([base]), ints_to_fr([first]), out)


def fr_scale(array: U64, factor: int) -> U64:
    """Every element times one integer; Montgomery in and out, a new array."""
    out = np.empty_like(array, order="C")
    _scale_fr(np.ascontiguousarray(array), out, ints_to_fr([factor]))
    return out


def fr_batch_inverse(values: U64) -> None:
    """Inverts every element of a C-contiguous Montgomery (n, 4) array in place; zeros stay."""
    _batch_inverse(values, np.empty_like(values))
