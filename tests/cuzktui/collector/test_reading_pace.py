"""How often CPU time is read: a stranger at work often, one that only waits and our own prover seldom."""

from __future__ import annotations

import pytest

from cuzktui.collector import system
from cuzktui.collector.system import IDLE_NS, PARENT_IDLE_NS, Watched
from prover import wire

OFTEN, SELDOM = 50, 5
"""Readings a second."""
S = 1_000_000_000


class Clock:
    """A time that a test moves, and a process whose CPU time it sets."""

    def __init__(self) -> None:
        self.t_ns, self.run_ns = 10**12, 0

    def now(self) -> int:
        return self.t_ns

    def read(self) -> wire.CpuSample:
        return wire.CpuSample(t_ns=self.t_ns, pid=1, run_ns=self.run_ns)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(system, "now", made.now)
    return made


def readings(watched: Watched, clock: Clock, length_ns: int, *, runs: bool) -> int:
    """How many readings are made in a stretch in which the process runs or waits."""
    made = 0
    for _ in range(length_ns // 5_000_000):
        clock.t_ns += 5_000_000
        clock.run_ns += 5_000_000 if runs else 0
        made += watched.read_cpu() is not None
    return made


def watching(clock: Clock, *, foreign: bool) -> Watched:
    return Watched(1, -1, clock, 0, foreign)  # type: ignore[arg-type]


def test_a_stranger_at_work_is_read_fifty_times_a_second(clock: Clock) -> None:
    assert readings(watching(clock, foreign=True), clock, S, runs=True) == pytest.approx(OFTEN, abs=2)


def test_a_stranger_that_waits_is_read_fifty_times_a_second_for_five_seconds_only(clock: Clock) -> None:
    watched = watching(clock, foreign=True)
    readings(watched, clock, S, runs=True)
    assert readings(watched, clock, IDLE_NS - S, runs=False) == pytest.approx(OFTEN * (IDLE_NS - S) / S, abs=4)
    readings(watched, clock, 2 * S, runs=False)
    assert readings(watched, clock, S, runs=False) == pytest.approx(SELDOM, abs=1)
    readings(watched, clock, S // SELDOM, runs=True)
    assert readings(watched, clock, S, runs=True) == pytest.approx(OFTEN, abs=4)


def test_our_prover_tells_what_it_does_and_is_read_five_times_a_second(clock: Clock) -> None:
    assert readings(watching(clock, foreign=False), clock, S, runs=True) == pytest.approx(SELDOM, abs=1)


def test_a_stranger_that_waits_for_its_children_is_read_seldom_at_once(clock: Clock) -> None:
    watched = watching(clock, foreign=True)
    watched.idle_ns = PARENT_IDLE_NS
    readings(watched, clock, S, runs=True)
    readings(watched, clock, PARENT_IDLE_NS + S // SELDOM, runs=False)
    assert readings(watched, clock, S, runs=False) == pytest.approx(SELDOM, abs=1)
