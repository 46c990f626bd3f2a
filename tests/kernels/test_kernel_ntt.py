"""Transforms in natural order agree with naive evaluation at every length, plain and on cosets."""

from __future__ import annotations

import random

import numpy as np
import pytest

from prover.backends.cuda.launch import FR_BYTES
from prover.backends.cuda.ntt import Ntt, factor, field_array
from prover.params import ROOT_SNARKJS, R, root_of_unity
from prover.reference.scalars import dft, from_array

RNG = random.Random(3)


def values(count: int) -> list[int]:
    return [RNG.randrange(R) for _ in range(count)]


def transform(launcher, plan: Ntt, xs: list[int], batch: int = 1) -> list[int]:
    scratch = launcher.empty(len(xs) * FR_BYTES)
    result = plan.run(launcher.upload(field_array(xs)), scratch, batch)
    return from_array(launcher.download(result, (len(xs), 4), np.uint64))


@pytest.mark.parametrize("shift", [1, 7])
@pytest.mark.parametrize("log_n", range(1, 8))
def test_short_transforms_agree_with_the_definition(launcher, log_n, shift):
    xs, w = values(1 << log_n), root_of_unity(log_n)
    assert transform(launcher, Ntt(launcher, log_n, w, shift=shift), xs) == dft(xs, ROOT_SNARKJS, shift)


@pytest.mark.parametrize("shift", [1, 7])
@pytest.mark.parametrize("log_n", [9, 10, 11, 13])
def test_longer_ones_agree_with_it_at_random_points_and_invert(launcher, log_n, shift):
    n, w = 1 << log_n, root_of_unity(log_n)
    xs = values(n)
    got = transform(launcher, Ntt(launcher, log_n, w, shift=shift), xs)
    for k in (0, 1, n - 1, RNG.randrange(n)):
        point, total = shift * pow(w, k, R) % R, 0
        for x in reversed(xs):
            total = (total * point + x) % R
        assert got[k] == total
    assert transform(launcher, Ntt(launcher, log_n, w, shift=shift, inverse=True), got) == xs


def test_three_passes_invert_on_a_coset(launcher):
    xs, w = values(1 << 6) + [0] * ((1 << 19) - (1 << 6)), root_of_unity(19)
    forward, inverse = (Ntt(launcher, 19, w, shift=7, inverse=i) for i in (False, True))
    assert len(forward.passes) == 3
    data, scratch = launcher.upload(field_array(xs)), launcher.empty(FR_BYTES << 19)
    middle = forward.run(data, scratch)
    point, total = 7 * pow(w, 12345, R) % R, 0
    for x in reversed(xs[: 1 << 6]):
        total = (total * point + x) % R
    assert from_array(launcher.download(middle, (1 << 19, 4), np.uint64)[12345:12346])[0] == total
    back = inverse.run(middle, data if middle is scratch else scratch)
    assert from_array(launcher.download(back, (1 << 19, 4), np.uint64)[: 1 << 7]) == xs[: 1 << 7]


def test_a_batch_is_its_vectors_one_by_one(launcher):
    plan, xs, ys = Ntt(launcher, 10, root_of_unity(10)), values(1024), values(1024)
    assert transform(launcher, plan, xs + ys, 2) == transform(launcher, plan, xs) + transform(launcher, plan, ys)


def test_another_root_gives_another_transform(launcher):
    xs, w = values(64), root_of_unity(6)
    assert transform(launcher, Ntt(launcher, 6, w), xs) != transform(launcher, Ntt(launcher, 6, pow(w, 5, R)), xs)


@pytest.mark.parametrize("log_n", range(1, 33))
def test_every_length_factors_into_passes_that_fit_a_block(log_n):
    logs = factor(log_n)
    assert sum(logs) == log_n and max(logs) <= 9 and len(logs) <= 4
