"""Chunks of one pass run on a few threads; between two of them progress is reported and cancellation is heard.

The chunks are compiled code that holds no GIL, so threads of one process suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

Progress = Callable[[int], None]
"""Told how much was done since the last call."""
Check = Callable[[], None]
"""Raises to stop the work."""


def run_chunks(
    chunks: Sequence[Callable[[], int]], threads: int, progress: Progress | None, check: Check | None
) -> None:
    """Runs every chunk; each returns how much it did. Callbacks run in the calling thread.

    Raises:
        whatever a chunk or `check` raises; chunks not yet begun are then dropped, running ones awaited.
    """
    if threads <= 1 or len(chunks) <= 1:
        for chunk in chunks:
            if check is not None:
                check()
            done = chunk()
            if progress is not None:
                progress(done)
        return
    todo = iter(chunks)
    running: set[Future[int]] = set()
    with ThreadPoolExecutor(threads) as pool:
        for chunk in todo:
            if check is not None:
                check()
            running.add(pool.submit(chunk))
            if len(running) > threads:
                running = _collect(running, progress)
        while running:
            running = _collect(running, progress)
            if check is not None:
                check()


def _collect(running: set[Future[int]], progress: Progress | None) -> set[Future[int]]:
    finished, pending = wait(running, return_when=FIRST_COMPLETED)
    for future in finished:
        done = future.result()
        if progress is not None:
            progress(done)
    return pending
