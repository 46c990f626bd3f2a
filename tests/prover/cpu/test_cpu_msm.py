"""The bucket method against closed forms: every window, every size class, points that need the rare branches."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from points_for_tests import Source, both_groups

from prover.backends.cpu import msm as msm_module
from prover.backends.cpu.digits import MAX_WINDOW, recode
from prover.backends.cpu.field import ints_to_fr
from prover.backends.cpu.msm import bucket_msm, msm
from prover.backends.cpu.workers import Workers
from prover.errors import Cancelled
from prover.params import R

SOURCES = [pytest.param(s, id=name) for s, name in zip(both_groups(), ("G1", "G2"), strict=True)]


def _fr(values: list[int]) -> np.ndarray:
    return ints_to_fr(values).reshape(-1, 4)


@pytest.mark.parametrize("window", range(2, MAX_WINDOW + 1))
@pytest.mark.parametrize("source", SOURCES)
def test_every_window_gives_the_closed_form(source: Source, window: int) -> None:
    known, scalars = source.draw(70), source.scalars(70)
    assert (msm(known.points, _fr(scalars), threads=2, window=window) == known.expect(scalars)).all()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 31, 1000, 5003])
@pytest.mark.parametrize("source", SOURCES)
def test_every_size_gives_the_closed_form(source: Source, count: int) -> None:
    known, scalars = source.draw(count), source.scalars(count)
    got = msm(known.points, _fr(scalars), threads=2)
    assert (got == known.expect(scalars)).all()
    if count > 3:
        finite = next(i for i, log in enumerate(known.logs) if log)
        scalars[finite] = (scalars[finite] + 1) % R
        assert not (got == known.expect(scalars)).all()


@pytest.mark.parametrize("source", SOURCES)
def test_a_bucket_longer_than_a_group_is_summed_in_pieces(source: Source) -> None:
    count = 2 * msm_module.GROUP + 77
    known = source.draw(count)
    scalars = [5] * count
    assert (msm(known.points, _fr(scalars), threads=1, window=4) == known.expect(scalars)).all()


@pytest.mark.parametrize("source", SOURCES)
def test_the_same_point_everywhere_needs_doublings_only(source: Source) -> None:
    points = np.repeat(source.group.to_array([source.group.generator]), 3000, axis=0)
    expected = source.group.to_array([source.group.mul(source.group.generator, 3000 * 9)])[0]
    assert (msm(points, _fr([9] * 3000), threads=2) == expected).all()


@pytest.mark.parametrize("source", SOURCES)
def test_chunks_add_up(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msm_module, "CHUNK", 100)
    known, scalars = source.draw(450), source.scalars(450)
    assert (msm(known.points, _fr(scalars), threads=2) == known.expect(scalars)).all()


@pytest.mark.parametrize("source", SOURCES)
def test_many_threads_and_few_windows_cut_the_points(source: Source) -> None:
    known = source.draw(600)
    scalars = [source.rng.randrange(1 << 9) for _ in range(600)]
    workers, tasks = Workers(5), []
    digits = recode(_fr(scalars), workers, 5)
    got = bucket_msm(known.points, digits, workers, lambda _done, total: tasks.append(total))
    assert (got == known.expect(scalars)).all() and set(tasks) == {15}
    workers.close()


def test_msm_is_linear_in_the_scalars() -> None:
    source = both_groups()[0]
    known, x, y = source.draw(300), source.scalars(300), source.scalars(300)
    both = [(a + b) % R for a, b in zip(x, y, strict=True)]
    from prover.backends.cpu.points import add

    left = msm(known.points, _fr(both), threads=1)
    assert (left == add(msm(known.points, _fr(x), threads=1), msm(known.points, _fr(y), threads=1))).all()


@pytest.mark.parametrize("window", [2, 3, 5, 8, 13, 15, 16])
def test_digits_spell_the_scalars(window: int) -> None:
    workers = Workers(1)
    scalars = [*both_groups()[0].scalars(200), R // 2, R // 2 + 1, 2**255 % R, R - 2**128]
    digits = recode(_fr(scalars), workers, window)
    half = 1 << (window - 1)
    assert digits.rows.min() >= -half and digits.rows.max() <= half
    for i, scalar in enumerate(scalars):
        spelt = sum(int(d) << window * w for w, d in enumerate(digits.rows[:, i]))
        assert spelt % R == scalar and abs(spelt) <= R // 2 + 1
    assert (digits.nonzero == np.count_nonzero(digits.rows, axis=1)).all()


def test_small_and_small_negative_scalars_need_few_windows() -> None:
    digits = recode(_fr([3, R - 3, 255, R - 200]), Workers(1), 8)
    assert len(digits.rows) == 2
    assert len(recode(_fr([3, R // 2]), Workers(1), 8).rows) == 32


def test_a_tick_that_raises_stops_the_sum() -> None:
    source = both_groups()[0]
    known, scalars = source.draw(500), source.scalars(500)
    workers = Workers(2)
    digits = recode(_fr(scalars), workers)
    calls = []

    def tick(done: int, total: int) -> None:
        calls.append((done, total, threading.current_thread().name))
        raise Cancelled("test")

    with pytest.raises(Cancelled):
        bucket_msm(known.points, digits, workers, tick)
    assert len(calls) == 1 and calls[0][1] > 5 and calls[0][2] == threading.current_thread().name
    workers.close()


def test_unequal_lengths_are_refused() -> None:
    known = both_groups()[0].draw(3)
    with pytest.raises(ValueError, match="3 points and 2 scalars"):
        msm(known.points, _fr([1, 2]), threads=1)
