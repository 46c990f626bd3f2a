"""Membership: every good point passes; every kind of bad one is found, alone and in a crowd, with its index."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from prover.backends.cpu import check
from prover.backends.cpu.check import first_bad_g1, first_bad_g2
from prover.backends.cpu.field import U64, pack, powers, unpack
from prover.backends.cpu.fixed_base import FixedBase
from prover.params import P, R, X
from prover.reference.groups import G1, G2, Group, Point

CROWD = check.BUCKET_TEST_FROM + 500
COFACTOR_G1 = (X - 1) ** 2 // 3
COFACTOR_G2 = (X**8 - 4 * X**7 + 5 * X**6 - 4 * X**4 + 6 * X**3 - 4 * X**2 - 4 * X + 13) // 9


def test_cofactors_are_coprime_as_the_g2_test_needs() -> None:
    assert math.gcd(COFACTOR_G1, COFACTOR_G2) == 1
    assert COFACTOR_G1 * R == P - X


def _sqrt(a: int) -> int | None:
    root = pow(a, (P + 1) // 4, P)
    return root if root * root % P == a % P else None


def _sqrt_fp2(a: tuple[int, int]) -> tuple[int, int] | None:
    """By the norm: a = (x + yu)^2 with x^2 = (a0 + |a|)/2."""
    norm = _sqrt(a[0] * a[0] + a[1] * a[1])
    if norm is None:
        return None
    for sign in (1, -1):
        x = _sqrt((a[0] + sign * norm) * pow(2, -1, P) % P)
        if x:
            return x, a[1] * pow(2 * x, -1, P) % P
    return None


def _stray(group: Group, seed: int) -> Point:
    """A random point of the whole curve: almost surely outside the subgroup."""
    rng = random.Random(seed)
    while True:
        if group is G1:
            x = rng.randrange(P)
            y = _sqrt((x**3 + 4) % P)
            if y is not None:
                return x, y
        else:
            pair = (rng.randrange(P), rng.randrange(P))
            cube = G2.field.mul(G2.field.mul(pair, pair), pair)
            root = _sqrt_fp2(G2.field.add(cube, G2.b))
            if root is not None:
                return pair, root


@pytest.fixture(scope="module")
def crowds() -> dict[int, U64]:
    """Good points, infinity among them, by the arrays' dimension."""
    bases = FixedBase(2)
    scalars = powers(7, CROWD, first=3)
    crowd = {3: bases.g1(scalars), 4: bases.g2(scalars)}
    bases.close()
    for points in crowd.values():
        points[17] = 0
    return crowd


CASES = [pytest.param(G1, first_bad_g1, 3, id="G1"), pytest.param(G2, first_bad_g2, 4, id="G2")]


@pytest.mark.parametrize(("group", "first_bad", "ndim"), CASES)
def test_good_points_and_infinity_pass(group, first_bad, ndim, crowds) -> None:
    assert first_bad(crowds[ndim]) == -1
    assert first_bad(crowds[ndim][:100], threads=1) == -1
    assert first_bad(crowds[ndim][:0]) == -1
    assert first_bad(np.zeros_like(crowds[ndim][:5])) == -1


@pytest.mark.parametrize(("group", "first_bad", "ndim"), CASES)
@pytest.mark.parametrize("size", [40, CROWD])
def test_a_curve_point_outside_the_subgroup_is_found(group, first_bad, ndim, crowds, size) -> None:
    stray = _stray(group, 4)
    assert group.is_on_curve(stray) and not group.is_member(stray)
    points = crowds[ndim][:size].copy()
    points[31:32] = group.to_array([stray])
    assert first_bad(points) == 31
    points[33:34] = group.to_array([group.neg(stray)])
    assert first_bad(points) == 31, "a pair that cancels in a plain sum must not hide"


@pytest.mark.parametrize(("group", "first_bad", "ndim"), CASES)
def test_a_small_order_component_is_found_in_a_crowd(group, first_bad, ndim, crowds) -> None:
    """Cofactors have small factors (3 in G1, 13 in G2), where sums with random weights would be weak."""
    cofactor, small = (COFACTOR_G1, 3) if group is G1 else (COFACTOR_G2, 13 * 13)
    assert cofactor % small == 0
    component = None
    for seed in range(1, 20):
        component = group._times(_stray(group, seed), cofactor // small * R)
        if component is not None:
            break
    assert component is not None and group._times(component, small) is None
    points = crowds[ndim].copy()
    good = group.from_array(points[600:601])[0]
    points[600:601] = group.to_array([group.add(good, component)])
    assert first_bad(points) == 600


@pytest.mark.parametrize(("group", "first_bad", "ndim"), CASES)
@pytest.mark.parametrize("size", [40, CROWD])
def test_a_point_off_the_curve_is_found(group, first_bad, ndim, crowds, size) -> None:
    points = crowds[ndim][:size].copy()
    points.reshape(size, -1)[25, 0] ^= np.uint64(1)
    assert first_bad(points) == 25


@pytest.mark.parametrize(("group", "first_bad", "ndim"), CASES)
def test_a_coordinate_not_below_p_is_found(group, first_bad, ndim, crowds) -> None:
    points = crowds[ndim][:40].copy()
    values = unpack(points[9].reshape(-1, 6))
    values[-1] += P
    points[9] = pack(values, 6).reshape(points[9].shape)
    assert first_bad(points) == 9
    points[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
    assert first_bad(points) == 0


@pytest.mark.parametrize(("group", "first_bad", "ndim"), CASES)
def test_the_first_of_several_faults_is_named(group, first_bad, ndim, crowds) -> None:
    points = crowds[ndim].copy()
    points.reshape(len(points), -1)[500, 0] ^= np.uint64(1)
    points[200:201] = group.to_array([_stray(group, 8)])
    assert first_bad(points) == 200
    points.reshape(len(points), -1)[100, 0] ^= np.uint64(1)
    assert first_bad(points) == 100


def test_the_point_with_x_zero_is_on_the_curve_but_no_member() -> None:
    points = G1.to_array([(0, 2), G1.generator])
    assert G1.is_on_curve((0, 2)) and not G1.is_member((0, 2))
    assert first_bad_g1(points) == 0 and first_bad_g1(points[1:]) == -1
