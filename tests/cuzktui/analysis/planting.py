"""Runs the planting stranger under observation and scores what the analysis told against what was planted."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from watcher import sample

from cuzktui.analysis.outside import Cause, Stretch, stretches
from cuzktui.model import store
from cuzktui.model.snapshot import ProcessView
from prover import wire

MS = 1_000_000
HERE = Path(__file__).parent
ACCEPTED = {
    "munmap_4k": {Cause.RELEASING},
    "munmap_huge": {Cause.RELEASING},
    "free_small": {Cause.CPU_BUSY, Cause.RELEASING},
    "malloc_trim": {Cause.RELEASING},
    "fault_storm": {Cause.PAGE_FAULTING},
    "sleep": {Cause.SLEEPING},
    "lock_wait": {Cause.LOCK_WAIT},
    "cpu_spin": {Cause.CPU_BUSY},
    "disk_wait": {Cause.DISK_WAIT},
    "gc_pause": {Cause.CPU_BUSY},
}
"""Labels accepted for each cause, watched from outside as the same user."""
GIVES_BACK = ("munmap_4k", "munmap_huge", "malloc_trim", "free_small")
WAITS = ("sleep", "lock_wait", "disk_wait")


@dataclass(frozen=True)
class Plant:
    name: str
    begin_ns: int
    end_ns: int
    size_bytes: int

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns


def watched(scenes: list[str], uid: int | None = None) -> tuple[ProcessView, list[Plant]]:
    """Runs the scenes under observation, by this process or by one of another user."""
    command = [sys.executable, str(HERE / "planted.py"), *scenes]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None and child.stdout is not None
        assert child.stdout.readline().strip() == "READY"
        events: list[wire.Event] = []
        with watching(child.pid, events) if uid is None else watching_as(uid, child.pid, events):
            child.stdin.write("\n")
            child.stdin.flush()
            lines = []
            for line in child.stdout:
                if line.strip() == "DONE":
                    break
                lines.append(line.split())
        child.stdin.close()
    view = store.apply_all(store.empty(memory_capacity=1 << 20), events).process
    assert view is not None and len(lines) == sum(len(scene.replace("+", ",").split(",")) for scene in scenes)
    return view, [Plant(name, int(begin), int(end), int(size)) for name, begin, end, size in lines]


@contextmanager
def watching(pid: int, events: list[wire.Event]) -> Iterator[None]:
    done = threading.Event()
    sampler = threading.Thread(target=sample, args=(pid, done, events))
    sampler.start()
    try:
        yield
    finally:
        done.set()
        sampler.join()


@contextmanager
def watching_as(uid: int, pid: int, events: list[wire.Event]) -> Iterator[None]:
    command = [sys.executable, str(HERE / "watcher.py"), str(pid), str(uid)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as watcher:
        assert watcher.stdin is not None and watcher.stdout is not None
        word, held = watcher.stdout.readline().split()
        assert word == b"READY" and int(held, 16) == 0, "the watcher has kept capabilities"
        try:
            yield
        finally:
            watcher.stdin.close()
            events += [event for line in watcher.stdout if (event := wire.decode(line)) is not None]


def verdict(view: ProcessView, plant: Plant, accepted: Mapping[str, set[Cause]]) -> tuple[bool, str]:
    """Whether one plant was named and measured right, and what was seen."""
    seen = stretches(view, plant.begin_ns - 150 * MS, plant.end_ns + 150 * MS)
    named = [s for s in seen if s.cause in accepted[plant.name] and overlaps(s, plant)]
    length_ns = sum(s.length_ns for s in named)
    told = f"{plant.name} {plant.length_ns / MS:.0f} ms, seen {worded(seen)}"
    if plant.name == "munmap_huge":
        fall_bytes = sum(s.fall_bytes for s in named)
        return abs(fall_bytes - plant.size_bytes) <= 0.05 * plant.size_bytes, told
    return abs(length_ns - plant.length_ns) <= max(0.05 * plant.length_ns, 20 * MS), told


def overlaps(stretch: Stretch, plant: Plant) -> bool:
    inside_ns = min(stretch.end_ns, plant.end_ns) - max(stretch.begin_ns, plant.begin_ns)
    if stretch.cause is Cause.RELEASING:
        return inside_ns > 0
    return inside_ns > 0.3 * min(stretch.length_ns, plant.length_ns)


def worded(seen: list[Stretch]) -> list[tuple[str, int]]:
    return [(s.cause.value, s.length_ns // MS) for s in seen]
