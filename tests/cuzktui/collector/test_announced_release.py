"""A release that was announced is read fast while it comes, and an announcement alone keeps nobody busy."""

from __future__ import annotations

import itertools
import statistics

from cuzktui.collector.memory import STILL_NS
from prover import wire
from prover.run import now

MIB = 1 << 20


def steps_ns(events, begin_ns: int, end_ns: int) -> list[int]:
    events.wait(lambda e: isinstance(e, wire.MemSample) and e.t_ns > end_ns)
    times = [e.t_ns for e in events.of(wire.MemSample) if begin_ns <= e.t_ns <= end_ns]
    return [b - a for a, b in itertools.pairwise(times)]


def test_an_announced_release_that_does_not_come_is_waited_for_at_the_slower_of_the_fast_steps(
    sampler, events, program
):  # fmt: skip
    sampler.watch(program.pid)
    events.wait(lambda e: isinstance(e, wire.MemSample))
    asked = now()
    sampler.hot(asked + 400_000_000)
    assert statistics.median(steps_ns(events, asked, asked + STILL_NS)) < 3e6
    assert 3e6 < statistics.median(steps_ns(events, asked + 2 * STILL_NS, asked + 350_000_000)) < 12e6


def test_a_release_that_comes_later_than_it_was_announced_is_resolved_all_the_same(sampler, events, program):
    program.order(f"map {1024 * MIB}")
    sampler.watch(program.pid)
    events.wait(lambda e: isinstance(e, wire.MemSample))
    asked = now()
    sampler.hot(asked + 3_000_000_000)
    events.wait(lambda e: isinstance(e, wire.MemSample) and e.t_ns > asked + 4 * STILL_NS)
    begin, end = program.order("unmap")
    events.wait(lambda e: isinstance(e, wire.MemSample) and e.t_ns > end)
    during = [e for e in events.of(wire.MemSample) if begin <= e.t_ns <= end + 2_000_000]
    assert len({e.resident_bytes for e in during}) >= 10
