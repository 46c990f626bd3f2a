"""Sectors and circuits that several tests look at; each is made once."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from prover.porep.circuit import StackedCircuit, build
from prover.porep.sector import SectorNames, replicate
from prover.porep.shapes import Shape, registered
from prover.porep.vanilla import C1Output

DATA = Path(__file__).parents[2] / "data" / "filecoin"
NUMBERED = b"".join(node.to_bytes(8, "little") + bytes(24) for node in range(64))
"""A 2 KiB sector whose node i holds i."""
TEST_SHAPES = {
    "2-0-0": Shape("test-2", 8 * 32, 2, 0, 0, 2, 1, 1),
    "8-0-0": Shape("test-8", 8 * 32, 8, 0, 0, 2, 1, 1),
    "8-4-0": Shape("test-8-4", 32 * 32, 8, 4, 0, 2, 1, 1),
    "8-4-2": Shape("test-8-4-2", 64 * 32, 8, 4, 2, 2, 1, 1),
}
"""The shapes of rust-fil-proofs' stacked circuit tests."""


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


def changed(output: C1Output, **fields: object) -> C1Output:
    """A copy of an output whose first partition has other members."""
    first = dataclasses.replace(output.partitions[0], **fields)  # type: ignore[arg-type]
    return dataclasses.replace(output, partitions=(first, *output.partitions[1:]))
