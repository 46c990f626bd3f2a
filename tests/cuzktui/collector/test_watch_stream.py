"""The prover's stream is taken up again after every break, and what was missed is counted."""

from __future__ import annotations

import queue
from concurrent import futures

import grpc
import pytest

from cuzktui.collector.watch import WatchStream, is_listening, target
from prover import wire
from prover.proto import console_pb2, console_pb2_grpc
from prover.wire import Policy


class ScriptedProver(console_pb2_grpc.ConsoleServicer):
    """Plays one script a connection; faults that a healthy prover would not produce can be put in."""

    def __init__(self, path: str) -> None:
        self.scripts: queue.Queue[list[bytes]] = queue.Queue()
        self.address = path
        self.server: grpc.Server | None = None

    def Watch(self, request, context):
        for line in self.scripts.get():
            yield console_pb2.EventLine(line=line)

    def start(self) -> None:
        self.server = grpc.server(futures.ThreadPoolExecutor(4))
        console_pb2_grpc.add_ConsoleServicer_to_server(self, self.server)
        self.server.add_insecure_port(target(self.address))
        self.server.start()

    def stop(self) -> None:
        self.scripts.put([])
        if self.server:
            self.server.stop(0).wait()


@pytest.fixture
def prover(tmp_path):
    scripted = ScriptedProver(str(tmp_path / "p.sock"))
    yield scripted
    scripted.stop()


@pytest.fixture
def stream(prover, events):
    started = WatchStream(prover.address, events.put)
    started.start()
    yield started
    started.stop()


def hello(pid: int = 7) -> bytes:
    return wire.encode(wire.Hello(t_ns=1, unix_ns=1, pid=pid))


def state(seq: int) -> bytes:
    return wire.encode(wire.State(t_ns=2, seq=seq, policy=Policy.RECYCLE))


def notice(seq: int) -> bytes:
    return wire.encode(wire.Notice(t_ns=3, seq=seq, text=f"n{seq}"))


def is_notice(seq: int):
    return lambda e: isinstance(e, wire.Notice) and e.seq == seq


def test_a_prover_that_starts_later_is_found(prover, stream, events):
    assert not is_listening(prover.address)
    prover.scripts.put([hello(), state(0), notice(1)])
    prover.start()
    events.wait(is_notice(1))
    kinds = [type(e) for e in events.all[:4]]
    assert kinds == [wire.SourceChanged, wire.Hello, wire.State, wire.Notice]
    assert events.all[0].alive


def test_a_break_is_said_and_what_was_missed_is_counted(prover, stream, events):
    prover.scripts.put([hello(), state(0), notice(1), notice(2)])
    prover.scripts.put([hello(), state(9), notice(10)])
    prover.start()
    events.wait(is_notice(10))
    alive = [e.alive for e in events.of(wire.SourceChanged)]
    assert alive[:3] == [True, False, True]
    assert [e.count for e in events.of(wire.Dropped)] == [7]


def test_a_gap_within_a_stream_is_counted(prover, stream, events):
    prover.scripts.put([hello(), state(0), notice(1), notice(5)])
    prover.start()
    events.wait(is_notice(5))
    assert [e.count for e in events.of(wire.Dropped)] == [3]


def test_another_prover_at_the_same_place_starts_its_own_count(prover, stream, events):
    prover.scripts.put([hello(7), state(0), notice(1), notice(2)])
    prover.scripts.put([hello(8), state(0), notice(1)])
    prover.start()
    events.wait(lambda e: isinstance(e, wire.Hello) and e.pid == 8)
    events.wait(lambda _: len(events.of(wire.Notice)) == 3)
    assert events.of(wire.Dropped) == []


def test_lines_that_are_no_events_are_left_out_with_one_warning(prover, stream, events):
    prover.scripts.put([hello(), b"{}\n", b"\xff\xfe\n", b'{"type":"mem","t_ns":"x"}\n', notice(1)])
    prover.start()
    events.wait(is_notice(1))
    assert len([e for e in events.of(wire.Notice) if e.level == "warning"]) == 1


def test_what_is_not_a_prover_is_said_once_and_not_at_every_attempt(tmp_path, events):
    address = str(tmp_path / "other.sock")
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_insecure_port(target(address))
    server.start()
    stream = WatchStream(address, events.put)
    stream.start()
    lost = events.wait(lambda e: isinstance(e, wire.SourceChanged))
    assert not lost.alive and "not a prover" in lost.detail
    server.stop(0).wait()
    again = ScriptedProver(address)
    again.scripts.put([hello(), state(0), notice(1)])
    again.start()
    try:
        events.wait(is_notice(1))
    finally:
        stream.stop()
        again.stop()
    # An attempt that meets the old server's end may tell of that too.
    said = events.of(wire.SourceChanged)
    assert [e.alive for e in said].count(True) == 1
    assert sum("not a prover" in e.detail for e in said) == 1


def test_several_lines_in_one_message_are_several_events(prover, stream, events):
    prover.scripts.put([hello() + state(0) + notice(1) + notice(2)])
    prover.start()
    events.wait(is_notice(2))
    assert len(events.of(wire.Notice)) == 2


@pytest.mark.parametrize(("address", "expected"), [
    ("/run/p.sock", "unix:/run/p.sock"), ("localhost:50051", "localhost:50051"), ("[::1]:9", "[::1]:9"),
])  # fmt: skip
def test_an_address_is_a_path_or_a_host_and_port(address, expected):
    assert target(address) == expected


def test_a_name_without_a_port_is_a_socket_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert target("p.sock") == f"unix:{tmp_path}/p.sock"
