"""A Feed joins a source to its snapshot: the source's thread only appends, the screen's thread only folds."""

from __future__ import annotations

import time
from collections import deque

from cuzktui.model import store
from cuzktui.model.snapshot import Snapshot
from cuzktui.sources.base import Source
from prover import wire

INBOX_EVENTS = 400_000
"""Events that may wait; older ones are then dropped and counted, as a bounded queue must."""


class Feed:
    """One stream of events and what has become of it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.snapshot: Snapshot = store.empty(is_replay=source.kind == "replay")
        self._inbox: deque[wire.Event] = deque(maxlen=INBOX_EVENTS)
        self._received = 0
        self._taken = 0
        self._noticed = 0

    def start(self) -> None:
        """Begins to receive.

        Raises:
            BadRequest: the source cannot be started.
        """
        self.source.start(self.receive)

    def stop(self) -> None:
        self.source.stop()

    def receive(self, event: wire.Event) -> None:
        """Takes an event, from any thread."""
        self._received += 1
        self._inbox.append(event)

    def drain(self, budget_s: float) -> bool:
        """Folds what has arrived for at most `budget_s`; returns whether more is waiting."""
        deadline = time.perf_counter() + budget_s
        snapshot, inbox = self.snapshot, self._inbox
        while inbox:
            for _ in range(min(64, len(inbox))):
                snapshot = store.apply(snapshot, inbox.popleft())
                self._taken += 1
            if time.perf_counter() > deadline:
                break
        missing = self._received - self._taken - len(inbox)
        if missing > 0:
            self._taken += missing
            snapshot = store.apply(snapshot, wire.Dropped(t_ns=snapshot.t_ns, count=missing))
        self.snapshot = snapshot
        return bool(inbox)

    def add(self, event: wire.Event) -> None:
        """Folds an event of the console's own, at once."""
        self.snapshot = store.apply(self.snapshot, event)
        if isinstance(event, wire.Notice):
            self._noticed += 1

    def fresh_warnings(self) -> list[wire.Notice]:
        """Warnings and errors that came with the stream since the last time this was asked."""
        notices = self.snapshot.notices
        seen = len(notices) + notices.forgotten
        fresh = seen - self._noticed
        self._noticed = seen
        return [n for n in notices[-fresh:] if n.level != "info"] if fresh > 0 else []
