"""`cuzk.v1.ProvingEngine`: what upstream's clients depend on stays, and what is inert there works here.

Kept: job_id = request_id, a failed proof is a successful call with FAILED, the NOT_FOUND and INVALID_ARGUMENT texts.
Working: cancel, await timeout, joining a job of the same id, eviction, sizes of loaded keys, queues, bounded results.
"""

from __future__ import annotations

import threading
import uuid

import grpc

from prover.errors import BadRequest, ProverError
from prover.proto import proving_pb2 as pb
from prover.proto import proving_pb2_grpc
from prover.serve.job import Job
from prover.serve.queue import JobQueue, QueueFull
from prover.serve.refusal import refuse
from prover.serve.report import Reporter
from prover.serve.shelf import Shelf
from prover.serve.upstream_request import job_request
from prover.wire import Outcome

MAX_WAITERS = 64
"""Calls that block until a job ends; each holds one of the server's threads."""
Status = pb.AwaitProofResponse.Status
_STATUS = {Outcome.PROVED: Status.COMPLETED, Outcome.FAILED: Status.FAILED, Outcome.CANCELLED: Status.CANCELLED}


class EngineService(proving_pb2_grpc.ProvingEngineServicer):
    """Args:
    queue: where jobs go.
    shelf: proving keys in memory.
    reporter: status and metrics.
    """

    def __init__(self, queue: JobQueue, shelf: Shelf, reporter: Reporter) -> None:
        self._queue, self._shelf, self._reporter = queue, shelf, reporter
        self._waiters = threading.BoundedSemaphore(MAX_WAITERS)

    def SubmitProof(self, request: pb.SubmitProofRequest, context: grpc.ServicerContext) -> pb.SubmitProofResponse:
        job, position = self._submit(request, context)
        return pb.SubmitProofResponse(job_id=job.job_id, queue_position=position)

    def AwaitProof(self, request: pb.AwaitProofRequest, context: grpc.ServicerContext) -> pb.AwaitProofResponse:
        job = self._queue.find(request.job_id)
        if job is None:
            refuse(context, BadRequest(f"job not found: {request.job_id}"), grpc.StatusCode.NOT_FOUND)
        if not self._wait(job, context, request.timeout_ms / 1e3 if request.timeout_ms else None):
            return pb.AwaitProofResponse(
                job_id=job.job_id, status=Status.TIMEOUT, error_message=f"not done after {request.timeout_ms} ms"
            )
        return answer(job)

    def Prove(self, request: pb.ProveRequest, context: grpc.ServicerContext) -> pb.ProveResponse:
        if not request.HasField("submit"):
            refuse(context, BadRequest("missing submit field"))
        job, _ = self._submit(request.submit, context)
        self._wait(job, context, None)
        return pb.ProveResponse(result=answer(job))

    def CancelProof(self, request: pb.CancelProofRequest, context: grpc.ServicerContext) -> pb.CancelProofResponse:
        was_running = self._queue.cancel(request.job_id)[0] if request.job_id else False
        return pb.CancelProofResponse(was_running=was_running)

    def GetStatus(self, request: pb.GetStatusRequest, context: grpc.ServicerContext) -> pb.GetStatusResponse:
        return self._reporter.grpc_status()

    def GetMetrics(self, request: pb.GetMetricsRequest, context: grpc.ServicerContext) -> pb.GetMetricsResponse:
        return pb.GetMetricsResponse(prometheus_text=self._reporter.metrics_text())

    def PreloadSRS(self, request: pb.PreloadSrsRequest, context: grpc.ServicerContext) -> pb.PreloadSrsResponse:
        try:
            loaded_ns = self._shelf.preload(request.circuit_id)
        except ProverError as error:
            refuse(context, error, grpc.StatusCode.INTERNAL)
        return pb.PreloadSrsResponse(already_loaded=loaded_ns is None, load_time_ms=(loaded_ns or 0) // 1_000_000)

    def EvictSRS(self, request: pb.EvictSrsRequest, context: grpc.ServicerContext) -> pb.EvictSrsResponse:
        freed_bytes = self._shelf.evict(request.circuit_id)
        return pb.EvictSrsResponse(was_loaded=freed_bytes is not None, freed_bytes=freed_bytes or 0)

    def _submit(self, request: pb.SubmitProofRequest, context: grpc.ServicerContext) -> tuple[Job, int]:
        try:
            job_id = request.request_id or str(uuid.uuid4())
            return self._queue.submit(job_request(request, job_id, context.peer()))
        except ProverError as error:
            refuse(context, error)

    def _wait(self, job: Job, context: grpc.ServicerContext, timeout_s: float | None) -> bool:
        """Whether the job ended in time. A client that goes away ends the wait, not the job."""
        if job.outcome is not None:
            return True
        if not self._waiters.acquire(blocking=False):
            refuse(context, QueueFull(f"{MAX_WAITERS} calls wait for proofs, as many as may"))
        woken = threading.Event()
        try:
            if context.add_callback(woken.set):
                job.call_when_ended(woken.set)
                woken.wait(timeout_s)
        finally:
            job.forget(woken.set)
            self._waiters.release()
        return job.outcome is not None


def answer(job: Job) -> pb.AwaitProofResponse:
    """What upstream's clients read of a job that has ended; times in whole milliseconds.

    gpu_compute_ms is the inner clock: what was computed, release not included.
    """
    if job.outcome is None:
        return pb.AwaitProofResponse(job_id=job.job_id, status=Status.UNKNOWN)
    reply = pb.AwaitProofResponse(job_id=job.job_id, status=_STATUS[job.outcome], error_message=job.error)
    reply.queue_wait_ms = job.queue_ns // 1_000_000
    reply.total_ms = ((job.ended_ns or job.submitted_ns) - job.submitted_ns) // 1_000_000
    if job.result is not None:
        metrics = job.result.metrics
        reply.proof = job.result.proof
        reply.srs_load_ms = _ms(metrics, "setup_ms") + _ms(metrics, "srs_ms")
        reply.synthesis_ms, reply.gpu_compute_ms = _ms(metrics, "synth_ms"), _ms(metrics, "inner_ms")
    return reply


def _ms(metrics: dict[str, float | int | str | None], name: str) -> int:
    value = metrics.get(name)
    return round(value) if isinstance(value, int | float) else 0
