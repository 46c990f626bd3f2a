"""A stranger plants causes one after another; watched only from outside, each is named and measured.

Accepted labels are a table: from outside a collection of garbage is a busy CPU, and small frees may give memory back or
may not. Lengths must be right within 5 % or 20 ms, the huge-page release within 5 % of its bytes. A release that is
claimed where none was planted fails at once.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from cuzktui.analysis.outside import Cause, Stretch, stretches
from cuzktui.collector.proc import CpuReader, StatmReader
from cuzktui.model import store
from cuzktui.model.snapshot import ProcessView
from prover import wire
from prover.run import now

MS = 1_000_000
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
GIVES_BACK = ("munmap_4k", "munmap_huge", "malloc_trim", "free_small")


@dataclass(frozen=True)
class Plant:
    name: str
    begin_ns: int
    end_ns: int
    size_bytes: int


def watched(target: Path, names: list[str]) -> tuple[ProcessView, list[Plant]]:
    """Runs the planting program under observation: memory every 4 ms, CPU every 20 ms."""
    command = [sys.executable, str(target), *names]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None and child.stdout is not None
        assert child.stdout.readline().strip() == "READY"
        done, events = threading.Event(), []
        sampler = threading.Thread(target=sample, args=(child.pid, done, events))
        sampler.start()
        try:
            child.stdin.write("\n")
            child.stdin.flush()
            lines = []
            for line in child.stdout:
                if line.strip() == "DONE":
                    break
                lines.append(line.split())
        finally:
            done.set()
            sampler.join()
            child.stdin.close()
    view = store.apply_all(store.empty(memory_capacity=1 << 20), events).process
    assert view is not None and len(lines) == len(names)
    return view, [Plant(name, int(begin), int(end), int(size)) for name, begin, end, size in lines]


def sample(pid: int, done: threading.Event, events: list[wire.Event]) -> None:
    memory, cpu, cpu_due_ns = StatmReader(pid), CpuReader(pid), 0
    while not done.wait(0.004):
        t_ns, reading = now(), memory.read()
        if reading is not None:
            events.append(wire.MemSample(t_ns=t_ns, pid=pid, resident_bytes=reading[0], shared_bytes=reading[1]))
        if t_ns >= cpu_due_ns:
            cpu_due_ns = t_ns + 20 * MS
            told = cpu.read()
            if told is not None:
                events.append(told)
    memory.close()
    cpu.close()


def verdict(view: ProcessView, plant: Plant) -> tuple[bool, str]:
    """Whether one plant was named and measured right, and what was seen."""
    seen = stretches(view, plant.begin_ns - 150 * MS, plant.end_ns + 150 * MS)
    named = [s for s in seen if s.cause in ACCEPTED[plant.name] and overlaps(s, plant)]
    length_ns, planted_ns = sum(s.length_ns for s in named), plant.end_ns - plant.begin_ns
    told = f"{plant.name} {planted_ns / MS:.0f} ms, seen {[(s.cause.value, s.length_ns // MS) for s in seen]}"
    if plant.name == "munmap_huge":
        fall_bytes = sum(s.fall_bytes for s in named)
        return abs(fall_bytes - plant.size_bytes) <= 0.05 * plant.size_bytes, told
    return abs(length_ns - planted_ns) <= max(0.05 * planted_ns, 20 * MS), told


def overlaps(stretch: Stretch, plant: Plant) -> bool:
    inside_ns = min(stretch.end_ns, plant.end_ns) - max(stretch.begin_ns, plant.begin_ns)
    if stretch.cause is Cause.RELEASING:
        return inside_ns > 0
    return inside_ns > 0.3 * min(stretch.length_ns, plant.end_ns - plant.begin_ns)


def judged(folder: Path) -> tuple[int, list[str]]:
    """How many of the plants were named and measured right in one run, and what was seen.

    False releases and wrong release sizes fail at once.
    """
    view, plants = watched(folder / "planted.py", list(ACCEPTED))
    right, told = 0, []
    for plant in plants:
        good, seen = verdict(view, plant)
        right += good
        told.append(f"{'right' if good else 'WRONG'}: {seen}")
        near = stretches(view, plant.begin_ns - 50 * MS, plant.end_ns + 50 * MS)
        releases = [s for s in near if s.cause is Cause.RELEASING]
        if plant.name not in GIVES_BACK:
            assert not releases, f"false release in {plant.name}: {releases}"
        if plant.name in ("munmap_4k", "malloc_trim"):
            assert sum(s.fall_bytes for s in releases) == pytest.approx(plant.size_bytes, rel=0.05), seen
    return right, told


@pytest.mark.slow
def test_causes_planted_in_a_stranger_are_named_and_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine of ten; a second run is allowed, since a host that is busy with something else delays both sides."""
    monkeypatch.setenv("PLANTED_FOLDER", str(tmp_path))
    here = Path(__file__).parent
    right, told = judged(here)
    if right < 9:
        right, again = judged(here)
        told += again
    assert right >= 9, "\n".join(told)
