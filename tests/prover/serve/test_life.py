"""How a prover begins and ends: its socket, its owner, signals, and what a violent death leaves."""

from __future__ import annotations

import os
import select
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prover import wire
from prover.proto import console_pb2, proving_pb2

from .daemon import Daemon, command, environment


@pytest.fixture
def folder():
    import shutil
    import tempfile

    path = Path(tempfile.mkdtemp(prefix="cz"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def refused(*arguments: str) -> str:
    """Exit code 2, and one line on stderr, which is returned."""
    done = subprocess.run(
        command(*arguments), check=False, capture_output=True, text=True, env=environment(), timeout=30
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("cuzk-prover: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_the_socket_answers_before_anything_heavy_is_loaded_and_is_for_its_owner_only(folder):
    daemon = Daemon(folder=folder / "new")
    assert daemon.engine.GetStatus(proving_pb2.GetStatusRequest(), timeout=5).uptime_seconds < 5
    assert stat.S_IMODE(daemon.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(daemon.socket.parent.stat().st_mode) == 0o700
    assert daemon.answering_after_s < 3.0
    status, said = daemon.end()
    assert (status, daemon.socket.exists()) == (0, False)
    assert f"ready, serving on unix://{daemon.socket}" in said and "ended: received SIGTERM" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_watches_waits_and_process_with_status_0(number):
    daemon = Daemon(backend="reference")
    watch = daemon.events()
    assert isinstance(next(watch), wire.Hello) and isinstance(next(watch), wire.State)
    daemon.process.send_signal(number)
    texts = [event.text for event in watch if isinstance(event, wire.Notice)]
    assert f"prover is ending: received {number.name}" in texts
    assert daemon.wait()[0] == 0


def test_a_prover_that_outlives_its_terminal_ignores_the_hang_up():
    daemon = Daemon("--keep-prover", "--owner-pid", "1", backend="reference")
    daemon.process.send_signal(signal.SIGHUP)
    assert daemon.engine.GetStatus(proving_pb2.GetStatusRequest(), timeout=10) is not None
    assert daemon.end()[0] == 0


def test_shutdown_by_request_is_refused_while_there_are_jobs_and_done_when_there_are_none():
    daemon = Daemon(backend="reference")
    reply = daemon.console.Shutdown(console_pb2.ShutdownRequest(), timeout=10)
    assert (reply.accepted, reply.jobs_of_others) == (True, 0)
    assert daemon.wait()[0] == 0


def test_a_prover_ends_with_its_owner(folder):
    arguments = command("--socket", str(folder / "p.sock"), "--backend", "reference")
    program = (
        "import os, subprocess, sys, time\n"
        f"p = subprocess.Popen({arguments!r} + ['--owner-pid', str(os.getpid())], start_new_session=True)\n"
        "print(p.pid, flush=True)\n"
        "time.sleep(120)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment())
    prover_pid = int(owner.stdout.readline())
    descriptor = os.pidfd_open(prover_pid)
    try:
        ready = owner.stdout.readline()
        assert "ready" in ready
        owner.kill()
        assert select.select([descriptor], [], [], 20)[0], "the prover outlived its owner"
    finally:
        os.close(descriptor)
        owner.kill()
        owner.wait()
        owner.stdout.close()
    assert not (folder / "p.sock").exists()


def test_an_owner_that_does_not_exist_is_refused(folder):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    text = refused("--socket", str(folder / "p.sock"), "--owner-pid", str(ended.pid))
    assert f"owner process {ended.pid} does not exist" in text


def test_kill_9_leaves_no_process_and_its_socket_is_taken_over(folder):
    first = Daemon(folder=folder, backend="reference")
    first.channel.close()
    os.kill(first.pid, signal.SIGKILL)
    first.process.wait()
    first.process.stdout.close()
    assert members_of(first.pid) == []
    assert first.socket.exists()
    second = Daemon(folder=folder, backend="reference")
    assert second.engine.GetStatus(proving_pb2.GetStatusRequest(), timeout=10) is not None
    assert second.end()[0] == 0


def test_a_signal_during_a_job_cancels_it_and_tells_who_waits():
    daemon = Daemon()
    job_id = daemon.submit("cubic", num_circuits=1024)
    watch = daemon.events()
    for event in watch:
        if isinstance(event, wire.StageBegan) and event.stage == "witness":
            break
    waiting = daemon.engine.AwaitProof.future(proving_pb2.AwaitProofRequest(job_id=job_id), timeout=60)
    daemon.process.send_signal(signal.SIGTERM)
    began_s = time.monotonic()
    rest = list(watch)
    end = next(event for event in rest if isinstance(event, wire.JobEnded))
    assert (end.job_id, end.outcome) == (job_id, wire.Outcome.CANCELLED)
    assert waiting.result().status == proving_pb2.AwaitProofResponse.CANCELLED
    status, said = daemon.wait()
    assert status == 0, said
    assert time.monotonic() - began_s < 10


def test_kill_9_during_a_job_leaves_no_process():
    daemon = Daemon()
    daemon.submit("cubic", num_circuits=1024)
    for event in daemon.events():
        if isinstance(event, wire.StageBegan) and event.stage == "witness":
            break
    os.kill(daemon.pid, signal.SIGKILL)
    assert daemon.wait()[0] == -signal.SIGKILL
    assert members_of(daemon.pid) == []


def members_of(group: int) -> list[int]:
    """Living processes of a process group."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def test_the_socket_of_a_living_prover_is_not_taken():
    living = Daemon(backend="reference")
    assert "is served by a living prover" in refused("--socket", str(living.socket))
    assert living.engine.GetStatus(proving_pb2.GetStatusRequest(), timeout=10) is not None
    assert living.end()[0] == 0


def test_what_is_not_a_socket_is_not_removed(folder):
    path = folder / "precious"
    path.write_text("data")
    assert "is not a socket" in refused("--socket", str(path))
    assert path.read_text() == "data"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--listen", "127.0.0.1:PORT"), "cannot listen on 127.0.0.1:PORT"),
        (("--status-listen", "127.0.0.1:PORT"), "--status-listen 127.0.0.1:PORT"),
        (("--listen", "nonsense"), "'nonsense' is not host:port"),
        (("--pool-bytes", "8 parsecs"), "size '8 parsecs'"),
        (("--threads", "-1"), "--threads -1"),
        (("--policy", "sometimes"), "invalid choice: 'sometimes'"),
        (("--backend", "tpu"), "invalid choice: 'tpu'"),
        (("--gpus", "one"), "--gpus 'one'"),
        (("--gpus", "1", "--backend", "cpu"), "--gpus 1 and --backend cpu"),
        (("--owner-pid", "1"), "owner pid 1"),
        (("--socket", "/tmp/" + "x" * 120), "longer than 107 bytes"),
        (("--socket", "/proc/nowhere/p.sock"), "socket folder /proc/nowhere"),
    ],
)
def test_an_address_or_option_that_cannot_be_used_is_one_line_and_code_2(folder, arguments, text):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        given = [a.replace("PORT", port) for a in arguments]
        base = [] if "--socket" in given else ["--socket", str(folder / "p.sock")]
        began_s = time.monotonic()
        assert text.replace("PORT", port) in refused(*base, *given)
        assert time.monotonic() - began_s < 10
    assert not (folder / "p.sock").exists()
