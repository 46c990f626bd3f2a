"""Recordings: whole lines, nothing lost but quiet, parts within the budget, readable after any crash."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzktui.collector.reading import read_recording
from cuzktui.collector.recorder import HELD_NS, Recorder, parts_of
from prover import wire
from prover.errors import BadFile

S = 1_000_000_000
HELLO = wire.Hello(t_ns=0, unix_ns=0, source="collector", pid=1)
SUBMITTED = wire.JobSubmitted(t_ns=0, job_id="1", circuit="cubic", num_circuits=1, policy=wire.Policy.SYNC_4K)


def mem(t_ns: int, resident_bytes: int = 1 << 30, pid: int = 5) -> wire.MemSample:
    return wire.MemSample(t_ns=t_ns, pid=pid, resident_bytes=resident_bytes, shared_bytes=0)


def write(path, events, **options) -> Recorder:
    recorder = Recorder(path, HELLO, **options)
    for event in events:
        recorder.add(event, wire.encode(event))
        recorder.flush()
    recorder.close()
    return recorder


def samples(path) -> list[wire.MemSample]:
    return [event for event in read_recording(path) if isinstance(event, wire.MemSample)]


def quiet(begin_s: float, end_s: float, hz: int = 50, **more) -> list[wire.MemSample]:
    return [mem(int((begin_s + i / hz) * S), **more) for i in range(int((end_s - begin_s) * hz))]


def test_what_was_added_is_read_back_in_order_of_arrival(tmp_path):
    events = [mem(3), SUBMITTED, mem(1), wire.Notice(t_ns=2, text="ü \n \x00"), mem(2)]
    write(tmp_path / "run.jsonl", events)
    assert list(read_recording(tmp_path / "run.jsonl")) == [HELLO, *events]


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(1, 400))
def test_a_recording_cut_anywhere_loads_up_to_its_last_whole_line(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("cut") / "run.jsonl"
    events = [mem(i) for i in range(20)]
    write(path, events)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    kept = whole[:-cut].count(b"\n")
    assert list(read_recording(path)) == [HELLO, *events][:kept]


def test_a_new_segment_goes_on_after_a_torn_line(tmp_path):
    path = tmp_path / "run.jsonl"
    write(path, [mem(1), mem(2)])
    path.write_bytes(path.read_bytes()[:-9])
    second = msgspec.structs.replace(HELLO, t_ns=5, segment=1)
    recorder = Recorder(path, second)
    recorder.add(mem(6), wire.encode(mem(6)))
    recorder.close()
    assert list(read_recording(path)) == [HELLO, mem(1), second, mem(6)]


def test_a_damaged_line_in_the_middle_is_counted_and_the_rest_is_read(tmp_path):
    path = tmp_path / "run.jsonl"
    write(path, [mem(1), mem(2), mem(3)])
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2][:20] + b"\n"
    path.write_bytes(b"".join(lines))
    assert list(read_recording(path)) == [HELLO, mem(1), wire.Dropped(t_ns=1, count=1), mem(3)]


def test_an_endless_line_is_skipped_without_being_held_in_memory(tmp_path):
    path = tmp_path / "run.jsonl"
    write(path, [mem(1)])
    with path.open("ab") as file:
        file.write(b"x" * (3 << 20) + b"\n" + wire.encode(mem(2)))
    assert list(read_recording(path))[1:] == [mem(1), wire.Dropped(t_ns=1, count=1), mem(2)]


def test_an_event_of_a_later_version_is_left_out(tmp_path):
    path = tmp_path / "run.jsonl"
    write(path, [mem(1)])
    with path.open("ab") as file:
        file.write(b'{"type":"telepathy","t_ns":3}\n' + wire.encode(mem(4)))
    assert list(read_recording(path)) == [HELLO, mem(1), mem(4)]


@pytest.mark.parametrize(("content", "words"), [
    (b"", "is empty"),
    (b"hello\n", "line 1"),
    (b"\x00" * 5000, "line 1"),
    (wire.encode(mem(1)), "hello"),
    (b'{"type":"hello","t_ns":1,"unix_ns":1,"schema":99}\n', "another version"),
    (b'{"type":"hello"', "not a whole line"),
])  # fmt: skip
def test_what_is_no_recording_is_refused_in_one_sentence(tmp_path, content, words):
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadFile, match=words) as caught:
        list(read_recording(path))
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_recording_is_refused(tmp_path):
    with pytest.raises(BadFile, match="no such recording"):
        list(read_recording(tmp_path / "run.jsonl"))


def test_a_quiet_stretch_keeps_one_reading_a_second(tmp_path):
    write(tmp_path / "run.jsonl", quiet(100, 160))
    kept = samples(tmp_path / "run.jsonl")
    assert 5 * 50 <= len(kept) < 5 * 50 + 2 * 60 + 60
    longest = max(b.t_ns - a.t_ns for a, b in itertools.pairwise(kept))
    assert longest <= 1.05 * S


def test_no_reading_of_a_release_is_thinned_nor_of_the_second_before(tmp_path):
    before, after = quiet(100, 150), quiet(150.1, 190, resident_bytes=1 << 20)
    release = [mem(150 * S + i * 1_000_000, (1 << 30) - i * (10 << 20)) for i in range(100)]
    write(tmp_path / "run.jsonl", [*before, *release, *after])
    kept = set(samples(tmp_path / "run.jsonl"))
    assert kept.issuperset(release)
    assert kept.issuperset(e for e in before if e.t_ns > 150 * S - HELD_NS)
    assert len(kept) < len(before) + len(release) + len(after) - 2000


def test_nothing_is_thinned_while_a_job_is_open(tmp_path):
    events = [SUBMITTED, *quiet(100, 130)]
    write(tmp_path / "run.jsonl", events)
    assert len(samples(tmp_path / "run.jsonl")) == 30 * 50


def test_each_series_keeps_its_own_reading_a_second(tmp_path):
    both = [e for pair in zip(quiet(100, 130), quiet(100, 130, pid=6), strict=True) for e in pair]
    write(tmp_path / "run.jsonl", both)
    kept = samples(tmp_path / "run.jsonl")
    late = [e for e in kept if 110 * S < e.t_ns < 128 * S]
    assert {e.pid for e in late} == {5, 6}
    assert abs(sum(e.pid == 5 for e in late) - sum(e.pid == 6 for e in late)) <= 1


def test_thinning_can_be_switched_off(tmp_path):
    write(tmp_path / "run.jsonl", quiet(100, 130), thin=False)
    assert len(samples(tmp_path / "run.jsonl")) == 30 * 50


def test_the_parts_stay_within_the_budget_and_read_as_one(tmp_path):
    path, budget = tmp_path / "run.jsonl", 80_000
    seen = wire.ProcessSeen(t_ns=1, pid=5, command="prover")
    recorder = write(path, [seen, *quiet(100, 200, hz=100)], budget_bytes=budget, thin=False)
    parts = parts_of(path)
    assert sum(part.stat().st_size for part in parts) <= budget
    assert recorder.deleted_parts > 0 and not path.exists() and len(parts) > 3
    events = list(read_recording(path))
    times = [e.t_ns for e in events if isinstance(e, wire.MemSample)]
    assert times == sorted(times) and times[-1] == quiet(100, 200, hz=100)[-1].t_ns
    assert times[-1] - times[0] == (len(times) - 1) * S // 100
    assert seen in events


def test_every_part_can_be_read_alone(tmp_path):
    path = tmp_path / "run.jsonl"
    write(path, quiet(100, 160), budget_bytes=80_000, thin=False)
    for part in parts_of(path):
        assert isinstance(next(iter(read_recording(part))), wire.Hello)


def test_a_name_with_wildcards_finds_its_own_parts_only(tmp_path):
    write(tmp_path / "run[1].jsonl", quiet(100, 140), budget_bytes=80_000, thin=False)
    write(tmp_path / "run1.jsonl", quiet(100, 140), budget_bytes=80_000, thin=False)
    assert all(part.name.startswith("run[1].") for part in parts_of(tmp_path / "run[1].jsonl"))
    assert len(parts_of(tmp_path / "run[1].jsonl")) > 1


def test_a_full_disk_is_an_error_that_leaves_whole_lines(tmp_path, monkeypatch):
    import os

    path = tmp_path / "run.jsonl"
    recorder = Recorder(path, HELLO)
    real = os.write

    def half_then_full(fd, data):
        if len(data) < 50:
            raise OSError(28, "No space left on device")
        return real(fd, data[: len(data) // 2])

    for i in range(10):
        recorder.add(mem(i), wire.encode(mem(i)))
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(os, "write", half_then_full)
        recorder.flush()
    assert path.read_bytes().endswith(b"\n")
    read = list(read_recording(path))
    assert read == [HELLO, *(mem(i) for i in range(len(read) - 1))] and len(read) > 5


def test_an_hour_of_readings_is_read_in_seconds(tmp_path):
    import time

    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        file.write(wire.encode(HELLO))
        file.writelines(wire.encode(mem(i * 20_000_000)) for i in range(180_000))
    begin = time.process_time()
    assert sum(1 for _ in read_recording(path)) == 180_001
    assert time.process_time() - begin < 4
