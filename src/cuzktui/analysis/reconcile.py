"""Anonymous memory is taken apart: the baseline after warm-up, what the ledger knows, and what nobody explains.

The baseline is what the process holds at rest, when no job has a buffer: recorded at the begin of each synthesis, the
warming first job's only until there is a second, and lowered where less is held between jobs. It is never more than
`SLACK_BYTES` above the least ever held at rest, so a leak that stays from job to job is shown in full.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuzktui.model.ledger import Ledger
from cuzktui.model.snapshot import JobView, ProcessView, Snapshot
from prover.wire import Stage

OFF_PERCENT = 3.0
"""Of the peak of anonymous memory: ledger and memory agree within it."""
SLACK_BYTES = 64 << 20
"""Stacks and heap of a working interpreter; less is never called unexplained."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Memory of our prover at one moment; bytes."""

    at_ns: int
    anon_bytes: float
    ledger_bytes: float
    """Resident host and pinned buffers."""
    reserved_bytes: float
    """Allocated ones, whether their pages are there yet or not."""
    baseline_bytes: float
    """Interpreter, compiled code, heap."""
    peak_bytes: float
    """Highest anonymous memory so far: what the difference is measured against."""

    @property
    def unexplained_bytes(self) -> float:
        """What is held beyond baseline and ledger; negative where the ledger claims more than there is."""
        return unaccounted(self.anon_bytes - self.baseline_bytes, self.ledger_bytes, self.reserved_bytes)

    @property
    def unexplained_percent(self) -> float | None:
        """Of the peak."""
        return 100.0 * self.unexplained_bytes / self.peak_bytes if self.peak_bytes > 0 else None

    @property
    def surely_unexplained_bytes(self) -> float:
        """What no buffer could account for even if every allocated page were resident: true at any moment, never less
        than 0."""
        return max(0.0, self.anon_bytes - max(self.ledger_bytes, self.reserved_bytes) - self.baseline_bytes)

    @property
    def has_leak(self) -> bool:
        """More than can be let pass is held and surely unexplained."""
        return self.surely_unexplained_bytes > allowance_bytes(self.peak_bytes)

    @property
    def is_off(self) -> bool:
        """More is missing or claimed than can be let pass."""
        return abs(self.unexplained_bytes) > allowance_bytes(self.peak_bytes)


def unaccounted(seen_bytes: float, resident_bytes: float, reserved_bytes: float) -> float:
    """How far memory lies outside what buffers may hold.

    Which pages of a buffer are there is known once it was filled; until then it holds anything from nothing to all.
    """
    least, most = sorted((resident_bytes, reserved_bytes))
    return seen_bytes - min(max(seen_bytes, least), most)


def allowance_bytes(peak_bytes: float) -> float:
    """What is let pass of a process that held so much at its peak."""
    return max(OFF_PERCENT / 100 * peak_bytes, float(SLACK_BYTES))


def reconciled(snapshot: Snapshot, at_ns: int | None = None) -> Reconciled | None:
    """The drawn process at a moment, now by default; None for a process without a ledger or before its first synthesis.

    Between two ends of stages the ledger does not know which pages of a new buffer are there; it is then held to its
    bounds only.
    """
    process, told = snapshot.process, snapshot.ledger.series
    if process is None or snapshot.hello is None or snapshot.hello.pid != process.pid or not len(told):
        return None
    at_ns = snapshot.t_ns if at_ns is None else at_ns
    anon, baseline = process.memory.at(at_ns, "anon"), _baseline_bytes(process, snapshot, at_ns)
    if anon is None or baseline is None:
        return None
    return Reconciled(
        at_ns=at_ns,
        anon_bytes=anon,
        ledger_bytes=told.at(at_ns, "host") or 0.0,
        reserved_bytes=told.at(at_ns, "allocated") or 0.0,
        baseline_bytes=baseline,
        peak_bytes=float(process.peak_anon_bytes),
    )


def _baseline_bytes(process: ProcessView, snapshot: Snapshot, at_ns: int) -> float | None:
    """What the process held at rest; None before the first synthesis."""
    jobs = [(begin, job) for job in snapshot.jobs if (begin := _synthesis_ns(job)) is not None]
    begins = sorted(begin for begin, _ in jobs if process.seen_ns <= begin <= at_ns)
    rests = [own for begin in begins if (own := _bytes_at_rest(process, snapshot.ledger, begin)) is not None]
    if not rests:
        return None
    least = min(rests[1:] or rests)
    baseline = rests[-1] if rests[-1] <= least + SLACK_BYTES else least
    if any(begin <= at_ns and (job.ended_ns is None or job.ended_ns > at_ns) for begin, job in jobs):
        return baseline
    now = _bytes_at_rest(process, snapshot.ledger, at_ns)
    return baseline if now is None else min(baseline, now)


def _bytes_at_rest(process: ProcessView, ledger: Ledger, at_ns: int) -> float | None:
    """Anonymous memory beyond the idle pool; None while any other buffer is held, for it may be on its way out."""
    anon = process.memory.at(at_ns, "anon")
    host, pool = (ledger.series.at(at_ns, column) or 0.0 for column in ("host", "pool"))
    return max(0.0, anon - pool) if anon is not None and host == pool else None


def _synthesis_ns(job: JobView) -> int | None:
    return next((view.begin_ns for view in job.stages if view.stage is Stage.SYNTH), None)
