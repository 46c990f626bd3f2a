"""A finding is one sentence that an operator can act on, made of measured figures only.

The same function serves while the gap grows, at the end of a job and in a report, so that all three say the same.
"""

from __future__ import annotations

from cuzktui import format as text
from cuzktui.analysis.gap import GPU_IDLE_PERCENT, GapReport, cpu_percent, gap_of, gpu_percent
from cuzktui.analysis.plateau import FALLS, refined
from cuzktui.model.phases import PhaseKind
from cuzktui.model.snapshot import JobView, Snapshot
from prover.wire import Outcome, Policy

SMALL_GAP_NS = 5_000_000
"""A gap below this is what handing over to a background thread may cost."""


def finding(snapshot: Snapshot, job: JobView | None = None) -> str:
    """The sentence under the memory graph, about `job` or the newest job with a gap; empty before there is one.

    For a process without jobs it tells of its newest release, inferred from outside.
    """
    job = job if job is not None else _newest(snapshot)
    gap = gap_of(snapshot, job) if job is not None else None
    if job is not None and gap is not None:
        return _job_sentence(job, gap)
    if job is not None and job.outcome is Outcome.FAILED:
        return f"job {job.job_id} failed: {job.error}" if job.error else f"job {job.job_id} failed"
    return "" if snapshot.jobs else _stranger_sentence(snapshot)


def _newest(snapshot: Snapshot) -> JobView | None:
    for job in reversed(snapshot.jobs):
        if job.inner_end_ns is not None or job.outcome is Outcome.FAILED:
            return job
    return None


def _job_sentence(job: JobView, gap: GapReport) -> str:
    if gap.is_open:
        return _joined(
            f"{text.duration(gap.gap_ns)} since the last kernel and counting: {_doing(gap)}", *_circumstances(gap)
        )
    whole = f" of {text.duration(gap.outer_ns)}" if gap.outer_ns else ""
    if gap.gap_ns < SMALL_GAP_NS:
        return _joined(f"no gap: {text.duration(gap.gap_ns)}{whole} after the last kernel", *_elsewhere(job, gap))
    return _joined(f"{text.duration(gap.gap_ns)}{whole} after the last kernel: {_doing(gap)}", *_circumstances(gap))


def _doing(gap: GapReport) -> str:
    rate = gap.munmap_bytes_per_s if gap.ledger_ns else gap.fall_bytes_per_s
    if gap.ledger_ns and gap.released_bytes:
        return f"releasing {text.size(gap.released_bytes)} at {text.rate(rate)}"
    if gap.explained_ns and gap.fall_bytes:
        return f"releasing {text.size(gap.fall_bytes)} at {text.rate(rate)}"
    return "no release seen, unexplained"


def _circumstances(gap: GapReport) -> list[str]:
    said = list(gap.ways)
    said += [f"in thread {name}" for name in gap.threads[:1]]
    if gap.system_percent is not None:
        said.append(f"system CPU {text.percent(gap.system_percent)}")
    if gap.gpu_percent is not None:
        idle = gap.gpu_percent < GPU_IDLE_PERCENT
        said.append("GPU idle" if idle else f"GPU {text.percent(gap.gpu_percent)}")
    explained = gap.explained_percent
    if explained is not None and explained < 95.0 and not gap.is_open:
        said.append(f"{text.percent(explained)} of it explained")
    return said


def _elsewhere(job: JobView, gap: GapReport) -> list[str]:
    """Where the memory went when not in the gap."""
    if gap.background_bytes:
        took = text.duration(gap.background_ns)
        return [f"{text.size(gap.background_bytes)} released in the background in {took}"]
    pooled = sum(release.resident_bytes for release in job.releases if release.how == "pool")
    if pooled:
        return [f"{text.size(pooled)} kept for the next job"]
    if gap.released_bytes:
        pages = " in huge pages" if job.policy is Policy.SYNC_HUGE else ""
        return [f"{text.size(gap.released_bytes)} released{pages} at {text.rate(gap.munmap_bytes_per_s)}"]
    return []


def _stranger_sentence(snapshot: Snapshot) -> str:
    process = snapshot.process
    for phase in reversed(snapshot.phases):
        if process is None or phase.kind not in FALLS:
            continue
        edges = refined(process.memory, phase)
        verb = "memory falls" if phase.is_open else "memory fell"
        at_least = "at least " if phase.kind is PhaseKind.CLIFF else ""
        slope = phase.slope_bytes_per_s if edges.slope_bytes_per_s is None else edges.slope_bytes_per_s
        system = cpu_percent(snapshot, "system_percent", edges.begin_ns, edges.end_ns)
        gpu = gpu_percent(snapshot, edges.begin_ns, edges.end_ns)
        return _joined(
            f"{verb} by {text.size(-phase.change_bytes)} in {text.duration(edges.length_ns)}: "
            f"{at_least}{text.rate(-slope)} (inferred)",
            f"system CPU {text.percent(system)}" if system is not None else "",
            "GPU idle" if gpu is not None and gpu < GPU_IDLE_PERCENT else "",
        )
    return ""


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)
