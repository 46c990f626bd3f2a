"""All parallel work of the CPU backend is a list of independent tasks; between two of them a job can be cancelled."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

Tick = Callable[[int, int], None]
"""Called in the caller's thread with (done, total) after each task; raises to stop."""


def cpu_count() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0))


class Workers:
    """A fixed number of threads that run kernels outside the GIL.

    Args:
        threads: 1 runs everything in the caller's thread.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or cpu_count()
        self._pool = ThreadPoolExecutor(self.threads, "cpu-worker") if self.threads > 1 else None
        self._lock = threading.Lock()
        self.cpu_ns = 0
        """CPU time of all tasks that ran on other threads than their caller's."""

    def run(self, tasks: Sequence[Callable[[], object]], tick: Tick | None = None) -> None:
        """Runs every task once, in any order; returns when all are done.

        Raises:
            whatever a task or `tick` raises; tasks not yet begun are then dropped, begun ones waited for.
        """
        total = len(tasks)
        if self._pool is None or total == 1:
            for done, task in enumerate(tasks, 1):
                task()
                if tick:
                    tick(done, total)
            return
        pending = {self._pool.submit(self._timed, task) for task in tasks}
        done = 0
        try:
            while pending:
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in finished:
                    future.result()
                done += len(finished)
                if tick:
                    tick(done, total)
        finally:
            for future in pending:
                future.cancel()
            wait(pending)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)

    def _timed(self, task: Callable[[], object]) -> None:
        begin_ns = time.thread_time_ns()
        try:
            task()
        finally:
            with self._lock:
                self.cpu_ns += time.thread_time_ns() - begin_ns


def ranges(count: int, pieces: int, multiple: int = 1) -> list[tuple[int, int]]:
    """0..count cut into at most `pieces` ranges of equal length, rounded up to a multiple."""
    step = -(-count // max(1, pieces))
    step = max(multiple, -(-step // multiple) * multiple)
    return [(low, min(low + step, count)) for low in range(0, count, step)]
