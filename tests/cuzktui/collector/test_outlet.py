"""The outlet: a slow reader loses events and is told how many, a gone reader and a full disk stop nothing else."""

from __future__ import annotations

import os
import threading

from cuzktui.collector.outlet import Outlet, Pipe
from cuzktui.collector.reading import read_recording
from cuzktui.collector.recorder import Recorder
from prover import wire

HELLO = wire.Hello(t_ns=0, unix_ns=0, source="collector")


def notice(number: int) -> wire.Notice:
    return wire.Notice(t_ns=number, text=str(number))


def decoded(data: bytes) -> list[wire.Event]:
    return [wire.decode(line) for line in data.splitlines()]


def read_all(fd: int) -> bytes:
    chunks = []
    while chunk := os.read(fd, 1 << 16):
        chunks.append(chunk)
    return b"".join(chunks)


def test_a_reader_that_stalls_is_told_how_many_lines_it_has_missed():
    read_end, write_end = os.pipe()
    pipe = Pipe(write_end, lost=lambda: None, limit_bytes=200_000)
    pipe.start()
    line = len(wire.encode(notice(0)))
    for number in range(20_000):
        pipe.push(wire.encode(notice(number)), 1)
    assert 20_000 * line > 200_000 + (1 << 16)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(read_all(read_end)))
    reader.start()
    while pipe._waiting_bytes:
        reader.join(0.01)
    pipe.push(wire.encode(notice(20_000)), 1)
    pipe.finish()
    os.close(write_end)
    reader.join(10)
    events = decoded(received[0])
    notices = [e for e in events if isinstance(e, wire.Notice)]
    dropped = sum(e.count for e in events if isinstance(e, wire.Dropped))
    assert len(notices) + dropped == 20_001
    assert dropped > 0 and notices[-1] == notice(20_000)
    assert isinstance(events[-2], wire.Dropped)


def test_pushing_never_waits_for_the_reader():
    import time

    read_end, write_end = os.pipe()
    pipe = Pipe(write_end, lost=lambda: None, limit_bytes=1 << 20)
    pipe.start()
    begin = time.monotonic()
    for number in range(50_000):
        pipe.push(wire.encode(notice(number)), 1)
    assert time.monotonic() - begin < 3
    os.close(read_end)
    pipe.finish()
    os.close(write_end)


def test_a_reader_that_goes_away_is_noticed_once():
    read_end, write_end = os.pipe()
    gone = []
    pipe = Pipe(write_end, lost=lambda: gone.append(1))
    pipe.start()
    os.close(read_end)
    pipe.push(b"x\n", 1)
    pipe.join(5)
    pipe.push(b"y\n", 1)
    assert gone == [1]
    os.close(write_end)


def test_stream_and_recording_carry_the_same_events_in_the_same_order(tmp_path):
    read_end, write_end = os.pipe()
    outlet = Outlet(write_end, lost=lambda: None)
    outlet.put(notice(1))
    outlet.begin(HELLO, Recorder(tmp_path / "run.jsonl", HELLO))
    for number in range(2, 500):
        outlet.put(notice(number))
    outlet.finish()
    os.close(write_end)
    expected = [HELLO, *(notice(number) for number in range(1, 500))]
    assert decoded(read_all(read_end)) == expected == list(read_recording(tmp_path / "run.jsonl"))


class FullDisk(Recorder):
    """A recorder whose disk is full from the second flush on."""

    flushes = 0

    def flush(self) -> None:
        self.flushes += 1
        if self.flushes > 1:
            raise OSError(28, "No space left on device")
        super().flush()


def test_a_full_disk_stops_the_recording_with_a_notice_and_the_stream_goes_on(tmp_path):
    read_end, write_end = os.pipe()
    outlet = Outlet(write_end, lost=lambda: None)
    outlet.put(notice(1))
    outlet.begin(HELLO, FullDisk(tmp_path / "run.jsonl", HELLO))
    data = b""
    while notice(1) not in decoded(data):
        data += os.read(read_end, 1 << 16)
    outlet.put(notice(2))
    while b"recording stopped" not in data:
        data += os.read(read_end, 1 << 16)
    outlet.put(notice(3))
    outlet.finish()
    os.close(write_end)
    events = decoded(data + read_all(read_end))
    told = next(e for e in events if isinstance(e, wire.Notice) and e.level == "error")
    assert "No space left" in told.text and str(tmp_path) in told.text
    assert notice(2) in events and notice(3) in events
    assert outlet.recording_failed
    assert list(read_recording(tmp_path / "run.jsonl")) == [HELLO, notice(1)]


def test_without_a_stream_a_full_disk_ends_the_work(tmp_path):
    ended = threading.Event()
    outlet = Outlet(None, lost=ended.set)
    outlet.begin(HELLO, FullDisk(tmp_path / "run.jsonl", HELLO))
    outlet.put(notice(1))
    while not outlet.written_bytes > len(wire.encode(HELLO)):
        ended.wait(0.01)
    outlet.put(notice(2))
    assert ended.wait(10)
    outlet.finish()
