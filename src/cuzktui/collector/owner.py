"""The owner speaks to its collector over standard input in event lines; when that ends, so does the collector.

`ProcessSeen` names a process to observe; every other event (markers, notices, what a lost collector missed) is passed
into the stream as it is. The line ends with the owner, however it ended; the kernel's parent-death signal
is not used, since it fires when the thread that started us ends.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from prover import wire
from prover.errors import WireError
from prover.run import now


class OwnerLine(threading.Thread):
    """Reads the owner's lines.

    Args:
        watch: observes a process; raises OSError when there is none.
        put: passes an event on.
        gone: called when the owner has closed the line or died.
    """

    def __init__(
        self, watch: Callable[[int, str], None], put: Callable[[wire.Event], None], gone: Callable[[], None]
    ) -> None:
        super().__init__(name="owner", daemon=True)
        self._watch, self._put, self._gone = watch, put, gone

    def run(self) -> None:
        with suppress(OSError):
            while line := sys.stdin.buffer.readline(wire.MAX_LINE_BYTES):
                self._obey(line)
        self._gone()

    def _obey(self, line: bytes) -> None:
        try:
            event = wire.decode(line)
        except WireError as error:
            event = wire.Notice(t_ns=now(), text=f"a line from the owner is left out: {error}", level="warning")
        if not isinstance(event, wire.ProcessSeen):
            if event is not None:
                self._put(event)
            return
        try:
            self._watch(event.pid, event.role)
        except OSError as error:
            text = f"process {event.pid} cannot be watched: {error.strerror or error}"
            self._put(wire.Notice(t_ns=now(), text=text, level="error"))
