"""The command line in a process of its own, and a look at what it started."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path


def cuzktui(*arguments: object, timeout: float = 120.0, **more) -> subprocess.CompletedProcess[str]:
    """Runs one command to its end."""
    command = [sys.executable, "-m", "cuzktui", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, **more)


def children_of(pid: int) -> list[int]:
    """Processes that this one started and that live."""
    try:
        words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(word) for word in words]


def is_gone(pid: int, timeout_s: float = 10.0) -> bool:
    """Whether a process has ended within the time."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([pidfd], [], [], timeout_s)[0])
    finally:
        os.close(pidfd)
