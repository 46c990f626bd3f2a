"""A file written here appears whole or not at all: it is written beside its place, synced, and renamed over it."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from prover.errors import BadFile


@contextmanager
def atomic_writer(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens a seekable binary file that takes the place of `path` when the block ends without an exception.

    An existing pipe or device (`/dev/stdout`) cannot be replaced: it receives the finished bytes instead.

    Raises:
        BadFile: the folder cannot be written, or the disk is full.
    """
    target = Path(path)
    try:
        # A symbolic link keeps pointing where it did: the file behind it is what gets replaced.
        place = Path(os.path.realpath(target))
        special = place.exists() and not stat.S_ISREG(place.stat().st_mode)
        folder = None if special else place.parent
        descriptor, name = tempfile.mkstemp(prefix=f".{place.name[:100]}.", suffix=".tmp", dir=folder)
    except OSError as error:
        raise BadFile(target, "", f"cannot be written: {error.strerror}") from error
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w+b") as out:
            try:
                yield out
                out.flush()
                if special:
                    _copy_into(out, place)
                else:
                    os.fchmod(out.fileno(), 0o666 & ~_umask())
                    os.fsync(out.fileno())
            except OSError as error:
                raise BadFile(target, "", f"cannot be written: {error.strerror or error}") from error
        if not special:
            try:
                temporary.replace(place)
                _sync_folder(place.parent)
            except OSError as error:
                raise BadFile(target, "", f"cannot be written: {error.strerror}") from error
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes `content` to `path` atomically."""
    with atomic_writer(path) as out:
        out.write(content)


def write_json(path: str | os.PathLike[str], value: object) -> None:
    """Writes `value` as snarkjs lays out its JSON: one space of indent, no newline at the end."""
    write_bytes(path, json.dumps(value, indent=1).encode())


def _copy_into(source: BinaryIO, place: Path) -> None:
    source.seek(0)
    with place.open("wb") as sink:
        while chunk := source.read(1 << 20):
            sink.write(chunk)


def _umask() -> int:
    # /proc states it without the moment of change that os.umask(0) would open for other threads.
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    except OSError:
        pass
    return 0o022


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
