"""Which page size the kernel granted each buffer is read back once, at the plateau; never during a release.

Reading smaps walks the page tables (about 8 ms a GiB) and takes the mmap lock for reading, so this runs once a job on a
thread of its own, while the computation is busy elsewhere.
"""

from __future__ import annotations

from pathlib import Path

from prover import wire
from prover.arena import Arena
from prover.run import Run, now


def report_pages(arena: Arena, run: Run) -> None:
    """Emits BufferTouched for every live buffer of the arena."""
    areas = _areas()
    for buffer in arena.live_buffers():
        for begin, end, resident_bytes, huge_bytes in areas:
            if begin <= buffer.address < end:
                share = min(1.0, buffer.size_bytes / (end - begin))
                run.emit(
                    wire.BufferTouched(
                        t_ns=now(), buffer_id=buffer.buffer_id, resident_bytes=int(resident_bytes * share),
                        huge_bytes=int(huge_bytes * share),
                    )
                )  # fmt: skip


def _areas() -> list[tuple[int, int, int, int]]:
    """(begin, end, resident bytes, huge bytes) of every area; neighbours with equal flags are one."""
    areas = []
    begin = end = resident_bytes = 0
    try:
        lines = Path("/proc/self/smaps").read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        key, _, rest = line.partition(" ")
        if key == "Rss:":
            resident_bytes = int(rest.split()[0]) * 1024
        elif key == "AnonHugePages:":
            areas.append((begin, end, resident_bytes, int(rest.split()[0]) * 1024))
        elif not key.endswith(":") and "-" in key:
            first, _, last = key.partition("-")
            begin, end = int(first, 16), int(last, 16)
    return areas
