"""A socket path is taken only from the dead: a living prover's is never removed, and no other user may connect."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from prover.errors import BadRequest

MAX_PATH_BYTES = 107
"""sun_path of Linux, without its final zero."""
LOCK_S = 2.0


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Bind the socket inside: the path is free, the folder exists, and what is created is for this user only.

    A lock on the folder keeps two provers that start together from both finding the path dead.

    Raises:
        BadRequest: the path is too long, is not a socket, is served by a living process, or its folder cannot be used.
    """
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        raise BadRequest(f"socket path {path} is longer than {MAX_PATH_BYTES} bytes; use a shorter folder")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise BadRequest(f"socket folder {path.parent}: {error.strerror}") from error
    try:
        if os.fstat(folder).st_uid not in (0, os.getuid()):
            raise BadRequest(f"socket folder {path.parent} belongs to another user; choose another")
        _lock(folder)
        _remove_dead(path)
        mask = os.umask(0o177)
        try:
            yield
        finally:
            os.umask(mask)
    finally:
        os.close(folder)


def is_alive(path: Path) -> bool:
    """Whether something accepts connections there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True
        return True


def _lock(folder: int) -> None:
    """Waits a moment for the lock; a folder that somebody else keeps locked is used without it."""
    end = time.monotonic() + LOCK_S
    while time.monotonic() < end:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(0.02)
        except OSError:
            return


def _remove_dead(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadRequest(f"socket {path}: {error.strerror}") from error
    if not stat.S_ISSOCK(mode):
        raise BadRequest(f"{path} exists and is not a socket; choose another path")
    if is_alive(path):
        raise BadRequest(f"{path} is served by a living prover; stop it or choose another path")
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise BadRequest(f"{path} is a dead socket that cannot be removed: {error.strerror}") from error
