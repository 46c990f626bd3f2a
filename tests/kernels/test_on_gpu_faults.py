"""On a card a job that is cancelled or fails, wherever it is, leaves nothing behind; a lost card is told and borne."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from proving import BLINDING, prove, with_new_key

from prover.arena import Arena
from prover.backends.cpu.backend import CpuBackend
from prover.backends.cuda.backend import CudaBackend
from prover.backends.cuda.device import Device
from prover.backends.select import default_threads
from prover.errors import BackendError, Cancelled
from prover.jobs import Prover
from prover.run import Run, silent
from prover.wire import Policy, Stage
from prover.workload import Workload

pytestmark = pytest.mark.gpu
FAULTS = Path(__file__).with_name("card_faults.py")


class Brake(Run):
    """Cancels its job at the n-th look at cancellation within the prove call; never for 0."""

    def __init__(self, at: int) -> None:
        super().__init__(lambda _event: None, "job")
        self.looks, self.at = 0, at

    def check(self) -> None:
        if self.stage_name is Stage.PROVE:
            self.looks += 1
            if self.looks == self.at:
                self.cancel()
        super().check()


@pytest.fixture(scope="module")
def chain() -> Workload:
    return with_new_key("sha256-chain:1")


@pytest.fixture(scope="module")
def expected(chain) -> bytes:
    return prove(CpuBackend(default_threads()), chain).proof_bytes


class Watched:
    """One prover for several jobs, none of which may leave a buffer, a lock on memory, or the card in trouble."""

    def __init__(self, gpu: Device, workload: Workload) -> None:
        self.gpu, self.workload = gpu, workload
        self.arena = Arena(lambda _event: None, pinner=gpu)
        self.prover = Prover(CudaBackend(device=gpu), self.arena)

    def proves(self, run: Run) -> bytes:
        try:
            return self.prover.run_job(self.workload, Policy.SYNC_4K, run, blinding=BLINDING).proof_bytes
        finally:
            assert not self.arena.live_buffers() and not self.gpu._pinned
            self.gpu.synchronize()


@pytest.fixture
def watched(gpu, chain):
    made = Watched(gpu, chain)
    yield made
    made.prover.close()


def test_a_job_cancelled_anywhere_drains_and_the_next_is_right(watched, expected):
    whole = Brake(0)
    assert watched.proves(whole) == expected and whole.looks > 20
    for at in range(1, whole.looks + 1, max(1, whole.looks // 20)):
        with pytest.raises(Cancelled):
            watched.proves(Brake(at))
    assert watched.proves(silent()) == expected


def test_a_job_cancelled_from_another_thread_at_any_moment_drains(watched, expected):
    watched.proves(silent())
    cancelled = 0
    for delay_ms in range(0, 400, 25):
        run = silent()
        timer = threading.Timer(delay_ms / 1e3, run.cancel)
        timer.start()
        try:
            assert watched.proves(run) == expected
        except Cancelled:
            cancelled += 1
        timer.cancel()
        timer.join()
    assert cancelled > 0
    assert watched.proves(silent()) == expected


@pytest.mark.parametrize(
    "kernel", ["classify_scalars", "g2_sum_buckets", "ntt_pass", "quotient", "g1_sums_first", "g1_sum_buckets"]
)
def test_a_launch_that_fails_drains_what_was_launched_before(watched, expected, monkeypatch, kernel):
    launch = watched.gpu.launch

    def failing(name: str, *arguments: object, **facts: object) -> None:
        if name == kernel:
            raise BackendError("refused on purpose")
        launch(name, *arguments, **facts)

    with monkeypatch.context() as patch:
        patch.setattr(watched.gpu, "launch", failing)
        with pytest.raises(BackendError, match="refused on purpose"):
            watched.proves(silent())
    assert watched.proves(silent()) == expected


def python(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=300, env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)} | environment,
    )  # fmt: skip
    print(done.stdout, done.stderr, sep="\n")
    return done


def test_a_lost_card_fails_its_job_and_every_later_one_and_all_memory_comes_back(gpu):
    done = python(FAULTS, "lost")
    right, lost, again, left = done.stdout.splitlines()
    assert right == "verified True"
    assert lost.startswith("DeviceLost") and f"{gpu.name} is lost" in lost
    assert again.startswith("BackendError") and f"{gpu.name} was lost" in again
    for line in (lost, again):
        assert "restart the prover" in line and "Xid" in line
    assert left == "left 0 buffers and 0 bytes"
    assert done.returncode == 0
    assert "Exception ignored" not in done.stderr, "no destructor runs against a dead context"


def test_kernels_of_another_architecture_and_damaged_ones_are_named(gpu):
    done = python(FAULTS, "image")
    assert done.returncode == 0
    for line in done.stdout.splitlines():
        assert line.startswith("KernelMissing: no kernel image for") and "delete the cubin cache" in line
    assert len(done.stdout.splitlines()) == 2


def test_a_host_whose_cards_are_hidden_says_what_to_do(gpu):
    done = python("-m", "prover", "prove", "cubic", "--backend", "cuda", CUDA_VISIBLE_DEVICES="")
    assert done.returncode not in (0, 1) and done.stderr.count("\n") == 1 and "--backend cpu" in done.stderr
    done = python("-m", "prover", "prove", "cubic", "--backend", "auto", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0


def test_doctor_names_the_card(gpu):
    done = python("-m", "cuzktui", "doctor")
    model = gpu.name.partition(" ")[2]
    lines = [line for line in done.stdout.splitlines() if line.split()[1:2] == ["gpu"]]
    assert any(line.startswith("ok") and model in line for line in lines)
    assert done.returncode == 0
