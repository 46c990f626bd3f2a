"""Status and metrics say what is: queues, keys and buffers as they are now, counters that never fall.

Names and shapes are upstream's, so that its pollers read them; a quantity that does not exist here is left out or 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from prover import wire
from prover.admission import cgroup_available_bytes, host_available_bytes
from prover.proto import proving_pb2 as pb
from prover.run import now
from prover.serve.hub import Trace
from prover.serve.job import KINDS, Job
from prover.serve.queue import JobQueue
from prover.serve.shelf import Shelf
from prover.wire import Outcome, Owner, Place, Stage

ENDED_SHOWN_NS = 30 * 10**9
"""How long a job that has ended, well or not, stays in the HTTP status."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A device the backend runs on."""

    ordinal: int
    name: str
    total_bytes: int
    free_bytes: int


class Reporter:
    """Args:
    queue: jobs and counters.
    shelf: loaded keys.
    gpus: the devices in use, one entry each; empty on a CPU.
    """

    def __init__(self, queue: JobQueue, shelf: Shelf, gpus: Callable[[], list[Gpu]]) -> None:
        self._queue, self._shelf, self._gpus = queue, shelf, gpus
        self._began_ns = now()

    def grpc_status(self) -> pb.GetStatusResponse:
        """The answer of GetStatus."""
        queue, running = self._queue, self._queue.running
        pending = Counter(job.request.kind for job in queue.waiting())
        reply = pb.GetStatusResponse(
            total_proofs_completed=queue.totals.completed.total(), total_proofs_failed=queue.totals.failed.total(),
            uptime_seconds=(now() - self._began_ns) // 10**9, pinned_memory_bytes=self._bytes(Place.PINNED),
        )  # fmt: skip
        for kind in KINDS:
            active = int(running is not None and running.request.kind == kind)
            if pending[kind] or active:
                reply.queues.add(proof_kind=kind, pending=pending[kind], in_progress=active)
        for gpu in self._gpus():
            reply.gpus.add(
                ordinal=gpu.ordinal, name=gpu.name, vram_total_bytes=gpu.total_bytes, vram_free_bytes=gpu.free_bytes,
                current_job_id=running.job_id if running else "",
                current_proof_kind=running.request.kind if running else "",
            )  # fmt: skip
        for entry in self._shelf.entries():
            reply.loaded_srs.add(
                circuit_id=entry.circuit_id, tier=pb.SRSStatus.HOT, size_bytes=entry.size_bytes,
                ref_count=int(entry.in_use),
            )  # fmt: skip
        return reply

    def http_status(self) -> bytes:
        """The JSON of GET /status."""
        queue, running, at_ns = self._queue, self._queue.running, now()
        totals, buffers = queue.totals, queue.hub.buffers()
        used = sum(b.size_bytes for b in buffers if b.place in (Place.HOST, Place.PINNED))
        room = [x for x in (host_available_bytes(), cgroup_available_bytes()) if x is not None]
        available = min(room, default=0)
        owners = Counter(b.owner for b in buffers)
        stage = running.run.stage_name if running else None
        status: dict[str, Any] = {
            "uptime_secs": round((at_ns - self._began_ns) / 1e9, 3),
            "memory": {"total_bytes": used + available, "used_bytes": used, "available_bytes": available},
            "synthesis": {"max_concurrent": 1, "active": int(stage is Stage.SYNTH)},
            "pipelines": [self._pipeline(job, at_ns) for job in self._shown(at_ns)],
            "gpu_workers": [self._gpu_worker(gpu, running, at_ns) for gpu in self._gpus()],
            "allocations": {
                "srs": [
                    {
                        "circuit_id": entry.circuit_id,
                        "bytes": entry.size_bytes,
                        "last_used_secs_ago": 0.0 if entry.in_use else round((at_ns - entry.last_used_ns) / 1e9, 3),
                        "evictable": not entry.in_use,
                    }
                    for entry in self._shelf.entries()
                ],
                "pce": [],
            },
            "counters": {
                "total_completed": totals.completed.total(),
                "total_failed": totals.failed.total(),
                "completed_by_kind": dict(totals.completed),
                "failed_by_kind": dict(totals.failed),
                "queue_depth": len(queue.waiting()),
            },
            "buffers": {
                "synth_in_flight": int(stage is Stage.SYNTH),
                "provers_in_flight": owners[Owner.ABC] // 3,
                "aux_in_flight": owners[Owner.ASSIGNMENT],
                "shells_in_flight": 0,
                "pending_handles": int(stage is Stage.PROVE),
            },
        }
        return msgspec.json.encode(status)

    def metrics_text(self) -> str:
        """Prometheus text exposition: upstream's names first, then ours."""
        queue, running = self._queue, self._queue.running
        totals = queue.totals
        lines = _metric("cuzk_proofs_completed_total", "counter", {"": totals.completed.total()})
        lines += _metric("cuzk_proofs_failed_total", "counter", {"": totals.failed.total()})
        lines += _metric("cuzk_proofs_cancelled_total", "counter", {"": totals.cancelled.total()})
        lines += _metric("cuzk_uptime_seconds", "gauge", {"": (now() - self._began_ns) // 10**9})
        lines += _metric("cuzk_queue_depth", "gauge", {"": len(queue.waiting())})
        lines += _metric("cuzk_running_jobs", "gauge", {"": int(running is not None)})
        lines += _metric("cuzk_gpu_workers", "gauge", {"": len(self._gpus())})
        lines += _metric("cuzk_proofs_completed", "counter", _by_kind(totals.completed))
        lines += _metric("cuzk_proofs_failed", "counter", _by_kind(totals.failed))
        if totals.completed:
            lines.append("# TYPE cuzk_proof_duration_seconds summary")
            for kind, count in sorted(totals.completed.items()):
                label = _label(kind)
                lines.append(f"cuzk_proof_duration_seconds_count{label} {count}")
                lines.append(f"cuzk_proof_duration_seconds_sum{label} {totals.proving_ns[kind] / 1e9:.3f}")
        by_owner: Counter[str] = Counter()
        for buffer in queue.hub.buffers():
            by_owner[f'{{owner="{buffer.owner}",place="{buffer.place}"}}'] += buffer.size_bytes
        lines += _metric("cuzk_buffer_bytes", "gauge", dict(by_owner))
        srs_bytes = sum(entry.size_bytes for entry in self._shelf.entries())
        lines += _metric("cuzk_srs_bytes", "gauge", {"": srs_bytes})
        return "\n".join(lines) + "\n"

    def _bytes(self, place: Place) -> int:
        return sum(b.size_bytes for b in self._queue.hub.buffers() if b.place is place)

    def _shown(self, at_ns: int) -> list[Job]:
        running = self._queue.running
        ended = [j for j in self._queue.ended() if j is not running and at_ns - (j.ended_ns or 0) < ENDED_SHOWN_NS]
        return ended + ([running] if running else []) + self._queue.waiting()

    def _pipeline(self, job: Job, at_ns: int) -> dict[str, Any]:
        partitions = partition_states(job, self._queue.hub.trace(job.job_id) or Trace(), at_ns)
        return {
            "job_id": job.job_id,
            "proof_kind": job.request.kind,
            "started_secs_ago": round((at_ns - (job.started_ns or job.submitted_ns)) / 1e9, 3),
            "total_partitions": len(partitions),
            "partitions_done": sum(p["state"] == "done" for p in partitions),
            "partitions": partitions,
        }

    def _gpu_worker(self, gpu: Gpu, running: Job | None, at_ns: int) -> dict[str, Any]:
        proving = running is not None and running.run.stage_name is Stage.PROVE
        busy = (at_ns - (running.started_ns or at_ns)) / 1e9 if running and proving else None
        return {
            "worker_id": gpu.ordinal,
            "gpu_ordinal": gpu.ordinal,
            "state": "proving" if proving else "idle",
            "current_job": running.job_id if running and proving else None,
            "current_partition": None,
            "busy_secs": busy,
        }


def partition_states(job: Job, trace: Trace, at_ns: int) -> list[dict[str, Any]]:
    """Upstream's word and times for each circuit of a job, read from the stages that were marked."""
    began: dict[tuple[Stage, int | None], int] = {}
    ended: dict[tuple[Stage, int | None], int] = {}
    for mark in trace.marks:
        if isinstance(mark, wire.StageBegan):
            began[mark.stage, mark.circuit] = mark.t_ns
        elif isinstance(mark, wire.StageEnded):
            ended[mark.stage, mark.circuit] = mark.t_ns
    stop_ns = job.ended_ns or at_ns
    prove_ns = began.get((Stage.PROVE, None))
    gpu_ms = _ms(ended.get((Stage.PROVE, None), stop_ns) - prove_ns) if prove_ns else None
    states = []
    for i in range(job.num_circuits):
        synth_ns = began.get((Stage.WITNESS, i))
        synth_end_ns = ended.get((Stage.EVAL_ABC, i))
        state = "pending" if synth_ns is None else "synthesizing" if synth_end_ns is None else "synth_done"
        if prove_ns:
            state = "gpu"
        if job.outcome is not None:
            state = "done" if job.outcome is Outcome.PROVED else "failed"
        synth_ms = _ms((synth_end_ns or stop_ns) - synth_ns) if synth_ns else None
        states.append({"index": i, "state": state, "synth_ms": synth_ms, "gpu_ms": gpu_ms})
    return states


def _ms(span_ns: int) -> int:
    return span_ns // 1_000_000


def _metric(name: str, kind: str, values: dict[str, int]) -> list[str]:
    return [f"# TYPE {name} {kind}", *(f"{name}{label} {value}" for label, value in sorted(values.items()))]


def _by_kind(counts: Counter[str]) -> dict[str, int]:
    return {_label(kind): count for kind, count in counts.items()}


def _label(kind: str) -> str:
    """Upstream's label values use underscores where its other texts use hyphens."""
    return f'{{proof_kind="{kind.replace("-", "_")}"}}'
