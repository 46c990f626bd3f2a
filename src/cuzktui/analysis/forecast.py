"""Forecasts are extrapolations of what has been measured, and None where there is nothing to extrapolate.

The end comes from the progress of the running stage and from how earlier jobs of the same shape split their time; the
memory limit from the slope of the ramp under way against what host and cgroup still give.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuzktui.model.phases import PhaseKind
from cuzktui.model.snapshot import JobView, Snapshot
from prover.wire import Outcome, Stage

MIN_SLOPE_BYTES_PER_S = 50e6
"""A slower rise is not a ramp worth an alarm."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is to come for one job and its host."""

    end_ns: int | None
    """When the job should reply."""
    peak_bytes: int | None
    """Predicted peak of resident memory: the prover's own figure, never less than what has been seen."""
    out_of_memory_ns: int | None
    """When the ramp under way would meet the nearer limit."""
    limit: str
    """host | cgroup, whose limit that is; empty for none."""
    headroom_bytes: int | None
    """What that limit still gives."""


def forecast(snapshot: Snapshot, job: JobView) -> Forecast:
    """The forecast for a job that runs."""
    headroom, limit = _headroom(snapshot)
    return Forecast(
        end_ns=_end_ns(snapshot, job),
        peak_bytes=_peak(job),
        out_of_memory_ns=_out_of_memory_ns(snapshot, headroom),
        limit=limit,
        headroom_bytes=headroom,
    )


def _peak(job: JobView) -> int | None:
    known = [value for value in (job.predicted_peak_bytes, job.peak_resident_bytes) if value is not None]
    return max(known) if known else None


def _end_ns(snapshot: Snapshot, job: JobView) -> int | None:
    if job.ended_ns is not None:
        return job.ended_ns
    past = [j for j in snapshot.jobs if _is_alike(j, job)]
    if past:
        ages = sorted(j.length_ns(snapshot.t_ns) - _queued_ns(j) for j in past)
        usual_ns = ages[len(ages) // 2]
        return max(snapshot.t_ns, job.first_ns + _queued_ns(job) + usual_ns)
    running = job.stage_now
    done = [p for p in job.progress.values() if running is not None and p.stage is running.stage and p.total > 0]
    if running is None or not done:
        return None
    newest = max(done, key=lambda p: p.t_ns)
    share = newest.done / newest.total
    if not 0.02 < share <= 1.0:
        return None
    return running.begin_ns + int((newest.t_ns - running.begin_ns) / share)


def _is_alike(past: JobView, job: JobView) -> bool:
    same = (past.circuit, past.num_circuits) == (job.circuit, job.num_circuits)
    return same and past.outcome is Outcome.PROVED and past.job_id != job.job_id


def _queued_ns(job: JobView) -> int:
    stage = job.stage(Stage.QUEUE)
    return stage.length_ns(stage.begin_ns) if stage is not None else 0


def _headroom(snapshot: Snapshot) -> tuple[int | None, str]:
    host = snapshot.host
    if host is None:
        return None, ""
    rooms = []
    if host.mem_available_bytes is not None:
        rooms.append((host.mem_available_bytes, "host"))
    if host.cgroup_limit_bytes is not None and host.cgroup_bytes is not None:
        rooms.append((max(0, host.cgroup_limit_bytes - host.cgroup_bytes), "cgroup"))
    return min(rooms) if rooms else (None, "")


def _out_of_memory_ns(snapshot: Snapshot, headroom: int | None) -> int | None:
    phase = snapshot.phases[-1] if snapshot.phases else None
    if headroom is None or phase is None or phase.kind is not PhaseKind.RAMP or not phase.is_open:
        return None
    slope = phase.slope_bytes_per_s
    if slope < MIN_SLOPE_BYTES_PER_S:
        return None
    return snapshot.t_ns + int(headroom / slope * 1e9)
