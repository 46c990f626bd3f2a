"""Single points: the group laws against py_ecc, in both groups."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from py_ecc import optimized_bls12_381 as ecc

from prover.backends.cpu import points
from prover.backends.cpu.field import U64, ints_to_fp
from prover.params import R


def _g1(p: Any) -> U64:
    if p[2] == ecc.FQ.zero():
        return np.zeros((2, 6), np.uint64)
    x, y = ecc.normalize(p)
    return ints_to_fp([int(x), int(y)])


def _g2(p: Any) -> U64:
    if p[2] == ecc.FQ2.zero():
        return np.zeros((2, 2, 6), np.uint64)
    return ints_to_fp([int(c) for v in ecc.normalize(p) for c in v.coeffs]).reshape(2, 2, 6)


GROUPS = [
    pytest.param(ecc.G1, ecc.Z1, _g1, points.g1_generator(), id="G1"),
    pytest.param(ecc.G2, ecc.Z2, _g2, points.g2_generator(), id="G2"),
]


@pytest.mark.parametrize(("generator", "infinity", "array", "own"), GROUPS)
def test_addition_agrees_with_py_ecc(generator: Any, infinity: Any, array: Any, own: U64) -> None:
    rng = random.Random(1)
    p, q = (ecc.multiply(generator, rng.randrange(R)) for _ in range(2))
    cases = [(p, q), (p, p), (p, ecc.neg(p)), (p, infinity), (infinity, q), (infinity, infinity), (generator, p)]
    assert (array(generator) == own).all()
    for a, b in cases:
        assert (points.add(array(a), array(b)) == array(ecc.add(a, b))).all()


@pytest.mark.parametrize(("generator", "infinity", "array", "own"), GROUPS)
@pytest.mark.parametrize("scalar", [0, 1, 2, 3, R - 1, R, R + 5, 0xD201000000010000, 2**255 - 19])
def test_multiples_agree_with_py_ecc(generator: Any, infinity: Any, array: Any, own: U64, scalar: int) -> None:
    assert (points.multiply(own, scalar) == array(ecc.multiply(generator, scalar % R))).all()
    assert (points.multiply(array(infinity), scalar) == 0).all()


@pytest.mark.parametrize(("generator", "infinity", "array", "own"), GROUPS)
def test_a_point_and_its_negative_cancel(generator: Any, infinity: Any, array: Any, own: U64) -> None:
    assert (points.negate(own) == array(ecc.neg(generator))).all()
    assert (points.add(own, points.negate(own)) == 0).all()
    assert (points.negate(array(infinity)) == 0).all()
    assert not (points.negate(own) == own).all()


@pytest.mark.parametrize(("generator", "infinity", "array", "own"), GROUPS)
def test_shifted_sum_is_the_number_in_that_base(generator: Any, infinity: Any, array: Any, own: U64) -> None:
    parts = np.stack([points.multiply(own, k) for k in (3, 0, 7, 1)])
    assert (points.sum_shifted(parts, 5) == points.multiply(own, 3 + (7 << 10) + (1 << 15))).all()
