"""Real daemons on sockets of their own, ended with the test that started them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .daemon import Daemon


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """One prover for all tests of a module."""
    prover = Daemon("--status-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0")
    yield prover
    status, said = prover.end()
    assert status == 0, said
