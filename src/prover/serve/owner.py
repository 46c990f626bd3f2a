"""A prover ends with its owner: the owner's process is watched through a descriptor, so a reused number cannot fool it.

The kernel's parent-death signal is not used: it fires when the *thread* that started us ends, not the process.
"""

from __future__ import annotations

import errno
import os
import select
import threading
from collections.abc import Callable

from prover.errors import BadRequest

POLL_S = 0.5


def call_when_gone(owner_pid: int, callback: Callable[[], object]) -> threading.Thread:
    """Starts a thread that calls back once, when the owner has ended.

    Raises:
        BadRequest: there is no such process.
    """
    if owner_pid <= 1:
        raise BadRequest(f"owner pid {owner_pid} is not a process that can own a prover")
    try:
        descriptor: int | None = os.pidfd_open(owner_pid)
    except OSError as error:
        if error.errno == errno.ESRCH:
            raise BadRequest(f"owner process {owner_pid} does not exist") from error
        descriptor = None
    began = _start_ticks(owner_pid)

    def wait() -> None:
        if descriptor is not None:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll()
            os.close(descriptor)
        else:
            pause = threading.Event()
            while _start_ticks(owner_pid) == began is not None:
                pause.wait(POLL_S)
        callback()

    thread = threading.Thread(target=wait, name="prover/owner", daemon=True)
    thread.start()
    return thread


def _start_ticks(pid: int) -> str | None:
    """When the process started, in clock ticks since boot; None when it is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
