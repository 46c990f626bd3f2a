"""A job goes from request to verified proof here, stage by stage, and leaves no buffer behind however it ends."""

from __future__ import annotations

import threading
import traceback
from collections import OrderedDict
from dataclasses import dataclass, field

from prover import wire
from prover.admission import Need, admit, rss_bytes
from prover.arena import Arena, Scope
from prover.backends import Backend, ResidentKey
from prover.errors import BackendError, ProofRejected
from prover.files.zcash import encode_proof
from prover.keys import Proof, ProvingKey
from prover.pages import report_pages
from prover.prove import Blinding, Instance, ProveTimes, prove_batch
from prover.run import Run, now
from prover.verify import PreparedKey
from prover.wire import Outcome, Owner, Place, Policy, Stage
from prover.workload import Workload, public_inputs

FR_BYTES = 32


@dataclass(slots=True)
class JobResult:
    outcome: Outcome
    proofs: list[Proof] = field(default_factory=list)
    proof_bytes: bytes = b""
    """192 bytes a circuit, in order."""
    public_inputs: list[list[int]] = field(default_factory=list)
    verified: bool = False
    error: str = ""
    metrics: dict[str, float | int | str | None] = field(default_factory=dict)


class Prover:
    """What jobs share: one backend, one arena, the keys that are loaded. One job at a time.

    Args:
        key_budget_bytes: resident keys beyond it are dropped, least recently used first.
    """

    def __init__(self, backend: Backend, arena: Arena, key_budget_bytes: int = 64 << 30) -> None:
        self.backend, self.arena, self.key_budget_bytes = backend, arena, key_budget_bytes
        self._keys: OrderedDict[int, tuple[ResidentKey, PreparedKey]] = OrderedDict()

    def run_job(
        self, workload: Workload, policy: Policy, run: Run, *, queued_ns: int = 0,
        blinding: list[Blinding] | None = None,
    ) -> JobResult:  # fmt: skip
        """Everything after the queue.

        Args:
            queued_ns: what the job has waited, for its total.
            blinding: fixed scalars, for tests only.

        Raises:
            ProverError: refused, unsatisfied, cancelled or rejected; the job's buffers are on their way back.
        """
        self.require_backend()
        clock = _Clock(queued_ns)
        with run.stage(Stage.SETUP):
            key = workload.proving_key(run)
        clock.mark("setup_ms")
        with run.stage(Stage.SRS):
            resident, verifier = self._resident(key, run)
            need = self._predict(workload, resident.key, policy, run)
            run.emit(need.event(run.job_id))
            admit(need, self.arena.pending_bytes)
        clock.mark("srs_ms")
        scope = self.arena.scope(run.job_id, policy)
        instances: list[Instance] = []
        try:
            with run.stage(Stage.SYNTH):
                publics = _synthesize(workload, instances, scope, run)
            threading.Thread(
                target=report_pages, args=(self.arena, run), name="prover/pages", daemon=True
            ).start()  # fmt: skip
            clock.mark("synth_ms")
            proofs, times = prove_batch(resident, instances, self.backend, scope, run, blinding)
            clock.mark("outer_ms")
            with run.stage(Stage.VERIFY):
                for i, (proof, inputs) in enumerate(zip(proofs, publics, strict=True)):
                    if not verifier.verify(proof, inputs):
                        raise ProofRejected(
                            f"proof of circuit {i} does not verify: its witness does not satisfy this key's circuit"
                        )
                    run.progress(Stage.VERIFY, i + 1, len(proofs), "proofs")
            clock.mark("verify_ms")
        except BaseException as error:
            instances.clear()
            traceback.clear_frames(error.__traceback__)
            raise
        finally:
            scope.release()
        return JobResult(
            Outcome.PROVED, proofs, b"".join(encode_proof(p) for p in proofs), publics, True,
            metrics=_metrics(clock, times, policy, need, self.backend),
        )  # fmt: skip

    def _predict(self, workload: Workload, key: ProvingKey, policy: Policy, run: Run) -> Need:
        """What the job will hold at its peak, from sizes that are known before it starts."""
        k = workload.num_circuits
        taken = self.backend.host_need(key, workload.profile(key, run), k)
        return Need(
            rss_now_bytes=rss_bytes(),
            abc_bytes=3 * k * workload.domain_size * FR_BYTES,
            assignment_bytes=k * workload.num_wires * FR_BYTES,
            split_bytes=taken.split_bytes,
            tail_bases_bytes=taken.tail_bases_bytes,
            scratch_bytes=taken.scratch_bytes,
            reused_bytes=self.arena.pool_bytes if policy is Policy.RECYCLE else 0,
        )

    def require_backend(self) -> None:
        """Raises BackendError where the backend is lost: before anything is made for a job that it cannot prove."""
        if self.backend.lost:
            raise BackendError(self.backend.lost)

    def load(self, key: ProvingKey, run: Run) -> None:
        """Makes a key resident before a job asks for it."""
        self._resident(key, run)

    def _resident(self, key: ProvingKey, run: Run) -> tuple[ResidentKey, PreparedKey]:
        ident = id(key)
        if ident in self._keys:
            self._keys.move_to_end(ident)
            return self._keys[ident]
        while self._keys and self.resident_bytes + key.size_bytes > self.key_budget_bytes:
            _, (evicted, _prepared) = self._keys.popitem(last=False)
            evicted.close()
        self._keys[ident] = self.backend.load_key(key, run), PreparedKey(key.vk)
        return self._keys[ident]

    @property
    def resident_bytes(self) -> int:
        return sum(resident.key.size_bytes for resident, _ in self._keys.values())

    def resident_keys(self) -> list[ProvingKey]:
        """Keys that are loaded, the most recently used last."""
        return [resident.key for resident, _ in self._keys.values()]

    def evict(self, key: ProvingKey | None = None) -> int:
        """Drops one resident key, or every one; returns the bytes."""
        idents = list(self._keys) if key is None else [ident for ident in self._keys if ident == id(key)]
        size_bytes = 0
        for ident in idents:
            resident, _verifier = self._keys.pop(ident)
            size_bytes += resident.key.size_bytes
            resident.close()
        return size_bytes

    def close(self) -> None:
        self.evict()
        self.backend.close()
        self.arena.close()


def _synthesize(workload: Workload, instances: list[Instance], scope: Scope, run: Run) -> list[list[int]]:
    """Appends every circuit of the job, synthesised, to `instances`; returns their public inputs."""
    publics = []
    for i in range(workload.num_circuits):
        rows = (workload.domain_size, 4)
        wires = (workload.num_wires, 4)
        assignment = scope.array("assignment", Owner.ASSIGNMENT, wires, stage=Stage.WITNESS, circuit=i)
        with run.stage(Stage.WITNESS, i):
            workload.witness(i, assignment, run)
        a, b, c = (
            scope.array(name, Owner.ABC, rows, place=Place.PINNED, stage=Stage.EVAL_ABC, circuit=i) for name in "abc"
        )
        with run.stage(Stage.EVAL_ABC, i):
            workload.eval_abc(i, assignment, a, b, c, run)
        publics.append(list(public_inputs(workload, assignment)))
        instances.append(Instance(assignment, a, b, c))
        run.progress(Stage.SYNTH, i + 1, workload.num_circuits, "circuits")
    return publics


class _Clock:
    """Consecutive parts of a job that add up to its total."""

    def __init__(self, queued_ns: int) -> None:
        self.parts_ms: dict[str, float] = {"queue_ms": queued_ns / 1e6}
        self._last_ns = now()

    def mark(self, name: str) -> None:
        at_ns = now()
        self.parts_ms[name] = (at_ns - self._last_ns) / 1e6
        self._last_ns = at_ns


def _metrics(
    clock: _Clock, times: ProveTimes, policy: Policy, need: Need, backend: Backend
) -> dict[str, float | int | str | None]:
    parts = {name: round(value, 3) for name, value in clock.parts_ms.items()}
    return {
        **parts,
        "inner_ms": round(times.inner_ns / 1e6, 3),
        "outer_ms": round(times.outer_ns / 1e6, 3),
        "gap_ms": round((times.outer_ns - times.inner_ns) / 1e6, 3),
        "release_ms": round(times.release_ns / 1e6, 3),
        "released_bytes": times.released_bytes,
        "total_ms": round(sum(clock.parts_ms.values()), 3),
        "peak_predicted_bytes": need.peak_bytes,
        "policy": policy.value,
        "backend": backend.name,
    }


def describe(job_id: str, workload: Workload, policy: Policy, client: str = "") -> wire.JobSubmitted:
    """The event with which a job enters the stream."""
    return wire.JobSubmitted(
        t_ns=now(), job_id=job_id, circuit=workload.name, num_circuits=workload.num_circuits, policy=policy,
        kind=workload.kind, num_constraints=workload.num_constraints, domain_size=workload.domain_size, client=client,
    )  # fmt: skip
