"""An export reads the recording as far as it has been written: a consistent prefix, whatever is running."""

from __future__ import annotations

import time
from pathlib import Path

from cuzktui import format as fmt
from prover.errors import BadRequest


def export_trace(recording: Path, folder: Path) -> str:
    """Writes a Chrome trace of a recording into a folder; returns the sentence to show.

    Raises:
        BadFile: the recording cannot be read.
        BadRequest: the trace cannot be written.
    """
    from cuzktui.collector.reading import read_recording
    from cuzktui.export import export

    path = folder / f"cuzktui-{time.strftime('%Y%m%d-%H%M%S')}.trace.json"
    try:
        written = export(read_recording(recording), path, "chrome")
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror or error}; change to a folder that can be written") from error
    return f"{fmt.size(written)} written to {path}; open it in ui.perfetto.dev"
