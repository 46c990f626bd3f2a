"""A key of the smallest circuit, and provers that must leave no buffer behind."""

from __future__ import annotations

import pytest
from cards import House

from prover.backends.spread import Spread
from prover.circuits.registry import build
from prover.keys import ProvingKey
from prover.run import silent
from prover.setup import ToxicWaste
from prover.setup import test_setup as make_key

WASTE = ToxicWaste(tau=0x1234567, alpha=3, beta=5, gamma=11, delta=7)


@pytest.fixture(scope="session")
def waste() -> ToxicWaste:
    return WASTE


@pytest.fixture(scope="session")
def cubic_key() -> ProvingKey:
    return make_key(build("cubic").r1cs, silent(), waste=WASTE)


@pytest.fixture
def house():
    houses: list[House] = []

    def build_house(*backends, single: bool = False) -> House:
        houses.append(House(backends[0] if single else Spread(backends)))
        return houses[-1]

    yield build_house
    for one in houses:
        one.prover.close()
        assert one.arena.live_buffers() == []
        one.arena.close()
