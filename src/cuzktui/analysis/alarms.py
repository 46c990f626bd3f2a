"""An alarm is raised only on what is measured against the job's own history or the host's own limits, and says both.

Three watches: memory that will not fit, a stage that stands still, and a GPU that idles in a stage meant for it. Each
alarm has a key, so that one trouble is told once however long it lasts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cuzktui import format as text
from cuzktui.analysis.forecast import alike, forecast
from cuzktui.analysis.gap import GPU_IDLE_PERCENT, cpu_percent
from cuzktui.model.snapshot import JobView, Snapshot, StageView
from prover.wire import Stage

OOM_AHEAD_NS = 30_000_000_000
"""A limit that the ramp under way would meet later than this is no news yet."""
STALL_RATIO, STALL_SLACK_NS = 3, 2_000_000_000
"""A stage is late at three times its longest run so far and two seconds."""
CACHED_STAGES = (Stage.COMPILE, Stage.SETUP, Stage.SRS)
"""They make what a later run of theirs finds, so their history says nothing of how long they may take."""
SILENT_NS = 30_000_000_000
"""Without a history: so long without a span or progress, and without work of the CPU or the GPU."""
QUIET_CPU_PERCENT = 5.0
GPU_STAGES = (Stage.NTT_H, Stage.MSM_H, Stage.BATCH_ADD, Stage.TAIL_MSM)
FALLBACK_NS = 2_000_000_000
"""NVML's utilisation covers 200 ms; ten readings of idleness are no accident."""
FALLBACK_READINGS = 5
BUSY_CPU_PERCENT = 80.0


@dataclass(frozen=True, slots=True)
class Alarm:
    """A trouble under way."""

    key: str
    """The same for as long as it is the same trouble."""
    text: str
    level: str = "warning"
    """warning | error"""


def alarms(snapshot: Snapshot) -> tuple[Alarm, ...]:
    """Every alarm that holds now, the most pressing first; none for a process that has ended."""
    process = snapshot.process
    if process is None or process.ended is not None:
        return ()
    job = snapshot.find_job(snapshot.running) if snapshot.running else None
    found = list(_out_of_memory(snapshot, job))
    if job is not None and not job.is_done:
        stage = job.stage_now
        if stage is not None and stage.stage is not Stage.QUEUE:
            found += _fallen_back(snapshot, job, stage)
            found += _stalled(snapshot, job, stage)
    return tuple(found)


def _out_of_memory(snapshot: Snapshot, job: JobView | None) -> Iterator[Alarm]:
    """The ramp under way meets a limit of host or cgroup soon, and the job's predicted peak does not end it before."""
    ahead = forecast(snapshot, job)
    process = snapshot.process
    if process is None or ahead.out_of_memory_ns is None or ahead.headroom_bytes is None:
        return
    left_ns = ahead.out_of_memory_ns - snapshot.t_ns
    if left_ns > OOM_AHEAD_NS:
        return
    now_bytes = process.memory.last("resident")
    if job is not None and job.predicted_peak_bytes is not None and now_bytes is not None:
        rise = job.predicted_peak_bytes - now_bytes
        if 0 <= rise < ahead.headroom_bytes:
            return
    slope = ahead.headroom_bytes / max(left_ns / 1e9, 1e-9)
    yield Alarm(
        f"oom {job.job_id if job else process.pid}",
        f"out of memory in {text.duration(left_ns)}: +{text.rate(slope)} against {text.size(ahead.headroom_bytes)} "
        f"that the {ahead.limit} has left",
        "error",
    )


def _fallen_back(snapshot: Snapshot, job: JobView, stage: StageView) -> Iterator[Alarm]:
    """A GPU is there and idle while a GPU stage runs and the CPU is at work."""
    length_ns = stage.length_ns(snapshot.t_ns)
    if stage.stage not in GPU_STAGES or length_ns < FALLBACK_NS or not snapshot.gpus:
        return
    means = [_mean_util(snapshot, device, stage.begin_ns) for device in snapshot.gpus]
    known = [mean for mean in means if mean is not None]
    cpu = cpu_percent(snapshot, "user_percent", stage.begin_ns, snapshot.t_ns)
    if not known or max(known) >= GPU_IDLE_PERCENT or cpu is None or cpu < BUSY_CPU_PERCENT:
        return
    ours = snapshot.hello.backend if snapshot.hello is not None else ""
    why = "the stage has fallen back to the CPU" if ours in ("", "cuda") else f"the prover runs on its {ours} backend"
    idle, where = text.duration(length_ns), stage.stage.value
    yield Alarm(f"fallback {job.job_id}", f"GPU idle for {idle} in {where}, CPU at {text.percent(cpu)}: {why}")


def _mean_util(snapshot: Snapshot, device: int, begin_ns: int) -> float | None:
    """Mean utilisation since a time; None with fewer readings than prove anything."""
    _, rows = snapshot.gpus[device].series.window(begin_ns, snapshot.t_ns)
    util = rows[:, 0][~np.isnan(rows[:, 0])] if len(rows) else np.empty(0)
    return float(util.mean()) if len(util) >= FALLBACK_READINGS else None


def _stalled(snapshot: Snapshot, job: JobView, stage: StageView) -> Iterator[Alarm]:
    """The innermost stage runs far longer than it ever did, or nothing at all has happened for long."""
    where = stage.stage.value if stage.circuit is None else f"{stage.stage.value} of circuit {stage.circuit}"
    length_ns = stage.length_ns(snapshot.t_ns)
    past = [view.length_ns(view.begin_ns) for old in alike(snapshot, job) for view in _runs(old, stage)]
    past += [view.length_ns(view.begin_ns) for view in _runs(job, stage)]
    if past and stage.stage not in CACHED_STAGES:
        if length_ns > STALL_RATIO * max(past) + STALL_SLACK_NS:
            yield Alarm(
                f"stall {job.job_id} {where}",
                f"{job.job_id} has been in {where} for {text.duration(length_ns)}; it took {text.duration(max(past))} "
                "at most before",
            )
        return
    silent_ns = snapshot.t_ns - _last_sign_ns(job, stage)
    if silent_ns < SILENT_NS:
        return
    cpu = [cpu_percent(snapshot, name, snapshot.t_ns - SILENT_NS, snapshot.t_ns) for name in _CPU]
    utils = [_mean_util(snapshot, device, snapshot.t_ns - SILENT_NS) for device in snapshot.gpus]
    if None in cpu or sum(share or 0.0 for share in cpu) >= QUIET_CPU_PERCENT:
        return
    if any(util is not None and util >= GPU_IDLE_PERCENT for util in utils):
        return
    yield Alarm(
        f"stall {job.job_id} {where}",
        f"{job.job_id} stands still in {where}: no progress and no work of CPU or GPU for {text.duration(silent_ns)}",
    )


_CPU = ("user_percent", "system_percent")


def _runs(job: JobView, stage: StageView) -> list[StageView]:
    """Finished runs of the same stage: of any circuit where it is one circuit's."""
    per_circuit = stage.circuit is not None
    return [
        view
        for view in job.stages
        if view.stage is stage.stage and view.end_ns is not None and (view.circuit is not None) == per_circuit
    ]


def _last_sign_ns(job: JobView, stage: StageView) -> int:
    signs = [stage.begin_ns, *(progress.t_ns for progress in job.progress.values())]
    return max([*signs, job.spans[-1].t_ns] if len(job.spans) else signs)
