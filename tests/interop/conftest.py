"""Tests against snarkjs skip, and say why, where it cannot be installed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from install_snarkjs import install


@pytest.fixture(scope="session")
def snarkjs() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs snarkjs's command line with these arguments."""
    home = install()
    if isinstance(home, str):
        pytest.skip(home)
    cli = home / "node_modules" / "snarkjs" / "build" / "cli.cjs"

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = ["node", str(cli), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)

    return run
