"""A view of a series never changes, whatever is appended later, and reduction keeps every extreme."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzktui.model.series import Log, Series

VALUES = st.lists(st.integers(0, 10**12), min_size=1, max_size=700)


@given(VALUES, st.integers(0, 699))
def test_an_older_view_keeps_what_it_saw(values: list[int], cut: int) -> None:
    series, kept, seen = Series(("anon",), capacity=256), None, []
    for t_ns, value in enumerate(values):
        series = series.append(t_ns, (value,))
        if t_ns == min(cut, len(values) - 1):
            kept, seen = series, series.column("anon").tolist()
    assert kept is not None
    assert kept.column("anon").tolist() == seen


@given(VALUES)
def test_reduction_keeps_the_extremes_and_the_newest(values: list[int]) -> None:
    series = Series(("anon",), capacity=64)
    for t_ns, value in enumerate(values):
        series = series.append(t_ns, (value,))
    assert len(series) <= 64
    assert series.column("anon").max() == max(values)
    assert series.column("anon").min() == min(values)
    assert series.column("anon")[-16:].tolist() == values[-16:]
    assert (np.diff(series.t_ns) > 0).all()


def test_two_branches_of_one_series_do_not_see_each_other() -> None:
    stem = Series(("anon",)).append(1, (10,))
    left, right = stem.append(2, (20,)), stem.append(2, (30,))
    assert left.column("anon").tolist() == [10, 20]
    assert right.column("anon").tolist() == [10, 30]
    assert len(stem) == 1


def test_a_late_sample_is_put_in_its_place() -> None:
    series = Series(("anon",)).append(10, (1,)).append(30, (3,)).append(20, (2,))
    assert series.t_ns.tolist() == [10, 20, 30]
    assert series.column("anon").tolist() == [1, 2, 3]


def test_late_samples_of_a_full_series_keep_its_bound() -> None:
    series = Series(("anon",), capacity=64)
    for t_ns in range(1000, 1064):
        series = series.append(t_ns, (t_ns,))
    for t_ns in range(500):
        series = series.append(t_ns, (t_ns,))
    assert len(series) <= 64 and series.column("anon").max() == 1063


def test_an_unread_value_is_none_and_not_zero() -> None:
    series = Series(("power_w", "mhz")).append(1, (None, 5.0))
    assert series.last("power_w") is None
    assert series.last("mhz") == 5.0
    assert Series(("anon",)).last("anon") is None
    assert series.at(0, "mhz") is None and series.at(9, "mhz") == 5.0


@given(st.lists(st.integers(), max_size=100), st.integers(2, 20))
def test_a_log_keeps_the_newest_and_counts_the_forgotten(items: list[int], capacity: int) -> None:
    log: Log[int] = Log(capacity)
    for item in items:
        log = log.append(item)
    assert len(log) <= capacity
    assert len(log) + log.forgotten == len(items)
    assert list(log) == items[log.forgotten :]


def test_a_log_view_does_not_see_later_items() -> None:
    one = Log[str](4).append("a")
    two, other = one.append("b"), one.append("c")
    assert list(one) == ["a"] and list(two) == ["a", "b"] and list(other) == ["a", "c"]
    with pytest.raises(IndexError):
        one[1]
