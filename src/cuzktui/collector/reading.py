"""A recording is read line by line, bounded in memory; a torn line loses itself and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cuzktui.collector.recorder import parts_of
from prover import wire
from prover.errors import BadFile, WireError


def read_recording(path: Path | str) -> Iterator[wire.Event]:
    """Events of a recording in order of arrival, over all its parts.

    A line cut off by a crash is left out when it is the last, and reported as `Dropped(count=1)` elsewhere. Events of
    a type this version does not know are left out.

    Raises:
        BadFile: there is no such recording, it does not begin with a hello, or its schema is another one.
    """
    first = Path(path)
    parts = parts_of(first)
    if not parts:
        raise BadFile(path, "", "there is no such recording")
    if not any(part.stat().st_size for part in parts):
        raise BadFile(path, "", "is empty; this is no recording of cuzktui")
    for part in parts:
        yield from _read_part(part)


def _read_part(path: Path) -> Iterator[wire.Event]:
    t_ns = 0
    try:
        file = path.open("rb")
    except OSError as error:
        raise BadFile(path, "", f"cannot be read: {error.strerror}") from error
    with file:
        for number, line in enumerate(_lines(file, path), 1):
            if not line.endswith(b"\n"):
                if number == 1:
                    raise BadFile(path, "line 1", "is not a whole line; this is no recording of cuzktui")
                return
            try:
                event = wire.decode(line)
            except WireError as error:
                if number == 1 or "schema" in str(error):
                    raise BadFile(path, f"line {number}", str(error)) from error
                event = wire.Dropped(t_ns=t_ns, count=1)
            if number == 1 and not isinstance(event, wire.Hello):
                raise BadFile(path, "line 1", "is not a hello; this is no recording of cuzktui")
            if event is not None:
                t_ns = event.t_ns
                yield event


def _lines(file, path: Path) -> Iterator[bytes]:
    """Lines of at most the wire's limit; a longer one is skipped as one bad line."""
    while True:
        try:
            line = file.readline(wire.MAX_LINE_BYTES + 1)
        except OSError as error:
            raise BadFile(path, f"offset {file.tell()}", f"cannot be read: {error.strerror}") from error
        if not line:
            return
        if len(line) <= wire.MAX_LINE_BYTES:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(wire.MAX_LINE_BYTES)
        yield b"?\n"
