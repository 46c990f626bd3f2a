"""Sectors and circuits that several tests look at; each is made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from porep_samples import NUMBERED

from prover.porep.circuit import StackedCircuit, build
from prover.porep.sector import SectorNames, replicate
from prover.porep.shapes import registered
from prover.porep.vanilla import C1Output

DATA = Path(__file__).parents[2] / "data" / "filecoin"


@pytest.fixture(scope="session")
def filecoin() -> Path:
    """Public files of Filecoin's repositories."""
    return DATA


@pytest.fixture(scope="session")
def sector() -> C1Output:
    """The 2 KiB sector of zeros with lotus-bench's names."""
    return replicate(registered("StackedDrg2KiBV1_1"), SectorNames())


@pytest.fixture(scope="session")
def numbered() -> C1Output:
    return replicate(registered("StackedDrg2KiBV1_1"), SectorNames(), NUMBERED)


@pytest.fixture(scope="session")
def circuit(sector: C1Output) -> StackedCircuit:
    """The circuit of 2 KiB sectors."""
    return build(sector.proof.shape)
