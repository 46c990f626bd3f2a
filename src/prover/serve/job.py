"""A job is a request on its way: it ends exactly once, and then whoever waits for it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from prover import wire
from prover.run import Run, now
from prover.serve.request import JobRequest
from prover.wire import Outcome, Policy

KINDS = ("circuit", "file", "porep-c2", "snap-update", "window-post", "winning-post")
"""Upstream's hyphen names, and two of our own."""
MAX_EVENT_INPUTS = 4096
"""Public inputs that the event of a finished job carries; more would make its line too long."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a proved job gives."""

    proof: bytes
    """192 bytes a circuit, in order."""
    public_inputs: list[list[str]] = field(default_factory=list)
    """Decimal, a list a circuit."""
    verified: bool = True
    metrics: dict[str, float | int | str | None] = field(default_factory=dict)


class Job:
    """A request on its way."""

    def __init__(self, request: JobRequest, run: Run) -> None:
        self.request, self.run = request, run
        self.fingerprint = request.fingerprint()
        self.submitted_ns = now()
        self.started_ns: int | None = None
        self.ended_ns: int | None = None
        self.outcome: Outcome | None = None
        """None until the job has ended."""
        self.result: Result | None = None
        self.error = ""
        self.policy: Policy | None = request.policy
        self.num_circuits = request.num_circuits
        """As asked for; of a PoRep job, as many as its C1 output has partitions, once that was read."""
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []

    @property
    def job_id(self) -> str:
        return self.request.job_id

    @property
    def queue_ns(self) -> int:
        """How long it has waited, or waited."""
        return (self.started_ns or self.ended_ns or now()) - self.submitted_ns

    def call_when_ended(self, callback: Callable[[], object]) -> None:
        """Calls back once, at once where the job has ended; from the worker's thread otherwise."""
        with self._lock:
            if self.outcome is None:
                self._callbacks.append(callback)
                return
        callback()

    def forget(self, callback: Callable[[], object]) -> None:
        """Takes a callback back: its waiter has gone."""
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    def end(self, outcome: Outcome, result: Result | None, error: str) -> None:
        with self._lock:
            self.ended_ns, self.result, self.error, self.outcome = now(), result, error, outcome
            self.request = self.request.without_payload()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()


def wire_kind(kind: str) -> str:
    """The event's name of a queue's kind."""
    return kind if kind in ("circuit", "file") else "porep"


def ended_event(job: Job, outcome: Outcome, result: Result | None, error: str) -> wire.JobEnded:
    """The event with which a job leaves the stream."""
    if result is None:
        return wire.JobEnded(
            t_ns=now(), job_id=job.job_id, outcome=outcome, error=error, metrics={"queue_ms": job.queue_ns / 1e6}
        )
    fits = sum(map(len, result.public_inputs)) <= MAX_EVENT_INPUTS
    return wire.JobEnded(
        t_ns=now(), job_id=job.job_id, outcome=outcome, proof_hex=result.proof.hex(), verified=result.verified,
        public_inputs=result.public_inputs if fits else [], metrics=result.metrics,
    )  # fmt: skip
