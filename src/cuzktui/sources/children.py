"""Processes of a session: each in a group of its own, with its errors in a log, and none outlives the session."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path


class Child:
    """A started process.

    Args:
        command: program and arguments; see `python_module`.
        log: file that takes what it says (and standard output, unless that is piped).
        piped: gives it a standard input and output to talk through.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, command: list[str], log: Path, *, piped: bool = False) -> None:
        with log.open("ab") as errors:
            self.popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE if piped else errors,
                stderr=errors,
                start_new_session=True,
            )
        self.log = log
        self.pid = self.popen.pid
        self._lock = threading.Lock()

    @property
    def is_alive(self) -> bool:
        """Whether it runs; leaves the exit status for whoever else reads it."""
        if self.popen.returncode is not None:
            return False
        with suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None
        return False

    def wait_end(self) -> None:
        """Waits until it has ended, without collecting its exit status."""
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)

    def collect(self) -> int:
        """Its exit status: negative for a signal."""
        return self.popen.wait()

    def send(self, line: bytes) -> bool:
        """Writes a line to its standard input; False when it does not listen any more."""
        try:
            with self._lock:
                assert self.popen.stdin
                self.popen.stdin.write(line)
                self.popen.stdin.flush()
        except (OSError, ValueError):
            return False
        return True

    def end(self, patience_s: float, number: int = signal.SIGTERM) -> None:
        """Ends it and its group: asked first, killed when the time is over."""
        if self.popen.returncode is None:
            with suppress(OSError):
                os.kill(self.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self.popen.wait(patience_s)
        # The group may hold workers that outlived their leader.
        with suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(1)

    def last_words(self) -> str:
        """Last line of its log, for a message; empty when it said nothing."""
        try:
            text = self.log.read_bytes()[-2000:].decode("utf-8", "replace")
        except OSError:
            return ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1][:300] if lines else ""


def python_module(module: str, *arguments: str) -> list[str]:
    """The command that runs a module with the Python that runs this."""
    return [sys.executable, "-m", module, *arguments]


def how(status: int) -> str:
    """An exit status in words."""
    if status >= 0:
        return f"exited with code {status}"
    try:
        return f"was killed by signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"was killed by signal {-status}"
