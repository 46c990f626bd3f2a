"""A JobReport holds every figure that is said of a job, each computed from events and none from another figure's text.

Stage times are the prover's own clocks where JobEnded gives them; what is computed here stands beside them, and the
parts are checked against the total.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cuzktui.analysis.attribution import Attribution, Kind, attribute
from cuzktui.analysis.finding import finding
from cuzktui.analysis.gap import GapReport, gap_of
from cuzktui.analysis.intervals import Interval, length_ns, union
from cuzktui.analysis.lens import LensReport, lens_report
from cuzktui.analysis.reconcile import unaccounted
from cuzktui.model import store
from cuzktui.model.phases import Phase, PhaseKind
from cuzktui.model.snapshot import JobView, Snapshot
from prover.errors import BadRequest
from prover.wire import TOP_STAGES, Event, Stage

OFFLINE_CAPACITY = 1 << 22
"""Samples kept raw for an analysis of a whole recording: 23 hours at 50 Hz."""
PARTS_MS = ("queue_ms", "setup_ms", "srs_ms", "synth_ms", "outer_ms", "verify_ms")
"""Consecutive parts of `total_ms`."""


@dataclass(frozen=True, slots=True)
class PlateauCheck:
    """The ledger held against anonymous memory at the job's highest plateau."""

    at_ns: int
    length_ns: int
    anon_bytes: float
    baseline_bytes: float
    """Anonymous memory when synthesis began: what interpreter, compiled code and keys hold after warm-up."""
    ledger_bytes: float
    """Of buffers known to be filled."""
    ledger_baseline_bytes: float
    reserved_bytes: float
    """Of all buffers: the ones that the running stage fills are between nothing and this."""

    @property
    def difference_percent(self) -> float | None:
        """(anon - its baseline) against (ledger - its baseline), of the anonymous level; 0 within its bounds."""
        if self.anon_bytes <= 0:
            return None
        seen = self.anon_bytes - self.baseline_bytes
        least, most = (told - self.ledger_baseline_bytes for told in (self.ledger_bytes, self.reserved_bytes))
        return 100.0 * unaccounted(seen, least, most) / self.anon_bytes


@dataclass(frozen=True, slots=True)
class JobReport:
    """One job, measured; times in the units of their names, None where there was no evidence."""

    job: JobView
    gap: GapReport | None
    attribution: Attribution
    lens: LensReport | None
    phases: tuple[Phase, ...]
    """Phases of the drawn process that touch the job."""
    plateau: PlateauCheck | None
    finding: str
    stages_ms: dict[str, float]
    """Wall time that the runs of each stage cover, of per-circuit stages those of every circuit."""
    total_ms: float
    peak_anon_bytes: int | None
    peak_rss_bytes: int | None

    @property
    def explained_percent(self) -> float | None:
        return self.attribution.explained_percent

    @property
    def gap_explained_percent(self) -> float | None:
        return self.gap.explained_percent if self.gap is not None else None

    @property
    def parts_off_percent(self) -> float | None:
        """How far queue + setup + srs + synth + outer + verify is from the total, in percent of the total."""
        total = self.number("total_ms")
        if not total:
            return None
        return 100.0 * (total - sum(self.number(name) or 0.0 for name in PARTS_MS)) / total

    def number(self, name: str) -> float | None:
        """A figure of the prover's own clocks, else the one computed from events."""
        value = self.job.metrics.get(name)
        if isinstance(value, (int, float)):
            return float(value)
        return self._computed(name)

    def _computed(self, name: str) -> float | None:
        job = self.job
        if name == "total_ms":
            return self.total_ms
        if name in ("inner_ms", "outer_ms"):
            value = job.inner_ns if name == "inner_ms" else job.outer_ns
            return value / 1e6 if value is not None else None
        if name == "gap_ms":
            return self.gap.gap_ns / 1e6 if self.gap is not None else None
        return self.stages_ms.get(name.removesuffix("_ms"))

    def as_dict(self) -> dict[str, object]:
        """The object that `prove --json` prints: plain numbers, strings, lists and objects."""
        job, gap = self.job, self.gap
        figures: dict[str, object] = {
            "job_id": job.job_id,
            "circuit": job.circuit,
            "num_circuits": job.num_circuits,
            "num_constraints": job.num_constraints,
            "outcome": job.outcome.value if job.outcome else None,
            "verified": job.verified,
            "proof_hex": job.proof_hex,
            "public_inputs": [list(values) for values in job.public_inputs],
            "policy": job.policy.value if job.policy else None,
            "error": job.error,
        }
        names = (*PARTS_MS[:4], "inner_ms", "outer_ms", "gap_ms", "release_ms", "verify_ms", "total_ms")
        figures |= {name: _rounded(self.number(name)) for name in names}
        figures["unexplained_ms"] = _rounded(self.attribution.length_ns(Kind.UNEXPLAINED) / 1e6)
        figures |= {
            "peak_rss_bytes": self.peak_rss_bytes,
            "peak_anon_bytes": self.peak_anon_bytes,
            "peak_predicted_bytes": self.predicted_peak_bytes,
            "explained_percent": _rounded(self.explained_percent),
            "gap_explained_percent": _rounded(self.gap_explained_percent),
            "released_bytes": gap.released_bytes if gap else None,
            "background_bytes": gap.background_bytes if gap else None,
            "munmap_bytes_per_s": _rounded(gap.munmap_bytes_per_s) if gap else None,
            "gap_predicted_ms": _rounded(gap.predicted_ns / 1e6) if gap and gap.predicted_ns else None,
            "system_cpu_percent": _rounded(gap.system_percent) if gap else None,
            "gpu_percent": _rounded(gap.gpu_percent) if gap else None,
            "ledger_difference_percent": _rounded(self.plateau.difference_percent) if self.plateau else None,
            "plateau_bytes": _rounded(self.plateau.anon_bytes) if self.plateau else None,
            "lens_levels": self.lens.levels if self.lens else None,
            "stages": {name: _rounded(value) for name, value in self.stages_ms.items()},
            "attribution_ms": {k.value: _rounded(ns / 1e6) for k, ns in self.attribution.by_kind.items()},
            "finding": self.finding,
        }
        return figures

    @property
    def predicted_peak_bytes(self) -> int | None:
        value = self.job.metrics.get("peak_predicted_bytes")
        return int(value) if isinstance(value, (int, float)) else self.job.predicted_peak_bytes


def analyse(events: Iterable[Event]) -> Snapshot:
    """The state at the end of a recording, with every memory sample kept."""
    return store.apply_all(store.empty(is_replay=True, memory_capacity=OFFLINE_CAPACITY), events)


def analyse_job(events: Iterable[Event], job_id: str | None = None) -> JobReport:
    """The report of one job of a recording, the newest one by default.

    Raises:
        BadRequest: the recording has no such job.
    """
    snapshot = analyse(events)
    job = snapshot.find_job(job_id) if job_id else snapshot.job
    if job is None:
        known = ", ".join(view.job_id for view in snapshot.jobs) or "none"
        raise BadRequest(f"no job {job_id or ''} in the recording (jobs: {known})")
    return report_of(snapshot, job)


def report_of(snapshot: Snapshot, job: JobView) -> JobReport:
    """The report of a job as far as a snapshot knows it."""
    end_ns = job.ended_ns if job.ended_ns is not None else snapshot.t_ns
    peak_anon, peak_rss = _peaks(snapshot, job, end_ns)
    lens = next((x for x in reversed(snapshot.lenses) if x.job_id == job.job_id), None)
    phases = tuple(p for p in snapshot.phases if p.end_ns >= job.first_ns and p.begin_ns <= end_ns)
    return JobReport(
        job=job,
        gap=gap_of(snapshot, job),
        attribution=attribute(snapshot, job),
        lens=lens_report(lens, snapshot.t_ns) if lens is not None else None,
        phases=phases,
        plateau=_plateau_check(snapshot, job, phases),
        finding=finding(snapshot, job),
        stages_ms=_stages_ms(job, end_ns),
        total_ms=(end_ns - job.first_ns) / 1e6,
        peak_anon_bytes=peak_anon,
        peak_rss_bytes=peak_rss,
    )


def _peaks(snapshot: Snapshot, job: JobView, end_ns: int) -> tuple[int | None, int | None]:
    process = snapshot.process
    if process is None:
        return job.peak_anon_bytes, job.peak_resident_bytes
    _, rows = process.memory.window(job.first_ns, end_ns)
    if not len(rows):
        return job.peak_anon_bytes, job.peak_resident_bytes
    columns = process.memory.columns
    anon, resident = (int(rows[:, columns.index(name)].max()) for name in ("anon", "resident"))
    return max(anon, job.peak_anon_bytes or 0), max(resident, job.peak_resident_bytes or 0)


def _stages_ms(job: JobView, end_ns: int) -> dict[str, float]:
    """Wall time that the runs of each stage cover: circuits of several cards run beside each other."""
    runs: dict[Stage, list[Interval]] = {}
    for view in job.stages:
        runs.setdefault(view.stage, []).append((view.begin_ns, end_ns if view.end_ns is None else view.end_ns))
    ordered = [*(s for s in TOP_STAGES if s in runs), *(s for s in runs if s not in TOP_STAGES)]
    return {stage.value: length_ns(union(runs[stage])) / 1e6 for stage in ordered}


def _plateau_check(snapshot: Snapshot, job: JobView, phases: tuple[Phase, ...]) -> PlateauCheck | None:
    """At the middle of the highest plateau between the job's begin and the end of its last computation."""
    process = snapshot.process
    last_ns = job.inner_end_ns or job.ended_ns or snapshot.t_ns
    inside = [p for p in phases if p.kind is PhaseKind.PLATEAU and job.first_ns < p.end_ns and p.begin_ns < last_ns]
    if process is None or not inside:
        return None
    top = max(inside, key=lambda phase: phase.level_bytes)
    begin_ns, end_ns = max(top.begin_ns, job.first_ns), min(top.end_ns, last_ns)
    at_ns = (begin_ns + end_ns) // 2
    told = snapshot.ledger.series
    synth = job.stage(Stage.SYNTH)
    base_ns = synth.begin_ns if synth is not None else job.first_ns
    baseline = process.memory.at(base_ns, "anon")
    return PlateauCheck(
        at_ns=at_ns,
        length_ns=end_ns - begin_ns,
        anon_bytes=process.memory.at(at_ns, "anon") or 0.0,
        baseline_bytes=baseline if baseline is not None else 0.0,
        ledger_bytes=told.at(at_ns, "host") or 0.0,
        ledger_baseline_bytes=told.at(base_ns, "host") or 0.0,
        reserved_bytes=told.at(at_ns, "allocated") or 0.0,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
