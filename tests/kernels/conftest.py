"""The kernels compiled for the host once a session, and the launchers that run them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from emulated import Emulated, EmulatedCard, build


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    return build(tmp_path_factory.mktemp("kernels"))


@pytest.fixture
def launcher(library: Path) -> Emulated:
    return Emulated(library)


@pytest.fixture
def card(library: Path) -> EmulatedCard:
    return EmulatedCard(library)
