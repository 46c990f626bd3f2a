"""The hub numbers every event, remembers what a late watcher must know, and never makes the prover wait.

A watcher that does not keep up loses events and is told how many (`Dropped`); nobody else notices.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field

import msgspec

from prover import wire
from prover.run import now
from prover.serve.watcher import URGENT, WATCHER_EVENTS, Line, Watcher
from prover.wire import Policy, Stage

HISTORY_EVENTS = 4096
"""Stage marks kept of one job."""
KEPT_TRACES = 8
"""Ended jobs whose marks are kept for a status page."""

Mark = wire.StageBegan | wire.StageEnded | wire.InnerEnded | wire.OuterEnded | wire.JobPredicted


@dataclass(slots=True)
class Trace:
    """What has been heard of a job."""

    submitted: wire.JobSubmitted | None = None
    marks: list[wire.Event] = field(default_factory=list)
    """Stages begun and ended, the predicted peak, inner and outer clock, in order."""
    progress: dict[tuple[Stage, int | None], wire.Progress] = field(default_factory=dict)
    """The last of each stage and circuit."""


class Hub:
    """Fan-out of one prover's events.

    Args:
        hello: what a watch begins with; sent again with a fresh wall-clock anchor to each watcher.
        policy: the release policy at the start.
    """

    def __init__(self, hello: wire.Hello, policy: Policy) -> None:
        self._lock = threading.Lock()
        self._hello, self._policy = hello, policy
        self._seq = 0
        self._watchers: list[Watcher] = []
        self._jobs: dict[str, Trace] = {"": Trace()}
        """Living ones by id; the empty id stands for work outside jobs (compiling)."""
        self._ended: OrderedDict[str, Trace] = OrderedDict()
        self._running: str | None = None
        self._buffers: dict[int, tuple[wire.BufferAllocated, wire.BufferTouched | None]] = {}
        self._errors: list[wire.Notice] = []
        """Standing warnings about the prover itself, at most a few."""

    def emit(self, event: wire.Event) -> None:
        """Numbers the event and hands it to every watcher; thread-safe, microseconds, never blocks on a watcher."""
        with self._lock:
            self._seq += 1
            event = msgspec.structs.replace(event, seq=self._seq)
            self._remember(event)
            if self._watchers:
                line, is_urgent = wire.encode(event), type(event) in URGENT
                for watcher in self._watchers:
                    watcher.push(line, is_urgent=is_urgent)

    def watch(self, limit: int = WATCHER_EVENTS) -> tuple[list[Line], Watcher]:
        """The present as lines (hello, state, past events with their own times), and a watcher of all that follows.

        No event falls between the two. Past events carry seq 0; the state carries the number of the last event.
        """
        watcher = Watcher(limit)
        with self._lock:
            present = self._present()
            self._watchers.append(watcher)
        return [wire.encode(event) for event in present], watcher

    def unwatch(self, watcher: Watcher) -> None:
        with self._lock:
            if watcher in self._watchers:
                self._watchers.remove(watcher)
        watcher.close()

    def close(self) -> None:
        """Ends every watch after its queued lines."""
        with self._lock:
            watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher.close()

    def backend_loaded(self, backend: str, devices: list[str], gpu_note: str, gpu_lost: str = "") -> None:
        """Says so in the hello, to present watchers too; what was said about failing to load it is forgotten."""
        with self._lock:
            self._hello = msgspec.structs.replace(
                self._hello, backend=backend, devices=devices, gpu_note=gpu_note, gpu_lost=gpu_lost
            )
            self._errors = []
            self._seq += 1
            line = wire.encode(self._anchored(self._seq))
            for watcher in self._watchers:
                watcher.push(line)

    @property
    def hello(self) -> wire.Hello:
        return self._hello

    @property
    def watcher_count(self) -> int:
        return len(self._watchers)

    def trace(self, job_id: str) -> Trace | None:
        """A copy of what is remembered of a living job, or of one of the last that ended."""
        with self._lock:
            job = self._jobs.get(job_id) or self._ended.get(job_id)
            return Trace(job.submitted, list(job.marks), dict(job.progress)) if job else None

    def buffers(self) -> list[wire.BufferAllocated]:
        """The ledger: every buffer that is alive."""
        with self._lock:
            return [allocated for allocated, _ in self._buffers.values()]

    def _anchored(self, seq: int) -> wire.Hello:
        return msgspec.structs.replace(self._hello, t_ns=now(), unix_ns=time.time_ns(), seq=seq)

    def _remember(self, event: wire.Event) -> None:
        match event:
            case wire.BufferAllocated():
                self._buffers[event.buffer_id] = (event, None)
            case wire.BufferTouched() if event.buffer_id in self._buffers:
                self._buffers[event.buffer_id] = (self._buffers[event.buffer_id][0], event)
            case wire.BufferReleased():
                self._buffers.pop(event.buffer_id, None)
            case wire.JobSubmitted():
                self._jobs.setdefault(event.job_id, Trace()).submitted = event
            case (
                wire.StageBegan() | wire.StageEnded() | wire.InnerEnded() | wire.OuterEnded() | wire.JobPredicted()
            ):
                self._remember_mark(event)
            case wire.Progress():
                job = self._jobs.get(event.job_id)
                if job:
                    job.progress[event.stage, event.circuit] = event
            case wire.JobEnded():
                if event.job_id in self._jobs and event.job_id:
                    self._ended[event.job_id] = self._jobs.pop(event.job_id)
                while len(self._ended) > KEPT_TRACES:
                    self._ended.popitem(last=False)
                self._running = None if self._running == event.job_id else self._running
            case wire.PolicyChanged():
                self._policy = event.policy
            case wire.Notice(level="error", job_id=""):
                self._errors = [*self._errors, event][-8:]

    def _remember_mark(self, event: Mark) -> None:
        job = self._jobs.get(event.job_id)
        if job is None:
            return
        if len(job.marks) < HISTORY_EVENTS:
            job.marks.append(event)
        if isinstance(event, wire.StageEnded):
            job.progress.pop((event.stage, event.circuit), None)
            if event.stage is Stage.QUEUE and event.ok:
                self._running = event.job_id
            if not event.job_id:
                job.marks = [m for m in job.marks if not _is_same_stage(m, event)]

    def _present(self) -> list[wire.Event]:
        queued = [job_id for job_id in self._jobs if job_id and job_id != self._running]
        pool = sum(a.size_bytes for a, _ in self._buffers.values() if a.owner is wire.Owner.POOL)
        past: list[wire.Event] = list(self._errors)
        for job in self._jobs.values():
            past += [job.submitted] if job.submitted else []
            past += job.marks
            past += job.progress.values()
        for allocated, touched in self._buffers.values():
            past += [allocated, touched] if touched else [allocated]
        past.sort(key=lambda event: event.t_ns)
        state = wire.State(
            t_ns=now(), seq=self._seq, policy=self._policy, queued=queued, running=self._running, pool_bytes=pool
        )
        return [self._anchored(0), state, *(msgspec.structs.replace(event, seq=0) for event in past)]


def _is_same_stage(mark: wire.Event, ended: wire.StageEnded) -> bool:
    return isinstance(mark, wire.StageBegan | wire.StageEnded) and mark.stage is ended.stage
