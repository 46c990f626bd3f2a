"""Forecasts are extrapolations of what has been measured, and None where there is nothing to extrapolate.

The end comes from how earlier jobs of the same shape split their time, stage by stage, else from the progress of the
running stage; the memory limit from the slope of the ramp under way against what host and cgroup still give.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuzktui.model.phases import PhaseKind
from cuzktui.model.snapshot import JobView, Snapshot
from prover.wire import TOP_STAGES, Outcome, Stage

RAMP_AHEAD = 2
"""A ramp is drawn on for twice its own length: a second of filling says nothing of the next minute."""
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


def forecast(snapshot: Snapshot, job: JobView | None) -> Forecast:
    """The forecast for a job that runs; without a job only the host's memory has one."""
    headroom, limit = _headroom(snapshot)
    return Forecast(
        end_ns=_end_ns(snapshot, job) if job is not None else None,
        peak_bytes=_peak(snapshot, job) if job is not None else None,
        out_of_memory_ns=_out_of_memory_ns(snapshot, headroom),
        limit=limit,
        headroom_bytes=headroom,
    )


def alike(snapshot: Snapshot, job: JobView) -> list[JobView]:
    """Earlier jobs of the same circuit and count that were proved, oldest first: the job's own history."""
    return [past for past in snapshot.jobs if _is_alike(past, job)]


def _peak(snapshot: Snapshot, job: JobView) -> int | None:
    """The prover's own prediction, else the highest peak of the job's history; never less than what has been seen."""
    predicted = job.predicted_peak_bytes
    if predicted is None:
        past = [j.peak_resident_bytes for j in alike(snapshot, job) if j.peak_resident_bytes is not None]
        predicted = max(past, default=None)
    known = [value for value in (predicted, job.peak_resident_bytes) if value is not None]
    return max(known) if known else None


def _end_ns(snapshot: Snapshot, job: JobView) -> int | None:
    if job.ended_ns is not None:
        return job.ended_ns
    running = job.stage_now
    past = alike(snapshot, job)
    if past:
        return _end_by_history(snapshot, job, past)
    if running is None:
        return None
    places = ((running.stage, running.circuit), (running.stage, None))
    done = [job.progress[place] for place in places if place in job.progress and job.progress[place].total > 0]
    if not done:
        return None
    newest = max(done, key=lambda p: p.t_ns)
    share = newest.done / newest.total
    if not 0.02 < share <= 1.0:
        return None
    return running.begin_ns + int((newest.t_ns - running.begin_ns) / share)


def _end_by_history(snapshot: Snapshot, job: JobView, past: list[JobView]) -> int:
    """What the running part usually takes, or longer where it does already, and then the parts after it."""
    at, begin_ns = _part_now(job, snapshot.t_ns)
    usual = [_usual_ns(past, stage) for stage in TOP_STAGES]
    return max(snapshot.t_ns, begin_ns + usual[at]) + sum(usual[at + 1 :])


def _part_now(job: JobView, now_ns: int) -> tuple[int, int]:
    """Index in `TOP_STAGES` of the part that runs and its begin; between two parts the next one, from now."""
    last = -1
    for at, stage in enumerate(TOP_STAGES):
        view = job.stage(stage)
        if view is not None:
            if view.end_ns is None:
                return (at, view.begin_ns) if stage is not Stage.QUEUE else (at, now_ns)
            last = at
    return min(last + 1, len(TOP_STAGES) - 1), now_ns


def _usual_ns(past: list[JobView], stage: Stage) -> int:
    """Median over the jobs that had the stage, 0 where most had not; a queue depends on others and counts nothing."""
    if stage is Stage.QUEUE:
        return 0
    views = [job.stage(stage) for job in past]
    lengths = sorted(view.length_ns(view.begin_ns) if view is not None else 0 for view in views)
    return lengths[len(lengths) // 2]


def _is_alike(past: JobView, job: JobView) -> bool:
    same = (past.circuit, past.num_circuits) == (job.circuit, job.num_circuits)
    return same and past.outcome is Outcome.PROVED and past.job_id != job.job_id


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
    left_ns = int(headroom / slope * 1e9)
    return snapshot.t_ns + left_ns if left_ns <= RAMP_AHEAD * phase.length_ns else None
