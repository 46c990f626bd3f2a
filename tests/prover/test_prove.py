"""A batch of real proofs verifies, nothing else does, and the backends agree bit for bit under fixed blinding."""

from __future__ import annotations

import numpy as np
import pytest

from prover import wire
from prover.arena import Arena
from prover.backends.cpu.backend import CpuBackend
from prover.backends.cpu.field import fr_to_ints, ints_to_fr
from prover.builtin import BuiltinWorkload
from prover.circuits.registry import build
from prover.errors import Cancelled, InvalidPoint, Mismatch, ProofRejected, UnsatisfiedWitness, WontFit
from prover.jobs import JobResult, Prover
from prover.keys import Proof, ProvingKey
from prover.params import R
from prover.prove import Blinding
from prover.r1cs.matrices import R1cs
from prover.reference.backend import ReferenceBackend
from prover.run import Run, silent
from prover.setup import ToxicWaste
from prover.setup import test_setup as make_key
from prover.verify import verify
from prover.wire import Outcome, Policy, Stage

WASTE = ToxicWaste(tau=0x1234567, alpha=3, beta=5, gamma=11, delta=7)
FIXED = [Blinding(r=11, s=13), Blinding(r=17, s=19)]


class OneKey:
    def __init__(self, key: ProvingKey) -> None:
        self.key = key

    def key_for(self, r1cs: R1cs, run: Run) -> ProvingKey:
        return self.key


@pytest.fixture(scope="module")
def cubic_key() -> ProvingKey:
    return make_key(build("cubic").r1cs, silent(), waste=WASTE)


def prove(workload, backend=None, policy=Policy.SYNC_4K, blinding=None, events=None, run=None) -> JobResult:
    arena = Arena(events.append if events is not None else lambda _event: None)
    prover = Prover(backend or CpuBackend(2), arena)
    run = run or Run(events.append if events is not None else lambda _event: None, "job")
    try:
        result = prover.run_job(workload, policy, run, blinding=blinding)
    finally:
        prover.close()
        assert arena.live_buffers() == []
    return result


def cubic(key: ProvingKey, num_circuits: int = 2) -> BuiltinWorkload:
    return BuiltinWorkload("cubic", num_circuits, OneKey(key), seed=b"fixed")


@pytest.mark.parametrize("policy", list(Policy))
def test_every_policy_proves_and_leaves_no_buffer_behind(cubic_key, policy):
    result = prove(cubic(cubic_key), policy=policy)
    assert result.outcome is Outcome.PROVED and result.verified and len(result.proof_bytes) == 2 * 192


def test_a_wrong_public_input_is_rejected(cubic_key):
    result = prove(cubic(cubic_key))
    proof, (public,) = result.proofs[0], result.public_inputs[0]
    assert verify(cubic_key.vk, proof, [public])
    assert not verify(cubic_key.vk, proof, [(public + 1) % R])
    assert not verify(cubic_key.vk, result.proofs[1], [public])
    with pytest.raises(Mismatch):
        verify(cubic_key.vk, proof, [public + R])
    with pytest.raises(Mismatch):
        verify(cubic_key.vk, proof, [public, 1])


def test_a_point_off_the_curve_is_refused_by_name(cubic_key):
    result = prove(cubic(cubic_key))
    bad = result.proofs[0].a.copy()
    bad[1, 0] ^= np.uint64(1)
    with pytest.raises(InvalidPoint, match="proof A"):
        verify(cubic_key.vk, Proof(bad, result.proofs[0].b, result.proofs[0].c), result.public_inputs[0])


@pytest.mark.parametrize(("name", "num_circuits"), [("cubic", 2), ("poseidon-merkle:1", 1)])
def test_cpu_and_reference_agree_bit_for_bit_under_fixed_blinding(name, num_circuits):
    keys = OneKey(make_key(build(name).r1cs, silent(), waste=WASTE))
    results = [
        prove(BuiltinWorkload(name, num_circuits, keys, seed=b"fixed"), backend, blinding=FIXED[:num_circuits])
        for backend in (CpuBackend(2), ReferenceBackend())
    ]
    assert results[0].proof_bytes == results[1].proof_bytes
    assert results[0].public_inputs == results[1].public_inputs


def test_fresh_blinding_makes_every_proof_different(cubic_key):
    assert prove(cubic(cubic_key)).proof_bytes != prove(cubic(cubic_key)).proof_bytes


def test_the_two_clocks_and_the_parts_add_up(cubic_key):
    events: list[wire.Event] = []
    metrics = prove(cubic(cubic_key), events=events).metrics
    assert metrics["inner_ms"] < metrics["outer_ms"]
    assert metrics["gap_ms"] == pytest.approx(metrics["outer_ms"] - metrics["inner_ms"], abs=0.002)
    parts = sum(metrics[f"{part}_ms"] for part in ("queue", "setup", "srs", "synth", "outer", "verify"))
    assert parts == pytest.approx(metrics["total_ms"], rel=0.02)
    (inner,) = (e for e in events if isinstance(e, wire.InnerEnded))
    (outer,) = (e for e in events if isinstance(e, wire.OuterEnded))
    released = [e for e in events if isinstance(e, wire.BufferReleased)]
    assert released and all(inner.t_ns <= e.begin_ns <= e.t_ns <= outer.t_ns for e in released)


def test_every_stage_that_began_has_ended(cubic_key):
    events: list[wire.Event] = []
    prove(cubic(cubic_key), events=events)
    began = [(e.stage, e.circuit) for e in events if isinstance(e, wire.StageBegan)]
    ended = [(e.stage, e.circuit) for e in events if isinstance(e, wire.StageEnded)]
    assert sorted(began, key=str) == sorted(ended, key=str)
    assert {Stage.PREP_MSM, Stage.B_G2_MSM, Stage.NTT_H, Stage.MSM_H, Stage.BATCH_ADD, Stage.TAIL_MSM} <= {
        stage for stage, _ in began
    }


@pytest.mark.parametrize("stage", [Stage.SRS, Stage.WITNESS, Stage.NTT_H, Stage.TAIL_MSM])
def test_a_job_cancelled_in_any_stage_gives_its_memory_back(cubic_key, stage):
    events: list[wire.Event] = []

    def emit(event: wire.Event) -> None:
        events.append(event)
        if isinstance(event, wire.StageBegan) and event.stage is stage:
            run.cancel()

    run = Run(emit, "job")
    with pytest.raises(Cancelled):
        prove(cubic(cubic_key), events=events, run=run)
    assert not any(isinstance(e, wire.InnerEnded) for e in events)


def test_an_unsatisfied_witness_names_its_first_constraint(cubic_key):
    class Broken(BuiltinWorkload):
        def witness(self, circuit, assignment, run):
            super().witness(circuit, assignment, run)
            assignment[2] = ints_to_fr([12345])[0]

    with pytest.raises(UnsatisfiedWitness) as caught:
        prove(Broken("cubic", 1, OneKey(cubic_key), seed=b"fixed"))
    assert caught.value.row == 0


def test_a_proof_that_does_not_verify_is_not_handed_out(cubic_key):
    class Forged(BuiltinWorkload):
        def eval_abc(self, circuit, assignment, a, b, c, run):
            super().eval_abc(circuit, assignment, a, b, c, run)
            a[1] = ints_to_fr([fr_to_ints(a[1:2])[0] + 1])[0]

    with pytest.raises(ProofRejected):
        prove(Forged("cubic", 1, OneKey(cubic_key), seed=b"fixed"))


def test_a_job_that_cannot_fit_is_refused_with_the_figures(cubic_key):
    class Vast(BuiltinWorkload):
        domain_size = property(lambda self: 1 << 36, lambda self, value: None)

    with pytest.raises(WontFit, match="GB"):
        prove(Vast("cubic", 10, OneKey(cubic_key), seed=b"fixed"))
