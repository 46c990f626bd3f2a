"""What a command is doing goes to stderr as one changing line, and only to a terminal; results go to stdout."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Self, TextIO

from prover import wire
from prover.run import Run

REFRESH_S = 0.1


class Progress:
    """A Run whose stages and progress are shown while the `with` block lasts.

    Args:
        stream: where to; nothing is written when it is not a terminal.
        job_id: the Run's.
    """

    def __init__(self, stream: TextIO | None = None, job_id: str = "") -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._shown = self._stream.isatty()
        self._lock = threading.Lock()
        self._text, self._width, self._drawn_s = "", 0, 0.0
        self.run = Run(self._emit, job_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._draw("", force=True)

    def _emit(self, event: wire.Event) -> None:
        match event:
            case wire.StageBegan():
                self._draw(_stage(event.stage, event.circuit))
            case wire.Progress():
                share = f"{100 * event.done // event.total:3d} %" if event.total else ""
                self._draw(f"{_stage(event.stage, event.circuit)} {share} {event.what}".rstrip())
            case wire.Notice(level="warning" | "error"):
                self._draw("", force=True)
                print(f"cuzk-prover: {event.text}", file=self._stream, flush=True)

    def _draw(self, text: str, *, force: bool = False) -> None:
        if not self._shown:
            return
        with self._lock:
            at_s = time.monotonic()
            if not force and at_s - self._drawn_s < REFRESH_S:
                return
            self._drawn_s = at_s
            self._stream.write("\r" + text.ljust(self._width) + ("\r" if not text else ""))
            self._stream.flush()
            self._width = len(text)


def _stage(stage: wire.Stage, circuit: int | None) -> str:
    return stage.value if circuit is None else f"{stage.value} {circuit}"
