"""The memory schedule: true readings, kept deadlines, fast while memory falls."""

from __future__ import annotations

import itertools
import os
import statistics
import threading
import time

import pytest

from cuzktui.collector import proc
from cuzktui.collector.memory import AFTER_FALL_NS
from cuzktui.collector.proc import MAX_TRUSTED, CpuReader, StatmReader, describe
from prover import wire
from prover.run import now

MIB = 1 << 20


def is_reading(event):
    return isinstance(event, wire.MemSample)


def test_a_reading_agrees_with_what_the_kernel_says_elsewhere(program):
    program.order(f"map {64 * MIB}")
    resident, shared = StatmReader(program.pid).read()
    with open(f"/proc/{program.pid}/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    assert abs(resident - int(fields["VmRSS"].split()[0]) * 1024) < MIB
    assert abs((resident - shared) - int(fields["RssAnon"].split()[0]) * 1024) < MIB
    assert resident - shared > 64 * MIB


def test_a_process_that_has_ended_gives_no_reading(program):
    reader = StatmReader(program.pid)
    program.popen.kill()
    program.popen.wait()
    assert reader.read() is None
    reader.close()


def test_a_process_that_does_not_exist_is_refused(sampler):
    with pytest.raises(OSError):
        sampler.watch(1 << 22)


def test_at_rest_readings_come_every_twenty_milliseconds(sampler, events, program):
    sampler.watch(program.pid)
    events.wait(lambda e: is_reading(e) and len(events.of(wire.MemSample)) >= 40)
    times = [e.t_ns for e in events.of(wire.MemSample)]
    assert 15e6 < statistics.median(b - a for a, b in itertools.pairwise(times)) < 25e6


def test_a_release_that_is_due_is_read_at_once_and_fast(sampler, events, program):
    sampler.watch(program.pid)
    events.wait(is_reading)
    sampler.hot(now() + 300_000_000)
    asked = now()
    events.wait(lambda e: is_reading(e) and len(events.of(wire.MemSample)) >= 60)
    times = [e.t_ns for e in events.of(wire.MemSample) if e.t_ns > asked]
    assert statistics.median(b - a for a, b in itertools.pairwise(times)) < 3e6


def test_a_gigabyte_of_small_pages_falls_through_ten_levels(sampler, events, program):
    program.order(f"map {1024 * MIB}")
    sampler.watch(program.pid)
    sampler.hot(now() + 2_000_000_000)
    events.wait(is_reading)
    begin, end = program.order("unmap")
    events.wait(lambda e: is_reading(e) and e.t_ns > end)
    during = [e for e in events.of(wire.MemSample) if begin <= e.t_ns <= end + 2_000_000]
    assert len({e.resident_bytes for e in during}) >= 10
    assert all(b.resident_bytes <= a.resident_bytes for a, b in itertools.pairwise(during))


def test_falling_memory_speeds_the_schedule_up_by_itself_and_it_calms_down_again(sampler, events, program):
    program.order(f"map {256 * MIB}")
    sampler.watch(program.pid)
    events.wait(is_reading)
    _, end = program.order("unmap")
    events.wait(lambda e: is_reading(e) and e.t_ns > end + 3 * AFTER_FALL_NS)
    times = [e.t_ns for e in events.of(wire.MemSample)]
    gaps_ns = [(a, b - a) for a, b in itertools.pairwise(times)]
    fast = [gap for at, gap in gaps_ns if end + 30e6 < at < end + AFTER_FALL_NS - 50e6]
    calm = [gap for at, gap in gaps_ns if at > end + 2 * AFTER_FALL_NS]
    assert statistics.median(fast) < 8e6
    assert statistics.median(calm) > 15e6


def test_every_reading_says_what_it_cost_and_how_late_it_was(sampler, events, program):
    sampler.watch(program.pid)
    events.wait(lambda e: is_reading(e) and len(events.of(wire.MemSample)) >= 50)
    late, cost = sampler.take_costs()
    assert len(late) == len(cost) >= 50
    assert statistics.median(cost) < 1_000_000
    assert all(value >= 0 for value in late)
    assert len(sampler.take_costs()[0]) <= 2


def test_two_processes_are_read_side_by_side_until_one_is_left_out(sampler, events, program):
    sampler.watch(program.pid)
    sampler.watch(os.getpid())
    events.wait(lambda e: is_reading(e) and e.pid == os.getpid())
    sampler.unwatch(os.getpid())
    at = now()
    events.wait(lambda e: is_reading(e) and e.pid == program.pid and e.t_ns > at + 100_000_000)
    assert all(e.pid == program.pid for e in events.of(wire.MemSample) if e.t_ns > at + 20_000_000)


def test_cpu_time_is_counted_and_split_and_threads_are_told_apart(program):
    program.order("threads 3")
    reader = CpuReader(program.pid)
    before = reader.read()
    program.order("spin 0.3")
    after = reader.read()
    assert before.threads == after.threads == 4
    assert sum(after.states.values()) == 4
    assert 0.25e9 < after.run_ns - before.run_ns < 0.5e9
    assert after.user_ns > before.user_ns
    reader.close()


def test_threads_that_sleep_on_are_asked_for_their_cpu_time_only(program, monkeypatch):
    program.order("threads 20")
    first_of(CpuReader(program.pid), lambda sample: sample.states == {"S": 21})
    reader, asked = CpuReader(program.pid), []
    monkeypatch.setattr(proc, "_pread", lambda fd: asked.append(fd) or os.pread(fd, 512, 0))
    whole, looks = reader.read(), [len(asked)]
    for _ in range(MAX_TRUSTED + 1):
        at = len(asked)
        assert reader.read().states == whole.states == {"S": 21}
        looks.append(len(asked) - at)
    assert looks == [63, *[21] * MAX_TRUSTED, 63]
    reader.close()


def test_a_thread_that_slept_and_runs_is_told_at_once(program):
    program.order("threads 3")
    reader = CpuReader(program.pid)
    asleep = first_of(reader, lambda sample: sample.states == {"S": 4})
    program.send("spin 0.3")
    running = first_of(reader, lambda sample: sample.run_ns > asleep.run_ns + 20_000_000)
    assert running.states == {"R": 1, "S": 3}
    assert sum(running.wchan.values()) <= 3
    program.answer()
    assert first_of(reader, lambda sample: "R" not in sample.states).states == {"S": 4}
    reader.close()


def test_a_thread_that_takes_the_place_of_another_is_read():
    reader, leave, stay = CpuReader(os.getpid()), threading.Event(), threading.Event()
    first, second = (threading.Thread(target=event.wait) for event in (leave, stay))
    first.start()
    before = reader.read()
    leave.set()
    first.join()
    second.start()
    after = first_of(reader, lambda sample: sum(sample.states.values()) == before.threads)
    assert after.threads == before.threads and after.run_ns >= before.run_ns
    stay.set()
    second.join()
    reader.close()


def first_of(reader, wanted):
    """The first reading that is wanted, within five seconds."""
    end = now() + 5_000_000_000
    while not wanted(sample := reader.read()):
        assert now() < end, sample
    return sample


def test_page_faults_of_touched_memory_are_counted(program):
    reader = CpuReader(program.pid)
    before = reader.read()
    program.order(f"map {32 * MIB}")
    after = reader.read()
    assert after.minor_faults - before.minor_faults >= 32 * MIB // 4096
    reader.close()


def test_cpu_time_never_goes_back_when_threads_end():
    reader = CpuReader(os.getpid())
    go = threading.Event()

    def work():
        sum(range(200_000))
        go.wait()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    before = reader.read()
    go.set()
    for thread in threads:
        thread.join()
    assert reader.read().run_ns >= before.run_ns
    reader.close()


def test_a_process_is_introduced_by_its_command_and_start(program):
    seen = describe(program.pid, "foreign")
    assert "memory_program.py" in seen.command
    assert seen.role == "foreign"
    assert abs(time.time_ns() - seen.start_unix_ns) < 60e9
