"""Every nanosecond between request and reply has exactly one class, with the evidence that gave it.

Evidence is painted in order of strength: stages first, then what the samples say, then spans, transfers over CPU work
and kernels over both, since a caller waits for the device. The gap is painted last and knows release only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from cuzktui.analysis.gap import GapReport, gap_of
from cuzktui.analysis.intervals import Interval, clip, length_ns
from cuzktui.analysis.readings import Cause, readings
from cuzktui.model.series import Series
from cuzktui.model.snapshot import CPU_WINDOW_NS, JobView, ProcessView, Snapshot
from prover.wire import TOP_STAGES, Stage

FAULTS_PER_S = 20_000.0
"""80 MB/s of 4K pages or 40 GB/s of huge ones: below it faults are the noise of a heap."""
FAULT_SYSTEM_SHARE = 0.5
"""A window is page-faulting when half of its CPU time is the kernel's."""
IDLE_PERCENT = 5.0


class Kind(StrEnum):
    """What a stretch of a job was spent on."""

    QUEUE = "queue"
    SETUP = "setup"
    COMPILE = "compile"
    SRS_LOAD = "srs load"
    SYNTHESIS = "synthesis"
    TRANSFER = "transfer"
    KERNEL = "kernel"
    CPU_MSM = "cpu msm"
    PAGE_FAULTING = "page-faulting"
    RELEASE = "release"
    LOCK_WAIT = "lock wait"
    IDLE = "idle"
    VERIFY = "verify"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of one kind."""

    begin_ns: int
    end_ns: int
    kind: Kind
    detail: str
    """Which kernel, stage or buffer owner."""
    evidence: str
    """stage | span | ledger | samples | none"""

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, slots=True)
class Attribution:
    """The parts of one job, contiguous from request to reply (or to now)."""

    parts: tuple[Part, ...]

    @property
    def total_ns(self) -> int:
        return self.parts[-1].end_ns - self.parts[0].begin_ns if self.parts else 0

    def length_ns(self, kind: Kind) -> int:
        return sum(part.length_ns for part in self.parts if part.kind is kind)

    @property
    def by_kind(self) -> dict[Kind, int]:
        """Nanoseconds of each kind that occurs, longest first."""
        kinds = dict.fromkeys(part.kind for part in self.parts)
        return dict(sorted(((k, self.length_ns(k)) for k in kinds), key=lambda pair: -pair[1]))

    @property
    def explained_percent(self) -> float | None:
        total = self.total_ns
        return 100.0 * (1 - self.length_ns(Kind.UNEXPLAINED) / total) if total > 0 else None


_STAGES = {
    Stage.COMPILE: Kind.COMPILE,
    Stage.QUEUE: Kind.QUEUE,
    Stage.SETUP: Kind.SETUP,
    Stage.SRS: Kind.SRS_LOAD,
    Stage.SYNTH: Kind.SYNTHESIS,
    Stage.WITNESS: Kind.SYNTHESIS,
    Stage.EVAL_ABC: Kind.SYNTHESIS,
    Stage.PREP_MSM: Kind.CPU_MSM,
    Stage.B_G2_MSM: Kind.CPU_MSM,
    Stage.NTT_H: Kind.KERNEL,
    Stage.MSM_H: Kind.CPU_MSM,
    Stage.BATCH_ADD: Kind.CPU_MSM,
    Stage.TAIL_MSM: Kind.CPU_MSM,
    Stage.EPILOGUE: Kind.CPU_MSM,
    Stage.VERIFY: Kind.VERIFY,
}
"""Kind of a stage; `prove` and `release` cover and explain nothing by themselves."""

_FAULTS = "fault in"
"""How the spans begin that tell of first touches, made by all cores ahead of the computation that needs the memory."""
_TRANSFERS = ("h2d", "d2h", "upload", "download", "memcpy", "transfer", "copy")


def attribute(snapshot: Snapshot, job: JobView) -> Attribution:
    """The parts of a job from its submission to its end, or until now while it runs."""
    begin_ns, end_ns = job.first_ns, job.ended_ns if job.ended_ns is not None else snapshot.t_ns
    if end_ns <= begin_ns:
        return Attribution(())
    layers = list(_stage_parts(snapshot.service, job, end_ns))
    layers += [*_fault_parts(snapshot, begin_ns, end_ns), *_span_parts(job)]
    gap = gap_of(snapshot, job)
    if gap is not None:
        layers.extend(_gap_parts(gap))
    return Attribution(_idle(_paint(layers, begin_ns, end_ns), snapshot))


def _stage_parts(service: JobView | None, job: JobView, end_ns: int) -> Iterable[Part]:
    """The job's stages, outer ones first; a job that waits in the queue while kernels are compiled waits for those."""
    compiling = [view for view in service.stages if view.stage is Stage.COMPILE] if service is not None else []
    ranks = {Stage.QUEUE: 0, Stage.COMPILE: 1}
    views = sorted([*job.stages, *compiling], key=lambda v: ranks.get(v.stage, 2 if v.stage in TOP_STAGES else 3))
    for view in views:
        kind = _STAGES.get(view.stage)
        if kind is not None:
            yield Part(view.begin_ns, end_ns if view.end_ns is None else view.end_ns, kind, view.stage.value, "stage")


def _span_parts(job: JobView) -> Iterable[Part]:
    """CPU spans, then page faults, transfers and device kernels: what is painted later wins."""
    on_cpu, faults, moved, on_device = [], [], [], []
    for span in job.spans:
        if any(word in span.name.lower() for word in _TRANSFERS):
            moved.append(Part(span.begin_ns, span.t_ns, Kind.TRANSFER, span.name, "span"))
        elif span.name.startswith(_FAULTS):
            faults.append(Part(span.begin_ns, span.t_ns, Kind.PAGE_FAULTING, span.name, "span"))
        elif span.lane.startswith("cpu"):
            kind = _STAGES.get(span.stage, Kind.KERNEL) if span.stage is not None else Kind.KERNEL
            on_cpu.append(Part(span.begin_ns, span.t_ns, kind, span.name, "span"))
        else:
            on_device.append(Part(span.begin_ns, span.t_ns, Kind.KERNEL, span.name, "span"))
    return [*on_cpu, *faults, *moved, *on_device]


def _fault_parts(snapshot: Snapshot, begin_ns: int, end_ns: int) -> Iterable[Part]:
    """CPU windows in which the kernel spent most of the time on page faults."""
    process = snapshot.process
    if process is None or not len(process.cpu):
        return
    cpu: Series = process.cpu
    times = cpu.t_ns
    system, user, faults = (cpu.column(name) for name in ("system_percent", "user_percent", "minor_faults_per_s"))
    share = system / np.maximum(system + user, 1e-9)
    for k in np.flatnonzero((faults >= FAULTS_PER_S) & (share >= FAULT_SYSTEM_SHARE)):
        first_ns = int(times[k - 1]) if k else int(times[k]) - CPU_WINDOW_NS
        if first_ns < end_ns and int(times[k]) > begin_ns:
            yield Part(first_ns, int(times[k]), Kind.PAGE_FAULTING, "first touch", "samples")


def _gap_parts(gap: GapReport) -> Iterable[Part]:
    yield Part(gap.begin_ns, gap.end_ns, Kind.UNEXPLAINED, "gap", "none")
    detail = " ".join(gap.ways) or "falling memory"
    for begin_ns, end_ns in gap.explained:
        yield Part(begin_ns, end_ns, Kind.RELEASE, detail, "ledger" if gap.ledger_ns else "samples")


def _paint(layers: list[Part], begin_ns: int, end_ns: int) -> list[Part]:
    """Contiguous parts of [begin, end]: at each instant the layer that came last, neighbours of one kind joined."""
    edges: list[Interval] = [(max(begin_ns, part.begin_ns), min(end_ns, part.end_ns)) for part in layers]
    marks = np.unique(np.array([begin_ns, end_ns, *(t for edge in edges if edge[1] > edge[0] for t in edge)], np.int64))
    owner = np.full(len(marks) - 1, -1, np.int64)
    for at, (first_ns, last_ns) in enumerate(edges):
        if last_ns > first_ns:
            owner[np.searchsorted(marks, first_ns) : np.searchsorted(marks, last_ns)] = at
    parts: list[Part] = []
    for k, at in enumerate(owner.tolist()):
        layer = layers[at] if at >= 0 else None
        kind, detail, evidence = (layer.kind, layer.detail, layer.evidence) if layer else (Kind.UNEXPLAINED, "", "none")
        first_ns, last_ns = int(marks[k]), int(marks[k + 1])
        before = parts[-1] if parts else None
        if before is not None and (before.kind, before.detail, before.evidence) == (kind, detail, evidence):
            parts[-1] = Part(before.begin_ns, last_ns, kind, detail, evidence)
        else:
            parts.append(Part(first_ns, last_ns, kind, detail, evidence))
    return parts


def _idle(parts: list[Part], snapshot: Snapshot) -> tuple[Part, ...]:
    """Unexplained stretches of two CPU windows or longer in which the process did not run, outside the gap, were spent
    waiting."""
    process = snapshot.process
    if process is None or not len(process.cpu):
        return tuple(parts)
    times = process.cpu.t_ns
    busy = process.cpu.column("user_percent") + process.cpu.column("system_percent")
    told = []
    for part in parts:
        is_candidate = part.kind is Kind.UNEXPLAINED and part.detail != "gap" and part.length_ns >= 2 * CPU_WINDOW_NS
        if is_candidate:
            lo, hi = np.searchsorted(times, part.begin_ns + CPU_WINDOW_NS), np.searchsorted(times, part.end_ns)
            if hi > lo and float(np.max(busy[lo:hi])) < IDLE_PERCENT:
                kind, detail = (Kind.LOCK_WAIT, "futex") if _is_locked(process, part) else (Kind.IDLE, "")
                part = Part(part.begin_ns, part.end_ns, kind, detail, "samples")
        told.append(part)
    return tuple(told)


def _is_locked(process: ProcessView, part: Part) -> bool:
    """Whether more threads than are parked while it works waited for a lock, or for what another thread signals
    through one, in most of a stretch."""
    if not (process.activity.column("running") > 0).any():
        return False  # which threads are parked while it works was never seen
    told = readings(process, part.begin_ns, part.end_ns, [])
    locked = [(begin_ns, end_ns) for begin_ns, end_ns, cause in told if cause is Cause.LOCK_WAIT]
    return length_ns(clip(locked, part.begin_ns, part.end_ns)) > part.length_ns / 2
