"""A watcher costs the prover a message now and then, never one an event.

A message over gRPC wakes three threads of this process and holds the interpreter for a fifth of a millisecond, taken
from the thread that launches kernels. So lines are gathered, and only what somebody waits for is sent at once.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import suppress

from prover import wire
from prover.run import now

Line = bytes
WATCHER_EVENTS = 65_536
"""Lines one watcher may leave unread: about 15 MB, or ten minutes of a busy proof."""
BATCH_BYTES = 262_144
GATHER_S = 0.1
URGENT = frozenset(
    {wire.JobSubmitted, wire.JobEnded, wire.InnerEnded, wire.PolicyChanged, wire.Notice, wire.BufferLeaked}
)
"""Answers to a key, what the operator must read, and the beginning of a release, for which readings become faster."""
_CLOSED = None


class Watcher:
    """One subscriber's bounded queue."""

    def __init__(self, limit: int) -> None:
        self._lines: queue.SimpleQueue[Line | None] = queue.SimpleQueue()
        self._limit, self._dropped = limit, 0
        self._hurry = threading.Lock()
        """Free while something urgent may be queued."""
        self._hurry.acquire()

    def push(self, line: Line, *, is_urgent: bool = False) -> None:
        """Called under the hub's lock; wakes the reader only when it has nothing yet or when the line is urgent."""
        if self._lines.qsize() >= self._limit:
            self._dropped += 1
            return
        if self._dropped:
            self._lines.put(wire.encode(wire.Dropped(t_ns=now(), count=self._dropped)))
            self._dropped = 0
        self._lines.put(line)
        if is_urgent:
            self._wake()

    def close(self) -> None:
        """Ends `lines` after what is queued; safe from any thread, any number of times."""
        self._lines.put(_CLOSED)
        self._wake()

    def lines(self) -> Iterator[Line]:
        """Lines as they come, until the watcher is closed."""
        while (line := self._lines.get()) is not _CLOSED:
            yield line

    def batches(self) -> Iterator[bytes]:
        """Whole lines joined: what came within GATHER_S of the first, less when something urgent is among it.

        A batch ends at BATCH_BYTES; the next one follows it then without a pause.
        """
        is_full = False
        for line in self.lines():
            if not is_full:
                self._hurry.acquire(timeout=GATHER_S)
            batch, size_bytes = [line], len(line)
            while size_bytes < BATCH_BYTES and not self._lines.empty():
                more = self._lines.get()
                if more is _CLOSED:
                    self.close()
                    break
                batch.append(more)
                size_bytes += len(more)
            is_full = size_bytes >= BATCH_BYTES
            yield b"".join(batch)

    def get(self, timeout_s: float) -> Line | None:
        """The next line; None when the time is over or the watcher was closed."""
        try:
            return self._lines.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def _wake(self) -> None:
        with suppress(RuntimeError):
            self._hurry.release()
