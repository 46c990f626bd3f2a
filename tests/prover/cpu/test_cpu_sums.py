"""Sums of chosen points and multiples of the generators, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from points_for_tests import Source, both_groups

from prover.backends.cpu.batch_sum import LANES, batch_sum
from prover.backends.cpu.field import ints_to_fr
from prover.backends.cpu.fixed_base import FixedBase
from prover.backends.cpu.workers import Workers, ranges
from prover.params import R
from prover.reference.groups import G1

SOURCES = [pytest.param(s, id=name) for s, name in zip(both_groups(), ("G1", "G2"), strict=True)]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 100, LANES - 1, LANES, LANES + 1, 2 * LANES + 5, 9 * LANES + 1])
@pytest.mark.parametrize("source", SOURCES)
def test_sum_of_chosen_points_is_the_closed_form(source: Source, count: int) -> None:
    workers = Workers(2)
    known = source.draw(997)
    picks = np.array([source.rng.randrange(997) for _ in range(count)], np.uint32)
    weights = np.bincount(picks, minlength=997).tolist()
    assert (batch_sum(known.points, picks, workers) == known.expect(weights)).all()
    workers.close()


@pytest.mark.parametrize("source", SOURCES)
def test_multiples_of_the_generator_agree_with_the_oracle(source: Source) -> None:
    bases = FixedBase(2)
    scalars = [0, 1, 2, R - 1, R // 2, R // 2 + 1, *source.scalars(30)]
    seen: list[int] = []
    multiply = bases.g1 if source.group is G1 else bases.g2
    got = multiply(ints_to_fr(scalars), progress=seen.append)
    group = source.group
    assert (got == group.to_array([group.mul(group.generator, k) for k in scalars])).all()
    assert (got[0] == 0).all() and seen[-1] == len(scalars)
    assert multiply(np.zeros((0, 4), np.uint64)).shape == (0, *got.shape[1:])
    bases.close()


@pytest.mark.parametrize("source", SOURCES)
def test_a_large_table_gives_the_same_multiples(source: Source) -> None:
    bases = FixedBase(2)
    multiply = bases.g1 if source.group is G1 else bases.g2
    scalars = [k * k % R for k in range(R - 2500, R)]
    got = multiply(ints_to_fr(scalars))
    for i in (0, 1, 2047, 2048, 2499):
        assert source.group.from_array(got[i : i + 1])[0] == source.group.mul(source.group.generator, scalars[i])
    few = multiply(ints_to_fr(scalars[:7]))
    assert (few == got[:7]).all()
    bases.close()


@pytest.mark.parametrize(("count", "pieces", "multiple"), [(0, 4, 1), (1, 4, 1), (10, 4, 1), (1000, 7, 64), (5, 9, 8)])
def test_ranges_cover_everything_once(count: int, pieces: int, multiple: int) -> None:
    cuts = ranges(count, pieces, multiple)
    assert [i for low, high in cuts for i in range(low, high)] == list(range(count))
    assert len(cuts) <= pieces and all(low % multiple == 0 for low, _ in cuts)
