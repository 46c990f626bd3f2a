"""Every event is one JSON line and one frozen struct; times are integer nanoseconds of CLOCK_MONOTONIC.

A live view, a recording and a test are this stream and nothing else. The first line of a stream is `Hello`, which
carries the schema version and the wall-clock anchor. A reading that could not be taken is None.
"""

from __future__ import annotations

import msgspec

from prover.errors import WireError
from prover.words import Outcome, Owner, Place, Policy, Stage

SCHEMA_VERSION = 1


TOP_STAGES = (Stage.QUEUE, Stage.SETUP, Stage.SRS, Stage.SYNTH, Stage.PROVE, Stage.VERIFY)
"""Consecutive parts of a job's total; `prove` is the outer clock and contains `release` when that is synchronous."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    t_ns: int
    seq: int = 0
    """Position in the sender's stream, from 1; 0 where the sender does not number."""


class Hello(Event, frozen=True, kw_only=True, tag="hello"):
    unix_ns: int
    """Wall clock at `t_ns`."""
    schema: int = SCHEMA_VERSION
    source: str = "prover"
    """prover | collector"""
    host: str = ""
    pid: int = 0
    version: str = ""
    backend: str = ""
    devices: list[str] = []
    cpu_count: int = 0
    mem_total_bytes: int | None = None
    kernel: str = ""
    segment: int = 0
    """Number of the recording's segment, raised when a collector was replaced."""
    gpu_note: str = ""
    """Why there is no GPU, where there is none."""
    gpu_lost: str = ""
    """Why the GPUs that were there can be used no more by this prover, and what to do; empty while they can."""


class State(Event, frozen=True, kw_only=True, tag="state"):
    """The full present state with which a Watch begins; jobs and buffers follow as ordinary events."""

    policy: Policy
    queued: list[str] = []
    running: str | None = None
    pool_bytes: int = 0


class Dropped(Event, frozen=True, kw_only=True, tag="dropped"):
    """So many events did not fit a bounded queue and are missing before this one."""

    count: int


class JobSubmitted(Event, frozen=True, kw_only=True, tag="job_submitted"):
    job_id: str
    circuit: str
    num_circuits: int
    policy: Policy
    kind: str = "circuit"
    """circuit | porep | file"""
    num_constraints: int | None = None
    domain_size: int | None = None
    predicted_peak_bytes: int | None = None
    client: str = ""


class JobPredicted(Event, frozen=True, kw_only=True, tag="job_predicted"):
    """What the job will hold at its peak, before its first buffer exists."""

    job_id: str
    peak_bytes: int
    parts_bytes: dict[str, int] = {}


class StageBegan(Event, frozen=True, kw_only=True, tag="stage_began"):
    job_id: str
    stage: Stage
    circuit: int | None = None
    """Index of the circuit within the job; None for the whole job."""
    thread: str = ""


class StageEnded(Event, frozen=True, kw_only=True, tag="stage_ended"):
    job_id: str
    stage: Stage
    circuit: int | None = None
    thread: str = ""
    ok: bool = True


class Progress(Event, frozen=True, kw_only=True, tag="progress"):
    job_id: str
    stage: Stage
    circuit: int | None = None
    done: int
    total: int
    unit: str = ""
    what: str = ""


class Span(Event, frozen=True, kw_only=True, tag="span"):
    """One kernel or CPU routine that ran; `t_ns` is its end."""

    job_id: str
    name: str
    begin_ns: int
    stage: Stage | None = None
    circuit: int | None = None
    lane: str = "cpu"
    """cpu, or `cuda:0 s1`: device and stream."""
    moved_bytes: int | None = None
    ops: int | None = None
    op: str = ""
    """What `ops` counts: fp_mul, fr_mul, point_add, constraint, sha256_block ..."""
    cpu_ns: int | None = None
    roof_percent: float | None = None
    error_ns: int | None = None
    """Uncertainty of a device span's mapping to CLOCK_MONOTONIC."""


class InnerEnded(Event, frozen=True, kw_only=True, tag="inner_ended"):
    """`pre_destructor`: the last computation of the prove call is over."""

    job_id: str
    inner_ns: int


class OuterEnded(Event, frozen=True, kw_only=True, tag="outer_ended"):
    """The prove call has returned, synchronous release included."""

    job_id: str
    outer_ns: int


class BufferAllocated(Event, frozen=True, kw_only=True, tag="buffer_allocated"):
    buffer_id: int
    job_id: str
    label: str
    owner: Owner
    place: Place
    size_bytes: int
    stage: Stage | None = None
    circuit: int | None = None
    page_bytes: int | None = None
    """Page size asked for: 4096 or 2097152."""
    recycled: bool = False
    """Taken from the pool: resident already."""
    device: str = ""


class BufferTouched(Event, frozen=True, kw_only=True, tag="buffer_touched"):
    """The buffer is fully resident from here on; `huge_bytes` is what the kernel granted in huge pages."""

    buffer_id: int
    resident_bytes: int
    fault_ns: int | None = None
    huge_bytes: int | None = None


class BufferReleased(Event, frozen=True, kw_only=True, tag="buffer_released"):
    """The buffer's memory went back; `t_ns` is the end."""

    buffer_id: int
    begin_ns: int
    size_bytes: int
    how: str
    """munmap | pool | trim | device"""
    synchronous: bool = True
    thread: str = ""


class BufferLeaked(Event, frozen=True, kw_only=True, tag="buffer_leaked"):
    """A release was refused because a view is alive; the owner is named and the bytes stay counted."""

    buffer_id: int
    label: str
    owner: Owner
    size_bytes: int


class JobEnded(Event, frozen=True, kw_only=True, tag="job_ended"):
    job_id: str
    outcome: Outcome
    proof_hex: str = ""
    verified: bool = False
    public_inputs: list[list[str]] = []
    error: str = ""
    metrics: dict[str, float | int | str | None] = {}
    """queue_ms, setup_ms, srs_ms, synth_ms, inner_ms, outer_ms, gap_ms, release_ms, verify_ms, total_ms ..."""


class PolicyChanged(Event, frozen=True, kw_only=True, tag="policy_changed"):
    policy: Policy


class Notice(Event, frozen=True, kw_only=True, tag="notice"):
    """A sentence for the operator. `level`: info | warning | error."""

    text: str
    level: str = "info"
    job_id: str = ""


class MemSample(Event, frozen=True, kw_only=True, tag="mem"):
    """`/proc/PID/statm` in bytes; `late_ns` is how far behind its schedule it was read, `cost_ns` what reading took."""

    pid: int
    resident_bytes: int
    shared_bytes: int
    late_ns: int = 0
    cost_ns: int = 0

    @property
    def anon_bytes(self) -> int:
        return self.resident_bytes - self.shared_bytes


class CpuSample(Event, frozen=True, kw_only=True, tag="cpu"):
    """Cumulative since process start, except `threads`."""

    pid: int
    run_ns: int | None = None
    """Sum of task/*/schedstat."""
    user_ns: int = 0
    system_ns: int = 0
    """From stat, 10 ms ticks: use over 200 ms or more."""
    minor_faults: int = 0
    major_faults: int = 0
    threads: int = 0
    states: dict[str, int] = {}
    """Threads by state letter: R, S, D ..."""
    wchan: dict[str, int] = {}
    """Threads by kernel wait channel, where readable."""


class HostSample(Event, frozen=True, kw_only=True, tag="host"):
    mem_available_bytes: int | None = None
    mem_total_bytes: int | None = None
    cgroup_bytes: int | None = None
    cgroup_limit_bytes: int | None = None
    oom_kills: int | None = None
    cpu_pressure_percent: float | None = None
    mem_pressure_percent: float | None = None
    cpu_busy_percent: float | None = None


class GpuSample(Event, frozen=True, kw_only=True, tag="gpu"):
    device: int
    name: str = ""
    util_percent: float | None = None
    mem_used_bytes: int | None = None
    mem_total_bytes: int | None = None
    process_bytes: int | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    sm_mhz: int | None = None
    mem_mhz: int | None = None
    pcie_rx_bytes_per_s: int | None = None
    pcie_tx_bytes_per_s: int | None = None
    throttle: str | None = None
    error: str = ""


class ProcessSeen(Event, frozen=True, kw_only=True, tag="process_seen"):
    """A watched process: from here on its samples follow."""

    pid: int
    command: str
    role: str = "prover"
    """prover | foreign"""
    start_unix_ns: int | None = None


class ProcessEnded(Event, frozen=True, kw_only=True, tag="process_ended"):
    pid: int
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    """One sentence: exited, killed by signal 9, killed by the kernel for memory ..."""
    stage: str = ""
    """The stage its job was in, where known."""


class SourceChanged(Event, frozen=True, kw_only=True, tag="source"):
    """A source of events was found or lost; `detail` says which and why."""

    source: str
    alive: bool
    detail: str = ""


class LogLine(Event, frozen=True, kw_only=True, tag="log"):
    source: str
    text: str
    fields: dict[str, str] = {}


class Marker(Event, frozen=True, kw_only=True, tag="marker"):
    text: str
    by: str = "user"


class CollectorCost(Event, frozen=True, kw_only=True, tag="collector_cost"):
    """The collector's own price: cumulative CPU and the lateness of its memory readings since the last report."""

    cpu_ns: int
    samples: int
    late_p99_ns: int
    cost_p99_ns: int
    written_bytes: int = 0


AnyEvent = (
    Hello | State | Dropped | JobSubmitted | JobPredicted | StageBegan | StageEnded | Progress | Span | InnerEnded
    | OuterEnded | BufferAllocated | BufferTouched | BufferReleased | BufferLeaked | JobEnded | PolicyChanged | Notice
    | MemSample | CpuSample | HostSample | GpuSample | ProcessSeen | ProcessEnded | SourceChanged | LogLine
    | Marker | CollectorCost
)  # fmt: skip

MAX_LINE_BYTES = 1 << 20
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyEvent)
_TAGS = {t.__struct_config__.tag for t in AnyEvent.__args__}


def encode(event: Event) -> bytes:
    """One line, newline included."""
    return _encoder.encode(event) + b"\n"


def decode(line: bytes) -> Event | None:
    """The event of one line; None for a type this version does not know.

    Raises:
        WireError: the line is too long, is not a JSON object, a field has the wrong type, or the schema is another.
    """
    if len(line) > MAX_LINE_BYTES:
        raise WireError(f"event line of {len(line)} bytes is over the limit of {MAX_LINE_BYTES}")
    try:
        event = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if _unknown_type(line):
            return None
        raise WireError(f"not an event: {error}") from error
    if isinstance(event, Hello) and event.schema != SCHEMA_VERSION:
        raise WireError(f"schema {event.schema} is not {SCHEMA_VERSION}: made by another version of cuzktui")
    return event


def _unknown_type(line: bytes) -> bool:
    try:
        tag = msgspec.json.decode(line, type=dict).get("type")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(tag, str) and tag not in _TAGS
