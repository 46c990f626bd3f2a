"""On a host with several cards a job goes over all of them, and with one that is lost they are all lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from proving import prove, with_new_key

from prover.backends.cpu.backend import CpuBackend
from prover.backends.cuda.backend import CudaBackend
from prover.backends.cuda.device import device_count
from prover.backends.select import default_threads, make_backend
from prover.backends.spread import Spread
from prover.errors import BackendError
from prover.run import silent
from prover.wire import Policy
from prover.workload import Workload

pytestmark = pytest.mark.gpu
FAULTS = Path(__file__).with_name("card_faults.py")


@pytest.fixture(scope="module")
def cards() -> int:
    try:
        count = device_count()
    except BackendError as error:
        pytest.skip(str(error))
    if count < 2:
        pytest.skip("there is one card")
    return count


@pytest.fixture(scope="module")
def spread(cards: int) -> Iterator[Spread]:
    backend, why_not = make_backend("cuda", default_threads())
    assert isinstance(backend, Spread) and why_not == ""
    backend.warm_up(silent())
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def chain() -> Workload:
    return with_new_key("sha256-chain:1")


@pytest.fixture(scope="module")
def expected(chain) -> bytes:
    return prove(CpuBackend(default_threads()), chain).proof_bytes


@pytest.mark.parametrize("policy", list(Policy))
def test_proofs_over_all_cards_are_the_cpus_under_every_policy(spread, cards, chain, expected, policy):
    assert len(spread.devices) == cards
    result = prove(spread, chain, policy=policy)
    assert result.verified and result.proof_bytes == expected


def test_a_card_that_is_chosen_is_the_only_one(cards, chain, expected):
    last, _ = make_backend("cuda", default_threads(), gpus=(cards - 1,))
    assert isinstance(last, CudaBackend) and last.devices[0].startswith(f"cuda:{cards - 1} ")
    last.warm_up(silent())
    assert prove(last, chain).proof_bytes == expected


@pytest.mark.parametrize("number", [0, 1])
def test_a_lost_card_fails_its_job_and_every_later_one_on_any_card_and_all_memory_comes_back(cards, number):
    done = subprocess.run(
        [sys.executable, str(FAULTS), "lost-of-several", str(number)], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False, timeout=300, env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    print(done.stdout, done.stderr)
    right, lost, again, still, on_cpu, left = done.stdout.splitlines()
    assert right.startswith("verified True") and f"cuda:{number} " in right
    assert lost.startswith(f"DeviceLost: cuda:{number} ") and "restart the prover" in lost
    assert again == still and again.startswith(f"BackendError: cuda:{number} ") and "gives up all" in again
    assert on_cpu == "on the cpu True ()"
    assert left == "left 0 buffers and 0 bytes, kept 0"
    assert done.returncode == 0
    assert "Exception ignored" not in done.stderr, "no destructor runs against a dead context"
