"""The gap is outer minus inner; only evidence of release explains it, never a stage that merely covers it.

Evidence, strongest first: intervals in which the ledger saw a buffer go back; between them, sample intervals in which
anonymous memory fell, unless every release of the job ran in the background. System CPU time and GPU utilisation are
told beside it but explain nothing alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuzktui.analysis.intervals import Interval, clip, length_ns, share_within, union
from cuzktui.model.series import Series
from cuzktui.model.snapshot import CPU_WINDOW_NS, JobView, Snapshot

FALL_BYTES_PER_S = 200e6
"""Memory that falls slower than this is heap noise, not a release."""
FALL_BYTES = 1 << 20
STEP_BYTES = 64 << 10
SLOPE_NS = 8_000_000
GPU_IDLE_PERCENT = 5.0
GIVEN_BACK = ("munmap", "trim", "late", "device")
"""Ways of release that cost the kernel time; `pool` and `reused` only change a buffer's owner."""


@dataclass(frozen=True, slots=True)
class GapReport:
    """One job's gap and what explains it; None where a figure could not be taken."""

    begin_ns: int
    end_ns: int
    gap_ns: int
    is_open: bool
    outer_ns: int | None
    explained: tuple[Interval, ...]
    """Time inside the gap with evidence of release."""
    ledger_ns: int
    """Of it, what the ledger saw; the rest is from falling memory."""
    released_bytes: int
    """Given back inside the gap, by the ledger: resident bytes, a buffer over the edge in proportion."""
    background_bytes: int
    """Given back by this job after the gap or beside it."""
    background_ns: int
    ways: tuple[str, ...]
    threads: tuple[str, ...]
    munmap_bytes_per_s: float | None
    """Bytes over busy time of every munmap of this job."""
    fall_bytes: float | None
    """How far anonymous memory fell inside the gap, by samples."""
    fall_bytes_per_s: float | None
    """Its slope while it fell."""
    system_percent: float | None
    user_percent: float | None
    gpu_percent: float | None

    @property
    def explained_ns(self) -> int:
        return length_ns(self.explained)

    @property
    def explained_percent(self) -> float | None:
        """Share of the gap with evidence of release; None for no gap."""
        return 100.0 * self.explained_ns / self.gap_ns if self.gap_ns > 0 else None

    @property
    def predicted_ns(self) -> int | None:
        """Bytes released over the munmap rate: what the gap should be."""
        rate = self.munmap_bytes_per_s
        return int(self.released_bytes / rate * 1e9) if rate else None


def gap_of(snapshot: Snapshot, job: JobView) -> GapReport | None:
    """The gap of one job, finished or still growing; None before `pre_destructor` has passed."""
    if job.inner_end_ns is None:
        return None
    begin_ns = job.inner_end_ns
    gap_ns = job.gap_ns(snapshot.t_ns) or 0
    end_ns = begin_ns + gap_ns
    back = [release for release in job.releases if release.how in GIVEN_BACK]
    inside = [r for r in back if r.end_ns >= begin_ns and r.begin_ns <= end_ns]
    ledger = clip([(r.begin_ns, r.end_ns) for r in inside if r.synchronous], begin_ns, end_ns)
    later = [r for r in back if r.end_ns >= begin_ns and (not r.synchronous or r.begin_ns > end_ns)]
    memory = memory_of(snapshot, job)
    falls = clip(falling(memory, begin_ns, end_ns), begin_ns, end_ns) if memory is not None else []
    if later and not ledger:
        falls = []
    shares = [(r, share_within((r.begin_ns, r.end_ns), begin_ns, end_ns)) for r in inside if r.synchronous]
    released = int(sum(r.resident_bytes * share for r, share in shares))
    unmaps = [r for r in back if r.how in ("munmap", "trim") and r.resident_bytes and r.end_ns > r.begin_ns]
    busy_ns = length_ns(union((r.begin_ns, r.end_ns) for r in unmaps))
    fall_bytes, fall_slope = _fall(memory, begin_ns, end_ns, falls) if memory is not None else (None, None)
    named = [r for r, _ in shares] or later
    return GapReport(
        begin_ns=begin_ns, end_ns=end_ns, gap_ns=gap_ns, is_open=job.is_in_gap, outer_ns=job.outer_ns,
        explained=tuple(union([*ledger, *falls])), ledger_ns=length_ns(ledger), released_bytes=released,
        background_bytes=sum(r.resident_bytes for r in later),
        background_ns=length_ns(union((r.begin_ns, r.end_ns) for r in later)),
        ways=tuple(dict.fromkeys(r.how for r in named)),
        threads=tuple(dict.fromkeys(r.thread for r in named if r.thread)),
        munmap_bytes_per_s=sum(r.resident_bytes for r in unmaps) / (busy_ns / 1e9) if busy_ns else None,
        fall_bytes=fall_bytes, fall_bytes_per_s=fall_slope,
        system_percent=cpu_percent(snapshot, "system_percent", begin_ns, end_ns),
        user_percent=cpu_percent(snapshot, "user_percent", begin_ns, end_ns),
        gpu_percent=gpu_percent(snapshot, begin_ns, end_ns),
    )  # fmt: skip


def memory_of(snapshot: Snapshot, job: JobView) -> Series | None:
    """Raw samples around a job's gap: those of its lens where it has one, else the drawn process's."""
    for lens in reversed(snapshot.lenses):
        if lens.job_id == job.job_id and lens.reason == "inner ended" and len(lens.samples):
            return lens.samples
    return snapshot.process.memory if snapshot.process is not None else None


def falling(memory: Series, begin_ns: int, end_ns: int) -> list[Interval]:
    """Sample intervals around [begin, end] in which anonymous memory fell faster than the noise of a heap.

    A slope is taken over at least `SLOPE_NS`, since the kernel counts pages in batches; a stretch begins and ends with
    an interval in which memory did fall.
    """
    times = memory.t_ns
    lo = max(0, int(np.searchsorted(times, begin_ns, side="right")) - 1)
    hi = min(len(times), int(np.searchsorted(times, end_ns, side="left")) + 1)
    t, anon = times[lo:hi], memory.column("anon")[lo:hi]
    if len(t) < 2:
        return []
    margin = np.maximum(0, SLOPE_NS - np.diff(t)) // 2
    first = np.maximum(np.searchsorted(t, t[:-1] - margin, side="right") - 1, 0)
    last = np.minimum(np.searchsorted(t, t[1:] + margin), len(t) - 1)
    drop, length = anon[first] - anon[last], t[last] - t[first]
    is_falling = (drop >= FALL_BYTES) & (drop >= FALL_BYTES_PER_S * length / 1e9)
    moves = np.flatnonzero(is_falling & (np.diff(anon) <= -STEP_BYTES))
    found: list[Interval] = []
    for k in moves.tolist():
        if found and is_falling[np.searchsorted(t, found[-1][1]) : k].all():
            found[-1] = (found[-1][0], int(t[k + 1]))
        else:
            found.append((int(t[k]), int(t[k + 1])))
    return found


def _fall(memory: Series, begin_ns: int, end_ns: int, falls: list[Interval]) -> tuple[float | None, float | None]:
    """Bytes that anonymous memory came down inside the gap, and the slope over the time it did."""
    if not len(memory):
        return None, None
    times = memory.t_ns.astype(np.float64)
    before, after = np.interp([begin_ns, end_ns], times, memory.column("anon"))
    fallen, busy_ns = max(0.0, float(before - after)), length_ns(falls)
    return fallen, fallen / (busy_ns / 1e9) if busy_ns else None


def cpu_percent(snapshot: Snapshot, column: str, begin_ns: int, end_ns: int) -> float | None:
    """CPU percent over a stretch, from windows that lie inside it, else from those that touch it, in proportion.

    A window that only touches a short stretch is charged to it as a whole, at most to one core: the kernel's release
    is the only thing that runs there, so dilution by the computation before it would understate it.
    """
    series = snapshot.process.cpu if snapshot.process is not None else None
    if series is None or not len(series) or end_ns <= begin_ns:
        return None
    times, values = series.t_ns, series.column(column)
    first = int(np.searchsorted(times, begin_ns, side="right"))
    last = min(int(np.searchsorted(times, end_ns, side="left")), len(times) - 1)
    rows = np.arange(first, last + 1)
    if not len(rows):
        return None
    begins = np.where(rows > 0, times[np.maximum(rows - 1, 0)], times[rows] - CPU_WINDOW_NS)
    inside = (begins >= begin_ns) & (times[rows] <= end_ns)
    lengths = (times[rows] - begins).astype(np.float64)
    if inside.any():
        return float(np.average(values[rows][inside], weights=lengths[inside]))
    spent = float(np.sum(values[rows] * lengths)) / (end_ns - begin_ns)
    return min(100.0, spent)


def gpu_percent(snapshot: Snapshot, begin_ns: int, end_ns: int) -> float | None:
    """Mean utilisation of the busiest GPU over readings inside a stretch, or the first one after it began."""
    means = []
    for view in snapshot.gpus.values():
        times, util = view.series.t_ns, view.series.column("util_percent")
        lo, hi = int(np.searchsorted(times, begin_ns)), int(np.searchsorted(times, end_ns, side="right"))
        read = util[lo : max(hi, lo + 1)]
        read = read[~np.isnan(read)]
        if len(read):
            means.append(float(np.mean(read)))
    return max(means) if means else None
