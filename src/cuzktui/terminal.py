"""The terminal is given back as it was found, however the console ends: by key, by signal or by a crash of its process.

The console runs in a child; the parent keeps the terminal's settings, waits, passes signals on and, when the child did
not end by itself, writes the reset sequences and restores termios. A terminal that is closed counts as SIGHUP: the
kernel tells the leader of a session alone, which may be a `make` that waits for this very program.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import IO, Any

from prover.errors import BadRequest

RESET = (
    "\x1b[?2026l"  # synchronised output
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"  # mouse reporting
    "\x1b[?2004l\x1b[?1004l"  # bracketed paste, focus reports
    "\x1b[<u"  # kitty keyboard protocol
    "\x1b[?1049l\x1b[?25h\x1b[0m"  # alternate screen, cursor, colours
)
"""Undoes every mode a full-screen program sets; harmless where a mode was not set."""

GRACE_S = 5
"""How long the console may take to end after a signal before it is killed."""
_PR_SET_PDEATHSIG = 1
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class NoTerminal(BadRequest):
    """Standard output cannot show a full-screen console."""


def check_terminal(stdout: IO[Any], environ: Mapping[str, str]) -> None:
    """Refuses a place where a full-screen console cannot work.

    Raises:
        NoTerminal: standard output is not a terminal, or TERM says that it cannot place a cursor.
    """
    remedy = "use a verb that needs none: cuzktui prove sha256-chain:8 --json, record, report or export"
    if not stdout.isatty():
        raise NoTerminal(f"standard output is not a terminal; {remedy}")
    term = environ.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        raise NoTerminal(f"TERM={term or '(not set)'} cannot show a full-screen console; {remedy}")


def run_supervised(console: Callable[[], int]) -> int:
    """Runs the console in a child process and gives the terminal back whatever happens to it.

    Args:
        console: returns an exit status; runs in the child, so it must not rely on threads started before.
    Returns:
        The child's exit status, 128 + n when signal n ended it.
    """
    saved = _termios_of(sys.stdin)
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _run_child(console, parent)
    received: list[int] = []

    def forward(number: int, _frame: object) -> None:
        received.append(number)
        signal.alarm(GRACE_S)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    def end(_number: int, _frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    previous = {number: signal.signal(number, forward) for number in _FORWARDED}
    previous[signal.SIGALRM] = signal.signal(signal.SIGALRM, end)
    over = threading.Event()
    with contextlib.suppress(OSError, ValueError):
        screen = sys.stdout.fileno()
        threading.Thread(target=_raise_hangup, args=(screen, threading.get_ident(), over), daemon=True).start()
    try:
        _, status = os.waitpid(pid, 0)
    finally:
        over.set()
        signal.alarm(0)
        for number, handler in previous.items():
            signal.signal(number, handler)
    code = os.waitstatus_to_exitcode(status)
    # Textual leaves the alternate screen itself on a plain exit; writing it again would move the cursor for nothing
    if code < 0 or code >= 128:
        restore(sys.stdout, sys.stdin, saved)
    if code < 0:
        return 128 - code
    return 128 + received[0] if received else code


def _raise_hangup(screen: int, thread: int, over: threading.Event) -> None:
    """SIGHUP to a thread of this process once the terminal has gone."""
    poller = select.poll()
    poller.register(screen, 0)
    poller.poll()
    if not over.is_set():
        signal.pthread_kill(thread, signal.SIGHUP)


def restore(stdout: IO[str], stdin: IO[Any], saved: list[Any] | None) -> None:
    """Writes the reset sequences and restores the line settings; a terminal that is gone is no error."""
    with contextlib.suppress(OSError, ValueError):
        stdout.write(RESET)
        stdout.flush()
    if saved is not None:
        import termios

        with contextlib.suppress(termios.error, OSError, ValueError):
            termios.tcsetattr(stdin.fileno(), termios.TCSADRAIN, saved)


def _termios_of(stdin: IO[Any]) -> list[Any] | None:
    import termios

    try:
        return termios.tcgetattr(stdin.fileno())
    except (termios.error, OSError, ValueError):
        return None


def _run_child(console: Callable[[], int], parent: int) -> None:
    code = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(128 + signal.SIGHUP)
        code = console()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    except BaseException:
        import traceback

        restore(sys.stdout, sys.stdin, None)
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
