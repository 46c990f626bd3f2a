"""The kernels compiled for the host and, where there is a GPU, for it, each once a session; and what launches them."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from emulated import EmulatedCard, build
from known_points import Points

from prover.backends.cuda import compile as compiler
from prover.backends.cuda.device import Device
from prover.backends.cuda.launch import Launcher
from prover.backends.cuda.msm import G1, G2
from prover.errors import BackendError
from prover.reference.groups import G1 as ORACLE_G1
from prover.reference.groups import G2 as ORACLE_G2


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    return build(tmp_path_factory.mktemp("kernels"))


@pytest.fixture
def card(library: Path) -> EmulatedCard:
    return EmulatedCard(library)


@functools.cache
def open_gpu() -> Device | str:
    """The first card of this host, every unit loaded; or why there is none."""
    try:
        device = Device()
        device.load(compiler.compile_units([*compiler.UNITS, *compiler.PROBE_UNITS], device.architecture))
    except BackendError as error:
        return str(error)
    return device


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") is not None and isinstance(why := open_gpu(), str):
        pytest.skip(why)


@pytest.fixture
def gpu() -> Iterator[Device]:
    """The card, without the memory and the times of the test before."""
    device = open_gpu()
    assert isinstance(device, Device), "a test that needs a card has the marker gpu"
    yield device
    device.drain()
    device.trim()


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def launcher(request: pytest.FixtureRequest) -> Launcher:
    """The same laws hold for the host form of the kernels and on a card."""
    return request.getfixturevalue("card" if request.param == "host" else "gpu")


@pytest.fixture(scope="module", params=[(G1, ORACLE_G1), (G2, ORACLE_G2)], ids=["G1", "G2"])
def known(request: pytest.FixtureRequest) -> Points:
    return Points(*request.param)
