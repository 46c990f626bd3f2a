"""A fall of one process speeds up the readings of that one; a release that was announced those of all."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from cuzktui.collector.memory import MemorySampler
from prover import wire
from prover.run import now

FALLER = """
import mmap, sys
for line in sys.stdin:
    held = mmap.mmap(-1, 64 << 20)
    for at in range(0, 64 << 20, 4096): held[at] = 1
    held.close()
    print("done", flush=True)
"""


@pytest.fixture
def faller() -> Iterator[subprocess.Popen[str]]:
    command, pipe = [sys.executable, "-c", FALLER], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as child:
        yield child
        assert child.stdin is not None
        child.stdin.close()


def rates(child: subprocess.Popen[str], announced: bool) -> tuple[int, int]:
    """Readings of the falling process and of this one while the first falls again and again for half a second."""
    events: list[wire.Event] = []
    sampler = MemorySampler(events.append)
    sampler.start()
    sampler.watch(child.pid)
    sampler.watch(os.getpid())
    assert child.stdin is not None and child.stdout is not None
    if announced:
        sampler.hot(now() + 5_000_000_000)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        child.stdin.write("\n")
        child.stdin.flush()
        child.stdout.readline()
    sampler.stop()
    read = [event.pid for event in events if isinstance(event, wire.MemSample)]
    return read.count(child.pid), read.count(os.getpid())


def test_a_fall_that_nobody_announced_speeds_up_its_own_readings_only(faller: subprocess.Popen[str]) -> None:
    falling, still = rates(faller, announced=False)
    assert still >= 5 and falling > 1.5 * still


def test_an_announced_release_speeds_up_all(faller: subprocess.Popen[str]) -> None:
    falling, still = rates(faller, announced=True)
    assert still > 0.8 * falling
