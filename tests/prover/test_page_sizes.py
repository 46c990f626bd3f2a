"""Pages that the kernel granted: as many as were touched, of the areas asked for and no other."""

from __future__ import annotations

import mmap
import time

import numpy as np

from prover import wire
from prover.arena import Arena
from prover.pages import areas_of, report_pages
from prover.run import Run
from prover.wire import Owner, Policy

MIB = 1 << 20


def mapped(size_bytes: int, touched_bytes: int) -> tuple[mmap.mmap, int]:
    held = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    held.madvise(mmap.MADV_NOHUGEPAGE)
    view = np.frombuffer(held, np.uint8)
    view[:touched_bytes:4096] = 1
    return held, view.ctypes.data


def test_an_area_is_told_with_what_is_resident_in_it():
    held, address = mapped(32 * MIB, 8 * MIB)
    guard = mmap.mmap(-1, MIB, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    [(begin, end, resident_bytes, huge_bytes)] = areas_of([address])
    assert begin <= address and address + len(held) <= end
    assert 8 * MIB <= resident_bytes <= end - begin - 24 * MIB
    assert huge_bytes == 0
    guard.close()


def test_areas_that_hold_no_address_are_left_out_and_two_addresses_of_one_area_are_one():
    held, address = mapped(4 * MIB, 4 * MIB)
    assert areas_of([]) == [] and areas_of([1]) == []
    assert len(areas_of([address, address + MIB, 1])) == 1
    assert len(held) == 4 * MIB


def test_every_area_of_the_process_can_be_asked_for():
    with open("/proc/self/maps") as file:
        spans = [line.split(" ", 1)[0].split("-") for line in file if "[vsyscall]" not in line]
    told = {(begin, end) for begin, end, _, _ in areas_of([int(first, 16) for first, _ in spans])}
    known = {(int(first, 16), int(last, 16)) for first, last in spans}
    assert len(told & known) >= 0.95 * len(known), "the process may map something between the two looks"


def test_a_look_costs_the_interpreter_less_than_cutting_the_text_into_lines_would():
    kept = [mmap.mmap(-1, 4096, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS) for _ in range(2000)]
    held, address = mapped(4 * MIB, 4096)
    looks_ns, lines_ns = [], []
    for _ in range(5):
        marks = [time.thread_time_ns()]
        [area] = areas_of([address])
        marks.append(time.thread_time_ns())
        with open("/proc/self/smaps", "rb") as file:
            text = file.read()
        marks.append(time.thread_time_ns())
        assert len([line.partition(b" ") for line in text.splitlines()]) > 2000
        marks.append(time.thread_time_ns())
        looks_ns.append(marks[1] - marks[0] - (marks[2] - marks[1]))
        lines_ns.append(marks[3] - marks[2])
    assert area[2] > 0 and min(looks_ns) < min(lines_ns)
    for each in (held, *kept):
        each.close()


def test_each_buffer_of_an_arena_is_reported_once_with_its_touched_bytes():
    events: list[wire.Event] = []
    run = Run(events.append, "j")
    arena = Arena(events.append, 0)
    scope = arena.scope("j", Policy.SYNC_4K)
    values = scope.array("a", Owner.ABC, (MIB // 4, 4))
    values[:] = 7
    report_pages(arena, run)
    [touched] = [event for event in events if isinstance(event, wire.BufferTouched)]
    [allocated] = [event for event in events if isinstance(event, wire.BufferAllocated)]
    assert touched.buffer_id == allocated.buffer_id
    assert abs(touched.resident_bytes - allocated.size_bytes) <= 0.05 * allocated.size_bytes
    del values
    scope.release()
    arena.close()
