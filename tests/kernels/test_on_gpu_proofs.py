"""On a card every job is proved bit for bit as on the CPU, whatever its circuit, placement, policy, thread or room."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from proving import DATA, SNARKJS, WASTE, builtin, prove, with_new_key

from prover import wire
from prover.arena import Arena
from prover.backends.cpu.backend import CpuBackend
from prover.backends.cuda.backend import CudaBackend
from prover.backends.cuda.device import Device
from prover.backends.cuda.failures import OutOfDeviceMemory
from prover.backends.cuda.resident import Placement
from prover.backends.select import default_threads
from prover.circuits.registry import ENTRIES, build
from prover.cli import main
from prover.files.snarkjs_json import read_proof, read_public, read_verification_key
from prover.jobs import JobResult
from prover.keys import HBasis, QueryName
from prover.reference.pairing import verify as verify_by_py_ecc
from prover.run import silent
from prover.setup import test_setup as make_key
from prover.verify import verify
from prover.wire import Owner, Place, Policy
from prover.workload import Workload

pytestmark = pytest.mark.gpu
SIZES = {"": ("",), "BLOCKS": (":1", ":2", ":5"), "DEPTH": (":1", ":2", ":7")}
NAMES = [entry.name + size for entry in ENTRIES for size in SIZES[entry.parameter]]


def on_cpu(workload: Workload) -> JobResult:
    return prove(CpuBackend(default_threads()), workload)


@pytest.fixture(scope="module")
def chain() -> Workload:
    """26 031 constraints: queries of a few megabytes, MSMs of several rounds."""
    return with_new_key("sha256-chain:1")


@pytest.fixture(scope="module")
def expected(chain) -> bytes:
    return on_cpu(chain).proof_bytes


@pytest.mark.parametrize("basis", list(HBasis))
@pytest.mark.parametrize("name", NAMES)
def test_every_built_in_circuit_is_proved_as_on_the_cpu_in_both_bases(gpu, name, basis):
    workload = with_new_key(name, basis)
    ours = prove(CudaBackend(device=gpu), workload)
    assert ours.verified and ours.proof_bytes == on_cpu(workload).proof_bytes


@pytest.mark.parametrize("fixture", SNARKJS)
def test_a_zkey_of_snarkjs_is_proved_as_on_the_cpu(gpu, tmp_path, fixture):
    workload = SNARKJS[fixture](tmp_path)
    ours = prove(CudaBackend(device=gpu), workload)
    assert ours.verified and ours.proof_bytes == on_cpu(workload).proof_bytes


@pytest.mark.parametrize("name", [NAMES[0], *SNARKJS])
def test_two_libraries_accept_a_proof_and_refuse_it_for_another_input(gpu, tmp_path, name):
    workload = SNARKJS[name](tmp_path) if name in SNARKJS else with_new_key(name)
    result, vk = prove(CudaBackend(device=gpu), workload), workload.proving_key(silent()).vk
    proof, inputs = result.proofs[0], result.public_inputs[0]
    lie = [inputs[0] + 1, *inputs[1:]]
    for library in (verify, verify_by_py_ecc):
        assert library(vk, proof, inputs) and not library(vk, proof, lie)


def test_a_streamed_key_proves_the_same(gpu, chain, expected):
    events: list[wire.Event] = []
    ours = prove(CudaBackend(device=gpu, placement=Placement.HOST), chain, events=events)
    assert ours.proof_bytes == expected
    streamed = {e.name for e in events if isinstance(e, wire.Span) and e.name.startswith("stream ")}
    assert streamed == {"stream a", "stream b_g1", "stream b_g2", "stream l", "stream h"}
    assert not any(isinstance(e, wire.BufferAllocated) and e.place is Place.DEVICE for e in events)


def test_a_card_that_looks_too_small_streams_and_says_so(gpu, chain, expected, monkeypatch):
    key = chain.proving_key(silent())
    monkeypatch.setattr(Device, "memory_bytes", property(lambda _self: (key.size_bytes, key.size_bytes)))
    events: list[wire.Event] = []
    assert prove(CudaBackend(device=gpu), chain, events=events).proof_bytes == expected
    (notice,) = (e for e in events if isinstance(e, wire.Notice))
    assert notice.level == "warning" and gpu.name in notice.text and "streamed" in notice.text
    with pytest.raises(OutOfDeviceMemory, match="GB free and a step needs"):
        prove(CudaBackend(device=gpu, placement=Placement.DEVICE), chain)


def test_running_out_inside_an_msm_is_tried_again_smaller_and_the_proof_is_right(gpu, chain, expected, monkeypatch):
    class Starved(CudaBackend):
        """Its pool ends at three quarters of what the H MSM takes, and its budget does not know."""

        def msm_h(self, key, h, run, circuit):
            gpu.trim()
            before_bytes = gpu.pool_bytes[1]
            super().msm_h(key, h, silent(), circuit)
            taken_bytes = gpu.pool_bytes[1] - before_bytes
            gpu.trim()
            with monkeypatch.context() as patch:
                patch.setattr(Device, "memory_bytes", property(lambda _self: (3 * taken_bytes, 3 * taken_bytes)))
                gpu._pool.set_limit(size=before_bytes + 3 * taken_bytes // 4)
                try:
                    return super().msm_h(key, h, run, circuit)
                finally:
                    gpu._pool.set_limit(size=0)

    events: list[wire.Event] = []
    result = prove(Starved(device=gpu), chain, events=events)
    notices = [e for e in events if isinstance(e, wire.Notice)]
    assert len(notices) >= len(expected) // 192 and {e.level for e in notices} == {"warning"}
    assert all("out of device memory, trying again with" in e.text for e in notices)
    assert result.verified and result.proof_bytes == expected


@pytest.mark.parametrize("policy", list(Policy))
def test_every_policy_pins_proves_and_leaves_nothing_pinned(gpu, chain, expected, policy):
    backend, events, pinned = CudaBackend(device=gpu), [], []

    class Watching(list):
        def append(self, event):
            pinned.append(len(gpu._pinned))
            events.append(event)

    assert prove(backend, chain, events=Watching(), policy=policy).proof_bytes == expected
    places = {e.place for e in events if isinstance(e, wire.BufferAllocated) and e.owner is Owner.ABC}
    assert places == {Place.PINNED}
    assert max(pinned) >= 6 and not gpu._pinned
    released = [e.buffer_id for e in events if isinstance(e, wire.BufferReleased)]
    assert sorted(released) == sorted(e.buffer_id for e in events if isinstance(e, wire.BufferAllocated))


@pytest.mark.parametrize("huge", [False, True])
def test_a_large_pinned_buffer_is_faulted_in_by_all_cores_and_travels_unchanged(gpu, huge):
    arena = Arena(lambda _event: None, pinner=gpu)
    buffer = arena.allocate("job", "abc", Owner.ABC, (200 << 20) + 12345, huge=huge, place=Place.PINNED)
    assert gpu._pinned == {buffer.address}
    words = np.frombuffer(buffer.mapping, np.uint64)
    words[:] = np.random.default_rng(2).integers(0, 1 << 64, len(words), dtype=np.uint64)
    assert (gpu.download(gpu.upload(words), words.shape, np.uint64) == words).all()
    del words
    arena.give_back([buffer], Policy.SYNC_HUGE)
    assert not gpu._pinned and not arena.live_buffers()
    arena.close()


def test_verbs_may_come_from_any_thread(gpu, chain, expected):
    """On the last card of the host, which is not the one that a new thread finds current."""
    index = gpu._cupy.cuda.runtime.getDeviceCount() - 1
    made, proofs = [CudaBackend(index)], []
    made[0].warm_up(silent())

    def elsewhere() -> None:
        proofs.append(prove(made[0], chain).proof_bytes)
        other = CudaBackend(index)
        other.warm_up(silent())
        made.append(other)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    proofs += [prove(backend, chain).proof_bytes for backend in made]
    assert proofs == [expected] * 3


@pytest.mark.parametrize("basis", list(HBasis))
def test_a_key_whose_points_are_made_on_the_card_is_the_cpus(gpu, basis):
    r1cs, backend = build("poseidon-merkle:1").r1cs, CudaBackend(device=gpu)
    ours = make_key(r1cs, silent(), waste=WASTE, h_basis=basis, bases=backend.fixed_bases())
    theirs = make_key(r1cs, silent(), waste=WASTE, h_basis=basis)
    assert (ours.h_query == theirs.h_query).all() and (ours.vk.ic == theirs.vk.ic).all()
    for name in QueryName:
        assert (ours.query(name).points == theirs.query(name).points).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_key_that_never_leaves_the_card_proves_and_verifies(gpu, name):
    backend = CudaBackend(device=gpu)
    key = backend.resident_setup(build(name).r1cs, silent())
    result = prove(backend, builtin(name, key))
    assert result.verified and len(result.proofs) == 2


def test_ranges_for_nvtx_nest_and_close_when_what_is_in_them_fails(gpu):
    print("NVTX available:", getattr(getattr(gpu._cupy.cuda, "nvtx", None), "available", False))
    with gpu.range("outer"), pytest.raises(ValueError, match="inside"), gpu.range("inner"):
        raise ValueError("inside")
    with gpu.range("after"):
        gpu.synchronize()


@pytest.mark.parametrize("placement", list(Placement))
def test_the_command_line_proves_on_the_card_wherever_the_key_lives(gpu, tmp_path, placement):
    chain, proof, public = DATA / "snarkjs_2p10", tmp_path / "proof.json", tmp_path / "public.json"
    inputs = ["--zkey", chain / "small.zkey", "--wtns", chain / "small.wtns", "--r1cs", chain / "small.r1cs"]
    outputs = ["--proof", proof, "--public", public]
    arguments = ["prove", "--backend", "cuda", "--placement", placement, *inputs, *outputs]
    assert main([str(a) for a in arguments]) == 0
    vk = read_verification_key(chain / "small_vkey.json")
    assert verify(vk, read_proof(proof), read_public(public))
