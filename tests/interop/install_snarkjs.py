"""snarkjs, pinned by package-lock.json, is installed once per lock into the user's cache, whole or not at all."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import platformdirs

HERE = Path(__file__).parent
TIMEOUT_S = 240


def install() -> Path | str:
    """The folder with `node_modules`, or why there is none."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed: snarkjs cannot run"
    names = ("package.json", "package-lock.json")
    lock = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in names)).hexdigest()[:16]
    home = Path(platformdirs.user_cache_dir("cuzktui")) / f"interop-{lock}"
    if home.is_dir():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="interop-", dir=home.parent))
    try:
        for name in names:
            shutil.copy(HERE / name, folder)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if done.returncode:
            return f"npm ci failed, snarkjs is not installed: {' '.join(done.stderr.split())[-200:]}"
        folder.rename(home)
        return home
    except subprocess.TimeoutExpired:
        return f"npm ci took more than {TIMEOUT_S} s: snarkjs is not installed"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
