"""A session goes on whatever is killed, says what it lost, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile

import pytest
from process_support import is_gone

from cuzktui.collector.reading import read_recording
from cuzktui.sources import session as module
from cuzktui.sources.folder import PREFIX, make_folder
from cuzktui.sources.session import Session, SessionSpec
from prover import wire
from prover.errors import BadRequest
from prover.wire import Outcome, Policy, Stage

SLEEPER = (sys.executable, "-c", "import sys; sys.stdin.read()")
CPU = ("--backend", "cpu")


@pytest.fixture
def target():
    """A foreign process."""
    process = subprocess.Popen(SLEEPER, stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()
    process.stdin.close()


@pytest.fixture
def start(events):
    sessions: list[Session] = []

    def begin(**spec) -> Session:
        sessions.append(Session(SessionSpec(**spec)))
        sessions[-1].start(events.put)
        return sessions[-1]

    yield begin
    for session in sessions:
        session.stop()


def of(kind: type, **fields):
    return lambda e: isinstance(e, kind) and all(getattr(e, name) == value for name, value in fields.items())


def test_a_foreign_process_is_watched_and_nothing_is_left_when_the_session_ends(start, events, target):
    session = start(start_prover=False, pids=(target.pid,))
    assert isinstance(events.wait(lambda e: True), wire.Hello)
    events.wait(of(wire.MemSample, pid=target.pid))
    assert not session.owns_prover and not session.can_submit and str(target.pid) in session.title
    collector = session.collector_pid
    session.stop()
    assert is_gone(collector) and not is_gone(target.pid, 0)
    seen = len(events.all)
    session.stop()
    assert len(events.all) == seen


def test_a_prover_that_is_not_ours_cannot_be_restarted(start, target):
    with pytest.raises(BadRequest, match="did not start"):
        start(start_prover=False, pids=(target.pid,)).restart_prover()


def test_a_killed_collector_is_replaced_and_what_is_missing_is_said_and_recorded(start, events, target, tmp_path):
    path = tmp_path / "run.jsonl"
    session = start(start_prover=False, pids=(target.pid,), record=path)
    last = events.wait(of(wire.CpuSample))
    killed = session.collector_pid
    os.kill(killed, signal.SIGKILL)
    lost = events.wait(of(wire.SourceChanged, source="collector", alive=False))
    assert str(killed) in lost.detail and "SIGKILL" in lost.detail
    hello = events.wait(of(wire.Hello, segment=1))
    notice = events.wait(lambda e: isinstance(e, wire.Notice) and "missing" in e.text)
    assert "segment 1" in notice.text and notice.level == "warning"
    begin = len(events.all)
    events.wait(of(wire.MemSample), begin=begin)
    session.stop()
    recorded = list(read_recording(path))
    assert last in recorded and hello in recorded and notice in recorded
    assert [e.segment for e in recorded if isinstance(e, wire.Hello)] == [0, 1]
    assert not any(last.t_ns + 10**9 < e.t_ns < hello.t_ns for e in recorded if isinstance(e, wire.MemSample))


def test_a_collector_that_cannot_live_is_given_up_with_its_last_words(start, events, monkeypatch):
    dying = [sys.executable, "-c", "import sys; sys.exit('no such module')"]
    monkeypatch.setattr(module, "python_module", lambda *_: dying)
    start(start_prover=False, pids=())
    notice = events.wait(of(wire.Notice, level="error"))
    assert "not started again" in notice.text and "no such module" in notice.text
    assert len(events.of(wire.SourceChanged)) == module.MAX_SHORT_LIVES


def test_a_collector_that_crashed_in_a_library_is_followed_by_one_without_the_driver(start, events, target):
    session = start(start_prover=False, pids=(target.pid,))
    assert "switched off" not in events.wait(of(wire.Hello)).gpu_note
    os.kill(session.collector_pid, signal.SIGSEGV)
    assert "switched off" in events.wait(of(wire.Hello, segment=1)).gpu_note
    os.kill(session.collector_pid, signal.SIGKILL)
    assert "switched off" in events.wait(of(wire.Hello, segment=2)).gpu_note
    events.wait(of(wire.MemSample, pid=target.pid))


def test_the_folder_of_a_killed_session_is_swept_by_the_next_and_others_are_left(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = subprocess.Popen(["true"])
    dead.wait()
    for name in (f"{PREFIX}{dead.pid}-a", f"{PREFIX}{os.getpid()}-b", "cuzktui-kept-c", f"{PREFIX}x-d"):
        (tmp_path / name).mkdir()
    made = make_folder()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {f"{PREFIX}{os.getpid()}-b", "cuzktui-kept-c", f"{PREFIX}x-d", made.name}
    assert made.stat().st_mode & 0o777 == 0o700


def test_a_command_is_watched_from_its_first_moment_to_its_exit(start, events):
    code = "import mmap; m = mmap.mmap(-1, 1 << 26, flags=34); m.write(b'x' * (1 << 26)); raise SystemExit(3)"
    session = start(start_prover=False, command=(sys.executable, "-c", code))
    end = events.wait(of(wire.ProcessEnded))
    assert end.exit_code == 3 and session.title.endswith("python")
    assert events.wait(of(wire.ProcessSeen, pid=end.pid)).role == "foreign"


def test_a_command_that_does_not_exist_is_refused(start):
    with pytest.raises(BadRequest, match="cannot be started"):
        start(start_prover=False, command=("/no/such/program",))


def test_a_marker_of_the_users_is_in_the_stream(start, events, target):
    session = start(start_prover=False, pids=(target.pid,))
    events.wait(of(wire.Hello))
    session.mark("look here")
    assert events.wait(of(wire.Marker, text="look here")).by == "user"


OWNER = """
import sys, threading
from cuzktui.sources.session import Session, SessionSpec
session = Session(SessionSpec(prover_arguments=("--backend", "cpu")))
heard = threading.Event()
session.start(lambda event: heard.set() if type(event).__name__ == "State" else None)
heard.wait(60)
print(session.prover_pid, session.collector_pid, flush=True)
threading.Event().wait()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP, signal.SIGTERM])
def test_an_owner_that_is_killed_leaves_no_process_behind(number):
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    pids = [int(word) for word in owner.stdout.readline().split()]
    assert len(pids) == 2
    owner.send_signal(number)
    owner.wait()
    owner.stdout.close()
    assert all(is_gone(pid) for pid in pids)


def test_a_job_is_proved_and_the_killed_prover_is_named_with_its_stage_and_started_again(start, events, tmp_path):
    path = tmp_path / "run.jsonl"
    session = start(prover_arguments=CPU, record=path)
    job_id = session.control.submit("cubic", 1, Policy.SYNC_4K)
    assert events.wait(of(wire.JobEnded, job_id=job_id)).outcome is Outcome.PROVED

    doomed = session.control.submit("sha256-chain:1", 2)
    events.wait(of(wire.StageBegan, job_id=doomed, stage=Stage.MSM_H))
    killed = session.prover_pid
    os.kill(killed, signal.SIGKILL)
    end = events.wait(of(wire.ProcessEnded, pid=killed))
    assert end.signal == signal.SIGKILL and end.stage.startswith("prove")
    assert "signal 9" in end.reason
    assert events.wait(of(wire.SourceChanged, source="prover", alive=False))
    assert end in list(read_recording(path)) or session.collector_pid

    session.restart_prover()
    begin = len(events.all)
    assert session.prover_pid != killed
    again = session.control.submit("cubic", 1)
    assert events.wait(of(wire.JobEnded, job_id=again), begin=begin).verified
    events.wait(of(wire.MemSample, pid=session.prover_pid), begin=begin)
    pids = (session.prover_pid, session.collector_pid)
    session.stop()
    assert all(is_gone(pid) for pid in pids)
    recorded = list(read_recording(path))
    assert end in recorded and sum(isinstance(e, wire.JobEnded) for e in recorded) >= 2
    assert [e.t_ns for e in recorded if isinstance(e, wire.ProcessSeen)]


def test_requests_are_answered_and_refusals_are_one_sentence(start, events):
    session = start(prover_arguments=CPU)
    control = session.control
    unknown = control.submit("nonsense:3")
    refused = events.wait(of(wire.JobEnded, job_id=unknown))
    assert refused.outcome is Outcome.FAILED and "nonsense" in refused.error
    with pytest.raises(BadRequest, match="policy"):
        control.submit("cubic", 1, "sideways")
    assert any("sha256-chain" in usage for usage in control.list_circuits())
    assert control.set_policy("async-huge") is Policy.ASYNC_HUGE
    events.wait(of(wire.PolicyChanged, policy=Policy.ASYNC_HUGE))
    with pytest.raises(BadRequest, match="sideways"):
        control.set_policy("sideways")
    assert control.cancel("no-such-job") is False
    job_id = control.submit("sha256-chain:1", 64)
    events.wait(of(wire.JobSubmitted, job_id=job_id))
    assert control.cancel(job_id) is True
    assert events.wait(of(wire.JobEnded, job_id=job_id)).outcome is Outcome.CANCELLED
    assert control.shut_down() == 0
    end = events.wait(of(wire.ProcessEnded))
    assert end.exit_code == 0
