"""What analysis has to say of the snapshot on the screen, asked once a picture and kept for a job that has ended."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cuzktui.analysis.alarms import Alarm, alarms
from cuzktui.analysis.attribution import Attribution, attribute
from cuzktui.analysis.finding import SMALL_GAP_NS, finding
from cuzktui.analysis.forecast import Forecast, forecast
from cuzktui.analysis.gap import gap_of
from cuzktui.model.snapshot import JobView, Snapshot
from cuzktui.widgets.frame import Words
from cuzktui.widgets.roles import Role

SETTLED_NS = 1_000_000_000
"""Events of an ended job may still arrive for so long; then its attribution is final."""


@dataclass(frozen=True, slots=True)
class Told:
    """Sentences and figures about one snapshot."""

    snapshot: Snapshot | None = None
    job: JobView | None = None
    words: Words = ()
    forecast: Forecast | None = None
    attribution: Attribution | None = None
    """Of a job that has ended."""
    gap_explained_percent: float | None = None
    alarms: tuple[Alarm, ...] = ()
    """Troubles under way; a recording that is shown again raises none."""
    is_final: bool = False

    def about(self, snapshot: Snapshot, job_id: str = "") -> Told:
        """What is told of a snapshot and its picked, running or newest job; asked again where something changed."""
        job = (snapshot.find_job(job_id) if job_id else None) or snapshot.job
        if snapshot is self.snapshot and job is self.job:
            return self
        sentence = finding(snapshot, job if job_id else None)
        role = Role.GOOD if sentence.startswith("no gap") else Role.GAP_LABEL
        told = replace(
            self, snapshot=snapshot, job=job, words=[(sentence, role)] if sentence else (),
            alarms=() if snapshot.is_replay else alarms(snapshot),
        )  # fmt: skip
        if job is None or not job.is_done:
            ahead = forecast(snapshot, job) if job is not None else None
            return replace(told, forecast=ahead, attribution=None, gap_explained_percent=None, is_final=False)
        if self.is_final and job is self.job:
            return told
        gap = gap_of(snapshot, job)
        return replace(
            told,
            forecast=None,
            attribution=attribute(snapshot, job),
            gap_explained_percent=gap.explained_percent if gap is not None and gap.gap_ns >= SMALL_GAP_NS else None,
            is_final=job.ended_ns is not None and snapshot.t_ns - job.ended_ns > SETTLED_NS,
        )
