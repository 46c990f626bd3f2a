"""One proof without a screen: a session, a job, its report. Whatever dies, the answer names it and the code is not 0.

Exit codes: 0 proved and verified, 1 failed or not verified, 2 refused, 3 the prover died or does not answer, 128 + n
stopped by signal n.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuzktui.progress import ProgressLines
from cuzktui.sources.control import ProverUnreachable
from cuzktui.sources.session import Session, SessionSpec
from prover import wire
from prover.errors import ProverError
from prover.run import now
from prover.wire import Outcome

START_PATIENCE_S = 30.0
SETTLE_NS = 400_000_000
"""Events are in order of arrival: so long after a job's end nothing of it is still on its way."""
RELEASE_PATIENCE_S = 15.0
"""How long a release in the background is waited for after the reply."""


class Stopped(BaseException):
    """A signal asked this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


class ProverDied(ProverError):
    """The prover ended before its job did; carries the event that says how."""

    exit_code = 3

    def __init__(self, ended: wire.ProcessEnded, last_words: str = "") -> None:
        text = f"the prover (pid {ended.pid}) {ended.reason}" + (f" in stage {ended.stage}" if ended.stage else "")
        if last_words and not ended.signal:
            text += f": {last_words}"
        super().__init__(text)
        self.ended = ended


@dataclass(slots=True)
class Received:
    """Every event of a session, and a way to wait for one.

    Args:
        also: told of each event in the thread that delivers it.
    """

    also: Callable[[wire.Event], None]
    events: list[wire.Event] = field(default_factory=list)
    _new: threading.Condition = field(default_factory=threading.Condition)

    def add(self, event: wire.Event) -> None:
        with self._new:
            self.events.append(event)
            if not isinstance(event, wire.MemSample):
                self._new.notify_all()
        self.also(event)

    def wait(self, wanted: Callable[[wire.Event], bool], timeout_s: float | None = None, begin: int = 0) -> Any:
        """The first wanted event from index `begin` on, seen already or still to come; None when the time is over."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._new:
            while True:
                while begin < len(self.events):
                    event = self.events[begin]
                    begin += 1
                    if wanted(event):
                        return event
                rest = None if deadline is None else deadline - time.monotonic()
                if rest is not None and rest <= 0:
                    return None
                self._new.wait(rest)


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be proved."""

    circuit: str = ""
    num_circuits: int = 1
    policy: str | None = None
    files: dict[str, str] = field(default_factory=dict)
    """`zkey_path` and `wtns_path`, or `c1_path` and `key_path`, instead of a circuit."""


@contextmanager
def stoppable() -> Iterator[None]:
    """TERM, HUP and INT end the block by `Stopped`, so that what it started is ended too."""

    def stop(number: int, _frame: object) -> None:
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)
        raise Stopped(number)

    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_job(session: Session, received: Received, request: Request) -> str:
    """Submits one job and waits for its end and for its memory to be back; returns its id.

    Raises:
        ProverDied: the prover ended first.
        ProverUnreachable: it never answered.
        BadRequest: it refused.
    """
    _wait_for_prover(session, received)
    begin = len(received.events)
    job_id = session.control.submit(
        request.circuit, request.num_circuits, request.policy, wait_s=START_PATIENCE_S, **request.files
    )
    end = received.wait(
        lambda e: isinstance(e, wire.ProcessEnded) or (isinstance(e, wire.JobEnded) and e.job_id == job_id),
        begin=begin,
    )
    if isinstance(end, wire.ProcessEnded):
        raise ProverDied(end, session.last_words())
    _settle(received, job_id, end.t_ns, begin)
    return job_id


def prove(
    request: Request, spec: SessionSpec, *, as_json: bool = False, export_to: Path | None = None, quiet: bool = False
) -> int:
    """One job from request to printed result; returns the exit code."""
    lines = ProgressLines(sys.stderr, quiet)
    received = Received(lines.apply)
    error: ProverError | None = None
    job_id = ""
    session = None
    try:
        with stoppable():
            session = Session(spec)
            try:
                session.start(received.add)
                job_id = run_job(session, received, request)
            finally:
                lines.hushed = True
                session.stop()
    except ProverError as caught:
        error = caught
    except Stopped as stopped:
        lines.line(str(stopped))
        return 128 + stopped.number
    answer = _answer(received.events, job_id, request, error)
    if session and session.recording:
        answer["recording"] = str(session.recording)
        answer["recording_error"] = _recording_error(received.events)
    if export_to and job_id:
        from cuzktui.export import export

        export(received.events, export_to)
        answer["export"] = str(export_to)
    print(json.dumps(answer, indent=None) if as_json else summary(answer))
    if error is not None:
        lines.line(f"cuzktui: {error}")
        return error.exit_code
    if answer["error"]:
        lines.line(f"cuzktui: {answer['error']}")
    if answer["outcome"] == Outcome.CANCELLED.value:
        return 130
    return 0 if answer["verified"] else 1


def _wait_for_prover(session: Session, received: Received) -> None:
    """Waits until the collector hears the prover, so that no event of the job is missed."""
    heard = received.wait(
        lambda e: isinstance(e, wire.ProcessEnded) or (isinstance(e, wire.SourceChanged) and e.source == "prover"),
        START_PATIENCE_S,
    )
    if isinstance(heard, wire.ProcessEnded):
        raise ProverDied(heard, session.last_words())
    if heard is None:
        raise ProverUnreachable(f"no prover answers at {session.address}")


def _settle(received: Received, job_id: str, ended_ns: int, begin: int) -> None:
    """Waits for what belongs to the job after its reply: late events and a release in the background."""
    received.wait(lambda e: e.t_ns > ended_ns + SETTLE_NS, 2 * SETTLE_NS / 1e9, begin)
    deadline = time.monotonic() + RELEASE_PATIENCE_S
    while time.monotonic() < deadline:
        seen = len(received.events)
        if not _held(received.events[begin:], job_id):
            break
        if received.wait(lambda e: isinstance(e, wire.BufferReleased | wire.ProcessEnded), 1.0, seen) is None:
            break
    # The fall of memory after the last release belongs to the picture too.
    end_ns = now() + SETTLE_NS
    received.wait(lambda e: e.t_ns > end_ns, 2 * SETTLE_NS / 1e9, len(received.events))


def _held(events: list[wire.Event], job_id: str) -> set[int]:
    """Buffers of a job that were not given back."""
    held: set[int] = set()
    for event in events:
        if isinstance(event, wire.BufferAllocated) and event.job_id == job_id:
            held.add(event.buffer_id)
        elif isinstance(event, wire.BufferReleased | wire.BufferLeaked):
            held.discard(event.buffer_id)
    return held


def _answer(events: list[wire.Event], job_id: str, request: Request, error: ProverError | None) -> dict[str, Any]:
    """The object that `--json` prints."""
    answer: dict[str, Any] = {
        "verified": False, "proof_hex": "", "circuit": request.circuit, "num_circuits": request.num_circuits,
        "policy": request.policy, "outcome": Outcome.FAILED.value, "error": str(error) if error else "", "stages": {},
    }  # fmt: skip
    known = job_id or next((e.job_id for e in reversed(events) if isinstance(e, wire.JobSubmitted)), "")
    if known:
        from cuzktui.analysis import analyse_job

        report = analyse_job(events, known)
        figures = report.as_dict()
        if job_id:
            # From request to reply by the events' own times: the parts are checked against it, not against their sum.
            figures["total_ms"] = round(report.total_ms, 3)
        answer |= figures
    if error is not None:
        answer |= {"error": str(error), "outcome": answer.get("outcome") or Outcome.FAILED.value}
    if isinstance(error, ProverDied):
        ended = error.ended
        answer["died"] = {
            "what": "prover", "pid": ended.pid, "signal": ended.signal, "exit_code": ended.exit_code,
            "reason": ended.reason, "stage": ended.stage, "t_ns": ended.t_ns,
        }  # fmt: skip
    return answer


def _recording_error(events: list[wire.Event]) -> str:
    """Why the recording is not whole; empty when it is."""
    told = (e.text for e in events if isinstance(e, wire.Notice) and e.level == "error")
    return next((text for text in told if text.startswith(("recording stopped", "no recording"))), "")


def summary(answer: dict[str, Any]) -> str:
    """The answer for a reader."""
    if not answer["verified"]:
        return f"{answer['circuit']} x {answer['num_circuits']}: not proved: {answer['error'] or answer['outcome']}"
    ms = {name: answer.get(f"{name}_ms") or 0.0 for name in ("total", "inner", "outer", "gap", "synth", "verify")}
    proof = answer["proof_hex"]
    lines = [
        f"proved and verified   {answer['circuit']} x {answer['num_circuits']}, policy {answer['policy']}",
        f"total                 {ms['total']:.0f} ms: synthesis {ms['synth']:.0f}, prove {ms['outer']:.0f}, "
        f"verify {ms['verify']:.0f}",
        f"gap                   {ms['gap']:.1f} ms of {ms['outer']:.0f} ms after the last computation, "
        f"{_percent(answer.get('gap_explained_percent'))} explained by release",
        f"memory                peak {_gb(answer.get('peak_rss_bytes'))}, predicted "
        f"{_gb(answer.get('peak_predicted_bytes'))}",
        f"finding               {answer.get('finding') or '–'}",
        f"proof                 {proof[:48]}… ({len(proof) // 2} bytes)",
    ]
    if answer.get("recording") and not answer.get("recording_error"):
        lines.append(f"recording             {answer['recording']}")
    return "\n".join(lines)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} %"


def _gb(value: float | None) -> str:
    return "–" if value is None else f"{value / 1e9:.2f} GB"
