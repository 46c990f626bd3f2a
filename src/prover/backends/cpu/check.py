"""A point passes only if its coordinates are below p, it is on its curve, and it is in the subgroup of order r.

Membership of one point is decided by an endomorphism: phi(P) = -z^2 P in G1 implies (z^4 - z^2 + 1) P = r P = 0;
psi(P) = z P in G2 implies (p - z) P = h1 r P = 0, and h1 is coprime to G2's cofactor (eprint 2021/1130, 2022/352).
Many points are first thrown into random buckets, whose sums are then decided: a set with a bad point escapes one
throw into m buckets with probability at most 1/m, because at most one choice of bucket for it cancels every error.
"""

from __future__ import annotations

import functools
import secrets
from functools import partial

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.curve import add_pairs, copy_point, double_first
from prover.backends.cpu.field import ints_to_fp
from prover.backends.cpu.jit import jit
from prover.backends.cpu.msm import GROUP, Scratch, ScratchPool, fill_buckets, sort_digits
from prover.backends.cpu.ops import (
    add,
    conjugate,
    eq,
    is_reduced,
    is_zero,
    ld,
    mul,
    neg,
    sqr,
    st,
)
from prover.backends.cpu.points import g1_generator, multiply
from prover.backends.cpu.workers import Workers, ranges
from prover.params import B_G1, P, X

U64 = npt.NDArray[np.uint64]
BLOCK = GROUP // 2
ERROR_BITS = 128
"""A bad set passes the bucket test with probability below 2^-128."""
BUCKET_TEST_FROM = 1 << 12
"""Fewer points are decided one by one, which is exact and then no slower."""


def first_bad_g1(points: U64, *, threads: int | None = None) -> int:
    """Index of the first point that is not a member of G1, -1 if all are; infinity is one.

    Args:
        points: (n, 2, 6) Montgomery; coordinates may be anything.
    """
    return _first_bad(points, threads)


def first_bad_g2(points: U64, *, threads: int | None = None) -> int:
    """The same for G2.

    Args:
        points: (n, 2, 2, 6).
    """
    return _first_bad(points, threads)


def _first_bad(points: U64, threads: int | None) -> int:
    workers = Workers(threads)
    try:
        points = np.ascontiguousarray(points)
        off = _first_off_curve(points, workers)
        sound = len(points) if off < 0 else off
        if sound >= BUCKET_TEST_FROM and _buckets_pass(points[:sound], workers):
            return off
        outside = _first_outside(points[:sound], workers)
        return off if outside < 0 else outside
    finally:
        workers.close()


def _first_off_curve(points: U64, workers: Workers) -> int:
    pieces = ranges(len(points), 8 * workers.threads)
    found = np.full(len(pieces), -1, np.int64)
    constant = _curve_constant(points.ndim)

    def task(i: int, low: int, high: int) -> None:
        found[i] = _off_curve(points, low, high, constant)

    workers.run([partial(task, i, low, high) for i, (low, high) in enumerate(pieces)])
    return _lowest(found)


def _first_outside(points: U64, workers: Workers) -> int:
    """First point outside the subgroup, all on the curve, each decided exactly."""
    pieces = ranges(len(points), -(-len(points) // BLOCK))
    found = np.full(len(pieces), -1, np.int64)
    pool = ScratchPool(points.shape[1:])
    constants = _endomorphism(points.ndim)

    def task(i: int, low: int, high: int) -> None:
        with pool.borrow() as s:
            found[i] = _outside(points, low, high, constants, np.uint64(-X), s.group, s.pairs)

    workers.run([partial(task, i, low, high) for i, (low, high) in enumerate(pieces)])
    return _lowest(found)


def _buckets_pass(points: U64, workers: Workers) -> bool:
    """Whether the sums of random buckets are all in the subgroup, round after round; True is wrong below 2^-128."""
    # One bucket's decision costs as much as some 150 additions, so few hundred points a bucket are best.
    log_buckets = min(14, max(6, len(points).bit_length() - 9))
    rounds = -(-ERROR_BITS // log_buckets)
    half = 1 << log_buckets
    pool = ScratchPool(points.shape[1:])
    passed = np.zeros(rounds, np.bool_)
    constants = _endomorphism(points.ndim)

    def task(i: int) -> None:
        rng = np.random.Generator(np.random.PCG64(secrets.randbits(128)))
        row = rng.integers(1, half, len(points), np.int16, endpoint=True)
        order, starts = np.empty(len(points), np.int32), np.zeros(half + 2, np.int64)
        buckets = np.empty((half, *points.shape[1:]), np.uint64)
        with pool.borrow() as s:
            sort_digits(row, starts, order)
            fill_buckets(points, order, starts, buckets, s.group, s.pairs, s.segments)
            passed[i] = _all_inside(buckets, constants, s)

    workers.run([partial(task, i) for i in range(rounds)])
    return bool(passed.all())


def _all_inside(buckets: U64, constants: U64, s: Scratch) -> bool:
    return all(
        _outside(buckets, low, min(low + BLOCK, len(buckets)), constants, np.uint64(-X), s.group, s.pairs) < 0
        for low in range(0, len(buckets), BLOCK)
    )


def _lowest(found: npt.NDArray[np.int64]) -> int:
    hits = found[found >= 0]
    return int(hits[0]) if len(hits) else -1


def _curve_constant(ndim: int) -> U64:
    """b of the curve as one row: 4, or 4 + 4u."""
    return ints_to_fp([B_G1] if ndim == 3 else [B_G1, B_G1]).reshape((1, 1, 6) if ndim == 3 else (1, 1, 2, 6))


@functools.cache
def _endomorphism(ndim: int) -> U64:
    """Factors of x and y, one coordinate each.

    G1: (beta, 1), beta the cube root of unity with phi = -z^2 on G1. G2: psi(x, y) = (cx conj x, cy conj y) with
    cx = (1 + u)^(-(p - 1)/3), cy = (1 + u)^(-(p - 1)/2), from untwisting, Frobenius and twisting again.
    """
    if ndim == 4:
        cx, cy = (_fp2_power((1, 1), -(P - 1) // d) for d in (3, 2))
        return ints_to_fp([*cx, *cy]).reshape(2, 1, 2, 6)
    generator = g1_generator()
    image = multiply(generator, -X * X)
    for exponent in ((P - 1) // 3, 2 * (P - 1) // 3):
        beta = pow(2, exponent, P)
        factors = ints_to_fp([beta, 1]).reshape(2, 1, 6)
        mapped = generator[None].copy()
        _map_point(mapped, 0, factors, mapped, 0)
        if (mapped[0] == image).all():
            return factors
    raise AssertionError("2 is a cubic residue modulo p")


def _fp2_power(base: tuple[int, int], exponent: int) -> tuple[int, int]:
    """base^exponent in Fp2 with u^2 = -1; the exponent is taken modulo p^2 - 1."""
    result, exponent = (1, 0), exponent % (P * P - 1)
    for bit in bin(exponent)[2:]:
        result = _fp2_product(result, result)
        if bit == "1":
            result = _fp2_product(result, base)
    return result


def _fp2_product(x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
    return (x[0] * y[0] - x[1] * y[1]) % P, (x[0] * y[1] + x[1] * y[0]) % P


@jit
def _off_curve(points, low, high, constant):
    b = ld(constant, 0)
    for i in range(low, high):
        x, y = ld(points, 2 * i), ld(points, 2 * i + 1)
        if not (is_reduced(x) and is_reduced(y)):
            return i
        if not (is_zero(x) and is_zero(y)) and not eq(sqr(y), add(mul(sqr(x), x), b)):
            return i
    return -1


@jit
def _outside(points, low, high, constants, z, group, pairs):
    """First point of low..high that is not in the subgroup; at most half of the group's slots are needed for them."""
    count = high - low
    block = len(pairs.left) // 2
    rounds = 2 if points.ndim == 3 else 1
    for k in range(count):
        copy_point(points, low + k, group, k)
    for _ in range(rounds):
        for k in range(count):
            copy_point(group, k, group, block + k)
            pairs.left[k], pairs.right[k] = k, block + k
        for bit in range(62, -1, -1):
            double_first(group, pairs, count)
            if (z >> np.uint64(bit)) & np.uint64(1):
                add_pairs(group, pairs, count)
    for k in range(count):
        _map_point(points, low + k, constants, group, block)
        same_x = eq(ld(group, 2 * k), ld(group, 2 * block))
        if not (same_x and eq(ld(group, 2 * k + 1), neg(ld(group, 2 * block + 1)))):
            return low + k
    return -1


@jit
def _map_point(points, i, constants, target, k):
    x, y = conjugate(ld(points, 2 * i)), conjugate(ld(points, 2 * i + 1))
    st(target, 2 * k, mul(x, ld(constants, 0)))
    st(target, 2 * k + 1, mul(y, ld(constants, 1)))
