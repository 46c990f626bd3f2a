"""A View is one Snapshot and how the operator looks at it: everything a panel needs, nothing that changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from cuzktui.analysis.alarms import Alarm
from cuzktui.analysis.attribution import Attribution
from cuzktui.analysis.forecast import Forecast
from cuzktui.model.snapshot import JobView, Lens, Snapshot
from cuzktui.trial import Trial
from cuzktui.widgets.dots import GLYPHS, Glyphs
from cuzktui.widgets.frame import Words
from prover.wire import Policy, Stage


@dataclass(frozen=True, slots=True)
class CircuitChoice:
    """What the keys p and x prove."""

    circuit: str
    """A built-in circuit, or what the files are called on the screen."""
    num_circuits: int
    files: tuple[tuple[str, str], ...] = ()
    """`c1_path` and perhaps `key_path` of a PoRep job, whose circuits are its partitions."""

    def __str__(self) -> str:
        return self.circuit if self.files else f"{self.circuit} ×{self.num_circuits}"


@dataclass(frozen=True, slots=True)
class View:
    """What is shown now."""

    snapshot: Snapshot
    glyphs: Glyphs = GLYPHS["braille"]
    end_ns: int = 0
    """Right edge of the time axis."""
    span_s: float = 30.0
    """Length of the time axis."""
    is_live: bool = True
    """The right edge follows the newest event."""
    is_frozen: bool = False
    """The snapshot is held; events go on being folded behind it."""
    cursor_ns: int | None = None
    """A moment picked on the time axis."""
    lens: Lens | None = None
    """The lens that is open on the screen."""
    source: str = "live"
    """live | attached | replay: the kind of the source that is shown."""
    recording: str = ""
    """Path of the recording that is being written; empty when there is none."""
    choice: CircuitChoice = field(default_factory=lambda: CircuitChoice("sha256-chain:8", 4))
    policy: Policy = Policy.RECYCLE
    """Policy of the next job."""
    finding: Words = ()
    """One sentence about the job that is shown."""
    pair: tuple[str, ...] = ()
    """Ids of the jobs that are compared, in the order they were asked for."""
    offer: str = ""
    """What the console suggests to press next."""
    ui_cpu_percent: float | None = None
    """What drawing costs, of one core."""
    is_read_only: bool = False
    can_restart: bool = False
    """The prover was started from here, so `r` can start it again."""
    with_mapped: bool = False
    """Mapped and other shared memory is drawn on top of anonymous memory."""
    attribution: Attribution | None = None
    """Where the time of the job went, once it has ended."""
    gap_explained_percent: float | None = None
    forecast: Forecast | None = None
    """What is to come, while a job runs."""
    alarms: tuple[Alarm, ...] = ()
    """Troubles under way, the most pressing first."""
    trial: Trial | None = None
    """The experiment that runs, or the last one."""
    job_id: str = ""
    """A job picked from the list; empty is the running or newest one."""

    @property
    def job(self) -> JobView | None:
        """The job that the panels tell of."""
        picked = self.snapshot.find_job(self.job_id) if self.job_id else None
        return picked if picked is not None else self.snapshot.job

    @property
    def is_service_busy(self) -> bool:
        """The prover does work of its own (compiling, setup) while no job runs, or one that waits for it."""
        job, service = self.job, self.snapshot.service
        if service is None or service.stage_now is None:
            return False
        stage = job.stage_now if job is not None else None
        return job is None or job.is_done or stage is None or stage.stage is Stage.QUEUE

    @property
    def is_stranger(self) -> bool:
        """Nothing but samples is known: a process that is no prover of ours."""
        snapshot = self.snapshot
        return snapshot.hello is None and not snapshot.jobs and snapshot.process is not None

    @property
    def anchor_ns(self) -> int:
        """Zero of the times on the axis: when the job, or the first of a pair, was asked for."""
        first = next(iter(self.pair_jobs()), None) if not self.job_id else None
        job = first or self.job
        return job.first_ns if job is not None else self.snapshot.first_ns

    def pair_jobs(self) -> list[JobView]:
        """The jobs of the pair that have been heard of."""
        found = (self.snapshot.find_job(job_id) for job_id in self.pair)
        return [job for job in found if job is not None and job.job_id]
