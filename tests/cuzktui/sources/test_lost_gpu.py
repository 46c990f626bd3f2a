"""A prover that has lost its GPUs says so to whoever watches, goes on with the CPU, and is started again when asked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from process_support import is_gone

from cuzktui.collector.reading import read_recording
from cuzktui.model import store
from cuzktui.sources import session as module
from cuzktui.sources.children import python_module
from cuzktui.sources.session import Session, SessionSpec
from prover import wire
from prover.wire import Outcome, Stage

PROGRAM = Path(__file__).with_name("lost_gpu_prover.py")


@pytest.fixture
def session(events, tmp_path, monkeypatch):
    def command(name: str, *arguments: str) -> list[str]:
        return [sys.executable, str(PROGRAM), *arguments] if name == "prover" else python_module(name, *arguments)

    monkeypatch.setattr(module, "python_module", command)
    made = Session(SessionSpec(record=tmp_path / "run.jsonl"))
    made.start(events.put)
    yield made
    made.stop()


def test_a_lost_gpu_is_told_and_recorded_and_the_prover_started_again_on_request_alone(session, events):
    def ended(job_id: str, begin: int = 0) -> wire.JobEnded:
        return events.wait(lambda e: isinstance(e, wire.JobEnded) and e.job_id == job_id, begin=begin)

    def folded():
        return store.apply_all(store.empty(), list(events.all))

    assert ended(session.control.submit("cubic", 1)).verified
    assert folded().gpu_lost == "" and not folded().needs_restart
    failed = ended(session.control.submit("cubic", 1))
    assert failed.outcome is Outcome.FAILED and failed.error.startswith("cuda:0 Test is lost (cudaErrorIllegalAddress)")
    hello = events.wait(lambda e: isinstance(e, wire.Hello) and e.gpu_lost)
    assert hello.devices == [] and hello.backend == "cuda" and "restart the prover" in hello.gpu_lost
    assert folded().lost_pid == session.prover_pid and folded().needs_restart
    refused = ended(session.control.submit("cubic", 1))
    assert refused.error == hello.gpu_lost

    lost_pid = session.prover_pid
    session.restart_prover()
    assert session.prover_pid == lost_pid, "a prover that lives is not ended unasked"
    begin = len(events.all)
    session.restart_prover(lost_pid)
    assert is_gone(lost_pid) and session.prover_pid != lost_pid
    end = events.wait(lambda e: isinstance(e, wire.ProcessEnded) and e.pid == lost_pid, begin=begin)
    assert end.exit_code == 0
    new_pid = session.prover_pid
    session.restart_prover(lost_pid)
    assert session.prover_pid == new_pid, "asked twice, ended once"
    again = ended(session.control.submit("cubic", 1), begin)
    assert again.outcome is Outcome.PROVED and again.verified
    events.wait(lambda e: isinstance(e, wire.Hello) and e.pid == new_pid and e.devices == ["cuda:0 Test"], begin=begin)
    assert folded().gpu_lost == "" and not folded().needs_restart
    session.stop()

    replayed, told = store.empty(is_replay=True), False
    for event in read_recording(session.recording):
        told = told or bool(replayed.gpu_lost)
        if isinstance(event, wire.JobEnded) and event.job_id in (failed.job_id, refused.job_id):
            assert replayed.gpu_lost == hello.gpu_lost, "said before the job ends"
        replayed = store.apply(replayed, event)
    assert told and replayed.gpu_lost == ""
    stages = [e.stage for e in events.all if isinstance(e, wire.StageBegan) and e.job_id == refused.job_id]
    assert set(stages) == {Stage.QUEUE, Stage.SETUP}
