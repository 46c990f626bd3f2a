"""An experiment in the console: the same job under each policy in turn, one at a time, each read once it has settled.

Pure but for its requests: `follow` is told of every picture's snapshot and asks for the next job when the last one has
been read. The first job warms up and does not count, as in the verb.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from cuzktui.analysis.report import report_of
from cuzktui.analysis.trials import Table, tabulate, turns
from cuzktui.model.snapshot import JobView, Snapshot
from prover.wire import Outcome, Owner, Policy

REPEAT = 3
SETTLE_NS = 1_200_000_000
"""Late events and the fall of memory after a reply have arrived by then."""
RELEASE_PATIENCE_NS = 15_000_000_000
"""How long a release in the background is waited for."""
HEARD_NS = 20_000_000_000
"""A job that was accepted and is not heard of for so long is given up."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What has been asked for and read so far."""

    circuit: str
    num_circuits: int = 1
    repeat: int = REPEAT
    policies: tuple[str, ...] = tuple(policy.value for policy in Policy)
    runs: tuple[tuple[str, dict[str, object]], ...] = ()
    """Policy and report of each job that counts."""
    asked: int = 0
    """Jobs asked for, the warm-up included."""
    job_id: str = ""
    """The job that runs for it; empty until the prover has answered."""
    asked_ns: int = 0
    ended: str = ""
    """Why it ended early; empty otherwise."""

    @property
    def order(self) -> list[str]:
        """Policies of all jobs, the warm-up first."""
        counted = turns(self.policies, self.repeat)
        return [counted[0], *counted]

    @property
    def is_over(self) -> bool:
        return bool(self.ended) or len(self.runs) == len(self.order) - 1

    @property
    def is_whole(self) -> bool:
        return self.is_over and not self.ended

    @property
    def policy(self) -> str:
        """Of the job that runs now."""
        return self.order[self.asked - 1] if 0 < self.asked <= len(self.order) else ""

    def table(self) -> Table:
        return tabulate(self.runs)


Ask = Callable[[str, int, Policy, Callable[[str], None]], None]
"""Asks for a job of so many circuits under a policy; the function is given its id."""


@dataclass(slots=True)
class Laboratory:
    """Runs one trial at a time.

    Args:
        ask: asks the prover; a refusal is told through `refused` by whoever asks.
        done: told once of each trial that is over.
    """

    ask: Ask
    done: Callable[[Trial], None]
    trial: Trial | None = None
    _waits: bool = field(default=False)

    @property
    def is_busy(self) -> bool:
        return self.trial is not None and not self.trial.is_over

    def begin(self, circuit: str, num_circuits: int, now_ns: int, repeat: int = REPEAT) -> None:
        """Begins a trial and asks for its warm-up."""
        self.trial = Trial(circuit, num_circuits, repeat)
        self._next(now_ns)

    def stop(self, why: str) -> None:
        """Ends the trial; what was read stays readable."""
        if self.trial is not None and self.is_busy:
            self.trial = replace(self.trial, ended=why)
            self.done(self.trial)

    def follow(self, snapshot: Snapshot) -> None:
        """Reads the job that runs once it has settled, and asks for the next."""
        trial = self.trial
        if trial is None or trial.is_over or self._waits:
            return
        job = snapshot.find_job(trial.job_id)
        if job is None:
            if snapshot.t_ns - trial.asked_ns > HEARD_NS:
                self.stop(f"{trial.job_id} was accepted and never heard of")
            return
        if not job.is_done:
            return
        if job.outcome is not Outcome.PROVED:
            self.stop(f"{job.job_id} under {trial.policy}: {job.error or job.outcome}")
        elif has_settled(snapshot, job):
            if trial.asked > 1:
                answer = report_of(snapshot, job).as_dict() | {"proof_hex": "", "public_inputs": []}
                self.trial = trial = replace(trial, runs=(*trial.runs, (trial.policy, answer)))
            if trial.is_over:
                self.done(trial)
            else:
                self._next(snapshot.t_ns)

    def _next(self, now_ns: int) -> None:
        assert self.trial is not None
        self.trial = replace(self.trial, asked=self.trial.asked + 1, job_id="", asked_ns=now_ns)
        self._waits = True
        trial = self.trial
        self.ask(trial.circuit, trial.num_circuits, Policy(trial.policy), self._accepted)

    def _accepted(self, job_id: str) -> None:
        self._waits = False
        if self.trial is not None:
            self.trial = replace(self.trial, job_id=job_id)

    def refused(self, sentence: str) -> None:
        """The prover did not take the job."""
        self._waits = False
        self.stop(sentence)


def has_settled(snapshot: Snapshot, job: JobView) -> bool:
    """Whether everything that belongs to a job has been seen, its release in the background included."""
    if job.ended_ns is None or snapshot.t_ns - job.ended_ns < SETTLE_NS:
        return False
    if snapshot.t_ns - job.ended_ns > RELEASE_PATIENCE_NS:
        return True
    held = (buffer.event for buffer in snapshot.ledger.buffers.values())
    kept = (Owner.POOL, Owner.SRS)
    return not any(event.job_id == job.job_id and event.owner not in kept for event in held)
