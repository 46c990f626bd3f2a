"""A trace is laid out once, in nanoseconds, and rendered by each format: processes, lanes, slices, counters, marks.

Slices of one lane nest or do not touch: whatever overlaps in part moves to a lane of its own beside it, since trace
viewers drop or misdraw the rest. Whatever has not ended when the stream stops ends there and says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from cuzktui.analysis.finding import finding
from cuzktui.analysis.plateau import FALLS
from cuzktui.analysis.report import analyse
from cuzktui.model.ledger import COLUMNS
from cuzktui.model.phases import PhaseKind
from cuzktui.model.series import Series
from cuzktui.model.snapshot import JobView, Snapshot
from prover import wire
from prover.wire import Stage

PROVER, COLLECTOR = 1, 2
GPU_FIRST = 10
"""Process numbers of a trace; GPU d is GPU_FIRST + d."""

FIRST_THREAD = 100
"""Viewers take a thread with its process's number for the main thread."""

Value = int | float | str | bool


@dataclass(frozen=True, slots=True)
class Slice:
    begin_ns: int
    end_ns: int
    name: str
    category: str
    args: dict[str, Value]


@dataclass(frozen=True, slots=True)
class Lane:
    """A track of nested slices: a thread in trace terms."""

    process: int
    thread: int
    name: str
    slices: tuple[Slice, ...]
    """By begin, longer first."""


@dataclass(frozen=True, slots=True)
class Counter:
    """Samples of named series that belong on one graph; equal neighbours are left out."""

    process: int
    name: str
    unit: str
    """bytes | percent | count | watts"""
    keys: tuple[str, ...]
    rows: tuple[tuple[int, tuple[float, ...]], ...]


@dataclass(frozen=True, slots=True)
class Instant:
    t_ns: int
    process: int
    name: str
    args: dict[str, Value]


@dataclass(frozen=True, slots=True)
class Async:
    """A stretch outside the lanes: a job from request to reply, a gap, a plateau."""

    begin_ns: int
    end_ns: int
    process: int
    category: str
    ident: str
    name: str
    args: dict[str, Value]


@dataclass(frozen=True, slots=True)
class Flow:
    """An arrow through slices of the stage lane: (t_ns, process, thread) of each stop, inside a slice."""

    ident: int
    name: str
    stops: tuple[tuple[int, int, int], ...]


@dataclass(slots=True)
class Layout:
    """A whole trace; times in ns since `base_ns`'s clock."""

    base_ns: int
    unix_ns: int
    """Wall clock at `base_ns`."""
    about: dict[str, Value]
    processes: dict[int, str] = field(default_factory=dict)
    lanes: list[Lane] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    instants: list[Instant] = field(default_factory=list)
    asyncs: list[Async] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)


def lay_out(events: list[wire.Event]) -> Layout:
    """The trace of a stream, or of as much of it as there is."""
    snapshot = analyse(events)
    begins = [event.t_ns for event in events] + [e.begin_ns for e in events if isinstance(e, wire.Span)]
    base_ns = min(begins, default=0)
    hello = snapshot.hello or snapshot.collector
    layout = Layout(base_ns, hello.unix_ns + base_ns - hello.t_ns if hello else 0, _about(snapshot))
    layout.processes = {PROVER: "prover", COLLECTOR: "cuzktui collector"}
    for device, view in snapshot.gpus.items():
        layout.processes[GPU_FIRST + device] = f"GPU {device} {view.last.name}".strip()
    _lay_jobs(layout, snapshot, events)
    _lay_counters(layout, snapshot)
    _lay_marks(layout, snapshot, events)
    parts: list[Lane | Counter | Instant] = [*layout.lanes, *layout.counters, *layout.instants]
    used = {part.process for part in parts}
    layout.processes = {n: name for n, name in layout.processes.items() if n in used or n == PROVER}
    return layout


def split_lanes(slices: Iterable[Slice]) -> list[list[Slice]]:
    """Slices over as few lanes as the greedy order gives, such that on each they nest or do not touch."""
    lanes: list[tuple[list[Slice], list[int]]] = []
    for piece in sorted(slices, key=lambda s: (s.begin_ns, -s.end_ns)):
        for placed, open_ends in lanes:
            while open_ends and open_ends[-1] <= piece.begin_ns:
                open_ends.pop()
            if not open_ends or piece.end_ns <= open_ends[-1]:
                placed.append(piece)
                open_ends.append(piece.end_ns)
                break
        else:
            lanes.append(([piece], [piece.end_ns]))
    return [placed for placed, _ in lanes]


def _about(snapshot: Snapshot) -> dict[str, Value]:
    hello = snapshot.hello or snapshot.collector
    about: dict[str, Value] = {"source": "cuzktui", "schema": wire.SCHEMA_VERSION}
    if hello is not None:
        about |= {"host": hello.host, "pid": hello.pid, "version": hello.version, "kernel": hello.kernel}
    return about


def _lay_jobs(layout: Layout, snapshot: Snapshot, events: list[wire.Event]) -> None:
    found: dict[tuple[int, str], list[Slice]] = {}
    views = [*((snapshot.service,) if snapshot.service else ()), *snapshot.jobs]
    for job in views:
        for stage in job.stages:
            lane = "stages" if stage.circuit is None else f"circuit {stage.circuit}"
            end_ns, args = _ended(stage.end_ns, snapshot.t_ns, {"job": job.job_id, "ok": stage.ok})
            piece = Slice(stage.begin_ns, end_ns, stage.stage.value, "stage", args)
            found.setdefault((PROVER, lane), []).append(piece)
        for release in job.releases:
            lane = f"release {release.thread}" if not release.synchronous else "release"
            args = {"job": job.job_id, "bytes": release.size_bytes, "label": release.label, "how": release.how}
            piece = Slice(release.begin_ns, release.end_ns, f"{release.how} {release.label}".strip(), "release", args)
            found.setdefault((PROVER, lane), []).append(piece)
        if job.job_id:
            layout.asyncs.extend(_asyncs(job, snapshot))
    for event in events:
        if isinstance(event, wire.Span):
            process, lane = _span_lane(layout, event)
            found.setdefault((process, lane), []).append(
                Slice(event.begin_ns, max(event.begin_ns, event.t_ns), event.name, "kernel", _span_args(event))
            )
    thread = FIRST_THREAD
    for (process, name), slices in sorted(found.items(), key=lambda item: (item[0][0], _lane_order(item[0][1]))):
        for at, placed in enumerate(split_lanes(slices)):
            thread += 1
            layout.lanes.append(Lane(process, thread, f"{name} +{at}" if at else name, tuple(placed)))
    layout.flows = _flows(layout)


def _lane_order(name: str) -> tuple[int, int, str]:
    ranks = ("stages", "circuit", "cpu", "cuda", "release")
    word, _, rest = name.partition(" ")
    rank = next((k for k, prefix in enumerate(ranks) if word.startswith(prefix)), len(ranks))
    return rank, int(rest) if rest.isdigit() else 0, name


def _span_lane(layout: Layout, span: wire.Span) -> tuple[int, str]:
    """`cuda:0 s1` is a lane of GPU 0; everything else runs in the prover."""
    device, _, stream = span.lane.removeprefix("cuda:").partition(" ")
    if span.lane.startswith("cuda:") and device.isdigit() and int(device) < 64:
        process = GPU_FIRST + int(device)
        layout.processes.setdefault(process, f"GPU {device}")
        return process, f"cuda {stream or 's0'}"
    return PROVER, span.lane


def _span_args(span: wire.Span) -> dict[str, Value]:
    given: dict[str, Value | None] = {
        "job": span.job_id, "circuit": span.circuit, "stage": span.stage.value if span.stage else None,
        "ops": span.ops, "op": span.op or None, "bytes": span.moved_bytes, "roof_percent": span.roof_percent,
        "cpu_us": span.cpu_ns / 1000 if span.cpu_ns is not None else None, "error_ns": span.error_ns,
    }  # fmt: skip
    return {name: value for name, value in given.items() if value is not None}


def _ended(end_ns: int | None, now_ns: int, args: dict[str, Value]) -> tuple[int, dict[str, Value]]:
    return (end_ns, args) if end_ns is not None else (now_ns, {**args, "open": True})


def _asyncs(job: JobView, snapshot: Snapshot) -> Iterable[Async]:
    args: dict[str, Value] = {"circuit": job.circuit, "circuits": job.num_circuits, "policy": str(job.policy or "")}
    end_ns, told = _ended(job.ended_ns, snapshot.t_ns, args | {"outcome": str(job.outcome or "")})
    name = f"job {job.job_id}"
    yield Async(job.first_ns, max(job.first_ns, end_ns), PROVER, "job", job.job_id, name, told)
    gap_ns = job.gap_ns(snapshot.t_ns)
    if job.inner_end_ns is not None and gap_ns is not None:
        said: dict[str, Value] = {"finding": finding(snapshot, job), "gap_ms": gap_ns / 1e6}
        _, said = _ended(None if job.is_in_gap else job.inner_end_ns, snapshot.t_ns, said)
        yield Async(job.inner_end_ns, job.inner_end_ns + gap_ns, PROVER, "gap", f"gap {job.job_id}", "gap", said)


def _flows(layout: Layout) -> list[Flow]:
    """synth -> prove -> verify of each job, from the begin of each slice."""
    stops: dict[str, dict[str, tuple[int, int, int]]] = {}
    for lane in layout.lanes:
        for piece in lane.slices:
            if piece.category == "stage" and piece.name in (Stage.SYNTH, Stage.PROVE, Stage.VERIFY):
                at = (piece.begin_ns, lane.process, lane.thread)
                stops.setdefault(str(piece.args.get("job", "")), {}).setdefault(piece.name, at)
    found = []
    for number, (job_id, by_stage) in enumerate(stops.items(), 1):
        if job_id and len(by_stage) > 1:
            found.append(Flow(number, f"job {job_id}", tuple(sorted(by_stage.values()))))
    return found


def _lay_counters(layout: Layout, snapshot: Snapshot) -> None:
    for pid, process in snapshot.processes.items():
        suffix = "" if pid == snapshot.main_pid else f" (pid {pid})"
        layout.counters += [
            _counter(PROVER, f"memory{suffix}", "bytes", process.memory, ("anon", "shared")),
            _counter(PROVER, f"cpu{suffix}", "percent", process.cpu, ("user_percent", "system_percent")),
            _counter(PROVER, f"faults{suffix}", "count", process.cpu, ("minor_faults_per_s",)),
        ]
    layout.counters.append(_counter(PROVER, "ledger", "bytes", snapshot.ledger.series, COLUMNS[1:]))
    layout.counters.append(_counter(PROVER, "host", "bytes", snapshot.host_series, ("available", "cgroup")))
    for device, view in snapshot.gpus.items():
        process_number = GPU_FIRST + device
        for name, unit, column in (
            ("gpu", "percent", "util_percent"),
            ("gpu memory", "bytes", "mem_used"),
            ("gpu power", "watts", "power_w"),
        ):
            layout.counters.append(_counter(process_number, name, unit, view.series, (column,)))
    layout.counters = [counter for counter in layout.counters if counter.rows]


def _counter(process: int, name: str, unit: str, series: Series, keys: tuple[str, ...]) -> Counter:
    """Columns that were never read, or never anything but 0, are left out; so are rows equal to the one before."""
    columns = {key: series.column(key) for key in keys}
    used = tuple(key for key in keys if np.nanmax(columns[key], initial=0.0) > 0.0)
    rows: list[tuple[int, tuple[float, ...]]] = []
    values_of = zip(*(columns[key].tolist() for key in used), strict=True)
    for t_ns, values in zip(series.t_ns.tolist(), values_of, strict=False):
        if any(math.isnan(value) for value in values) or (rows and rows[-1][1] == values):
            continue
        if rows and rows[-1][0] == t_ns:
            rows.pop()
        rows.append((t_ns, values))
    return Counter(process, name, unit, used, tuple(rows))


def _lay_marks(layout: Layout, snapshot: Snapshot, events: list[wire.Event]) -> None:
    for phase in snapshot.phases:
        if phase.kind is PhaseKind.PLATEAU:
            layout.instants.append(Instant(phase.begin_ns, PROVER, "plateau", {"level_bytes": phase.level_bytes}))
        elif phase.kind in FALLS:
            layout.instants.append(Instant(phase.begin_ns, PROVER, "release begins", {"bytes": -phase.change_bytes}))
            layout.instants.append(
                Instant(phase.end_ns, PROVER, "memory settled", {"bytes_per_s": phase.slope_bytes_per_s})
            )
    for event in events:
        if isinstance(event, wire.Marker):
            layout.instants.append(Instant(event.t_ns, PROVER, f"marker: {event.text}", {"by": event.by}))
        elif isinstance(event, wire.Notice) and event.level != "info":
            layout.instants.append(Instant(event.t_ns, PROVER, f"{event.level}: {event.text}", {"job": event.job_id}))
        elif isinstance(event, wire.ProcessEnded):
            layout.instants.append(Instant(event.t_ns, PROVER, f"process {event.pid} ended: {event.reason}", {}))
        elif isinstance(event, wire.Dropped):
            layout.instants.append(Instant(event.t_ns, COLLECTOR, f"{event.count} events dropped", {}))
    layout.instants.sort(key=lambda mark: mark.t_ns)
