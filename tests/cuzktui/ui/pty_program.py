"""Runs the supervised console in a pseudo-terminal for the terminal's tests; argv says what its source does."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))


class Source:
    """Delivers a scene; `crash` kills the console's process in the middle, `hang` never stops."""

    kind = "live"
    title = "pty"
    owns_prover = False

    def __init__(self, how: str) -> None:
        self._how = how

    def start(self, emit: object) -> None:
        from scene import one_proof

        for event in one_proof().events:
            emit(event)  # type: ignore[operator]
        if self._how == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self._how == "error":
            raise RuntimeError("a fault in the console")

    def stop(self) -> None:
        print("source stopped", flush=True)
        if self._how == "hang":
            signal.pause()

    def restart_prover(self, lost_pid: int = 0) -> None:
        """There is none."""


if __name__ == "__main__":
    from cuzktui.showing import run

    sys.exit(run(Source(sys.argv[1])))
