"""Compiled kernels that no process has used for 30 days are deleted; a folder's own time says when one last did.

Each edited source leaves a folder of kernels behind that no version will ask for again. Whoever still runs on a deleted
one goes on: what it has loaded stays loaded, what it asks for anew is compiled anew.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

UNUSED_NS = 30 * 24 * 3600 * 1_000_000_000


def mark_used(folder: Path, now_ns: int) -> None:
    """Says that this process loads kernels from a folder; one that is not there yet is new when it comes.

    Args:
        now_ns: the time of day.
    """
    with suppress(OSError):
        os.utime(folder, ns=(now_ns, now_ns))


def prune(root: Path, now_ns: int) -> list[str]:
    """Deletes what lies unused in the cache folder, also the marks of compiled sources; returns the names.

    Args:
        root: `cache_root()`; whatever is in it was put there by this program.
        now_ns: the time of day.
    """
    deleted = []
    with suppress(OSError):
        for entry in list(os.scandir(root)):
            with suppress(OSError):
                if now_ns - entry.stat(follow_symlinks=False).st_mtime_ns <= UNUSED_NS:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)
                deleted.append(entry.name)
    return sorted(deleted)
