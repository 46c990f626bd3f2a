"""How processes end is read, also when somebody else has collected the exit status already."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from cuzktui.collector import exits
from cuzktui.collector.exits import Exit, from_wait_status, how_it_ended


def ended(code: str) -> tuple[subprocess.Popen, int]:
    """A child that has ended and whose status nobody has collected."""
    child = subprocess.Popen([sys.executable, "-c", code])
    pidfd = os.pidfd_open(child.pid)
    select.select([pidfd], [], [], 20)
    return child, pidfd


@pytest.mark.parametrize(("code", "expected"), [
    ("", Exit(exit_code=0)),
    ("raise SystemExit(7)", Exit(exit_code=7)),
    ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", Exit(signal=signal.SIGKILL)),
    ("import os; os.abort()", Exit(signal=signal.SIGABRT)),
])  # fmt: skip
def test_code_or_signal_is_read_from_a_process_nobody_has_waited_for(code, expected):
    child, pidfd = ended(code)
    assert how_it_ended(child.pid, pidfd) == expected
    child.wait()
    os.close(pidfd)


def test_a_kernel_that_keeps_the_exit_code_gives_it_after_the_parent_has_collected_it():
    child, pidfd = ended("raise SystemExit(9)")
    child.wait()
    assert how_it_ended(child.pid, pidfd) in (Exit(exit_code=9), Exit())
    os.close(pidfd)


def test_one_that_is_collected_while_it_is_read_has_ended_all_the_same(monkeypatch):
    child, pidfd = ended("raise SystemExit(9)")
    looked = os.stat
    monkeypatch.setattr(exits.os, "stat", lambda path: (looked(path), child.wait())[0])
    monkeypatch.setattr(exits, "PIDFD_GET_INFO", 0)
    assert how_it_ended(child.pid, pidfd) == Exit()
    os.close(pidfd)


@pytest.mark.parametrize(("how", "oom_kills", "words"), [
    (Exit(exit_code=0), 0, "exited with code 0"),
    (Exit(signal=11), 0, "signal 11 (SIGSEGV)"),
    (Exit(signal=9), 0, "signal 9 (SIGKILL)"),
    (Exit(signal=9), 1, "by the kernel for memory"),
    (Exit(signal=11), 1, "signal 11 (SIGSEGV)"),
    (Exit(), 0, "not readable"),
])  # fmt: skip
def test_the_reason_is_one_sentence_and_memory_is_named_only_with_evidence(how, oom_kills, words):
    assert words in how.reason(oom_kills)


def test_a_wait_status_is_split_as_the_standard_library_splits_it():
    for status in (0, 256, 3 << 8, 9, 15, 6 | 0x80):
        code = os.waitstatus_to_exitcode(status)
        expected = Exit(exit_code=code) if code >= 0 else Exit(signal=-code)
        assert from_wait_status(status) == expected
