"""A replay gives the recorded events unchanged, in order, at the recorded pace."""

from __future__ import annotations

import time

import pytest

from cuzktui.live import DEMO_RECORDING
from cuzktui.sources.control import ControlClient, ProverUnreachable
from cuzktui.sources.recordings import forget_old, new_recording
from cuzktui.sources.replay import ReplaySource
from prover import wire
from prover.errors import BadFile, BadRequest

HELLO = wire.Hello(t_ns=10**9, unix_ns=0, source="collector")


def recording(path, times_ms: list[int]):
    notices = [wire.Notice(t_ns=10**9 + ms * 10**6, text=str(ms)) for ms in times_ms]
    path.write_bytes(b"".join(wire.encode(event) for event in [HELLO, *notices]))
    return notices


def test_every_event_comes_unchanged_and_the_end_is_said(tmp_path, events):
    notices = recording(tmp_path / "run.jsonl", [0, 10, 5, 20])
    source = ReplaySource(tmp_path / "run.jsonl", speed=0)
    source.start(events.put)
    assert source.wait(10)
    assert [e for e in events.all if not isinstance(e, wire.SourceChanged)] == [HELLO, *notices]
    assert [(e.source, e.alive) for e in events.of(wire.SourceChanged)] == [("replay", True), ("replay", False)]
    assert source.kind == "replay" and source.title == "run.jsonl"


@pytest.mark.parametrize("speed", [1.0, 4.0])
def test_recorded_time_passes_at_the_speed_asked_for(tmp_path, events, speed):
    recording(tmp_path / "run.jsonl", list(range(0, 801, 2)))
    source = ReplaySource(tmp_path / "run.jsonl", speed)
    begin = time.monotonic()
    source.start(events.put)
    assert source.wait(20)
    assert 0.8 / speed <= time.monotonic() - begin < 0.8 / speed + 0.5


def test_a_stretch_without_events_is_not_waited_out(tmp_path, events):
    recording(tmp_path / "run.jsonl", [0, 3_600_000])
    source = ReplaySource(tmp_path / "run.jsonl")
    source.start(events.put)
    assert source.wait(10)
    assert len(events.of(wire.Notice)) == 2


def test_it_stops_at_once_and_delivers_nothing_more(tmp_path, events):
    recording(tmp_path / "run.jsonl", [0, 1000, 2000])
    source = ReplaySource(tmp_path / "run.jsonl")
    source.start(events.put)
    events.wait(lambda e: isinstance(e, wire.Notice))
    source.stop()
    seen = len(events.all)
    assert source.wait(5) and len(events.all) == seen == 3


def test_a_held_replay_goes_on_where_it_was(tmp_path, events):
    recording(tmp_path / "run.jsonl", [0, 50, 100])
    source = ReplaySource(tmp_path / "run.jsonl")
    source.pause(True)
    source.start(events.put)
    assert not source.wait(0.3) and len(events.of(wire.Notice)) == 0
    source.pause(False)
    assert source.wait(10) and len(events.of(wire.Notice)) == 3


def test_what_is_no_recording_is_refused_before_anything_starts(tmp_path):
    with pytest.raises(BadFile, match="no such recording"):
        ReplaySource(tmp_path / "run.jsonl")
    (tmp_path / "run.jsonl").write_text("hello\n")
    with pytest.raises(BadFile, match="line 1"):
        ReplaySource(tmp_path / "run.jsonl")


def test_a_replay_has_no_prover(tmp_path):
    recording(tmp_path / "run.jsonl", [0])
    with pytest.raises(BadRequest):
        ReplaySource(tmp_path / "run.jsonl").restart_prover()


def test_nobody_at_the_address_is_one_sentence(tmp_path):
    control = ControlClient(str(tmp_path / "p.sock"))
    with pytest.raises(ProverUnreachable, match="no prover answers"):
        control.submit("cubic", wait_s=0.05)
    with pytest.raises(ProverUnreachable, match="no prover answers"):
        control.cancel()


def test_old_recordings_are_forgotten_within_the_budget_and_others_are_left_alone(tmp_path):
    import os

    for number in range(6):
        for name in (f"run-2026010{number}-000000-1.jsonl", f"run-2026010{number}-000000-1.001.jsonl"):
            (tmp_path / name).write_bytes(b"x" * 100)
            os.utime(tmp_path / name, (number, number))
    (tmp_path / "mine.jsonl").write_bytes(b"x" * 1000)
    forget_old(tmp_path, kept_bytes=650, kept=10)
    left = sorted(path.name for path in tmp_path.iterdir())
    kept = [f"run-2026010{n}-000000-1{part}.jsonl" for n in (3, 4, 5) for part in (".001", "")]
    assert left == ["mine.jsonl", *kept]
    assert new_recording(tmp_path).parent == tmp_path


def test_the_shipped_recording_is_a_real_proof_and_can_be_replayed(events):
    source = ReplaySource(DEMO_RECORDING, speed=0)
    source.start(events.put)
    assert source.wait(30)
    ended = events.of(wire.JobEnded)
    assert len(ended) >= 2 and all(job.verified and len(job.proof_hex) >= 384 for job in ended)
    assert events.of(wire.BufferReleased) and events.of(wire.MemSample)
