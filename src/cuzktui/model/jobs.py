"""Folds of the events that concern one job: each takes a JobView and an event and returns the JobView after it."""

from __future__ import annotations

from msgspec.structs import replace

from cuzktui.model.ledger import ANONYMOUS, Buffer
from cuzktui.model.series import Log
from cuzktui.model.snapshot import JobView, KernelRow, ReleaseView, StageView
from prover import wire

MAX_STAGES = 1024
MAX_PROGRESS = 512
MAX_PARTS = 64
MAX_KERNELS = 256
RECENT_SPANS = 24


def new(job_id: str, t_ns: int) -> JobView:
    """A job of which nothing is known but its name."""
    return JobView(job_id=job_id, first_ns=t_ns, spans=Log(32768), releases=Log(16384))


def submitted(view: JobView, event: wire.JobSubmitted) -> JobView:
    """What was asked for; an event that arrives late still sets where the job began."""
    return replace(
        view, circuit=event.circuit, num_circuits=event.num_circuits, policy=event.policy, kind=event.kind,
        client=event.client, num_constraints=event.num_constraints, domain_size=event.domain_size,
        predicted_peak_bytes=event.predicted_peak_bytes or view.predicted_peak_bytes, submitted_ns=event.t_ns,
        first_ns=min(view.first_ns, event.t_ns),
    )  # fmt: skip


def predicted(view: JobView, event: wire.JobPredicted) -> JobView:
    """What admission expects the job to hold."""
    parts = dict(list(event.parts_bytes.items())[:MAX_PARTS])
    return replace(view, predicted_peak_bytes=event.peak_bytes, predicted_parts=parts)


def stage_began(view: JobView, event: wire.StageBegan) -> JobView:
    """Begins a stage; a watch that is taken up again may tell of one that is known."""
    stage = StageView(stage=event.stage, circuit=event.circuit, begin_ns=event.t_ns, thread=event.thread)
    place = (stage.begin_ns, stage.stage, stage.circuit)
    if any((known.begin_ns, known.stage, known.circuit) == place for known in view.stages[-64:]):
        return view
    return replace(view, stages=(*view.stages, stage)[-MAX_STAGES:], first_ns=min(view.first_ns, event.t_ns))


def stage_ended(view: JobView, event: wire.StageEnded) -> JobView:
    """Ends the newest open stage of that name and circuit; one whose begin was not seen has no length."""
    stages = view.stages
    for at in range(len(stages) - 1, -1, -1):
        stage = stages[at]
        if stage.end_ns is None and stage.stage is event.stage and stage.circuit == event.circuit:
            done = replace(stage, end_ns=event.t_ns, ok=event.ok)
            return replace(view, stages=(*stages[:at], done, *stages[at + 1 :]))
    done = StageView(
        stage=event.stage, circuit=event.circuit, begin_ns=event.t_ns, end_ns=event.t_ns, ok=event.ok,
        thread=event.thread,
    )  # fmt: skip
    return replace(view, stages=(*stages, done)[-MAX_STAGES:])


def progressed(view: JobView, event: wire.Progress) -> JobView:
    key = (event.stage, event.circuit)
    if key not in view.progress and len(view.progress) >= MAX_PROGRESS:
        return view
    return replace(view, progress={**view.progress, key: event})


def spanned(view: JobView, event: wire.Span) -> JobView:
    """Folds a span into its row of the kernel table and keeps it for the time axis."""
    key = (event.name, event.lane)
    row = view.kernels.get(key)
    spans = view.spans.append(event)
    if row is None:
        if len(view.kernels) >= MAX_KERNELS:
            return replace(view, spans=spans)
        row = KernelRow(name=event.name, lane=event.lane, stage=event.stage, op=event.op)
    length_ns = max(0, event.t_ns - event.begin_ns)
    roof, roofed_ns = row.roof_percent, row.roofed_ns
    if event.roof_percent is not None:
        weight = max(1, length_ns)
        roof = ((roof or 0.0) * roofed_ns + event.roof_percent * weight) / (roofed_ns + weight)
        roofed_ns += weight
    cpu_ns = row.cpu_ns if event.cpu_ns is None else (row.cpu_ns or 0) + event.cpu_ns
    row = replace(
        row, count=row.count + 1, total_ns=row.total_ns + length_ns, last_ns=length_ns,
        max_ns=max(row.max_ns, length_ns), recent_ns=(*row.recent_ns, length_ns)[-RECENT_SPANS:],
        ops=row.ops + (event.ops or 0), op=event.op or row.op, moved_bytes=row.moved_bytes + (event.moved_bytes or 0),
        cpu_ns=cpu_ns, roof_percent=roof, roofed_ns=roofed_ns,
    )  # fmt: skip
    return replace(view, spans=spans, kernels={**view.kernels, key: row})


def inner_ended(view: JobView, event: wire.InnerEnded) -> JobView:
    return replace(view, inner_end_ns=event.t_ns, inner_ns=event.inner_ns)


def outer_ended(view: JobView, event: wire.OuterEnded) -> JobView:
    return replace(view, outer_end_ns=event.t_ns, outer_ns=event.outer_ns)


def released(view: JobView, event: wire.BufferReleased, buffer: Buffer | None) -> JobView:
    """A buffer of this job was given back."""
    resident = 0
    if buffer is None:
        resident = event.size_bytes if event.how in ("munmap", "trim") else 0
    elif buffer.event.place in ANONYMOUS:
        resident = buffer.resident_bytes or event.size_bytes
    release = ReleaseView(
        begin_ns=event.begin_ns, end_ns=event.t_ns, size_bytes=event.size_bytes, resident_bytes=resident,
        how=event.how, owner=buffer.event.owner if buffer else None, label=buffer.event.label if buffer else "",
        synchronous=event.synchronous, thread=event.thread,
    )  # fmt: skip
    return replace(view, releases=view.releases.append(release))


def ended(view: JobView, event: wire.JobEnded) -> JobView:
    """The reply; stages still open end with it."""
    stages = tuple(
        stage if stage.end_ns is not None else replace(stage, end_ns=event.t_ns, ok=event.outcome == "proved")
        for stage in view.stages
    )
    return replace(
        view, ended_ns=event.t_ns, outcome=event.outcome, verified=event.verified, proof_hex=event.proof_hex,
        public_inputs=tuple(tuple(values) for values in event.public_inputs), error=event.error,
        metrics=event.metrics, stages=stages,
    )  # fmt: skip
