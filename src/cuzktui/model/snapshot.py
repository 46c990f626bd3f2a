"""A Snapshot holds everything a screen draws, immutable and without a clock: `t_ns` is the newest event's time.

Absent readings are None (NaN inside a Series). Times are CLOCK_MONOTONIC nanoseconds, sizes bytes, shares percent;
CPU percents are of one core. Every part is a frozen struct, shared between successive snapshots where unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cuzktui.model.ledger import Ledger
from cuzktui.model.phases import Phase, Segmenter
from cuzktui.model.series import Log, Series
from prover.wire import (
    CollectorCost,
    GpuSample,
    Hello,
    HostSample,
    LogLine,
    Marker,
    Notice,
    Outcome,
    Owner,
    Policy,
    ProcessEnded,
    Progress,
    Span,
    Stage,
)

REPLAY = "replay"
"""Name of the source that delivers a recording."""
EXPECTATION = "expectation"
"""Who a marker is by that holds an expected stack; see `analysis.expectation`."""
MEMORY = ("anon", "shared", "resident")
CPU = ("system_percent", "user_percent", "run_percent", "minor_faults_per_s", "running", "blocked", "threads")
"""`running` and `blocked` are threads in state R and D; `run_percent` comes from schedstat."""
ACTIVITY = ("run_percent", "minor_faults_per_s", "running", "blocked", "on_lock", "on_timer", "on_other", "unreadable")
"""`run_percent` and faults since the sample before, however short; then threads by what they did when looked at:
running, in uninterruptible sleep, waiting for a lock, a clock or a poll, something else, something not readable."""
CPU_WINDOW_NS = 200_000_000
"""utime and stime have 10 ms ticks: over 200 ms their split is known within 5 %."""
HOST = ("available", "cgroup", "cpu_busy_percent", "mem_pressure_percent", "cpu_pressure_percent")
GPU = ("util_percent", "mem_used", "process", "power_w", "sm_mhz", "temperature_c")


class SourceState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One source of events: alive or lost, since when and why."""

    alive: bool
    since_ns: int
    detail: str = ""


class StageView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One stage of a job, of one circuit or of all."""

    stage: Stage
    begin_ns: int
    circuit: int | None = None
    end_ns: int | None = None
    """None while it runs."""
    ok: bool = True
    thread: str = ""

    def length_ns(self, now_ns: int) -> int:
        """How long it took, or has taken so far."""
        return max(0, (now_ns if self.end_ns is None else self.end_ns) - self.begin_ns)


class KernelRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All spans of one name and lane of a job, folded."""

    name: str
    lane: str
    stage: Stage | None = None
    count: int = 0
    total_ns: int = 0
    last_ns: int = 0
    max_ns: int = 0
    recent_ns: tuple[int, ...] = ()
    """Last 24 durations, oldest first: the sparkline."""
    ops: int = 0
    op: str = ""
    moved_bytes: int = 0
    cpu_ns: int | None = None
    roof_percent: float | None = None
    """Mean over the spans that gave one, weighted by time."""
    roofed_ns: int = 0

    @property
    def median_ns(self) -> int:
        """Median of the recent durations."""
        ordered = sorted(self.recent_ns)
        return ordered[len(ordered) // 2] if ordered else 0

    @property
    def ops_per_s(self) -> float | None:
        return self.ops / (self.total_ns / 1e9) if self.ops and self.total_ns else None

    @property
    def bytes_per_s(self) -> float | None:
        return self.moved_bytes / (self.total_ns / 1e9) if self.moved_bytes and self.total_ns else None


class ReleaseView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One buffer given back."""

    begin_ns: int
    end_ns: int
    size_bytes: int
    resident_bytes: int
    """What of it was resident in host memory: the part that costs time."""
    how: str
    owner: Owner | None = None
    label: str = ""
    synchronous: bool = True
    thread: str = ""


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """One job from request to reply; id "" holds work of the service itself (compile, setup outside a job)."""

    job_id: str
    circuit: str = ""
    num_circuits: int = 1
    policy: Policy | None = None
    kind: str = "circuit"
    client: str = ""
    num_constraints: int | None = None
    domain_size: int | None = None
    predicted_peak_bytes: int | None = None
    """Of resident memory, as the prover's admission sees it."""
    predicted_parts: Mapping[str, int] = {}
    """What the prediction is made of."""
    first_ns: int
    """The earliest event that named the job; the submission where that was seen."""
    submitted_ns: int | None = None
    ended_ns: int | None = None
    outcome: Outcome | None = None
    verified: bool = False
    proof_hex: str = ""
    public_inputs: tuple[tuple[str, ...], ...] = ()
    error: str = ""
    metrics: Mapping[str, float | int | str | None] = {}
    stages: tuple[StageView, ...] = ()
    progress: Mapping[tuple[Stage, int | None], Progress] = {}
    kernels: Mapping[tuple[str, str], KernelRow] = {}
    """By (name, lane), in order of first appearance."""
    spans: Log[Span]
    releases: Log[ReleaseView]
    inner_end_ns: int | None = None
    """When `pre_destructor` passed: the gap begins here."""
    outer_end_ns: int | None = None
    inner_ns: int | None = None
    outer_ns: int | None = None
    peak_anon_bytes: int | None = None
    """Largest anonymous memory sampled while the job ran."""
    peak_resident_bytes: int | None = None

    @property
    def is_done(self) -> bool:
        return self.ended_ns is not None

    def gap_ns(self, now_ns: int) -> int | None:
        """outer - inner; while the gap is open, how long it has lasted so far; None before it begins."""
        if self.inner_ns is not None and self.outer_ns is not None:
            return self.outer_ns - self.inner_ns
        if self.inner_end_ns is None:
            return None
        end_ns = self.outer_end_ns if self.outer_end_ns is not None else (self.ended_ns or now_ns)
        return max(0, end_ns - self.inner_end_ns)

    @property
    def is_in_gap(self) -> bool:
        return self.inner_end_ns is not None and self.outer_end_ns is None and self.ended_ns is None

    def length_ns(self, now_ns: int) -> int:
        """From submission to the end, or until now."""
        return max(0, (now_ns if self.ended_ns is None else self.ended_ns) - self.first_ns)

    @property
    def stage_now(self) -> StageView | None:
        """The innermost stage that runs now."""
        for view in reversed(self.stages):
            if view.end_ns is None:
                return view
        return None

    def stage(self, stage: Stage, circuit: int | None = None) -> StageView | None:
        """The last run of a stage, of the whole job or of one circuit."""
        for view in reversed(self.stages):
            if view.stage is stage and view.circuit == circuit:
                return view
        return None


class ProcessView(msgspec.Struct, frozen=True, kw_only=True):
    """A watched process and its series."""

    pid: int
    command: str = ""
    role: str = "prover"
    """prover | foreign"""
    seen_ns: int
    ended: ProcessEnded | None = None
    memory: Series
    """Columns `MEMORY`, bytes."""
    cpu: Series
    """Columns `CPU`; each row covers at least 200 ms up to its time."""
    activity: Series
    """Columns `ACTIVITY`, one row a CPU reading: what an outsider can tell of a process that tells nothing."""
    activity_before: tuple[int, int, int] | None = None
    """Time, run time and minor faults at the last row of `activity`."""
    segmenter: Segmenter = Segmenter()
    cpu_before: tuple[int, int, int, int, int] | None = None
    """Time, user, system, run and minor faults at the last row of `cpu`."""
    peak_anon_bytes: int = 0
    peak_resident_bytes: int = 0
    late_max_ns: int = 0

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Ramps, plateaus, releases and cliffs of anonymous memory, the last one possibly open."""
        return self.segmenter.all_phases

    @property
    def is_falling(self) -> bool:
        return self.segmenter.is_falling


class GpuView(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU: its newest reading and its series (columns `GPU`)."""

    last: GpuSample
    series: Series


class Lens(msgspec.Struct, frozen=True, kw_only=True):
    """Raw samples around one fall of memory, on a scale of its own."""

    job_id: str
    """Empty for a fall outside a job or in a foreign process."""
    pid: int
    reason: str
    """inner ended | memory falls"""
    window_begin_ns: int
    """First sample shown: a little before the fall."""
    begin_ns: int
    """Where the gap or the fall begins."""
    gap_end_ns: int | None = None
    """When the call returned; None while the gap is open."""
    end_ns: int | None = None
    """When memory had settled; None while the lens follows."""
    top_bytes: float = 0.0
    """Anonymous memory at `begin_ns`."""
    samples: Series
    """Column `anon`, every raw sample."""

    @property
    def is_open(self) -> bool:
        return self.end_ns is None

    def gap_ns(self, now_ns: int) -> int:
        """The counter on the lens: from its begin to the call's return, or to now."""
        end_ns = self.gap_end_ns if self.gap_end_ns is not None else (self.end_ns or now_ns)
        return max(0, end_ns - self.begin_ns)

    @property
    def fallen_bytes(self) -> float:
        """How far memory has come down so far."""
        now = self.samples.last("anon")
        return max(0.0, self.top_bytes - now) if now is not None else 0.0


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The whole state of the console."""

    t_ns: int = 0
    first_ns: int = 0
    events: int = 0
    is_replay: bool = False
    hello: Hello | None = None
    """The prover's."""
    collector: Hello | None = None
    sources: Mapping[str, SourceState] = {}
    policy: Policy | None = None
    queued: tuple[str, ...] = ()
    running: str | None = None
    jobs: tuple[JobView, ...] = ()
    """Oldest first, bounded; without the service's own."""
    service: JobView | None = None
    """Compile and setup stages outside any job."""
    processes: Mapping[int, ProcessView] = {}
    memory_capacity: int = 65536
    """Samples kept of each process before old ones are reduced to extremes."""
    main_pid: int = 0
    """The process whose memory is drawn: our prover, else the first one watched."""
    host: HostSample | None = None
    host_series: Series
    gpus: Mapping[int, GpuView] = {}
    ledger: Ledger
    lenses: tuple[Lens, ...] = ()
    """Oldest first, bounded; the last one may be open."""
    notices: Log[Notice]
    markers: Log[Marker]
    log_lines: Log[LogLine]
    cost: CollectorCost | None = None
    collector_cpu_percent: float | None = None
    dropped: int = 0
    """Events that a bounded queue lost."""
    unknown: int = 0
    """Events of a type that this version does not fold."""

    @property
    def gpu_note(self) -> str:
        """Why there is no GPU; empty where there is one."""
        if self.gpus:
            return ""
        for hello in (self.collector, self.hello):
            if hello is not None and hello.gpu_note:
                return hello.gpu_note
        return ""

    @property
    def gpu_lost(self) -> str:
        """Why the prover that lives can use its GPUs no more; empty where it can."""
        return self.hello.gpu_lost if self.hello is not None and not self._has_ended else ""

    @property
    def lost_pid(self) -> int:
        """Of a prover that can use its GPUs no more; 0 where there is none."""
        return self.hello.pid if self.hello is not None and self.gpu_lost else 0

    @property
    def needs_restart(self) -> bool:
        """The prover has ended, or can use its GPUs no more."""
        return self._has_ended or bool(self.gpu_lost)

    @property
    def _has_ended(self) -> bool:
        return self.process is not None and self.process.ended is not None

    @property
    def process(self) -> ProcessView | None:
        """The process whose memory is drawn."""
        return self.processes.get(self.main_pid)

    @property
    def phases(self) -> tuple[Phase, ...]:
        return self.process.phases if self.process else ()

    @property
    def lens(self) -> Lens | None:
        """The newest lens."""
        return self.lenses[-1] if self.lenses else None

    @property
    def job(self) -> JobView | None:
        """The running job, else the newest."""
        if self.running:
            for view in reversed(self.jobs):
                if view.job_id == self.running:
                    return view
        for view in reversed(self.jobs):
            if not view.is_done and view.stages:
                return view
        return self.jobs[-1] if self.jobs else None

    def find_job(self, job_id: str) -> JobView | None:
        """A job by its id."""
        for view in reversed(self.jobs):
            if view.job_id == job_id:
                return view
        return self.service if self.service is not None and not job_id else None

    @property
    def is_lost(self) -> bool:
        """A source has been lost, or the drawn process has ended; a replay that is over is not lost."""
        process = self.process
        lost = any(not state.alive for name, state in self.sources.items() if name != REPLAY)
        return lost or bool(process and process.ended)

    @property
    def elapsed_ns(self) -> int:
        return self.t_ns - self.first_ns
