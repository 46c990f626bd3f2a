"""`apply` is the only writer of a Snapshot: pure, total over every event, and O(1) in the length of the history.

Unknown jobs, buffers and processes are taken in as they come (a watch may begin in the middle of anything), and every
collection is bounded, so that no stream can grow the console without limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from cuzktui.model import jobs, ledger, samples
from cuzktui.model.series import Log, Series
from cuzktui.model.snapshot import HOST, REPLAY, JobView, Snapshot, SourceState
from prover import wire

MAX_JOBS = 64
MAX_SOURCES = 32
MAX_T_NS = 1 << 62
"""146 years: a time beyond it is no reading of a clock, and would not fit an int64 difference."""


def empty(is_replay: bool = False, memory_capacity: int = 65536) -> Snapshot:
    """The state before the first event; an analysis of a whole recording asks for a larger `memory_capacity`."""
    return Snapshot(
        is_replay=is_replay,
        memory_capacity=memory_capacity,
        ledger=ledger.empty(),
        host_series=Series(HOST, capacity=16384),
        notices=Log(500),
        markers=Log(500),
        log_lines=Log(1000),
    )


def apply(snapshot: Snapshot, event: wire.Event) -> Snapshot:
    """The snapshot after one more event."""
    fold = _FOLDS.get(type(event))
    t_ns = event.t_ns
    if not -MAX_T_NS < t_ns < MAX_T_NS or not -MAX_T_NS < getattr(event, "begin_ns", 0) < MAX_T_NS:
        return replace(snapshot, unknown=snapshot.unknown + 1)
    snapshot = replace(
        snapshot,
        t_ns=t_ns if t_ns > snapshot.t_ns else snapshot.t_ns,
        first_ns=snapshot.first_ns if snapshot.events and snapshot.first_ns <= t_ns else t_ns,
        events=snapshot.events + 1,
    )
    if fold is None:
        return replace(snapshot, unknown=snapshot.unknown + 1)
    return fold(snapshot, event)


def apply_all(snapshot: Snapshot, events: Iterable[wire.Event]) -> Snapshot:
    """The snapshot after many events, in order of arrival."""
    for event in events:
        snapshot = apply(snapshot, event)
    return snapshot


def _hello(snapshot: Snapshot, event: wire.Hello) -> Snapshot:
    if event.source == "collector":
        return replace(snapshot, collector=event)
    is_new = snapshot.hello is not None and snapshot.hello.pid != event.pid
    if is_new:
        snapshot = replace(snapshot, ledger=ledger.empty(), queued=(), running=None)
    return replace(snapshot, hello=event, main_pid=event.pid or snapshot.main_pid)


def _state(snapshot: Snapshot, event: wire.State) -> Snapshot:
    """The present of a prover: its buffers and jobs follow as events, so the ledger begins anew."""
    return replace(
        snapshot, policy=event.policy, queued=tuple(event.queued), running=event.running or None,
        ledger=replace(ledger.empty(), series=snapshot.ledger.series),
    )  # fmt: skip


def _on_job(change: Callable[[JobView, Any], JobView]) -> Callable[[Snapshot, Any], Snapshot]:
    """A fold of an event that concerns one job."""

    def fold(snapshot: Snapshot, event: Any) -> Snapshot:
        return _with_job(snapshot, event.job_id, event.t_ns, lambda view: change(view, event))

    return fold


def _with_job(snapshot: Snapshot, job_id: str, t_ns: int, change: Callable[[JobView], JobView]) -> Snapshot:
    if not job_id:
        return replace(snapshot, service=change(snapshot.service or jobs.new("", t_ns)))
    views = snapshot.jobs
    for at in range(len(views) - 1, -1, -1):
        if views[at].job_id == job_id:
            return replace(snapshot, jobs=(*views[:at], change(views[at]), *views[at + 1 :]))
    return replace(snapshot, jobs=(*views, change(jobs.new(job_id, t_ns)))[-MAX_JOBS:])


def _submitted(snapshot: Snapshot, event: wire.JobSubmitted) -> Snapshot:
    snapshot = _with_job(snapshot, event.job_id, event.t_ns, lambda view: jobs.submitted(view, event))
    if event.job_id in snapshot.queued or event.job_id == snapshot.running:
        return snapshot
    return replace(snapshot, queued=(*snapshot.queued, event.job_id)[-MAX_JOBS:])


def _stage_began(snapshot: Snapshot, event: wire.StageBegan) -> Snapshot:
    snapshot = _with_job(snapshot, event.job_id, event.t_ns, lambda view: jobs.stage_began(view, event))
    if not event.job_id or event.stage is wire.Stage.QUEUE or snapshot.running == event.job_id:
        return snapshot
    view = snapshot.find_job(event.job_id)
    if view is None or view.is_done:
        return snapshot
    queued = tuple(job_id for job_id in snapshot.queued if job_id != event.job_id)
    return replace(snapshot, running=event.job_id, queued=queued)


def _stage_ended(snapshot: Snapshot, event: wire.StageEnded) -> Snapshot:
    snapshot = replace(snapshot, ledger=ledger.stage_ended(snapshot.ledger, event))
    return _with_job(snapshot, event.job_id, event.t_ns, lambda view: jobs.stage_ended(view, event))


def _job_ended(snapshot: Snapshot, event: wire.JobEnded) -> Snapshot:
    snapshot = _with_job(snapshot, event.job_id, event.t_ns, lambda view: jobs.ended(view, event))
    queued = tuple(job_id for job_id in snapshot.queued if job_id != event.job_id)
    running = None if snapshot.running == event.job_id else snapshot.running
    return replace(snapshot, queued=queued, running=running)


def _inner_ended(snapshot: Snapshot, event: wire.InnerEnded) -> Snapshot:
    snapshot = _with_job(snapshot, event.job_id, event.t_ns, lambda view: jobs.inner_ended(view, event))
    return samples.open_lens(snapshot, event.job_id, event.t_ns, "inner ended")


def _outer_ended(snapshot: Snapshot, event: wire.OuterEnded) -> Snapshot:
    snapshot = _with_job(snapshot, event.job_id, event.t_ns, lambda view: jobs.outer_ended(view, event))
    return samples.end_lens_gap(snapshot, event.job_id, event.t_ns)


def _buffer_released(snapshot: Snapshot, event: wire.BufferReleased) -> Snapshot:
    buffer = snapshot.ledger.buffers.get(event.buffer_id)
    snapshot = replace(snapshot, ledger=ledger.released(snapshot.ledger, event))
    job_id = buffer.event.job_id if buffer is not None else ""
    return _with_job(snapshot, job_id, event.t_ns, lambda view: jobs.released(view, event, buffer))


def _on_ledger(change: Callable[[ledger.Ledger, Any], ledger.Ledger]) -> Callable[[Snapshot, Any], Snapshot]:
    def fold(snapshot: Snapshot, event: Any) -> Snapshot:
        return replace(snapshot, ledger=change(snapshot.ledger, event))

    return fold


def _source(snapshot: Snapshot, event: wire.SourceChanged) -> Snapshot:
    state = SourceState(alive=event.alive, since_ns=event.t_ns, detail=event.detail)
    sources = {**snapshot.sources, event.source: state}
    while len(sources) > MAX_SOURCES:
        sources.pop(next(iter(sources)))
    return replace(snapshot, sources=sources, is_replay=snapshot.is_replay or event.source == REPLAY)


_FOLDS: dict[type, Callable[[Snapshot, Any], Snapshot]] = {
    wire.Hello: _hello,
    wire.State: _state,
    wire.Dropped: lambda s, e: replace(s, dropped=s.dropped + max(0, e.count)),
    wire.JobSubmitted: _submitted,
    wire.JobPredicted: _on_job(jobs.predicted),
    wire.StageBegan: _stage_began,
    wire.StageEnded: _stage_ended,
    wire.Progress: _on_job(jobs.progressed),
    wire.Span: _on_job(jobs.spanned),
    wire.InnerEnded: _inner_ended,
    wire.OuterEnded: _outer_ended,
    wire.BufferAllocated: _on_ledger(ledger.allocated),
    wire.BufferTouched: _on_ledger(ledger.touched),
    wire.BufferReleased: _buffer_released,
    wire.BufferLeaked: _on_ledger(ledger.leaked),
    wire.JobEnded: _job_ended,
    wire.PolicyChanged: lambda s, e: replace(s, policy=e.policy),
    wire.Notice: lambda s, e: replace(s, notices=s.notices.append(e)),
    wire.MemSample: samples.memory,
    wire.CpuSample: samples.cpu,
    wire.HostSample: samples.host,
    wire.GpuSample: samples.gpu,
    wire.ProcessSeen: samples.process_seen,
    wire.ProcessEnded: samples.process_ended,
    wire.SourceChanged: _source,
    wire.LogLine: lambda s, e: replace(s, log_lines=s.log_lines.append(e)),
    wire.Marker: lambda s, e: replace(s, markers=s.markers.append(e)),
    wire.CollectorCost: samples.collector_cost,
}
