"""A program under observation, and a place to wait for events without sleeping."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prover import wire

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


class Events:
    """Takes events from any thread and waits for the one that is wanted."""

    def __init__(self) -> None:
        self.all: list[wire.Event] = []
        self._new = threading.Condition()

    def put(self, event: wire.Event) -> None:
        with self._new:
            self.all.append(event)
            self._new.notify_all()

    def wait(self, wanted: Callable[[wire.Event], bool], timeout_s: float = 20.0) -> wire.Event:
        deadline, seen = time.monotonic() + timeout_s, 0
        with self._new:
            while True:
                for event in self.all[seen:]:
                    if wanted(event):
                        return event
                seen = len(self.all)
                left = deadline - time.monotonic()
                assert left > 0, f"no such event in {timeout_s} s; {seen} others came, the last: {self.all[-3:]}"
                self._new.wait(left)

    def of(self, kind: type) -> list:
        with self._new:
            return [event for event in self.all if isinstance(event, kind)]


@pytest.fixture
def events() -> Events:
    return Events()
