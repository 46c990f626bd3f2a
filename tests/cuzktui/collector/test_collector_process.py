"""The collector as a process: its stream, its ends, and what it says of how others end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from cuzktui.collector.reading import read_recording
from prover import wire

MIB = 1 << 20


class Running:
    """A collector in a process, read line by line."""

    def __init__(self, *arguments: str, before: str = "", **more) -> None:
        command = [sys.executable, "-m", "cuzktui.collector", *arguments]
        if before:
            command = ["bash", "-c", f'{before}; exec "$@"', "bash", *command]
        self.popen = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more
        )

    def wait(self, wanted) -> tuple[wire.Event, list[wire.Event]]:
        """The wanted event and all before it."""
        before = []
        while line := self.popen.stdout.readline():
            event = wire.decode(line)
            if wanted(event):
                return event, before
            before.append(event)
        raise AssertionError(f"the stream ended first: {self.popen.stderr.read().decode()[-500:]}")

    def rest(self) -> list[wire.Event]:
        return [wire.decode(line) for line in self.popen.stdout]

    def close(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()
        for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            pipe.close()


@pytest.fixture
def collector():
    started: list[Running] = []

    def start(*arguments: str, **more) -> Running:
        started.append(Running(*arguments, **more))
        return started[-1]

    yield start
    for running in started:
        running.close()


def of(kind: type):
    return lambda event: isinstance(event, kind)


def test_the_stream_begins_with_a_hello_and_the_process_that_is_watched(collector, program):
    running = collector("--pid", str(program.pid))
    hello, before = running.wait(of(wire.Hello))
    assert before == [] and hello.source == "collector" and hello.unix_ns > 1_600_000_000 * 10**9
    seen, _ = running.wait(of(wire.ProcessSeen))
    assert seen.pid == program.pid and "memory_program" in seen.command
    for kind in (wire.MemSample, wire.CpuSample, wire.HostSample):
        running.wait(of(kind))


def test_the_collector_loads_neither_a_screen_nor_a_compiler_nor_a_prover():
    code = (
        "import sys, cuzktui.collector.__main__\n"
        "bad = [m for m in ('textual', 'rich', 'numba', 'numpy', 'cupy', 'grpc', 'pynvml', 'prover.prove') "
        "if m in sys.modules]\nsys.exit(f'loaded {bad}' if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_host_without_a_gpu_says_why(collector):
    pytest.importorskip("pynvml")
    running = collector()
    hello, _ = running.wait(of(wire.Hello))
    if hello.devices:
        pytest.skip("there is a GPU here")
    assert "NVIDIA" in hello.gpu_note or "NVML" in hello.gpu_note


@pytest.mark.parametrize(("number", "field", "value"), [(signal.SIGKILL, "signal", 9), (signal.SIGTERM, "signal", 15)])
def test_a_killed_process_is_reported_with_its_signal_and_the_stream_goes_on(collector, program, number, field, value):
    running = collector("--pid", str(program.pid))
    running.wait(of(wire.MemSample))
    os.kill(program.pid, number)
    end, _ = running.wait(of(wire.ProcessEnded))
    assert getattr(end, field) == value and end.exit_code is None and f"signal {value}" in end.reason
    _, between = running.wait(of(wire.CollectorCost))
    assert not any(isinstance(e, wire.MemSample) and e.t_ns > end.t_ns for e in between)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_with_a_whole_recording(collector, program, tmp_path, number):
    running = collector("--pid", str(program.pid), "--record", str(tmp_path / "run.jsonl"))
    hello, _ = running.wait(of(wire.Hello))
    running.wait(of(wire.CpuSample))
    running.popen.send_signal(number)
    rest = running.rest()
    assert running.popen.wait(10) == 0
    recorded = list(read_recording(tmp_path / "run.jsonl"))
    assert recorded[0] == hello and recorded[-1] == rest[-1]


def test_killed_outright_it_leaves_a_recording_that_is_a_prefix_of_its_stream(collector, program, tmp_path):
    running = collector("--pid", str(program.pid), "--record", str(tmp_path / "run.jsonl"))
    hello, _ = running.wait(of(wire.Hello))
    running.wait(of(wire.CollectorCost))
    running.popen.kill()
    running.popen.wait()
    recorded = list(read_recording(tmp_path / "run.jsonl"))
    assert recorded[0] == hello and len(recorded) > 80


def test_it_ends_with_its_owner_and_not_before(collector, program):
    running = collector("--owned", "--pid", str(program.pid))
    running.wait(of(wire.MemSample))
    assert running.popen.poll() is None
    running.popen.stdin.close()
    assert running.popen.wait(10) == 0


def test_the_owner_can_name_a_process_and_put_events_into_the_stream(collector, program):
    running = collector("--owned")
    marker = wire.Marker(t_ns=5, text="here")
    seen, unknown = (wire.ProcessSeen(t_ns=1, pid=pid, command="") for pid in (program.pid, 1 << 22))
    orders = [seen, marker, unknown]
    running.popen.stdin.write(b"".join(wire.encode(order) for order in orders) + b"nonsense\n")
    running.popen.stdin.flush()
    told = []
    while len(told) < 2 or not any(isinstance(e, wire.MemSample) for e in told):
        event, before = running.wait(lambda e: isinstance(e, (wire.Notice, wire.MemSample)))
        told += [*before, event] if isinstance(event, wire.Notice) or not told else [event]
    texts = " ".join(e.text for e in told if isinstance(e, wire.Notice))
    assert marker in told and "cannot be watched" in texts
    assert any(isinstance(e, wire.MemSample) and e.pid == program.pid for e in told)


def test_a_process_that_does_not_exist_is_refused_at_once(collector):
    running = collector("--pid", str(1 << 22))
    assert running.popen.wait(10) == 2
    assert b"cannot be watched" in running.popen.stderr.read()


def test_a_full_disk_stops_the_recording_with_a_notice_and_the_stream_goes_on(collector, program, tmp_path):
    path = tmp_path / "run.jsonl"
    running = collector("--pid", str(program.pid), "--record", str(path), before="ulimit -f 8")
    notice, before = running.wait(lambda e: isinstance(e, wire.Notice))
    assert notice.level == "error" and "recording stopped" in notice.text and str(path) in notice.text
    running.wait(of(wire.MemSample))
    running.wait(of(wire.CollectorCost))
    kept = list(read_recording(path))
    assert 5_000 < path.stat().st_size <= 8192
    assert [e for e in kept if isinstance(e, wire.MemSample)] == [e for e in before if isinstance(e, wire.MemSample)][
        : sum(isinstance(e, wire.MemSample) for e in kept)
    ]


def test_a_recording_that_cannot_be_opened_costs_nothing_but_itself(collector, program):
    running = collector("--pid", str(program.pid), "--record", "/proc/no/such/run.jsonl")
    notice, _ = running.wait(of(wire.Notice))
    assert notice.level == "error" and "no recording" in notice.text
    running.wait(of(wire.MemSample))


def test_a_reader_that_does_not_read_stops_neither_sampling_nor_recording(collector, program, tmp_path):
    path = tmp_path / "run.jsonl"
    running = collector("--pid", str(program.pid), "--record", str(path))
    end = select.poll()
    end.register(running.popen.stderr)
    # 64 KiB of pipe are full after some seconds; the recording must outgrow that while nobody reads.
    while not path.exists() or path.stat().st_size < 100_000:
        assert running.popen.poll() is None
        end.poll(100)
        program.order(f"map {4 * MIB}")
        program.order("unmap")
    running.popen.terminate()
    assert running.popen.wait(10) == 0


def test_its_own_price_is_small_and_told(collector, program):
    running = collector("--pid", str(program.pid))
    first, _ = running.wait(of(wire.CollectorCost))
    second, _ = running.wait(of(wire.CollectorCost))
    share = (second.cpu_ns - first.cpu_ns) / (second.t_ns - first.t_ns)
    assert second.samples >= 60
    assert share < 0.06
    assert 0 < second.cost_p99_ns < 5_000_000
