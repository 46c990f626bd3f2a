"""The desk asks the prover on behalf of the keys, each request in a thread of its own: no key waits for an answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from cuzktui.analysis.finding import SMALL_GAP_NS
from cuzktui.model.snapshot import Snapshot
from cuzktui.trial import Laboratory, Trial
from cuzktui.verifying import verify_job
from cuzktui.widgets.view import CircuitChoice
from prover.errors import ProverError
from prover.wire import Policy

T = TypeVar("T")

FIRST_POLICY = Policy.SYNC_4K
"""Of the first demo proof of a console: the bug, kept as an exhibit."""
NEXT_POLICY = Policy.RECYCLE
POLICY_LINES = {
    "sync-4k": "the call gives 4K pages back before it returns: the gap",
    "sync-huge": "the same with huge pages: a short cliff",
    "async-4k": "a thread behind the call gives 4K pages back",
    "async-huge": "the same with huge pages",
    "recycle": "buffers go to a pool for the next job",
}
PAIR_POLICIES = (Policy.SYNC_4K, Policy.ASYNC_4K)
"""The pair differs in one thing only: who gives the same pages back, the call or a thread behind it."""
CHOICES = (
    CircuitChoice("sha256-chain:8", 4),
    CircuitChoice("sha256-chain:16", 4),
    CircuitChoice("sha256-chain:64", 4),
    CircuitChoice("poseidon-merkle:8", 4),
    CircuitChoice("cubic", 1),
)


class Control(Protocol):
    """What a prover can be asked for; calls block and raise a ProverError with one sentence."""

    def submit(
        self, circuit: str = "", num_circuits: int = 1, policy: Policy | str | None = None, *, c1_path: str = "",
        key_path: str = "",
    ) -> str:  # fmt: skip
        """Queues a job of a built-in circuit, or of a PoRep C1 output; its id."""

    def cancel(self, job_id: str = "") -> bool:
        """Cancels a job, or the running one; whether there was one."""

    def set_policy(self, policy: Policy | str) -> Policy:
        """Sets the policy of later jobs."""


@dataclass(slots=True)
class Desk:
    """Requests and what this console has asked for so far.

    Args:
        control: None where nothing can be asked (a replay, a foreign process).
        post: runs a function in the screen's thread.
        say: shows a sentence; its level is hint (said once), info, warning or error (kept among the notices).
    """

    control: Control | None
    post: Callable[[Callable[[], None]], None]
    say: Callable[[str, str], None]
    choice: CircuitChoice = CHOICES[0]
    policy: Policy = FIRST_POLICY
    is_policy_chosen: bool = False
    own_jobs: frozenset[str] = frozenset()
    pair: tuple[str, ...] = ()
    """Job ids of the pair asked for last."""
    pair_choice: CircuitChoice = CHOICES[0]
    pair_is_wanted: bool = False
    """The second job of the pair is asked for once the first has ended."""
    lab: Laboratory = field(init=False)
    """Runs the experiment."""
    trial_is_done: Callable[[Trial], None] = field(default=lambda _trial: None)

    def __post_init__(self) -> None:
        self.lab = Laboratory(self._ask_for_trial, self.trial_is_done)

    def ask(
        self, request: Callable[[Control], T], then: Callable[[T], None], refused: Callable[[str], None] | None = None
    ) -> None:
        """Asks in a thread; the answer, or the refusal as a sentence, comes back to the screen's thread."""
        control = self.control
        if control is None:
            self.say("nothing can be asked here: this is no prover of ours", "warning")
            return

        def work() -> None:
            try:
                answer = request(control)
            except ProverError as error:
                sentence = str(error)
                self.post(lambda: self.say(sentence, "error"))
                if refused is not None:
                    self.post(lambda: refused(sentence))
            else:
                self.post(lambda: then(answer))

        threading.Thread(target=work, name="request", daemon=True).start()

    def in_background(self, work: Callable[[], str | None], said: str = "") -> None:
        """Runs work that asks nothing of a prover's control; its sentence, or its failure, is shown."""

        def run() -> None:
            try:
                sentence = work() or said
            except ProverError as error:
                text = str(error)
                self.post(lambda: self.say(text, "error"))
            else:
                self.post(lambda: self.say(sentence, "info"))

        threading.Thread(target=run, name="background", daemon=True).start()

    def verify_again(self, snapshot: Snapshot) -> None:
        """Checks the newest proof again, in a process of its own."""
        job = next((job for job in reversed(snapshot.jobs) if job.proof_hex), None)
        if job is None:
            self.say("no proof yet to verify", "hint")
            return
        self.in_background(lambda: verify_job(job))

    def experiment(self, snapshot: Snapshot) -> None:
        """Begins an experiment with the chosen circuit, unless jobs are in the way."""
        if self.lab.is_busy:
            return
        if self.choice.files:
            self.say("an experiment takes a built-in circuit: choose one with 1 to 5", "warning")
            return
        if snapshot.running or snapshot.queued:
            self.say("an experiment needs the prover to itself: wait for its jobs, or cancel them", "warning")
            return
        self.lab.begin(self.choice.circuit, self.choice.num_circuits, snapshot.t_ns)

    def _ask_for_trial(self, circuit: str, count: int, policy: Policy, accepted: Callable[[str], None]) -> None:
        def then(job_id: str) -> None:
            self.own_jobs |= {job_id}
            accepted(job_id)

        self.ask(lambda control: control.submit(circuit, count, policy), then, self.lab.refused)

    def prove(self) -> None:
        """Asks for one proof of the chosen circuit."""
        choice, policy = self.choice, self.policy
        self.say(f"asked for {choice} with {policy.value}", "hint")
        self.ask(lambda control: _submit(control, choice, policy), self._proving)

    def _proving(self, job_id: str) -> None:
        self.own_jobs |= {job_id}
        if not self.is_policy_chosen:
            self.policy = NEXT_POLICY

    def prove_pair(self) -> None:
        """Asks for the first job of a pair; `follow` asks for the second."""
        choice, policy = self.choice, PAIR_POLICIES[0]
        self.pair, self.pair_choice = (), choice
        self.say(f"pair: {choice} with {policy.value}, then with {PAIR_POLICIES[1].value}", "hint")
        self.ask(lambda control: _submit(control, choice, policy), self._first_of_pair)

    def _first_of_pair(self, job_id: str) -> None:
        self.own_jobs |= {job_id}
        self.pair, self.pair_is_wanted = (job_id,), True

    def follow(self, snapshot: Snapshot) -> None:
        """Asks for the second job of a pair, or the next of an experiment, as soon as the one before has ended."""
        self.lab.follow(snapshot)
        if not self.pair_is_wanted or len(self.pair) != 1:
            return
        first = snapshot.find_job(self.pair[0])
        if first is None or not first.is_done:
            return
        self.pair_is_wanted = False
        if first.outcome != "proved":
            self.say("the pair ends with its first job, which made no proof", "warning")
            return
        choice, policy = self.pair_choice, PAIR_POLICIES[1]
        self.ask(lambda control: _submit(control, choice, policy), self._second_of_pair)

    def _second_of_pair(self, job_id: str) -> None:
        self.own_jobs |= {job_id}
        self.pair = (*self.pair[:1], job_id)

    def cancel(self, snapshot: Snapshot) -> None:
        """Cancels the running job, else the next one in the queue, and with it the experiment."""
        self.lab.stop("cancelled")
        job_id = snapshot.running or (snapshot.queued[0] if snapshot.queued else "")
        if not job_id:
            self.say("no job to cancel", "hint")
            return
        self.pair_is_wanted = False
        said = {True: f"{job_id} is being cancelled", False: f"{job_id} had ended already"}
        self.ask(lambda control: control.cancel(job_id), lambda done: self.say(said[done], "info"))

    def set_policy(self, policy: Policy) -> None:
        """Sets how later jobs give their memory back, here and in the prover."""
        self.policy, self.is_policy_chosen = policy, True
        self.ask(lambda control: control.set_policy(policy), lambda got: self.say(f"next jobs: {got.value}", "hint"))

    def question_of_others(self, snapshot: Snapshot) -> str:
        """What to ask before the prover is ended; empty where no job but this console's own would end with it."""
        count = sum(not job.is_done and job.job_id not in self.own_jobs for job in snapshot.jobs)
        return f"{count} job{'s' if count > 1 else ''} of others would end with this prover" if count else ""

    def offer(self, snapshot: Snapshot) -> str:
        """What to press next, after the first gap was seen and while no pair was run."""
        if self.control is None or self.pair or snapshot.running:
            return ""
        proved = [job for job in snapshot.jobs if job.is_done and job.outcome == "proved"]
        gaps = [job.gap_ns(snapshot.t_ns) or 0 for job in proved if job.policy == FIRST_POLICY]
        if not gaps:
            return ""
        if max(gaps) < SMALL_GAP_NS:
            return "3 then x: the gap of a gigabyte"
        return "x shows it without the gap" if proved[-1].policy == FIRST_POLICY else "x shows both side by side"


def _submit(control: Control, choice: CircuitChoice, policy: Policy) -> str:
    if choice.files:
        return control.submit("", 1, policy, **dict(choice.files))
    return control.submit(choice.circuit, choice.num_circuits, policy)
