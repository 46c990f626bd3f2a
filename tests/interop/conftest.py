"""snarkjs, pinned by package-lock.json, is installed once per lock into the user cache; without it tests say why."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest

HERE = Path(__file__).parent
Snarkjs = Callable[..., subprocess.CompletedProcess[str]]


def install() -> Path:
    """The folder with `node_modules`; skips the calling test where Node.js, npm or the registry cannot be reached."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: snarkjs cannot run")
    lock = (HERE / "package-lock.json").read_bytes() + (HERE / "package.json").read_bytes()
    home = Path(platformdirs.user_cache_dir("cuzktui")) / f"interop-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not home.is_dir():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as folder:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, folder)
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            try:
                done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
            except subprocess.TimeoutExpired:
                pytest.skip("npm ci took more than 240 s: snarkjs is not installed")
            if done.returncode:
                pytest.skip(f"npm ci failed, snarkjs is not installed: {done.stderr.strip().splitlines()[-1:]}")
            Path(folder).rename(home)
            Path(folder).mkdir()
    return home


@pytest.fixture(scope="session")
def snarkjs() -> Snarkjs:
    """Runs snarkjs's command line with these arguments."""
    cli = install() / "node_modules" / "snarkjs" / "build" / "cli.cjs"

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = ["node", str(cli), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)

    return run
