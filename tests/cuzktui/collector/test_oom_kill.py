"""A process that the kernel kills for memory is said to be, from the kernel's own word, on a real kill."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cuzktui.analysis import analyse
from cuzktui.analysis.postmortem import post_mortem
from cuzktui.collector.collect import Collector, Options
from prover import wire

LIMIT_BYTES = 120_000_000
GREEDY = """
import sys, time
open(sys.argv[1] + "/cgroup.procs", "w").write("0")
held = []
while True:
    held.append(b"x" * 2_000_000)
    time.sleep(0.005)
"""


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A memory cgroup below our own with a limit; skipped where none can be made."""
    group, limit = None, ""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            group, limit = Path("/sys/fs/cgroup/memory" + path), "memory.limit_in_bytes"
        elif not controllers and group is None:
            group, limit = Path("/sys/fs/cgroup" + path), "memory.max"
    made = group / f"cuzktui-test-{os.getpid()}" if group is not None else None
    try:
        assert made is not None
        made.mkdir()
        (made / limit).write_text(str(LIMIT_BYTES))
    except (OSError, AssertionError):
        if made is not None:
            with suppress(OSError):
                made.rmdir()
        pytest.skip("no memory cgroup can be made here")
    yield made
    made.rmdir()


def test_a_real_kill_for_memory_is_recognised(small_group: Path) -> None:
    events: list[wire.Event] = []
    command = (sys.executable, "-c", GREEDY, str(small_group))
    Collector(Options(command=command, stream=False, until_ended=True, gpu=False), events.append).run()
    told = post_mortem(analyse(events))
    assert told is not None and told.signal == 9
    # Without the right to read the kernel's log, and outside the cgroup that counts, only the signal can be known.
    if told.kernel_lines or "for memory" in told.reason:
        assert told.is_kill_for_memory and "killed by the kernel for memory" in told.verdict()
        assert told.last_bytes is not None and told.last_bytes > 0.7 * LIMIT_BYTES
    else:
        assert "the kernel counted no kill for memory" in told.verdict()
