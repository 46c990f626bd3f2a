"""A stranger that plants one cause after another and says on stdout when each began and ended; nothing else helps.

`python planted.py SCENE...` prints `READY`, waits for a line on stdin, then for each scene: computes, rests or waits
as a border, does the scene, borders again, and prints `CAUSE begin_ns end_ns bytes` of CLOCK_MONOTONIC for each cause.
A scene is a cause, causes at once in threads of their own (`cpu_spin+munmap_4k`), or steps back to back
(`sleep,gc_pause`).
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable

import numpy as np

MS = 1_000_000
Act = Callable[[], object]
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.malloc.restype = ctypes.c_void_p
LIBC.malloc.argtypes = [ctypes.c_size_t]
HEAP = ctypes.PyDLL(None)
"""Calls that keep the GIL: a thread that gave it up for every small block would wait for it as often."""
HEAP.free.argtypes = [ctypes.c_void_p]


def compute(length_ms: int) -> None:
    """User time only: the arrays are small and warm."""
    end_ns = time.monotonic_ns() + length_ms * MS
    values = np.arange(4096, dtype=np.uint64)
    while time.monotonic_ns() < end_ns:
        values *= np.uint64(3)


def touched(size_bytes: int, advice: int) -> mmap.mmap:
    mapping = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    mapping.madvise(advice)
    np.frombuffer(mapping, np.uint8)[::4096] = 1
    return mapping


def munmap_4k(size_bytes: int):
    mapping = touched(size_bytes, mmap.MADV_NOHUGEPAGE)
    return mapping.close, size_bytes


def munmap_huge(size_bytes: int):
    mapping = touched(size_bytes, mmap.MADV_HUGEPAGE)
    return mapping.close, size_bytes


def free_small(size_bytes: int):
    """Blocks of 2 kB, freed in the order in which they were taken, as a destructor of a list does."""
    count = size_bytes // 2048
    blocks = (ctypes.c_void_p * count)()
    for k in range(count):
        blocks[k] = LIBC.malloc(2032)
        ctypes.memset(blocks[k], 1, 2032)

    def act() -> None:
        free = HEAP.free
        for block in blocks:
            free(block)

    return act, 0


def malloc_trim(size_bytes: int):
    """Free blocks below one that keeps the top of the heap, then malloc_trim: madvise of each hole."""
    count = size_bytes // 65536
    blocks = [LIBC.malloc(65000) for _ in range(count)]
    for block in blocks:
        ctypes.memset(block, 1, 65000)
    for k, block in enumerate(blocks):
        if k % 8:
            HEAP.free(block)
    return lambda: LIBC.malloc_trim(0), count * 65536 * 7 // 8


def fault_storm(size_bytes: int):
    mapping = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    mapping.madvise(mmap.MADV_NOHUGEPAGE)
    kept.append(mapping)

    def act() -> None:
        np.frombuffer(mapping, np.uint8)[::4096] = 1

    return act, size_bytes


def sleep(length_ms: int):
    return lambda: time.sleep(length_ms / 1000), 0


def lock_wait(length_ms: int):
    lock = threading.Lock()
    lock.acquire()

    def act() -> None:
        threading.Timer(length_ms / 1000, lock.release).start()
        lock.acquire()

    return act, 0


def cpu_spin(length_ms: int):
    return lambda: compute(length_ms), 0


def disk_wait(length_ms: int):
    folder = os.environ.get("PLANTED_FOLDER") or tempfile.gettempdir()
    fd = os.open(os.path.join(folder, "planted.bin"), os.O_CREAT | os.O_RDWR | os.O_DIRECT | os.O_DSYNC, 0o600)
    block = mmap.mmap(-1, 4 << 20)

    def act() -> None:
        end_ns = time.monotonic_ns() + length_ms * MS
        while time.monotonic_ns() < end_ns:
            os.pwrite(fd, block, 0)
        os.close(fd)

    return act, 0


def gc_pause(length_ms: int):
    gc.disable()
    kept.append([[k] for k in range(300_000)])

    def act() -> None:
        end_ns = time.monotonic_ns() + length_ms * MS
        while time.monotonic_ns() < end_ns:
            gc.collect()

    return act, 0


kept: list[object] = []
GB = 1 << 30
CAUSES = {
    "munmap_4k": (munmap_4k, 3 * GB),
    "munmap_huge": (munmap_huge, 2 * GB),
    "free_small": (free_small, GB // 2),
    "malloc_trim": (malloc_trim, 3 * GB),
    "fault_storm": (fault_storm, 3 * GB // 4),
    "sleep": (sleep, 700),
    "lock_wait": (lock_wait, 600),
    "cpu_spin": (cpu_spin, 500),
    "disk_wait": (disk_wait, 800),
    "gc_pause": (gc_pause, 600),
}
BORDER_MS = 200
WAITS = ("sleep", "lock_wait", "disk_wait")


def border(names: list[str]) -> None:
    """Work beside a wait, a wait beside work."""
    if all(name in WAITS for name in names):
        compute(BORDER_MS)
    else:
        time.sleep(BORDER_MS / 1000)


def at_once(acts: dict[str, tuple[Act, int]]) -> list[tuple[str, int, int, int]]:
    """Does each act, all but the first in threads of their own; (name, begin, end, bytes) of each."""
    done = []

    def timed(name: str) -> None:
        act, size_bytes = acts[name]
        begin_ns = time.monotonic_ns()
        act()
        done.append((name, begin_ns, time.monotonic_ns(), size_bytes))

    first, *others = acts
    threads = [threading.Thread(target=timed, args=(name,)) for name in others]
    for thread in threads:
        thread.start()
    timed(first)
    for thread in threads:
        thread.join()
    return done


def main(scenes: list[str]) -> None:
    print("READY", flush=True)
    sys.stdin.readline()
    for scene in scenes:
        steps = [step.split("+") for step in scene.split(",")]
        prepared = [{name: CAUSES[name][0](CAUSES[name][1]) for name in step} for step in steps]
        compute(300)
        border(steps[0])
        done = [plant for step in prepared for plant in at_once(step)]
        border(steps[-1])
        compute(200)
        for plant in done:
            print(*plant, flush=True)
        kept.clear()
    print("DONE", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(sys.argv[1:] or list(CAUSES))
