"""A recording is delivered at the pace of its own times; the events keep the times they had."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from cuzktui.collector.reading import read_recording
from cuzktui.sources.base import Emit
from prover import wire
from prover.errors import BadFile, BadRequest

LONGEST_PAUSE_S = 2.0
"""A stretch without events (between two segments) is not waited out."""


class ReplaySource:
    """Replays a recording.

    Args:
        path: the recording.
        speed: how many recorded seconds pass in one; 0 delivers everything at once.

    Raises:
        BadFile: it is no recording.
    """

    kind = "replay"
    owns_prover = False

    def __init__(self, path: Path | str, speed: float = 1.0) -> None:
        self._path, self.speed = Path(path), speed
        self.title = self._path.name
        self._debt_s = 0.0
        self._halt = threading.Event()
        self._paused = threading.Event()
        self._thread: threading.Thread | None = None
        self._events = read_recording(self._path)
        self._first = next(self._events, None)

    def start(self, emit: Emit) -> None:
        self._thread = threading.Thread(target=self._deliver, args=(emit,), name="replay", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._halt.set()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join(timeout=2)

    def pause(self, paused: bool) -> None:
        """Holds the delivery, or goes on where it was held."""
        (self._paused.set if paused else self._paused.clear)()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until everything was delivered; whether it was."""
        if self._thread:
            self._thread.join(timeout_s)
        return self._thread is not None and not self._thread.is_alive()

    def restart_prover(self, lost_pid: int = 0) -> None:
        raise BadRequest("a recording has no prover to start")

    def _deliver(self, emit: Emit) -> None:
        if self._first is None:
            return
        t_ns = self._first.t_ns
        detail = f"{self._path} at {self.speed:g}x" if self.speed else str(self._path)
        emit(self._first)
        emit(wire.SourceChanged(t_ns=t_ns, source="replay", alive=True, detail=detail))
        end = "end of the recording"
        try:
            for event in self._events:
                t_ns = self._pace(t_ns, event.t_ns)
                if self._halt.is_set():
                    return
                emit(event)
        except BadFile as error:
            end = str(error)
        emit(wire.SourceChanged(t_ns=t_ns, source="replay", alive=False, detail=end))

    def _pace(self, last_ns: int, next_ns: int) -> int:
        """Waits as long as the recording did between two times; returns the later one."""
        while self._paused.is_set() and not self._halt.is_set():
            time.sleep(0.02)
        if self.speed > 0 and next_ns > last_ns:
            pause_s = min((next_ns - last_ns) / 1e9 / self.speed, LONGEST_PAUSE_S)
            # Below a millisecond the debt is carried by the next pause: the clock is coarser than the samples.
            self._debt_s += pause_s
            if self._debt_s > 0.001:
                begin = time.monotonic()
                self._halt.wait(self._debt_s)
                self._debt_s -= time.monotonic() - begin
        return max(last_ns, next_ns)
