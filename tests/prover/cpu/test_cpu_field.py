"""Kernel arithmetic agrees with Python integers, and obeys the field's laws, in Fr, Fp and Fp2."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prover.backends.cpu import field, ops
from prover.backends.cpu.jit import jit
from prover.params import P, R

EDGES_R = [0, 1, 2, R - 1, R - 2, R // 2, R // 2 + 1, (1 << 254) - 1, 1 << 64]
EDGES_P = [0, 1, 2, P - 1, P - 2, P // 2, P // 2 + 1, (1 << 380) - 1, 1 << 64]
fr_values = st.sampled_from(EDGES_R) | st.integers(0, R - 1)
fp_values = st.sampled_from(EDGES_P) | st.integers(0, P - 1)
fp2_values = st.tuples(fp_values, fp_values)


@jit
def _fr_all(a, b, out):
    x, y = field.ld_fr(a, 0), field.ld_fr(b, 0)
    field.st_fr(out, 0, field.fr_add(x, y))
    field.st_fr(out, 1, field.fr_sub(x, y))
    field.st_fr(out, 2, field.fr_mul(x, y))
    field.st_fr(out, 3, field.fr_neg(x))
    field.st_fr(out, 4, field.fr_inv(x))
    field.st_fr(out, 5, field.fr_sqr(x))
    field.st_fr(out, 6, field.halve(x))
    field.st_fr(out, 7, ops.mul_inline(x, y))


@jit
def _fp_all(a, b, out):
    x, y = field.ld_fp(a, 0), field.ld_fp(b, 0)
    field.st_fp(out, 0, field.fp_add(x, y))
    field.st_fp(out, 1, field.fp_sub(x, y))
    field.st_fp(out, 2, field.fp_mul(x, y))
    field.st_fp(out, 3, field.fp_neg(x))
    field.st_fp(out, 4, field.fp_inv(x))
    field.st_fp(out, 5, field.fp_sqr(x))
    field.st_fp(out, 6, field.halve(x))
    field.st_fp(out, 7, ops.mul_inline(x, y))


@jit
def _fp2_all(a, b, out):
    x, y = field.ld_fp2(a, 0), field.ld_fp2(b, 0)
    field.st_fp2(out, 0, field.fp2_add(x, y))
    field.st_fp2(out, 1, field.fp2_sub(x, y))
    field.st_fp2(out, 2, field.fp2_mul(x, y))
    field.st_fp2(out, 3, field.fp2_neg(x))
    field.st_fp2(out, 4, field.fp2_inv(x))
    field.st_fp2(out, 5, field.fp2_sqr(x))
    field.st_fp2(out, 6, ops.conjugate(x))


@jit
def _small(x, out):
    field.st_fr(out, 0, field.fr_from_u64(x))


def _expected(x: int, y: int, p: int) -> list[int]:
    inverse = pow(x, -1, p) if x else 0
    return [(x + y) % p, (x - y) % p, x * y % p, -x % p, inverse, x * x % p, x * pow(2, -1, p) % p, x * y % p]


@given(fr_values, fr_values)
def test_fr_agrees_with_integers(x: int, y: int) -> None:
    out = np.zeros((8, 4), np.uint64)
    _fr_all(field.ints_to_fr([x]), field.ints_to_fr([y]), out)
    assert field.fr_to_ints(out) == _expected(x, y, R)


@given(fp_values, fp_values)
def test_fp_agrees_with_integers(x: int, y: int) -> None:
    out = np.zeros((8, 6), np.uint64)
    _fp_all(field.ints_to_fp([x]), field.ints_to_fp([y]), out)
    assert field.fp_to_ints(out) == _expected(x, y, P)


@given(fp2_values, fp2_values)
def test_fp2_agrees_with_pairs_of_integers(x: tuple[int, int], y: tuple[int, int]) -> None:
    out = np.zeros((14, 6), np.uint64)
    _fp2_all(field.ints_to_fp(x), field.ints_to_fp(y), out)
    got = field.fp_to_ints(out)

    def product(u: tuple[int, int], v: tuple[int, int]) -> list[int]:
        return [(u[0] * v[0] - u[1] * v[1]) % P, (u[0] * v[1] + u[1] * v[0]) % P]

    assert got[0:2] == [(x[0] + y[0]) % P, (x[1] + y[1]) % P]
    assert got[2:4] == [(x[0] - y[0]) % P, (x[1] - y[1]) % P]
    assert got[4:6] == product(x, y)
    assert got[6:8] == [-x[0] % P, -x[1] % P]
    assert product(x, (got[8], got[9])) == ([1, 0] if any(x) else [0, 0])
    assert got[10:12] == product(x, x)
    assert got[12:14] == [x[0], -x[1] % P]


def test_fp2_products_of_all_extreme_coordinates_agree() -> None:
    """Sums of coordinates and full products at their bounds, where a lost carry or a wrong lift would show."""
    extremes = [0, 1, P - 1, P - 2, (1 << 380) - 1, (1 << 384) % P, P // 2 + 1]
    out = np.zeros((14, 6), np.uint64)
    arrays = {(a, b): field.ints_to_fp([a, b]) for a in extremes for b in extremes}
    for x, left in arrays.items():
        for y, right in arrays.items():
            _fp2_all(left, right, out)
            expected = [(x[0] * y[0] - x[1] * y[1]) % P, (x[0] * y[1] + x[1] * y[0]) % P]
            assert field.fp_to_ints(out[4:6]) == expected, (x, y)


@given(fr_values, fr_values, fr_values)
@settings(max_examples=30)
def test_fr_multiplication_distributes_over_addition(x: int, y: int, z: int) -> None:
    out = np.zeros((8, 4), np.uint64)

    def sum_and_product(u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _fr_all(u, v, out)
        return out[0:1].copy(), out[2:3].copy()

    a, b, c = (field.ints_to_fr([v]) for v in (x, y, z))
    left = sum_and_product(a, sum_and_product(b, c)[0])[1]
    right = sum_and_product(sum_and_product(a, b)[1], sum_and_product(a, c)[1])[0]
    assert (left == right).all()


@pytest.mark.parametrize("x", [0, 1, 2**32, 2**63, 2**64 - 1])
def test_machine_integers_become_fr(x: int) -> None:
    out = np.zeros((1, 4), np.uint64)
    _small(np.uint64(x), out)
    assert field.fr_to_ints(out) == [x]


@given(st.lists(fr_values, max_size=9), st.lists(fp_values, max_size=9))
@settings(max_examples=30)
def test_conversions_come_back(frs: list[int], fps: list[int]) -> None:
    canonical_fr, canonical_fp = field.pack(frs, 4).reshape(-1, 4), field.pack(fps, 6).reshape(-1, 6)
    assert (field.fr_to_mont(canonical_fr) == field.ints_to_fr(frs)).all()
    assert (field.fr_from_mont(field.ints_to_fr(frs)) == canonical_fr).all()
    assert (field.fp_to_mont(canonical_fp) == field.ints_to_fp(fps)).all()
    assert (field.fp_from_mont(field.ints_to_fp(fps)) == canonical_fp).all()
    assert field.fr_to_ints(field.ints_to_fr(frs)) == frs and field.fp_to_ints(field.ints_to_fp(fps)) == fps


def test_flat_views_read_like_rows() -> None:
    out = np.zeros(32, np.uint64)
    _fr_all(field.ints_to_fr([5]).reshape(-1), field.ints_to_fr([7]).reshape(-1), out)
    assert field.fr_to_ints(out.reshape(8, 4))[:3] == [12, R - 2, 35]


def test_batch_inverse_keeps_zeros() -> None:
    values = [3, 0, R - 1, 5, 0]
    array = field.ints_to_fr(values)
    field.fr_batch_inverse(array)
    assert field.fr_to_ints(array) == [pow(v, -1, R) if v else 0 for v in values]


def test_powers_start_where_told() -> None:
    assert field.fr_to_ints(field.powers(3, 4, first=7)) == [7, 21, 63, 189]
    assert field.fr_to_ints(field.fr_scale(field.powers(2, 3), 5)) == [5, 10, 20]
