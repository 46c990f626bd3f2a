"""A session's folder of socket and logs is private to the user and goes with the session, or with the next one."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "cuzktui-session-"


def make_folder(keep: bool = False) -> Path:
    """A new folder, mode 0700; folders of sessions that were killed are removed first.

    Args:
        keep: a prover will live in it longer than its session does; nobody sweeps it.
    """
    base = Path(tempfile.gettempdir())
    _sweep(base)
    name = "cuzktui-kept-" if keep else f"{PREFIX}{os.getpid()}-"
    return Path(tempfile.mkdtemp(prefix=name, dir=base))


def _sweep(base: Path) -> None:
    for path in base.glob(f"{PREFIX}*"):
        owner = path.name.removeprefix(PREFIX).partition("-")[0]
        try:
            is_ours = path.lstat().st_uid == os.geteuid() and path.is_dir() and not path.is_symlink()
        except OSError:
            continue
        if is_ours and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            shutil.rmtree(path, ignore_errors=True)
