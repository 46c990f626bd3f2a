"""The kernel's log is read for one process only, and a log that may not be read says nothing."""

from __future__ import annotations

import os
from pathlib import Path

from cuzktui.collector.exits import Exit
from cuzktui.collector.kernel_log import kill_lines

LOG = """\
6,100,1,-;Linux version 6.1
4,101,2,-;oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/a,task=python,pid=41,uid=0
 SUBSYSTEM=memory
3,102,3,-;Memory cgroup out of memory: Killed process 41 (python) total-vm:99kB, anon-rss:88kB
3,103,4,-;Out of memory: Killed process 412 (node) total-vm:41kB
"""


def test_only_lines_of_a_kill_of_this_process_are_taken(tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    log.write_text(LOG)
    assert [line.split(":")[0] for line in kill_lines(41, str(log))] == ["oom-kill", "Memory cgroup out of memory"]
    assert kill_lines(4, str(log)) == []


def test_a_log_that_may_not_be_read_says_nothing(tmp_path: Path) -> None:
    assert kill_lines(41, str(tmp_path / "absent")) == []
    assert kill_lines(41, str(tmp_path)) == []


def test_reading_ends_with_the_log_and_leaves_no_descriptor(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    (tmp_path / "kmsg").write_bytes(b"\xff\xfe no separator\n" * 1000)
    assert kill_lines(1, str(tmp_path / "kmsg")) == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_kernels_word_decides_over_the_count() -> None:
    assert Exit(signal=9).reason(0, in_kernel_log=True).startswith("killed by the kernel for memory")
    assert Exit(signal=9).reason(0) == "killed by signal 9 (SIGKILL)"
    assert Exit(signal=15).reason(3, in_kernel_log=True) == "killed by signal 15 (SIGTERM)"
