"""The hub: numbered events, the present for a late watcher, and losses that are said."""

from __future__ import annotations

import threading
import time

from prover import wire
from prover.run import now
from prover.serve.hub import KEPT_TRACES, Hub
from prover.wire import Owner, Place, Policy, Stage


def hub() -> Hub:
    return Hub(wire.Hello(t_ns=1, unix_ns=2, pid=77, backend="cpu"), Policy.RECYCLE)


def decoded(lines: list[bytes]) -> list[wire.Event]:
    return [event for line in lines if (event := wire.decode(line)) is not None]


def drain(watcher) -> list[wire.Event]:
    watcher.close()
    return decoded(list(watcher.lines()))


def submitted(job_id: str, t_ns: int = 10) -> wire.JobSubmitted:
    return wire.JobSubmitted(t_ns=t_ns, job_id=job_id, circuit="cubic", num_circuits=1, policy=Policy.RECYCLE)


def allocated(number: int, owner: Owner = Owner.ABC) -> wire.BufferAllocated:
    return wire.BufferAllocated(
        t_ns=20 + number, buffer_id=number, job_id="j", label="a", owner=owner, place=Place.HOST, size_bytes=100
    )


def test_every_event_is_numbered_from_one_and_every_watcher_gets_it():
    h = hub()
    watchers = [h.watch()[1] for _ in range(3)]
    for i in range(5):
        h.emit(wire.Notice(t_ns=i, text=str(i)))
    for watcher in watchers:
        events = drain(watcher)
        assert [e.seq for e in events] == [1, 2, 3, 4, 5]
        assert [e.text for e in events] == ["0", "1", "2", "3", "4"]


def test_a_late_watcher_is_told_the_present():
    h = hub()
    h.emit(submitted("running"))
    h.emit(wire.StageBegan(t_ns=11, job_id="running", stage=Stage.QUEUE))
    h.emit(submitted("waiting", 12))
    h.emit(wire.StageEnded(t_ns=13, job_id="running", stage=Stage.QUEUE))
    h.emit(wire.StageBegan(t_ns=14, job_id="running", stage=Stage.SYNTH))
    h.emit(wire.Progress(t_ns=15, job_id="running", stage=Stage.SYNTH, done=1, total=4))
    h.emit(wire.Progress(t_ns=16, job_id="running", stage=Stage.SYNTH, done=2, total=4))
    h.emit(allocated(1))
    h.emit(allocated(2))
    h.emit(wire.BufferTouched(t_ns=30, buffer_id=2, resident_bytes=100))
    h.emit(wire.BufferReleased(t_ns=31, buffer_id=1, begin_ns=30, size_bytes=100, how="munmap"))
    h.emit(wire.PolicyChanged(t_ns=32, policy=Policy.SYNC_4K))
    present, watcher = h.watch()
    hello, state, *past = decoded(present)
    assert isinstance(hello, wire.Hello) and hello.pid == 77 and hello.unix_ns > 2
    assert isinstance(state, wire.State)
    assert (state.policy, state.queued, state.running, state.seq) == (Policy.SYNC_4K, ["waiting"], "running", 12)
    assert [e.t_ns for e in past] == sorted(e.t_ns for e in past)
    assert {e.job_id for e in past if isinstance(e, wire.JobSubmitted)} == {"running", "waiting"}
    assert [e.done for e in past if isinstance(e, wire.Progress)] == [2]
    assert [e.buffer_id for e in past if isinstance(e, wire.BufferAllocated)] == [2]
    assert [e.buffer_id for e in past if isinstance(e, wire.BufferTouched)] == [2]
    assert all(e.seq == 0 for e in past)
    h.emit(wire.Notice(t_ns=40, text="next"))
    assert [e.seq for e in drain(watcher)] == [13]


def test_an_ended_job_and_its_late_marks_are_not_part_of_the_present():
    h = hub()
    h.emit(submitted("a"))
    h.emit(wire.StageEnded(t_ns=11, job_id="a", stage=Stage.QUEUE))
    h.emit(wire.JobEnded(t_ns=12, job_id="a", outcome=wire.Outcome.PROVED))
    h.emit(wire.StageEnded(t_ns=13, job_id="a", stage=Stage.RELEASE))
    present, _ = h.watch()
    _, state, *past = decoded(present)
    assert (state.running, state.queued, past) == (None, [], [])


def test_compiling_is_part_of_the_present_only_while_it_lasts():
    h = hub()
    h.emit(wire.StageBegan(t_ns=1, job_id="", stage=Stage.COMPILE))
    h.emit(wire.Progress(t_ns=2, job_id="", stage=Stage.COMPILE, done=1, total=9))
    assert [type(e) for e in decoded(h.watch()[0])[2:]] == [wire.StageBegan, wire.Progress]
    h.emit(wire.StageEnded(t_ns=3, job_id="", stage=Stage.COMPILE))
    assert decoded(h.watch()[0])[2:] == []


def test_memory_of_ended_jobs_is_bounded():
    h = hub()
    for i in range(50):
        h.emit(submitted(f"j{i}"))
        h.emit(wire.JobEnded(t_ns=12, job_id=f"j{i}", outcome=wire.Outcome.FAILED))
    kept = [i for i in range(50) if h.trace(f"j{i}") is not None]
    assert kept == list(range(50 - KEPT_TRACES, 50))


def test_a_watcher_that_does_not_read_is_told_how_many_it_lost():
    h = hub()
    _, slow = h.watch(limit=10)
    _, quick = h.watch()
    for i in range(25):
        h.emit(wire.Notice(t_ns=i, text=str(i)))
    first = [wire.decode(slow.get(1.0)) for _ in range(10)]
    h.emit(wire.Notice(t_ns=25, text="25"))
    rest = drain(slow)
    assert [e.text for e in first] == [str(i) for i in range(10)]
    assert isinstance(rest[0], wire.Dropped) and rest[0].count == 15
    assert [e.text for e in rest[1:]] == ["25"]
    assert len(drain(quick)) == 26


def test_emitting_costs_less_than_five_microseconds_with_two_watchers():
    h = hub()
    h.watch()
    h.watch()
    event = wire.Span(t_ns=1, job_id="j", name="msm", begin_ns=0, ops=12, op="fp_mul", moved_bytes=64)
    batches = []
    for _ in range(15):
        began = time.thread_time_ns()
        for _ in range(1000):
            h.emit(event)
        batches.append((time.thread_time_ns() - began) / 1000)
    assert min(batches) < 5000, f"{min(batches):.0f} ns an event"


def test_nothing_falls_between_the_present_and_what_follows():
    h = hub()
    stop = threading.Event()

    def chatter() -> None:
        while not stop.is_set():
            h.emit(wire.Notice(t_ns=now(), text="x"))

    thread = threading.Thread(target=chatter)
    thread.start()
    try:
        for _ in range(50):
            present, watcher = h.watch()
            state = decoded(present)[1]
            first = wire.decode(watcher.get(5.0))
            assert first.seq == state.seq + 1
            h.unwatch(watcher)
    finally:
        stop.set()
        thread.join()


def test_closing_the_hub_ends_every_watch_after_what_is_queued():
    h = hub()
    _, watcher = h.watch()
    h.emit(wire.Notice(t_ns=1, text="last"))
    h.close()
    assert [wire.decode(line).text for line in watcher.lines()] == ["last"]
