"""Operations on single points, for the epilogue and for tests: affine Montgomery arrays in and out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.curve import (
    xyzz_add_affine,
    xyzz_clear,
    xyzz_double,
    xyzz_set,
    xyzz_to_affine,
)
from prover.backends.cpu.field import ints_to_fp, pack
from prover.backends.cpu.jit import jit
from prover.backends.cpu.ops import ld, neg, st
from prover.params import G1_GENERATOR, G2_GENERATOR, R

U64 = npt.NDArray[np.uint64]
G1_SHAPE, G2_SHAPE = (2, 6), (2, 2, 6)


def g1_generator() -> U64:
    """(2, 6)."""
    return ints_to_fp(G1_GENERATOR).reshape(G1_SHAPE)


def g2_generator() -> U64:
    """(2, 2, 6)."""
    return ints_to_fp([c for coordinate in G2_GENERATOR for c in coordinate]).reshape(G2_SHAPE)


def add(p: U64, q: U64) -> U64:
    """p + q of either group; equal and opposite points and infinity included."""
    out = np.zeros((1, *p.shape), np.uint64)
    _add(_row(p), _row(q), _scratch(p), out)
    return out[0]


def negate(p: U64) -> U64:
    """-p of either group."""
    out = np.zeros((1, *p.shape), np.uint64)
    _negate(_row(p), out)
    return out[0]


def multiply(p: U64, scalar: int) -> U64:
    """scalar * p of either group; the scalar is taken modulo r."""
    out = np.zeros((1, *p.shape), np.uint64)
    _multiply(_row(p), pack([scalar % R], 4).reshape(4), _scratch(p), out)
    return out[0]


def sum_shifted(parts: U64, shift: int) -> U64:
    """Sum of 2^(shift * i) * parts[i] of an array of affine points."""
    out = np.zeros((1, *parts.shape[1:]), np.uint64)
    _sum_shifted(np.ascontiguousarray(parts), shift, _scratch(parts[0]), out)
    return out[0]


add_g1 = add_g2 = add
neg_g1 = neg_g2 = negate
mul_g1 = mul_g2 = multiply


def _row(p: U64) -> U64:
    return np.ascontiguousarray(p).reshape(1, *p.shape)


def _scratch(p: U64) -> U64:
    """One point in XYZZ form."""
    return np.zeros((1, 4, *p.shape[1:]), np.uint64)


@jit
def _add(p, q, acc, out):
    xyzz_set(acc, 0, p, 0)
    xyzz_add_affine(acc, 0, q, 0)
    xyzz_to_affine(acc, 0, out, 0)


@jit
def _negate(p, out):
    st(out, 0, ld(p, 0))
    st(out, 1, neg(ld(p, 1)))


@jit
def _multiply(p, scalar, acc, out):
    xyzz_clear(acc, 0)
    for i in range(255, -1, -1):
        xyzz_double(acc, 0)
        if (scalar[i >> 6] >> np.uint64(i & 63)) & np.uint64(1):
            xyzz_add_affine(acc, 0, p, 0)
    xyzz_to_affine(acc, 0, out, 0)


@jit
def _sum_shifted(parts, shift, acc, out):
    xyzz_clear(acc, 0)
    for i in range(parts.shape[0] - 1, -1, -1):
        for _ in range(shift):
            xyzz_double(acc, 0)
        xyzz_add_affine(acc, 0, parts, i)
    xyzz_to_affine(acc, 0, out, 0)

