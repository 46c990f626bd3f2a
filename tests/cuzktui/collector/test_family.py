"""A command is followed into what it starts, however deep, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuzktui.analysis import analyse
from cuzktui.collector.collect import Collector, Options
from cuzktui.collector.family import LOOKS, MAX_MEMBERS, Family
from prover import wire
from prover.wire import MemSample, ProcessSeen

WORKER = "held = bytearray(200_000_000); import time; time.sleep(0.4)"
SHELL = 'true; exec "$0" -c "$1"'
NESTED = f"import subprocess, sys; subprocess.run(['sh', '-c', {SHELL!r}, sys.executable, {WORKER!r}])"
CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children")


def proc(folder: Path, children: dict[int, list[int]]) -> str:
    for pid, below in children.items():
        task = folder / "proc" / str(pid) / "task" / str(pid)
        task.mkdir(parents=True)
        (task / "children").write_text(" ".join(map(str, below)))
    return str(folder)


def test_descendants_are_found_once_and_at_any_depth(tmp_path: Path) -> None:
    family = Family(1, proc(tmp_path, {1: [2], 2: [3, 4], 9: [10]}))
    assert sorted(family.newcomers()) == [2, 3, 4]
    assert family.newcomers() == [] and family.members == {1, 2, 3, 4} and family.parents == {1, 2}


def test_children_of_one_that_has_left_stay_members(tmp_path: Path) -> None:
    family = Family(1, proc(tmp_path, {1: [2], 2: [3]}))
    family.newcomers()
    family.left(2)
    assert family.members == {1, 3}


def test_a_flood_of_children_is_bounded(tmp_path: Path) -> None:
    family = Family(1, proc(tmp_path, {1: list(range(2, 500))}))
    assert len(family.newcomers()) == MAX_MEMBERS - 1 and len(family.members) == MAX_MEMBERS
    assert family.newcomers() == []


def test_a_kernel_without_such_lists_gives_none(tmp_path: Path) -> None:
    assert Family(1, str(tmp_path)).newcomers() == []


def test_lists_are_read_only_while_somebody_starts_something(tmp_path: Path) -> None:
    family = Family(1, proc(tmp_path, {1: [2], 2: []}))
    loadavg, below = tmp_path / "proc" / "loadavg", tmp_path / "proc" / "2" / "task" / "2" / "children"
    loadavg.write_text("0.10 0.20 0.30 1/100 41\n")
    assert family.newcomers() == [2]
    below.write_text("3")
    assert family.newcomers() == [3], "one that its parent listed after it had its id"
    assert [family.newcomers() for _ in range(LOOKS)] == [[]] * LOOKS
    below.write_text("3 4")
    assert family.newcomers() == []
    loadavg.write_text("0.10 0.20 0.30 1/100 42\n")
    assert family.newcomers() == [4]


def test_lists_are_read_each_time_where_the_kernel_does_not_tell_the_newest_id(tmp_path: Path) -> None:
    family = Family(1, proc(tmp_path, {1: [2], 2: []}))
    (tmp_path / "proc" / "loadavg").write_text("0.00 0.00 0.00 0/0 0\n")
    assert [family.newcomers() for _ in range(2 * LOOKS)] == [[2], *[[]] * (2 * LOOKS - 1)]
    (tmp_path / "proc" / "2" / "task" / "2" / "children").write_text("3")
    assert family.newcomers() == [3]


def recorded(command: list[str]) -> list[wire.Event]:
    events: list[wire.Event] = []
    options = Options(command=tuple(command), stream=False, until_ended=True, role="foreign", gpu=False)
    Collector(options, events.append).run()
    return events


@pytest.mark.skipif(not CHILDREN.exists(), reason="kernel without CONFIG_PROC_CHILDREN")
def test_the_worker_behind_a_wrapper_is_watched_and_drawn() -> None:
    events = recorded([sys.executable, "-c", NESTED])
    seen = [event for event in events if isinstance(event, ProcessSeen)]
    assert len(seen) == 2 and all(event.role == "foreign" for event in seen)
    snapshot = analyse(events)
    assert snapshot.process is not None and snapshot.main_pid == seen[1].pid
    assert snapshot.process.peak_resident_bytes > 200_000_000
    assert {pid for pid, view in snapshot.processes.items() if view.ended is not None} == {e.pid for e in seen}


def test_a_process_that_is_only_attached_to_is_not_followed() -> None:
    with subprocess.Popen([sys.executable, "-c", NESTED]) as child:
        events: list[wire.Event] = []
        options = Options(pids=(child.pid,), stream=False, until_ended=True, role="foreign", gpu=False)
        Collector(options, events.append).run()
    assert [e.pid for e in events if isinstance(e, ProcessSeen)] == [child.pid]


def test_a_small_process_never_takes_the_picture_from_a_larger_one() -> None:
    def reading(k: int, pid: int, size: int) -> wire.Event:
        return MemSample(t_ns=k, pid=pid, resident_bytes=size, shared_bytes=0)

    events = [wire.ProcessSeen(t_ns=0, pid=pid, command="x", role="foreign") for pid in (1, 2)]
    events += [reading(k, 1 + k % 2, 300_000_000 if k % 2 else 280_000_000) for k in range(1, 100)]
    assert analyse(events).main_pid == 2
    grown = [*events, reading(200, 1, 900_000_000), reading(201, 2, 500_000_000)]
    assert analyse(grown).main_pid == 1


def test_one_that_comes_after_the_worker_has_ended_does_not_hide_it() -> None:
    events: list[wire.Event] = [
        wire.ProcessSeen(t_ns=0, pid=1, command="worker", role="foreign"),
        MemSample(t_ns=1, pid=1, resident_bytes=300_000_000, shared_bytes=0),
        wire.ProcessEnded(t_ns=2, pid=1, exit_code=0),
        wire.ProcessSeen(t_ns=3, pid=2, command="tidying up", role="foreign"),
        MemSample(t_ns=4, pid=2, resident_bytes=2_000_000, shared_bytes=0),
    ]
    assert analyse(events).main_pid == 1
