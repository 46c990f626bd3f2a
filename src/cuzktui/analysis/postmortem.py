"""Why a watched process ended, from what the kernel said and what was read in its last thirty seconds.

Nothing is guessed: a kill for memory is claimed only where the cgroup counted one or the kernel's log names the
process; what could not be read is said to be unknown.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass

import numpy as np

from cuzktui import format as text
from cuzktui.model.snapshot import JobView, ProcessView, Snapshot
from prover.wire import LogLine, Notice

KEPT_NS = 30_000_000_000
"""The last part of a life that is told of."""
KERNEL = "kernel"
"""Source of log lines that the collector read from the kernel's log."""
MAX_LINES = 12


@dataclass(frozen=True, slots=True)
class PostMortem:
    """One end; times CLOCK_MONOTONIC ns, sizes bytes, None where it was not read."""

    process: ProcessView
    ended_ns: int
    reason: str
    exit_code: int | None
    signal: int | None
    stage: str
    """Outermost and innermost stage at the end; empty where no work was open or none is known."""
    job: JobView | None
    """The job that ended with it."""
    stage_ns: int | None
    """How long the innermost stage had run."""
    last_bytes: float | None
    """Resident memory at the last reading."""
    window_peak_bytes: float | None
    """Highest resident memory of the last thirty seconds."""
    slope_bytes_per_s: float | None
    """Mean rise of resident memory over the last two seconds."""
    host_available_bytes: float | None
    cgroup_bytes: float | None
    cgroup_limit_bytes: int | None
    oom_kills: int | None
    kernel_lines: tuple[str, ...]
    said: tuple[tuple[int, str], ...]
    """Notices and log lines of the last thirty seconds with their times, oldest first."""

    @property
    def is_kill_for_memory(self) -> bool:
        """The kernel counted or logged a kill for memory."""
        return self.signal == signal.SIGKILL and ("for memory" in self.reason or bool(self.kernel_lines))

    def verdict(self) -> str:
        """One sentence: what ended, how, where and what its memory did."""
        who = "prover" if self.process.role == "prover" else "process"
        where = f" in stage {self.stage}" if self.stage else ""
        how = self.reason or "ended; how is not readable"
        held = f", with {text.size(self.last_bytes)} resident" if self.last_bytes is not None else ""
        is_other = self.signal == signal.SIGKILL and not self.is_kill_for_memory
        not_memory = "; the kernel counted no kill for memory" if is_other else ""
        return f"{who} {self.process.pid} {how}{where}{held}{not_memory}"

    def lines(self) -> list[tuple[str, str]]:
        """The report as (name, words)."""
        told = [("ended", self.verdict())]
        if self.job is not None:
            done = f", {text.duration(self.stage_ns)} into its last stage" if self.stage_ns is not None else ""
            age = text.duration(self.ended_ns - self.job.first_ns)
            told.append(("job", f"{self.job.job_id} {self.job.circuit} × {self.job.num_circuits}, {age} old{done}"))
        most, slope = text.size(self.window_peak_bytes), _signed(self.slope_bytes_per_s)
        held = f"{text.size(self.last_bytes)} at the end, {most} at most in the last 30 s, {slope} over the last 2 s"
        told.append(("memory", held))
        limit = text.size(self.cgroup_limit_bytes) if self.cgroup_limit_bytes is not None else "no limit"
        room = f"{text.size(self.host_available_bytes)} available, cgroup {text.size(self.cgroup_bytes)} of {limit}"
        kills = text.ABSENT if self.oom_kills is None else str(self.oom_kills)
        told.append(("host", f"{room}, {kills} kills for memory counted so far"))
        told += [("kernel", line) for line in self.kernel_lines]
        told += [(f"−{text.duration(self.ended_ns - t_ns)}", words) for t_ns, words in self.said]
        return told

    def as_text(self) -> str:
        return "\n".join(f"{name:13} {words}" for name, words in self.lines())

    def as_dict(self) -> dict[str, object]:
        """Plain numbers, strings and lists."""
        return {
            "pid": self.process.pid, "role": self.process.role, "command": self.process.command,
            "reason": self.reason, "exit_code": self.exit_code, "signal": self.signal, "stage": self.stage,
            "killed_for_memory": self.is_kill_for_memory, "job_id": self.job.job_id if self.job else None,
            "stage_ms": self.stage_ns / 1e6 if self.stage_ns is not None else None, "last_bytes": self.last_bytes,
            "peak_of_last_30_s_bytes": self.window_peak_bytes, "slope_bytes_per_s": self.slope_bytes_per_s,
            "host_available_bytes": self.host_available_bytes, "cgroup_bytes": self.cgroup_bytes,
            "cgroup_limit_bytes": self.cgroup_limit_bytes, "kernel": list(self.kernel_lines),
            "said": [words for _, words in self.said],
        }  # fmt: skip


def post_mortem(snapshot: Snapshot, pid: int | None = None) -> PostMortem | None:
    """Of one process, by default of the drawn one, or where that lives of the last that ended; None while all live."""
    process = snapshot.processes.get(pid) if pid is not None else _ended(snapshot)
    if process is None or process.ended is None:
        return None
    ended = process.ended
    begin_ns, end_ns = ended.t_ns - KEPT_NS, ended.t_ns
    times, rows = process.memory.window(begin_ns, end_ns)
    resident = rows[:, process.memory.columns.index("resident")] if len(rows) else np.empty(0)
    # A dying process gives its memory back before its end is known: zero is not what it died with.
    held = resident[resident > 0]
    job = _job_of(snapshot, process, end_ns)
    host = snapshot.host
    return PostMortem(
        process=process, ended_ns=end_ns, reason=ended.reason, exit_code=ended.exit_code, signal=ended.signal,
        stage=ended.stage, job=job, stage_ns=_stage_ns(job, end_ns),
        last_bytes=float(held[-1]) if len(held) else None, window_peak_bytes=float(held.max()) if len(held) else None,
        slope_bytes_per_s=_slope(times[resident > 0], held) if len(held) else None,
        host_available_bytes=snapshot.host_series.at(end_ns, "available"),
        cgroup_bytes=snapshot.host_series.at(end_ns, "cgroup"),
        cgroup_limit_bytes=host.cgroup_limit_bytes if host is not None else None,
        oom_kills=host.oom_kills if host is not None else None,
        kernel_lines=tuple(line.text for line in snapshot.log_lines if _is_of_kernel(line, process.pid)),
        said=_said(snapshot, begin_ns, end_ns + 1_000_000_000),
    )  # fmt: skip


def _ended(snapshot: Snapshot) -> ProcessView | None:
    if snapshot.process is not None and snapshot.process.ended is not None:
        return snapshot.process
    ended = [view for view in snapshot.processes.values() if view.ended is not None]
    return max(ended, key=lambda view: view.ended.t_ns if view.ended is not None else 0, default=None)


def _job_of(snapshot: Snapshot, process: ProcessView, end_ns: int) -> JobView | None:
    """The job that the end of a prover ended, which the store closes at the same instant."""
    if process.role != "prover":
        return None
    open_then = [j for j in snapshot.jobs if j.first_ns <= end_ns and j.ended_ns == end_ns and j.stages]
    return open_then[-1] if open_then else None


def _stage_ns(job: JobView | None, end_ns: int) -> int | None:
    stage = job.stage_now if job is not None else None
    return stage.length_ns(end_ns) if stage is not None else None


def _slope(times, held) -> float | None:
    recent = times >= times[-1] - 2_000_000_000
    t, v = times[recent], held[recent]
    return float((v[-1] - v[0]) / ((t[-1] - t[0]) / 1e9)) if len(t) > 1 and t[-1] > t[0] else None


def _is_of_kernel(line: LogLine, pid: int) -> bool:
    """Whether the kernel's log names the process."""
    return line.source == KERNEL and str(pid) in line.text.replace(",", " ").replace("=", " ").split()


def _said(snapshot: Snapshot, begin_ns: int, end_ns: int) -> tuple[tuple[int, str], ...]:
    found: list[tuple[int, str]] = []
    for item in (*snapshot.notices, *snapshot.log_lines):
        is_kernel = isinstance(item, LogLine) and item.source == KERNEL
        if begin_ns <= item.t_ns <= end_ns and not is_kernel:
            words = item.text if isinstance(item, Notice) else f"{item.source}: {item.text}"
            found.append((item.t_ns, words))
    return tuple(sorted(found)[-MAX_LINES:])


def _signed(slope: float | None) -> str:
    return text.ABSENT if slope is None else f"{'+' if slope >= 0 else ''}{text.rate(slope)}"
