"""The terminal is given back however the console ends; nothing of it is left behind."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuzktui import terminal

PROGRAM = Path(__file__).with_name("pty_program.py")
MODES = {"alternate screen": "1049", "mouse": "1000", "mouse motion": "1003", "paste": "2004"}
SHOWN = b"plateau"


class Terminal:
    """A program in a pseudo-terminal of 120 by 40, and all it has written."""

    def __init__(self, how: str) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        environ = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), how], stdin=slave, stdout=slave, stderr=slave, env=environ,
            start_new_session=True,
        )  # fmt: skip
        self.output = b""

    def read_until(self, wanted: bytes, timeout_s: float = 30.0) -> None:
        deadline = time.monotonic() + timeout_s
        while wanted not in self.output:
            assert time.monotonic() < deadline, self.output[-2000:]
            self._read(0.1)

    def wait(self, timeout_s: float = 30.0) -> int:
        """Exit status; what is written meanwhile is read, so that the program never blocks on it."""
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "did not end"
            self._read(0.05)
        while self._read(0.1):
            pass
        return self.process.returncode

    def _read(self, timeout_s: float) -> bool:
        ready, _, _ = select.select([self.master], [], [], timeout_s)
        if not ready:
            return False
        with contextlib.suppress(OSError):
            data = os.read(self.master, 65536)
            self.output += data
            return bool(data)
        return False

    def children(self) -> list[int]:
        """Processes of its session that still run."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, IndexError):
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                if int(fields[3]) == self.process.pid and fields[0] != "Z":
                    found.append(int(entry.name))
        return found

    def modes_left_on(self) -> list[str]:
        """Modes whose last switch was on."""
        text = self.output.decode("utf-8", "replace")
        left = []
        for name, number in MODES.items():
            switches = re.findall(rf"\x1b\[\?(?:\d+;)*{number}(?:;\d+)*([hl])", text)
            if switches and switches[-1] == "h":
                left.append(name)
        if (cursor := re.findall(r"\x1b\[\?25([hl])", text)) and cursor[-1] == "l":
            left.append("hidden cursor")
        return left

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in self.children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.hang_up()

    def hang_up(self) -> None:
        """Closes the terminal. Nobody is told by the kernel: it is no session's controlling terminal."""
        for end in (self.master, self.slave):
            with contextlib.suppress(OSError):
                os.close(end)
        self.master = self.slave = -1


@pytest.fixture
def start() -> Iterator[object]:
    opened: list[Terminal] = []

    def start_program(how: str) -> Terminal:
        opened.append(Terminal(how))
        return opened[-1]

    yield start_program
    for one in opened:
        one.close()


def assert_given_back(shown: Terminal) -> None:
    assert shown.modes_left_on() == []
    now = termios.tcgetattr(shown.slave)
    assert now[:4] == shown.before[:4], "line settings were not restored"
    assert shown.children() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_a_signal_restores_the_terminal_and_becomes_the_exit_code(start, number: signal.Signals) -> None:  # type: ignore[no-untyped-def]
    shown = start("scene")
    shown.read_until(SHOWN)
    shown.process.send_signal(number)
    assert shown.wait() == 128 + number
    assert b"source stopped" in shown.output
    assert_given_back(shown)


def test_the_key_q_restores_the_terminal_and_stops_the_source(start) -> None:  # type: ignore[no-untyped-def]
    shown = start("scene")
    shown.read_until(SHOWN)
    os.write(shown.master, b"q")
    assert shown.wait() == 0
    assert b"source stopped" in shown.output
    assert_given_back(shown)


def test_a_crash_of_the_drawing_process_restores_the_terminal(start) -> None:  # type: ignore[no-untyped-def]
    shown = start("segfault")
    assert shown.wait() == 128 + signal.SIGSEGV
    assert b"1049h" in shown.output
    assert_given_back(shown)


def test_a_kill_of_the_drawing_process_restores_the_terminal(start) -> None:  # type: ignore[no-untyped-def]
    shown = start("scene")
    shown.read_until(SHOWN)
    (drawing,) = [pid for pid in shown.children() if pid != shown.process.pid]
    os.kill(drawing, signal.SIGKILL)
    assert shown.wait() == 128 + signal.SIGKILL
    assert_given_back(shown)


def test_a_fault_in_the_console_restores_the_terminal_and_is_told(start) -> None:  # type: ignore[no-untyped-def]
    shown = start("error")
    assert shown.wait() == 1
    assert b"a fault in the console" in shown.output
    assert_given_back(shown)


def test_a_source_that_does_not_stop_is_ended_after_the_grace_period(start) -> None:  # type: ignore[no-untyped-def]
    shown = start("hang")
    shown.read_until(SHOWN)
    begin = time.monotonic()
    shown.process.send_signal(signal.SIGTERM)
    assert shown.wait() in (128 + signal.SIGTERM, 128 + signal.SIGKILL)
    assert time.monotonic() - begin < terminal.GRACE_S + 5
    assert_given_back(shown)


@pytest.mark.parametrize("how", ["scene", "hang"])
def test_a_terminal_that_is_closed_ends_the_console_though_nobody_says_so(start, how: str) -> None:  # type: ignore[no-untyped-def]
    shown = start(how)
    shown.read_until(SHOWN)
    shown.hang_up()
    assert shown.process.wait(terminal.GRACE_S + 10) in (128 + signal.SIGHUP, 128 + signal.SIGKILL)
    assert shown.children() == []


def test_when_the_parent_is_killed_the_drawing_process_ends_too(start) -> None:  # type: ignore[no-untyped-def]
    shown = start("scene")
    shown.read_until(SHOWN)
    shown.process.kill()
    shown.wait()
    deadline = time.monotonic() + 10
    while shown.children() and time.monotonic() < deadline:
        shown._read(0.05)
    assert_given_back(shown)


class _Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("term", ["", "dumb", "unknown"])
def test_a_terminal_without_a_cursor_is_refused_with_a_pointer(term: str) -> None:
    with pytest.raises(terminal.NoTerminal, match="cuzktui prove"):
        terminal.check_terminal(_Tty(), {"TERM": term})


def test_a_pipe_is_refused_with_a_pointer() -> None:
    with pytest.raises(terminal.NoTerminal, match=r"not a terminal.*record"):
        terminal.check_terminal(io.StringIO(), {"TERM": "xterm"})


def test_a_capable_terminal_is_taken() -> None:
    terminal.check_terminal(_Tty(), {"TERM": "xterm-256color"})
