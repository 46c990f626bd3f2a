"""Processes that must be gone."""

from __future__ import annotations

import os
import select


def is_gone(pid: int, timeout_s: float = 10.0) -> bool:
    """Whether a process has ended (a zombie has) within the time."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([pidfd], [], [], timeout_s)[0])
    finally:
        os.close(pidfd)
