"""One queue, one worker: jobs run one after another, and nothing that waits or is kept is unbounded.

A job ends exactly once, as proved, failed or cancelled; whoever waits for it is told then, and a fault in a job is the
end of that job and of nothing else.
"""

from __future__ import annotations

import itertools
import sys
import threading
import traceback
from collections import Counter, OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from prover import wire
from prover.errors import Cancelled, ProverError
from prover.run import Run, now
from prover.serve.hub import Hub
from prover.serve.job import Job, Result, ended_event, wire_kind
from prover.serve.request import JobRequest
from prover.wire import Outcome, Policy, Stage

T = TypeVar("T")
MAX_WAITING = 64
MAX_WAITING_BYTES = 512 << 20
KEPT_RESULTS = 256
MAX_CHORES = 8


class QueueFull(ProverError):
    """As many jobs, or as many bytes of requests, wait as may wait."""


class IdTaken(ProverError):
    """Another request with this id is known already, and it asks for something else."""


Execute = Callable[[Job], Result]
"""Runs one job in the worker's thread; raises ProverError for what was expected to be able to fail."""


@dataclass(slots=True)
class Totals:
    """Counters since the start, by kind."""

    completed: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    cancelled: Counter[str] = field(default_factory=Counter)
    proving_ns: Counter[str] = field(default_factory=Counter)
    """From start to end, of the completed ones."""


class JobQueue:
    """Jobs by priority, first come first served within one.

    Args:
        hub: where the jobs' events go.
        policy: release policy of jobs that name none; can be changed while running.
        max_waiting, max_waiting_bytes, kept_results: the bounds.
    """

    def __init__(
        self, hub: Hub, policy: Policy, *, max_waiting: int = MAX_WAITING, max_waiting_bytes: int = MAX_WAITING_BYTES,
        kept_results: int = KEPT_RESULTS,
    ) -> None:  # fmt: skip
        self.hub, self.policy = hub, policy
        self.max_waiting, self.max_waiting_bytes, self.kept_results = max_waiting, max_waiting_bytes, kept_results
        self.totals = Totals()
        self.running: Job | None = None
        self._changed = threading.Condition()
        self._waiting: list[tuple[int, int, Job]] = []
        """(-priority, order of arrival, job), sorted."""
        self._chores: list[tuple[Callable[[], None], Future[Any]]] = []
        self._order = itertools.count()
        self._kept: OrderedDict[str, Job] = OrderedDict()
        self._stopped = False

    def submit(self, request: JobRequest) -> tuple[Job, int]:
        """The job of that id and how many go before it; joins a living or proved job of the same id and content.

        Raises:
            QueueFull: refused, with what waits.
            IdTaken: the id belongs to a job that asks for something else.
        """
        job = Job(request, Run(self.hub.emit, request.job_id))
        with self._changed:
            known = self._find(request.job_id)
            if known is not None and known.outcome in (None, Outcome.PROVED):
                if known.fingerprint != job.fingerprint:
                    raise IdTaken(f"job id {request.job_id} belongs to another request; use a new one")
                return known, self._position(known)
            self._admit(request)
            self._kept.pop(request.job_id, None)
            self._announce(job)
            self._waiting.append((-int(request.priority), next(self._order), job))
            self._waiting.sort(key=lambda entry: entry[:2])
            self._changed.notify_all()
            return job, self._position(job)

    def find(self, job_id: str) -> Job | None:
        """Waiting, running, or ended not too long ago."""
        with self._changed:
            return self._find(job_id)

    def cancel(self, job_id: str) -> tuple[bool, bool]:
        """Cancels a job, the running one for an empty id; (it was running, it was waiting)."""
        with self._changed:
            running = self.running
            if running is not None and running.outcome is None and job_id in ("", running.job_id):
                running.run.cancel()
                return True, False
            job = next((j for _, _, j in self._waiting if j.job_id == job_id), None) if job_id else None
            if job is None:
                return False, False
            self._waiting = [entry for entry in self._waiting if entry[2] is not job]
        self._end(job, Outcome.CANCELLED, None, f"job {job_id} was cancelled before it began")
        return False, True

    def set_policy(self, policy: Policy) -> None:
        self.policy = policy
        self.hub.emit(wire.PolicyChanged(t_ns=now(), policy=policy))

    def waiting(self) -> list[Job]:
        with self._changed:
            return [job for _, _, job in self._waiting]

    def ended(self) -> list[Job]:
        """The kept ones, oldest first."""
        with self._changed:
            return list(self._kept.values())

    def call(self, chore: Callable[[], T]) -> T:
        """Has the worker do something between two jobs, before any that waits; blocks until it is done.

        Raises:
            QueueFull: too many chores wait, or the prover is shutting down.
            Exception: whatever the chore raises.
        """
        future: Future[T] = Future()

        def carry_out() -> None:
            try:
                future.set_result(chore())
            except Exception as error:
                future.set_exception(error)

        with self._changed:
            if self._stopped or len(self._chores) >= MAX_CHORES:
                raise QueueFull("the prover is shutting down" if self._stopped else "the worker is busy; try again")
            self._chores.append((carry_out, future))
            self._changed.notify_all()
        return future.result()

    def work(self, execute: Execute) -> None:
        """The worker: returns after `stop`, when the running job has ended."""
        while (work := self._take()) is not None:
            if isinstance(work, Job):
                self._carry_out(work, execute)
                with self._changed:
                    self.running = None
            else:
                work()

    def stop(self, reason: str) -> None:
        """Cancels everything; no job begins any more and none is taken in."""
        with self._changed:
            self._stopped = True
            waiting, self._waiting = [job for _, _, job in self._waiting], []
            chores, self._chores = self._chores, []
            if self.running is not None:
                self.running.run.cancel()
            self._changed.notify_all()
        for _, future in chores:
            future.set_exception(QueueFull("the prover is shutting down"))
        for job in waiting:
            self._end(job, Outcome.CANCELLED, None, f"job {job.job_id} was cancelled: {reason}")

    def _find(self, job_id: str) -> Job | None:
        alive = [job for _, _, job in self._waiting] + ([self.running] if self.running else [])
        return next((job for job in alive if job.job_id == job_id), None) or self._kept.get(job_id)

    def _position(self, job: Job) -> int:
        """Jobs that go before it."""
        if job is self.running or job.outcome is not None:
            return 0
        index = next(i for i, entry in enumerate(self._waiting) if entry[2] is job)
        return index + (self.running is not None)

    def _admit(self, request: JobRequest) -> None:
        if self._stopped:
            raise QueueFull("the prover is shutting down")
        if len(self._waiting) >= self.max_waiting:
            raise QueueFull(f"{len(self._waiting)} jobs wait, as many as may; try again when one has ended")
        held = sum(job.request.size_bytes for _, _, job in self._waiting)
        if held + request.size_bytes > self.max_waiting_bytes:
            raise QueueFull(
                f"waiting requests hold {held} bytes and this one has {request.size_bytes}; "
                f"{self.max_waiting_bytes} may wait"
            )

    def _announce(self, job: Job) -> None:
        request = job.request
        self.hub.emit(
            wire.JobSubmitted(
                t_ns=job.submitted_ns, job_id=job.job_id, circuit=request.title, num_circuits=request.num_circuits,
                policy=request.policy or self.policy, kind=wire_kind(request.kind), client=request.client,
            )
        )  # fmt: skip
        self.hub.emit(wire.StageBegan(t_ns=job.submitted_ns, job_id=job.job_id, stage=Stage.QUEUE))

    def _take(self) -> Job | Callable[[], None] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or bool(self._waiting) or bool(self._chores))
            if self._stopped:
                return None
            if self._chores:
                return self._chores.pop(0)[0]
            job = self._waiting.pop(0)[2]
            self.running = job
            job.started_ns = now()
            job.policy = job.request.policy or self.policy
        self.hub.emit(wire.StageEnded(t_ns=job.started_ns, job_id=job.job_id, stage=Stage.QUEUE))
        return job

    def _carry_out(self, job: Job, execute: Execute) -> None:
        try:
            result = execute(job)
        except Cancelled:
            self._end(job, Outcome.CANCELLED, None, f"job {job.job_id} was cancelled")
        except ProverError as error:
            self._end(job, Outcome.FAILED, None, str(error))
        except MemoryError as error:
            self._end(job, Outcome.FAILED, None, f"out of host memory: {error}")
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            self._end(job, Outcome.FAILED, None, f"internal fault: {type(error).__name__}: {error}")
        else:
            self._end(job, Outcome.PROVED, result, "")

    def _end(self, job: Job, outcome: Outcome, result: Result | None, error: str) -> None:
        kind = job.request.kind
        tally = {
            Outcome.PROVED: self.totals.completed,
            Outcome.FAILED: self.totals.failed,
            Outcome.CANCELLED: self.totals.cancelled,
        }[outcome]
        if job.started_ns is None:
            self.hub.emit(wire.StageEnded(t_ns=now(), job_id=job.job_id, stage=Stage.QUEUE, ok=False))
        with self._changed:
            tally[kind] += 1
            if outcome is Outcome.PROVED and job.started_ns is not None:
                self.totals.proving_ns[kind] += now() - job.started_ns
            self._kept[job.job_id] = job
            while len(self._kept) > self.kept_results:
                self._kept.popitem(last=False)
        self.hub.emit(ended_event(job, outcome, result, error))
        job.end(outcome, result, error)
