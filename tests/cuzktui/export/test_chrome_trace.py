"""Exported Chrome traces pass an independent checker, and the checker refuses what a viewer would misdraw."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import GB, MS, START, S, Story
from cuzktui.export import export
from cuzktui.export.chrome import render_chrome
from cuzktui.export.layout import Slice, split_lanes
from prover import wire
from prover.errors import BadRequest
from trace_checker import faults


def long_story() -> list[wire.Event]:
    """Three jobs, a GPU, overlapping kernels on two streams, notices, markers, a leak, and the death of the prover."""
    events: list[wire.Event] = []
    for k in range(3):
        story = Story(job_id=f"j{k}", begin_ns=START + k * 12 * S, async_ms=400 if k == 2 else 0)
        events += story.build()
        at = story.prove_begin_ns
        for n in range(20):
            begin_ns = at + n * 90 * MS
            events.append(
                wire.Span(
                    t_ns=begin_ns + 137 * MS + n, begin_ns=begin_ns, job_id=f"j{k}", name="msm_h", lane="cuda:0 s1",
                    ops=10, op="point_add", roof_percent=61.0, error_ns=900,
                )
            )  # fmt: skip
            events.append(wire.GpuSample(t_ns=begin_ns, device=0, name="H200", util_percent=float(n)))
            events.append(wire.HostSample(t_ns=begin_ns, mem_available_bytes=GB * n, cgroup_bytes=None))
    events.append(wire.Notice(t_ns=START + S, text="odd", level="warning"))
    events.append(wire.Marker(t_ns=START + 2 * S, text="here"))
    events.append(wire.Dropped(t_ns=START + 3 * S, count=9))
    events.append(wire.ProcessEnded(t_ns=START + 50 * S, pid=41, signal=9, reason="killed by signal 9"))
    return sorted(events, key=lambda e: e.t_ns)


def parsed(events: list[wire.Event]) -> dict[str, Any]:
    trace: dict[str, Any] = json.loads(render_chrome(events))
    return trace


def test_a_long_recording_passes_the_checker() -> None:
    assert faults(render_chrome(long_story())) == []


def test_every_prefix_of_a_stream_is_a_trace() -> None:
    events = long_story()
    for cut in (0, 1, 2, 7, len(events) // 3, len(events) // 2, len(events) - 1):
        assert faults(render_chrome(events[:cut])) == [], f"prefix of {cut}"


def test_a_live_export_is_a_consistent_prefix_of_the_later_one() -> None:
    events = Story().build()
    cut = len(events) * 2 // 3
    early, whole = parsed(events[:cut]), parsed(events)
    closed = [e for e in early["traceEvents"] if e["ph"] in "XC" and not e.get("args", {}).get("open")]
    later = [e for e in whole["traceEvents"] if e["ph"] in "XC"]
    without_thread = [{k: v for k, v in e.items() if k != "tid"} for e in later]
    missing = [e for e in closed if e["ph"] == "X" and {k: v for k, v in e.items() if k != "tid"} not in without_thread]
    assert missing == []
    assert any(e.get("args", {}).get("open") for e in early["traceEvents"])
    assert not any(e.get("args", {}).get("open") for e in whole["traceEvents"])


def test_times_are_microseconds_since_the_first_event_to_the_nanosecond() -> None:
    story = Story(begin_ns=START + 123)
    events = story.build()
    trace = parsed(events)
    gap = next(e for e in trace["traceEvents"] if e["ph"] == "b" and e["cat"] == "gap")
    assert gap["ts"] == (story.inner_end_ns - events[0].t_ns) / 1000
    prove = next(e for e in trace["traceEvents"] if e["name"] == "prove")
    assert prove["dur"] == (story.kernel_ms + story.gap_ms) * 1000
    assert trace["otherData"]["monotonic_ns"] == str(events[0].t_ns)


def test_the_gap_carries_its_finding_and_counters_their_series() -> None:
    events = parsed(Story().build())["traceEvents"]
    gap = next(e for e in events if e["ph"] == "b" and e["cat"] == "gap")
    assert gap["args"]["gap_ms"] == 800.0 and "releasing 8.00 GB" in gap["args"]["finding"]
    names = {e["name"] for e in events if e["ph"] == "C"}
    assert {"memory", "cpu", "ledger"} <= names
    memory = [e["args"]["anon"] for e in events if e["ph"] == "C" and e["name"] == "memory"]
    assert max(memory) == 8_300_000_000 and len(memory) < 180, "equal neighbours are left out"


def test_kernels_that_overlap_go_to_lanes_beside_each_other() -> None:
    events = parsed(long_story())["traceEvents"]
    names = [e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name" and e["pid"] == 10]
    assert names == ["cuda s1", "cuda s1 +1"]
    host = [e["args"] for e in events if e["ph"] == "C" and e["name"] == "host"]
    assert host and all(set(args) == {"available"} for args in host), "what was never read has no counter"


SLICES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=40)


@given(SLICES)
def test_split_lanes_nest_and_lose_nothing(pieces: list[tuple[int, int]]) -> None:
    slices = [Slice(begin, begin + length, "k", "c", {}) for begin, length in pieces]
    lanes = split_lanes(slices)
    assert sorted(s.begin_ns for lane in lanes for s in lane) == sorted(s.begin_ns for s in slices)
    for lane in lanes:
        for one, two in itertools.combinations(lane, 2):
            apart = two.begin_ns >= one.end_ns
            nested = two.begin_ns >= one.begin_ns and two.end_ns <= one.end_ns
            assert apart or nested


BREAKS = {
    "overlap": lambda e: e.append(
        dict(next(x for x in e if x["ph"] == "X"), name="bad", ts=e[-1]["ts"] / 2, dur=1e7)
    ),
    "negative": lambda e: next(x for x in e if x["ph"] == "X").__setitem__("dur", -1.0),
    "epoch": lambda e: next(x for x in e if x["ph"] == "X").__setitem__("ts", 1.79e15),
    "text counter": lambda e: next(x for x in e if x["ph"] == "C").__setitem__("args", {"anon": "many"}),
    "unnamed": lambda e: e.pop(next(k for k, x in enumerate(e) if x["ph"] == "M" and x["name"] == "process_name")),
    "endless": lambda e: e.pop(next(k for k, x in enumerate(e) if x["ph"] == "e")),
    "lost flow": lambda e: next(x for x in e if x["ph"] == "s").__setitem__("ts", 1.0),
    "back in time": lambda e: e.append(dict(next(x for x in e if x["ph"] == "C"), ts=0.0)),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_checker_refuses_a_broken_trace(name: str) -> None:
    trace = parsed(Story().build())
    BREAKS[name](trace["traceEvents"])
    assert faults(json.dumps(trace).encode())


def test_an_export_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "run.json"
    size = export(Story().build(), target)
    assert target.stat().st_size == size and faults(target.read_bytes()) == []
    with pytest.raises(BadRequest, match="cannot be written"):
        export(Story().build(), tmp_path / "missing" / "run.json")
    with pytest.raises(BadRequest, match="no export format"):
        export([], tmp_path / "run.xyz")
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "run.json"
    target.write_text("old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(BadRequest, match="No space left on device"):
        export(Story().build(), target)
    assert target.read_text() == "old" and len(list(tmp_path.iterdir())) == 1
