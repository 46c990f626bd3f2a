"""Paths of the files made by other programs, and a cache folder of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def chain() -> Path:
    """circom and snarkjs on a chain of 1 001 constraints, domain 2^10."""
    return DATA / "snarkjs_2p10"


@pytest.fixture
def product() -> Path:
    """snarkjs on a product of three factors: 2 constraints, domain 8."""
    return DATA / "snarkjs_3fac"


@pytest.fixture
def points() -> Path:
    """The first 128 multiples of both generators, as zkcrypto encodes them."""
    return DATA / "points"


@pytest.fixture
def filecoin() -> Path:
    """A real 2 KiB PoRep's verifying key and proof."""
    return DATA / "filecoin"


@pytest.fixture
def no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty record of checked files, so that nothing is taken for checked."""
    folder = tmp_path / "record"
    monkeypatch.setattr("prover.files.checked._folder", lambda: folder)
    return folder
