"""MSM laws at every window: skew, odd sizes, infinity, equal and opposite points all give the closed form."""

from __future__ import annotations

import random

import numpy as np
import pytest
from known_points import COUNT, mixed, run

from prover.backends.cuda import sort
from prover.backends.cuda.fixed_base import FixedBase
from prover.backends.cuda.msm import G1, Msm, bytes_per_entry, choose_window
from prover.backends.cuda.ntt import field_array
from prover.backends.cuda.sort import ScalarSource
from prover.params import R

RNG = random.Random(6)


@pytest.mark.parametrize("window", [4, 5, 7, 8, 9, 10, 13])
def test_every_window_gives_the_closed_form(launcher, known, window):
    scalars = mixed(COUNT)
    assert (run(launcher, known, scalars, window) == known.expect(scalars)).all()


@pytest.mark.parametrize("count", [1, 2, 3, 31, 33])
def test_sizes_that_are_no_powers_of_two(launcher, known, count):
    scalars = mixed(count)
    assert (run(launcher, known, scalars) == known.expect(scalars)).all()


def test_nothing_sums_to_infinity(launcher, known):
    assert not run(launcher, known, []).any()
    assert not run(launcher, known, [0] * COUNT, 5).any()


@pytest.mark.parametrize("scalar", [1, R - 1, 0x1234567 << 200])
def test_all_scalars_equal(launcher, known, scalar):
    assert (run(launcher, known, [scalar] * COUNT, 6) == known.expect([scalar] * COUNT)).all()


def test_all_points_equal_or_opposite(launcher, known):
    same = known.same()
    for scalars in ([5] * COUNT, mixed(COUNT)):
        assert (run(launcher, same, scalars, 4) == same.expect(scalars)).all()


def test_a_small_budget_takes_the_windows_in_groups_with_the_same_sum(launcher, known):
    scalars = mixed(COUNT)
    budget = 5 * COUNT * bytes_per_entry(known.curve)
    launcher.take_times()
    assert (run(launcher, known, scalars, 8, budget) == known.expect(scalars)).all()
    assert [t.kernel for t in launcher.take_times()].count("scatter_bins") == 7


def test_one_changed_scalar_changes_the_sum(launcher, known):
    scalars = [RNG.randrange(R) for _ in range(COUNT)]
    k = next(i for i, log in enumerate(known.logs) if log)
    before = run(launcher, known, scalars, 6)
    scalars[k] = (scalars[k] + 1) % R
    assert (run(launcher, known, scalars, 6) != before).any()


def test_classes_take_the_scalars_apart_and_add_up(launcher, known):
    scalars = [RNG.choice((0, 0, 1, 1, R - 1, RNG.randrange(256), RNG.randrange(R))) for _ in range(COUNT)]
    wires = np.array(RNG.sample(range(COUNT), COUNT), np.uint32)
    source = ScalarSource(launcher.upload(field_array(scalars)), COUNT, wires=launcher.upload(wires))
    classes = sort.classify(launcher, source)
    own = [scalars[w] for w in wires]
    unit = [s if s in (1, R - 1) else 0 for s in own]
    rest = [0 if s in (0, 1, R - 1) else s for s in own]
    assert classes.num_ones == sum(map(bool, unit)) and classes.num_tail == sum(map(bool, rest))
    msm, bases = Msm(launcher, known.curve, 1 << 30), launcher.upload(known.points)
    assert (msm.sum(bases, classes.ones, classes.num_ones) == known.expect(unit)).all()
    tail = ScalarSource(source.scalars, classes.num_tail, classes.tail, source.wires)
    assert (msm.run(bases, tail) == known.expect(rest)).all()


def test_first_wire_shifts_the_scalars(launcher, known):
    scalars = [RNG.randrange(R) for _ in range(40)]
    source = ScalarSource(launcher.upload(field_array(scalars)), 30, first_wire=10)
    got = Msm(launcher, known.curve, 1 << 30).run(launcher.upload(known.points), source)
    assert (got == known.expect(scalars[10:], known.logs[:30])).all()


def test_windows_leave_no_carry_and_grow_with_the_size():
    assert all(sort.num_windows(c) * c >= 255 for c in range(4, 23))
    chosen = [choose_window(1 << k) for k in range(4, 27)]
    assert chosen == sorted(chosen) and chosen[0] <= 6 and chosen[-1] >= 20


def test_fixed_base_multiples_agree_with_the_oracle(launcher, known):
    scalars = [0, 1, R - 1, 255, 256, RNG.randrange(R)]
    bases = FixedBase(launcher)
    told: list[int] = []
    multiply = bases.g1 if known.curve is G1 else bases.g2
    got = multiply(field_array(scalars), progress=told.append)
    oracle = known.oracle
    assert (got == oracle.to_array([oracle.mul(oracle.generator, s) for s in scalars])).all() and told == [6]
