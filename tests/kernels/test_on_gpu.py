"""On a card the inline PTX agrees with the portable form, and the laws hold at every window, length and skew."""

from __future__ import annotations

import random
import statistics
import time

import numpy as np
import pytest
from known_points import Points, mixed, run

from prover.backends.cpu.ntt import ntt as cpu_ntt
from prover.backends.cuda.fixed_base import FixedBase
from prover.backends.cuda.launch import FR_BYTES
from prover.backends.cuda.msm import G1, Msm
from prover.backends.cuda.ntt import Ntt, field_array
from prover.backends.cuda.sort import ScalarSource
from prover.backends.select import default_threads
from prover.params import ROOT_BELLMAN, ROOT_SNARKJS, R, root_of_unity
from prover.reference.scalars import from_array

pytestmark = pytest.mark.gpu
RNG = random.Random(13)
MANY = 5003


def random_array(count: int, seed: int) -> np.ndarray:
    """(count, 4) uniform Montgomery words below 2^254."""
    values = np.random.default_rng(seed).integers(0, 1 << 64, (count, 4), dtype=np.uint64)
    values[:, 3] >>= np.uint64(2)
    return values


@pytest.mark.parametrize("op", [0, 1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize(("kernel", "limbs"), [("fr_ops", 4), ("fp_ops", 6), ("fp2_ops", 12)])
def test_ptx_agrees_with_the_portable_form(gpu, card, kernel, limbs, op):
    if (kernel, op) in (("fr_ops", 3), ("fp2_ops", 4)):
        pytest.skip("this field has no such operation")
    rng = np.random.default_rng(op)
    operands = [rng.integers(0, 1 << 64, (512, limbs), dtype=np.uint64) for _ in range(2)]
    for a in operands:
        a.reshape(512, -1, min(limbs, 6))[..., -1] &= np.uint64((1 << (62 if limbs == 4 else 60)) - 1)
        a[:8] = 0
        a[8:16, 1:] = 0
    results = []
    for where in (gpu, card):
        out = where.empty(512 * limbs * 8)
        where.launch(kernel, 4, 128, *(where.upload(a) for a in operands), op, 512, out)
        results.append(where.download(out, (512, limbs), np.uint64))
    assert (results[0] == results[1]).all()


@pytest.fixture(scope="module")
def many(known) -> tuple[Points, list[int], np.ndarray]:
    """More points than one tile of the sort, scalars of every kind, and the sum."""
    points = Points(known.curve, known.oracle, MANY)
    scalars = mixed(MANY)
    return points, scalars, points.expect(scalars)


@pytest.mark.parametrize("window", range(4, 23))
def test_every_window_gives_the_closed_form(gpu, many, window):
    points, scalars, expected = many
    assert (run(gpu, points, scalars, window) == expected).all()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 127, 129, 1000, 4095, 4097, MANY])
def test_sizes_that_are_no_powers_of_two(gpu, many, count):
    points, scalars, _ = many
    assert (run(gpu, points, scalars[:count]) == points.expect(scalars[:count])).all()


@pytest.mark.parametrize("scalar", [0, 1, R - 1, 2, 0x1234567 << 200, RNG.randrange(R)])
def test_all_scalars_equal(gpu, many, scalar):
    points = many[0]
    assert (run(gpu, points, [scalar] * MANY) == points.expect([scalar] * MANY)).all()


def test_all_points_equal_or_opposite(gpu, many):
    same, scalars = many[0].same(), many[1]
    for chosen in (scalars, [5] * MANY, [1] * MANY):
        assert (run(gpu, same, chosen) == same.expect(chosen)).all()


def test_all_points_infinity(gpu, many):
    points, scalars, _ = many
    none = Points(points.curve, points.oracle, MANY)
    none.points[:], none.logs = 0, [0] * MANY
    assert not run(gpu, none, scalars).any()


def test_skew_costs_at_most_twice_the_time_and_sums_right(gpu, known):
    """A million points: uniform scalars against all scalars equal, and against all points equal."""
    n, curve, bases = 1 << 20, known.curve, FixedBase(gpu)
    logs, scalars = random_array(n, 1), random_array(n, 2)
    one_scalar, one_log = np.repeat(scalars[:1], n, 0), np.repeat(logs[:1], n, 0)
    msm, taken = Msm(gpu, curve, 40 << 30), []
    for values, of in ((scalars, logs), (one_scalar, logs), (scalars, one_log)):
        points = bases.on_device(curve, gpu.upload(of), n)
        source = ScalarSource(gpu.upload(values), n)
        total = sum(a * b for a, b in zip(from_array(values), from_array(of), strict=True)) % R
        multiply = bases.g1 if curve is G1 else bases.g2
        assert (msm.run(points, source) == multiply(field_array([total]))[0]).all()
        times = []
        for _ in range(5):
            began = time.perf_counter()
            msm.run(points, source)
            times.append(time.perf_counter() - began)
        taken.append(statistics.median(times))
    print(f"{curve.name} 2^20: uniform, one scalar, one point: {', '.join(f'{t * 1e3:.2f} ms' for t in taken)}")
    assert max(taken[1:]) <= 2 * taken[0]


@pytest.mark.parametrize("shift", [1, 7])
@pytest.mark.parametrize("top", [ROOT_SNARKJS, ROOT_BELLMAN], ids=["snarkjs", "bellman"])
@pytest.mark.parametrize("log_n", range(1, 21))
def test_transforms_of_every_length_are_the_cpus_and_invert(gpu, log_n, top, shift):
    n, w = 1 << log_n, root_of_unity(log_n, top)
    xs, scratch = random_array(n, log_n), gpu.empty(n * FR_BYTES)
    data = gpu.upload(xs)
    middle = Ntt(gpu, log_n, w, shift=shift).run(data, scratch)
    got = gpu.download(middle, (n, 4), np.uint64)
    assert (got == cpu_ntt(xs, threads=default_threads(), root=top, shift=shift)).all()
    back = Ntt(gpu, log_n, w, shift=shift, inverse=True).run(middle, data if middle is scratch else scratch)
    assert (gpu.download(back, (n, 4), np.uint64) == xs).all()
