"""A program under observation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuzktui.collector.memory import MemorySampler

PROGRAM = Path(__file__).with_name("memory_program.py")


class Program:
    """The memory program and its answers."""

    def __init__(self) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self.popen.pid

    def order(self, text: str) -> tuple[int, int]:
        """Carries out one order; (begin, end) in ns."""
        self.send(text)
        return self.answer()

    def send(self, text: str) -> None:
        self.popen.stdin.write(text + "\n")
        self.popen.stdin.flush()

    def answer(self) -> tuple[int, int]:
        begin, end = self.popen.stdout.readline().split()
        return int(begin), int(end)

    def close(self) -> None:
        self.popen.kill()
        self.popen.wait()
        self.popen.stdin.close()
        self.popen.stdout.close()


@pytest.fixture
def program() -> Iterator[Program]:
    started = Program()
    yield started
    started.close()


@pytest.fixture
def sampler(events):
    started = MemorySampler(events.put)
    started.start()
    yield started
    started.stop()
