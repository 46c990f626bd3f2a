"""Everything the samplers say passes here, in order of arrival, to the recording and to standard output.

Neither may hold the samplers up: the inbox is bounded, standard output has a bounded queue and a thread of its own, and
what does not fit is counted and reported as `Dropped`. A recording that fails stops with a notice; the stream goes on.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

from cuzktui.collector.recorder import Recorder
from prover import wire
from prover.run import now

TICK_S = 0.04
INBOX_EVENTS = 200_000
QUEUE_BYTES = 8 << 20


class Outlet(threading.Thread):
    """Merges events into one stream.

    Args:
        out: file descriptor of the stream; None for no stream.
        lost: called once when whoever read the stream is gone, or when there is neither stream nor recording left.
        listen: told of every event, in order, in this thread.
    """

    def __init__(
        self, out: int | None, lost: Callable[[], None], listen: Callable[[wire.Event], None] | None = None
    ) -> None:
        super().__init__(name="outlet", daemon=True)
        self._lost, self._listen = lost, listen
        self.recording_failed = False
        self._inbox: deque[wire.Event] = deque()
        self._missed = 0
        self._recorder: Recorder | None = None
        self._pipe = None if out is None else Pipe(out, lost)
        self._finish = threading.Event()
        self._deleted_parts = 0

    def begin(self, hello: wire.Hello, recorder: Recorder | None) -> None:
        """Opens the stream with its first line and starts; events put before follow it."""
        self._recorder = recorder
        if self._pipe:
            self._pipe.push(wire.encode(hello), 1)
            self._pipe.start()
        self.start()

    def put(self, event: wire.Event) -> None:
        """Takes an event; thread-safe, microseconds, never blocks."""
        if len(self._inbox) < INBOX_EVENTS:
            self._inbox.append(event)
        else:
            self._missed += 1

    @property
    def written_bytes(self) -> int:
        return self._recorder.written_bytes if self._recorder else 0

    def run(self) -> None:
        while not self._finish.wait(TICK_S):
            self._drain()
        self._drain()
        self._close_recording()
        if self._pipe:
            self._pipe.finish()

    def finish(self) -> None:
        """Writes what is left and ends; returns when the recording is whole."""
        self._finish.set()
        self.join(timeout=5)

    def _drain(self) -> None:
        if self._missed:
            missed, self._missed = self._missed, 0
            self._inbox.append(wire.Dropped(t_ns=now(), count=missed))
        lines = []
        while self._inbox:
            event = self._inbox.popleft()
            line = wire.encode(event)
            lines.append(line)
            if self._listen:
                self._listen(event)
            if self._recorder:
                self._recorder.add(event, line)
        if self._recorder and lines:
            try:
                self._recorder.flush()
            except OSError as error:
                self._stop_recording(error)
        if self._pipe and lines:
            self._pipe.push(b"".join(lines), len(lines))
        self._tell_deleted_parts()

    def _stop_recording(self, error: OSError) -> None:
        assert self._recorder
        text = (
            f"recording stopped: {self._recorder.path}: {error.strerror or error}; "
            f"{self._recorder.written_bytes} bytes are kept. The stream and the proof go on; "
            "free some space and restart to record again"
        )
        self._recorder = None
        self.recording_failed = True
        self._inbox.append(wire.Notice(t_ns=now(), text=text, level="error"))
        if self._pipe is None:
            self._lost()

    def _tell_deleted_parts(self) -> None:
        if self._recorder and self._recorder.deleted_parts > self._deleted_parts:
            self._deleted_parts = self._recorder.deleted_parts
            text = f"disk budget of the recording reached: {self._deleted_parts} oldest part(s) deleted so far"
            self._inbox.append(wire.Notice(t_ns=now(), text=text, level="warning"))

    def _close_recording(self) -> None:
        if self._recorder:
            try:
                self._recorder.close()
            except OSError as error:
                self._stop_recording(error)
                self._drain()


class Pipe(threading.Thread):
    """Writes batches of lines to a descriptor that may be slow.

    Args:
        out: descriptor, blocking.
        lost: called once when the reader is gone.
        limit_bytes: what may wait; more is dropped and counted.
    """

    def __init__(self, out: int, lost: Callable[[], None], limit_bytes: int = QUEUE_BYTES) -> None:
        super().__init__(name="pipe", daemon=True)
        self._out, self._lost, self._limit_bytes = out, lost, limit_bytes
        self._batches: deque[bytes] = deque()
        self._waiting_bytes = self._dropped = 0
        self._ready = threading.Condition()
        self._finished = False

    def push(self, batch: bytes, count: int) -> None:
        """Queues `count` lines, or drops and counts them when too much is waiting."""
        with self._ready:
            if self._waiting_bytes + len(batch) > self._limit_bytes:
                self._dropped += count
                return
            if self._dropped:
                batch = wire.encode(wire.Dropped(t_ns=now(), count=self._dropped)) + batch
                self._dropped = 0
            self._batches.append(batch)
            self._waiting_bytes += len(batch)
            self._ready.notify()

    def finish(self, timeout_s: float = 1.0) -> None:
        """Ends after what is queued, or after the time when the reader does not read."""
        with self._ready:
            self._finished = True
            self._ready.notify()
        self.join(timeout_s)

    def run(self) -> None:
        while True:
            with self._ready:
                while not self._batches and not self._finished:
                    self._ready.wait()
                if not self._batches:
                    return
                batch = self._batches.popleft()
            try:
                done = 0
                while done < len(batch):
                    done += os.write(self._out, batch[done:])
            except OSError:
                self._lost()
                return
            with self._ready:
                self._waiting_bytes -= len(batch)
