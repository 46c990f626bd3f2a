"""A file appears under its name only when it is whole and on disk."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from prover.errors import BadRequest


def write_atomic(path: Path, data: bytes) -> int:
    """Writes `data` beside `path`, then renames; returns the size.

    Raises:
        BadRequest: the folder is missing or not writable, or the disk is full; nothing is left behind then.
    """
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise BadRequest(f"{path}: cannot be written: {error.strerror or error}") from error
    return len(data)
