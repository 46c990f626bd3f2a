"""Recordings leave here in other people's formats; a file is complete under its name or not there at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from cuzktui.export.atomic import write_atomic
from prover.errors import BadRequest
from prover.wire import Event

FORMATS = ("chrome", "csv", "timing", "perfetto")
SUFFIXES = {".json": "chrome", ".csv": "csv", ".txt": "timing", ".log": "timing", ".pftrace": "perfetto"}


def export(events: Iterable[Event], path: Path | str, format_name: str = "") -> int:
    """Writes events as a trace; returns its size in bytes.

    Args:
        events: in order of arrival; a prefix of a stream gives a prefix of the trace, open spans marked as such.
        format_name: one of `FORMATS`; empty takes it from the path's suffix.

    Raises:
        BadRequest: the format is unknown, its optional package is missing, or the file cannot be written.
    """
    path = Path(path)
    name = format_name or SUFFIXES.get(path.suffix, "")
    if name not in FORMATS:
        raise BadRequest(f"no export format {name or path.suffix!r}; one of {', '.join(FORMATS)}")
    return write_atomic(path, _renderer(name)(list(events)))


def _renderer(name: str) -> Callable[[list[Event]], bytes]:
    if name == "chrome":
        from cuzktui.export.chrome import render_chrome

        return render_chrome
    if name == "csv":
        from cuzktui.export.csv_stages import render_csv

        return render_csv
    if name == "timing":
        from cuzktui.export.timing import render_timing

        return render_timing
    from cuzktui.export.perfetto import render_perfetto

    return render_perfetto
