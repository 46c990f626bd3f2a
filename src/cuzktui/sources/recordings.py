"""Recordings that nobody named live in the user's state folder, the newest kept within one budget for all."""

from __future__ import annotations

import os
import time
from pathlib import Path

from cuzktui.collector.recorder import parts_of

KEPT_BYTES = 4 << 30
KEPT_RECORDINGS = 50


def state_folder() -> Path:
    """Where recordings go without a name: `$XDG_STATE_HOME/cuzktui`, by default `~/.local/state/cuzktui`."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "cuzktui"


def new_recording(folder: Path | None = None) -> Path:
    """A name for a recording that begins now; older ones beyond the budget are deleted."""
    folder = folder or state_folder()
    forget_old(folder)
    return folder / f"run-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.jsonl"


def forget_old(folder: Path, kept_bytes: int = KEPT_BYTES, kept: int = KEPT_RECORDINGS) -> None:
    """Deletes the oldest recordings of the folder until the rest fits."""
    try:
        found = sorted(folder.glob("run-*-*.jsonl"), key=lambda path: path.stat().st_mtime, reverse=True)
        total = 0
        for number, path in enumerate(path for path in found if path.name.count(".") == 1):
            parts = parts_of(path)
            total += sum(part.stat().st_size for part in parts)
            if number >= kept - 1 or total > kept_bytes:
                for part in parts:
                    part.unlink(missing_ok=True)
    except OSError:
        # Somebody else tidies the same folder: what is gone needs no deleting.
        return
