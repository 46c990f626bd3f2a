"""Events that can be waited for without sleeping."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from prover import wire

READINGS = wire.MemSample | wire.CpuSample | wire.HostSample


class Events:
    """Takes events from any thread and waits for the one that is wanted."""

    def __init__(self) -> None:
        self.all: list[wire.Event] = []
        self._new = threading.Condition()

    def put(self, event: wire.Event) -> None:
        with self._new:
            self.all.append(event)
            self._new.notify_all()

    def wait(self, wanted: Callable[[wire.Event], bool], timeout_s: float = 120.0, begin: int = 0) -> wire.Event:
        """The first event from the `begin`-th on that is wanted, once it is there."""
        deadline, seen = time.monotonic() + timeout_s, begin
        with self._new:
            while True:
                for event in self.all[seen:]:
                    if wanted(event):
                        return event
                seen = max(begin, len(self.all))
                left = deadline - time.monotonic()
                told = [event for event in self.all if not isinstance(event, READINGS)]
                assert left > 0, f"no such event in {timeout_s} s; {len(self.all)} others came, the last: {told[-4:]}"
                self._new.wait(left)

    def of(self, kind: type) -> list:
        with self._new:
            return [event for event in self.all if isinstance(event, kind)]


@pytest.fixture
def events() -> Events:
    return Events()
