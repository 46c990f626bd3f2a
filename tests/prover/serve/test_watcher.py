"""A watcher's messages: few while events are many, at once where somebody waits, and nothing lost between them."""

from __future__ import annotations

import queue
import threading
import time

from prover import wire
from prover.run import now
from prover.serve.hub import Hub
from prover.serve.watcher import BATCH_BYTES, GATHER_S, Watcher
from prover.wire import Policy, Stage

PATIENCE_S = 10.0


class Received:
    """Batches as a stream's thread takes them, each with the time it came at."""

    def __init__(self, watcher: Watcher) -> None:
        self.batches: queue.Queue[tuple[float, list[wire.Event]]] = queue.Queue()
        self._watcher = watcher
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def _take(self) -> None:
        for lines in self._watcher.batches():
            events = [event for line in lines.splitlines() if (event := wire.decode(line)) is not None]
            self.batches.put((time.monotonic(), events))

    def next(self) -> tuple[float, list[wire.Event]]:
        return self.batches.get(timeout=PATIENCE_S)

    def end(self) -> list[list[wire.Event]]:
        """What came and was not asked for, after the watcher was closed."""
        self._watcher.close()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        return [self.batches.get_nowait()[1] for _ in range(self.batches.qsize())]


def watched() -> tuple[Hub, Received]:
    hub = Hub(wire.Hello(t_ns=1, unix_ns=2), Policy.RECYCLE)
    return hub, Received(hub.watch()[1])


def span() -> wire.Span:
    return wire.Span(t_ns=now(), job_id="j", name="g1_sums", begin_ns=1)


def test_events_that_nobody_waits_for_are_gathered_into_few_messages_and_none_is_lost():
    hub, received = watched()
    count, began = 0, time.monotonic()
    while time.monotonic() - began < 4 * GATHER_S:
        hub.emit(span())
        count += 1
        time.sleep(0.001)
    took_s = time.monotonic() - began
    batches = received.end()
    assert [e.seq for batch in batches for e in batch] == list(range(1, count + 1))
    assert len(batches) <= took_s / GATHER_S + 2


def test_the_end_of_the_computation_and_of_a_job_is_sent_at_once_with_what_was_gathered_before():
    urgent = (
        wire.InnerEnded(t_ns=1, job_id="j", inner_ns=1),
        wire.JobEnded(t_ns=1, job_id="j", outcome=wire.Outcome.PROVED),
        wire.Notice(t_ns=1, text="read this"),
    )
    for event in urgent:
        waited_s = []
        for _ in range(5):
            hub, received = watched()
            hub.emit(span())
            began = time.monotonic()
            hub.emit(event)
            at, batch = received.next()
            waited_s.append(at - began)
            kinds = [type(e) for e in (batch if len(batch) == 2 else [*batch, *received.next()[1]])]
            assert kinds == [wire.Span, type(event)]
            received.end()
        assert min(waited_s) < GATHER_S / 4


def test_an_ordinary_event_is_not_sent_before_it_was_gathered():
    hub, received = watched()
    began = time.monotonic()
    hub.emit(wire.StageBegan(t_ns=1, job_id="j", stage=Stage.SYNTH))
    at, _ = received.next()
    assert at - began >= 0.9 * GATHER_S
    assert received.end() == []


def test_a_backlog_of_many_messages_is_sent_without_pauses():
    hub = Hub(wire.Hello(t_ns=1, unix_ns=2), Policy.RECYCLE)
    watcher = hub.watch()[1]
    text = "x" * 1000
    for _ in range(20 * BATCH_BYTES // 1000):
        hub.emit(wire.Progress(t_ns=1, job_id="j", stage=Stage.SYNTH, done=1, total=2, what=text))
    received = Received(watcher)
    first, _ = received.next()
    last = [received.next()[0] for _ in range(18)][-1]
    assert last - first < 9 * GATHER_S
    received.end()


def test_closing_ends_a_reader_that_gathers_without_waiting_for_more():
    hub, received = watched()
    hub.emit(span())
    began = time.monotonic()
    assert [len(batch) for batch in received.end()] == [1]
    assert time.monotonic() - began < PATIENCE_S / 2
