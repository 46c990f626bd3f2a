"""Which page size the kernel granted each buffer is read back once, at the plateau; never during a release.

Reading smaps walks the page tables (about 8 ms a GiB) and takes the mmap lock for reading, so this runs once a job on a
thread of its own, while the computation is busy elsewhere. Of its tens of thousands of lines only those of areas that
hold a buffer are taken apart: the interpreter belongs to the thread that launches kernels.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from pathlib import Path

from prover import wire
from prover.arena import Arena
from prover.run import Run, now

LAST_LINE = b"\nVmFlags:"
"""With which smaps ends its words about an area."""
_AREA = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) ")
_RESIDENT, _HUGE = (re.compile(rb"\n%s: +(\d+) kB" % name) for name in (b"Rss", b"AnonHugePages"))


def report_pages(arena: Arena, run: Run) -> None:
    """Emits BufferTouched for every live buffer of the arena."""
    buffers = arena.live_buffers()
    areas = areas_of([buffer.address for buffer in buffers])
    for buffer in buffers:
        for begin, end, resident_bytes, huge_bytes in areas:
            if begin <= buffer.address < end:
                share = min(1.0, buffer.size_bytes / (end - begin))
                run.emit(
                    wire.BufferTouched(
                        t_ns=now(), buffer_id=buffer.buffer_id, resident_bytes=int(resident_bytes * share),
                        huge_bytes=int(huge_bytes * share),
                    )
                )  # fmt: skip


def areas_of(addresses: list[int]) -> list[tuple[int, int, int, int]]:
    """(begin, end, resident bytes, huge bytes) of every area of this process that holds one of the addresses.

    Neighbours with equal flags are one area. Empty where the kernel does not tell.
    """
    try:
        told = Path("/proc/self/smaps").read_bytes() if addresses else b""
    except OSError:
        return []
    wanted = sorted(addresses)
    areas = []
    at = 0
    while head := _AREA.match(told, at):
        end_of_area = told.find(LAST_LINE, at)
        if end_of_area < 0:
            break
        begin, end = int(head[1], 16), int(head[2], 16)
        first = bisect_left(wanted, begin)
        if first < len(wanted) and wanted[first] < end:
            resident, huge = (pattern.search(told, at, end_of_area) for pattern in (_RESIDENT, _HUGE))
            areas.append((begin, end, _bytes(resident), _bytes(huge)))
        at = told.find(b"\n", end_of_area + 1) + 1
    return areas


def _bytes(size: re.Match[bytes] | None) -> int:
    return int(size[1]) * 1024 if size else 0
