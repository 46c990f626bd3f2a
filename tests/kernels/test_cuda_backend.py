"""The CUDA backend, on the host form of its kernels, makes the CPU's proofs bit for bit and fails with a remedy."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from emulated import EmulatedCard
from proving import BLINDING, WASTE, OneKey

from prover import wire
from prover.arena import Arena
from prover.backends.cpu.backend import CpuBackend
from prover.backends.cuda import failures
from prover.backends.cuda.backend import CudaBackend
from prover.backends.cuda.ntt import field_array
from prover.backends.cuda.resident import Placement
from prover.backends.spread import Spread
from prover.builtin import BuiltinWorkload
from prover.circuits.registry import build
from prover.errors import BackendError, Cancelled
from prover.jobs import JobResult, Prover
from prover.keys import HBasis, ProvingKey, Query, VerifyingKey
from prover.params import R
from prover.reference.scalars import from_array, h_scalars
from prover.run import Run, silent
from prover.setup import test_setup as make_key
from prover.wire import Outcome, Policy, Stage


def prove(backend, name: str, key: ProvingKey, events: list[wire.Event] | None = None) -> JobResult:
    emit = events.append if events is not None else lambda _event: None
    prover = Prover(backend, Arena(emit))
    try:
        workload = BuiltinWorkload(name, 2, OneKey(key), seed=b"fixed")
        return prover.run_job(workload, Policy.SYNC_4K, Run(emit, "job"), blinding=BLINDING)
    finally:
        prover.close()


@pytest.fixture(scope="module")
def cubic_key() -> ProvingKey:
    return make_key(build("cubic").r1cs, silent(), waste=WASTE)


@pytest.mark.parametrize("name", ["cubic", "poseidon-merkle:1"])
def test_proofs_are_the_cpu_backends_bit_for_bit_under_fixed_blinding(card, name):
    key = make_key(build(name).r1cs, silent(), waste=WASTE)
    ours = prove(CudaBackend(device=card), name, key)
    theirs = prove(CpuBackend(2), name, key)
    assert ours.outcome is Outcome.PROVED and ours.verified
    assert ours.proof_bytes == theirs.proof_bytes


def test_a_key_made_on_the_card_is_the_cpus_key(card, cubic_key):
    backend = CudaBackend(device=card)
    backend._is_loaded = True
    key = make_key(build("cubic").r1cs, silent(), waste=WASTE, bases=backend.fixed_bases())
    assert (key.h_query == cubic_key.h_query).all() and (key.l_query.points == cubic_key.l_query.points).all()
    assert (key.b_g2_query.points == cubic_key.b_g2_query.points).all()


@pytest.mark.parametrize("basis", list(HBasis))
def test_h_scalars_are_the_oracles_in_both_bases(card, basis):
    n = 32
    columns = [[pow(3, 7 * i + k, R) for i in range(n)] for k in range(3)]
    point, g2 = np.zeros((1, 2, 6), np.uint64), np.zeros((1, 2, 2, 6), np.uint64)
    vk = VerifyingKey(point[0], g2[0], g2[0], g2[0], point)
    query = Query(point, None, 0)
    key = ProvingKey(vk, point[0], point[0], 1, 0, n - 1, n, query, query, Query(g2, None, 0), query,
                     np.zeros((n, 2, 6), np.uint64), basis, b"")  # fmt: skip
    backend = CudaBackend(device=card)
    scalars = backend.ntt_h(backend.load_key(key, silent()), *map(field_array, columns), silent(), 0)
    got = from_array(card.download(scalars.values, (n, 4), np.uint64))
    assert got == h_scalars(*columns, basis)


def test_every_launch_is_told_with_its_stage(card, cubic_key):
    events: list[wire.Event] = []
    prove(CudaBackend(device=card), "cubic", cubic_key, events)
    spans = [e for e in events if isinstance(e, wire.Span) and e.lane == "cuda:0 s0"]
    assert {s.stage for s in spans} == {
        Stage.PREP_MSM, Stage.B_G2_MSM, Stage.NTT_H, Stage.MSM_H, Stage.BATCH_ADD, Stage.TAIL_MSM,
    }  # fmt: skip
    assert {"ntt_pass", "quotient", "g1_sums_first", "g2_reduce_chunks", "classify_scalars"} <= {s.name for s in spans}
    assert all(s.error_ns is not None and s.begin_ns <= s.t_ns for s in spans)
    (key,) = (e for e in events if isinstance(e, wire.BufferAllocated) and e.place is wire.Place.DEVICE)
    assert key.size_bytes == cubic_key.size_bytes
    assert [e.buffer_id for e in events if isinstance(e, wire.BufferReleased) and e.how == "device"] == [key.buffer_id]


def test_running_out_of_device_memory_is_tried_again_smaller_and_said(card, cubic_key):
    events: list[wire.Event] = []
    backend = CudaBackend(device=card)
    run = Run(events.append, "job")
    resident = backend.load_key(cubic_key, run)
    count = len(cubic_key.h_query)
    h = backend.ntt_h(resident, *(field_array([i + 2 for i in range(count)]) for _ in range(3)), run, 0)
    whole = backend.msm_h(resident, h, run, 0)
    card.fail_above_bytes = 1
    assert (backend.msm_h(resident, h, run, 0) == whole).all()
    (notice,) = (e for e in events if isinstance(e, wire.Notice))
    assert "out of device memory" in notice.text and notice.level == "warning"


def test_what_a_failed_attempt_held_goes_back_before_the_next(card, cubic_key):
    backend, run = CudaBackend(device=card), silent()
    resident = backend.load_key(cubic_key, run)
    columns = (field_array([i + 2 for i in range(len(cubic_key.h_query))]) for _ in range(3))
    h = backend.ntt_h(resident, *columns, run, 0)
    before_bytes, card.largest_bytes = card.held_bytes, 0
    backend.msm_h(resident, h, run, 0)
    card.fail_above_bytes = card.largest_bytes - 1
    backend.msm_h(resident, h, run, 0)
    assert card.fail_above_bytes is None and card.held_at_trim_bytes == before_bytes


def test_a_key_larger_than_the_card_is_streamed_with_the_same_proofs_and_said(card, cubic_key):
    events: list[wire.Event] = []
    theirs = prove(CpuBackend(2), "cubic", cubic_key)
    card.memory_bytes = (cubic_key.size_bytes, cubic_key.size_bytes)
    ours = prove(CudaBackend(device=card), "cubic", cubic_key, events)
    assert ours.proof_bytes == theirs.proof_bytes
    assert any("streamed" in e.text for e in events if isinstance(e, wire.Notice))
    streamed = [e.name for e in events if isinstance(e, wire.Span) and e.name.startswith("stream ")]
    assert set(streamed) == {"stream a", "stream b_g1", "stream b_g2", "stream l", "stream h"}
    assert not any(isinstance(e, wire.BufferAllocated) and e.place is wire.Place.DEVICE for e in events)


def test_a_card_too_small_for_the_largest_query_is_refused_with_the_figures(card, cubic_key):
    card.memory_bytes = (700, 700)
    with pytest.raises(failures.OutOfDeviceMemory, match="--backend cpu") as caught:
        CudaBackend(device=card).load_key(cubic_key, silent())
    assert 700 < caught.value.needed_bytes < cubic_key.size_bytes
    with pytest.raises(failures.OutOfDeviceMemory) as caught:
        CudaBackend(device=card, placement=Placement.DEVICE).load_key(cubic_key, silent())
    assert caught.value.needed_bytes == cubic_key.size_bytes


def test_placement_on_the_host_streams_though_there_is_room(card, cubic_key):
    key = CudaBackend(device=card, placement=Placement.HOST).load_key(cubic_key, silent())
    assert key.is_streamed and key.h is None
    assert not CudaBackend(device=card).load_key(cubic_key, silent()).is_streamed


def test_a_lost_card_fails_the_job_and_stays_lost(library: Path, cubic_key):
    class Dying(EmulatedCard):
        def launch(self, kernel, *arguments, **facts):
            if kernel == "g1_sums_first":
                error = failures.DeviceLost(self.name, "unspecified launch failure")
                self.lost = error.ever_after
                raise error
            super().launch(kernel, *arguments, **facts)

    card = Dying(library)
    backend = CudaBackend(device=card)
    with pytest.raises(failures.DeviceLost, match="restart the prover"):
        prove(backend, "cubic", cubic_key)
    before = len(card.launched)
    for again in (
        lambda: backend.load_key(cubic_key, silent()),
        lambda: prove(backend, "cubic", cubic_key),
        lambda: backend.resident_setup(build("cubic").r1cs, silent()),
        backend.fixed_bases,
    ):
        with pytest.raises(BackendError, match=f"{card.name} was lost .*restart the prover") as caught:
            again()
        assert str(caught.value) == backend.lost
    assert len(card.launched) == before and backend.devices == backend.cards == ()


def test_a_cancelled_verb_waits_for_its_copies_before_it_leaves(card, cubic_key):
    backend, columns = CudaBackend(device=card), [field_array([1] * cubic_key.domain_size) for _ in range(3)]
    resident, run = backend.load_key(cubic_key, silent()), silent()
    card.copies_after_kernels = run.cancel
    with pytest.raises(Cancelled):
        backend.ntt_h(resident, *columns, run, 0)
    assert card.drained


@pytest.mark.parametrize(
    ("text", "kind", "remedy"),
    [
        ("cudaErrorInsufficientDriver: CUDA driver version is insufficient", failures.NoDevice, "update the driver"),
        ("cudaErrorNoDevice: no CUDA-capable device is detected", failures.NoDevice, "--backend cpu"),
        ("CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image", failures.KernelMissing, "cubin cache"),
        ("CUDA_ERROR_INVALID_IMAGE: device kernel image is invalid", failures.KernelMissing, "cubin cache"),
        ("cudaErrorMemoryAllocation: out of memory", failures.OutOfDeviceMemory, "fewer circuits"),
        ("cudaErrorIllegalAddress: an illegal memory access", failures.DeviceLost, "restart the prover"),
        ("CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure", failures.DeviceLost, "Xid"),
        ("cudaErrorDevicesUnavailable: all CUDA-capable devices are busy", failures.NoDevice, "--gpus"),
        ("cudaErrorInvalidValue: invalid argument", BackendError, "--backend cpu"),
    ],
)
def test_every_driver_error_has_its_class_and_its_remedy(text, kind, remedy):
    error = failures.from_cupy(RuntimeError(text), "cuda:0 test")
    assert type(error) is kind and remedy in str(error)


class InTurn(EmulatedCard):
    """The emulation keeps a block's state in statics, so that cards of one process launch in turn."""

    turn = threading.Lock()

    def __init__(self, library: Path, index: int) -> None:
        super().__init__(library)
        self.index, self.name = index, f"cuda:{index} emulation"

    def launch(self, kernel, *arguments, **facts):
        with self.turn:
            super().launch(kernel, *arguments, **facts)


def test_two_cards_make_the_cpus_proofs_each_in_its_own_lane(library: Path, cubic_key):
    events: list[wire.Event] = []
    spread = Spread([CudaBackend(device=InTurn(library, index)) for index in range(2)])
    ours = prove(spread, "cubic", cubic_key, events)
    assert ours.verified and ours.proof_bytes == prove(CpuBackend(2), "cubic", cubic_key).proof_bytes
    lanes = {(e.lane, e.circuit) for e in events if isinstance(e, wire.Span) and e.stage is Stage.MSM_H}
    assert lanes == {("cuda:0 s0", 0), ("cuda:1 s0", 1)}
    keys = [e for e in events if isinstance(e, wire.BufferAllocated) and e.place is wire.Place.DEVICE]
    assert sorted(e.device for e in keys) == ["cuda:0 emulation", "cuda:1 emulation"]
    given_back = {e.buffer_id for e in events if isinstance(e, wire.BufferReleased) and e.how == "device"}
    assert given_back == {e.buffer_id for e in keys}


def test_a_key_made_on_the_cards_is_one_key_and_is_handed_out_once(library: Path):
    spread = Spread([CudaBackend(device=InTurn(library, index)) for index in range(2)])
    events: list[wire.Event] = []
    r1cs = build("cubic").r1cs
    key = spread.resident_setup(r1cs, Run(events.append, "job"))
    assert sum(isinstance(e, wire.BufferAllocated) for e in events) == 2
    prover = Prover(spread, Arena(events.append))
    try:
        result = prover.run_job(BuiltinWorkload("cubic", 2, OneKey(key)), Policy.SYNC_4K, Run(events.append, "job"))
    finally:
        prover.close()
    assert result.verified


def test_a_streamed_key_outlives_the_cancelled_job_that_loaded_it(card, cubic_key):
    backend = CudaBackend(device=card, placement=Placement.HOST)
    first = Run(lambda _event: None, "first")
    resident = backend.load_key(cubic_key, first)
    first.cancel()
    columns = [field_array([i + 2 for i in range(cubic_key.domain_size)]) for _ in range(3)]
    second = Run(lambda _event: None, "second")
    scalars = backend.ntt_h(resident, *columns, second, 0)
    assert backend.msm_h(resident, scalars, second, 0).any()
