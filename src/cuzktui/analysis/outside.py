"""What can be told of a process that tells nothing: only from its memory, its CPU time and what its threads wait in.

Every answer is inferred and says so. A release is claimed only where anonymous memory fell; nothing else is evidence
of one. Between two readings of CPU time the border of running and waiting lies where the time that ran is used up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from cuzktui.analysis.gap import falling
from cuzktui.analysis.intervals import Interval, clip, length_ns, without
from cuzktui.analysis.plateau import refined
from cuzktui.model.phases import Phase, PhaseKind
from cuzktui.model.snapshot import ProcessView

ALL_SHARE = 0.9
"""A window that ran this share of its time ran, one that ran the rest waited; between the two it is cut. A process
that was runnable at both ends of a window ran as far as it was let."""
FAULT_BYTES_PER_S = 100e6
"""Memory that is touched for the first time at less than this is heap growth beside other work."""
FAULTS_PER_BUSY_S = 20_000.0
"""Faults a second of CPU time: a fault of a 4K page takes about 0.5 us, of a huge page about 100 us."""
SHORT_NS = 50_000_000
"""A shorter stretch between two of one kind is a flicker of the readings."""
RELEASE_BYTES = 8 << 20
"""A fall of less is the heap's own business."""
JOIN_NS = 20_000_000
STARVED_NS = 150_000_000
STARVED_PERCENT = 30.0
"""A runnable process that gets less of a core than this is waiting for the scheduler."""


class Cause(StrEnum):
    """What a foreign process did, as far as an outsider can tell."""

    RELEASING = "releasing"
    PAGE_FAULTING = "page-faulting"
    CPU_BUSY = "CPU busy"
    DISK_WAIT = "disk wait"
    LOCK_WAIT = "lock wait"
    SLEEPING = "sleeping"
    OTHER_WAIT = "waiting (pipe, socket or other)"
    WAITING = "waiting (kind not readable)"


WAITS = {
    "blocked": Cause.DISK_WAIT,
    "on_timer": Cause.SLEEPING,
    "on_lock": Cause.LOCK_WAIT,
    "on_other": Cause.OTHER_WAIT,
    "unreadable": Cause.WAITING,
}
"""Columns of threads that wait, and what they wait for."""


Reading = tuple[int, int, Cause | None]
"""Begin, end and cause of one reading's window; None where the reading alone does not tell."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of one inferred cause."""

    begin_ns: int
    end_ns: int
    cause: Cause
    fall_bytes: float = 0.0
    """For a release: how far anonymous memory came down."""

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns


def stretches(process: ProcessView, begin_ns: int, end_ns: int) -> list[Stretch]:
    """Contiguous stretches of [begin, end] as far as there are readings."""
    told = list(_releases(process, begin_ns, end_ns))
    taken = [(piece.begin_ns, piece.end_ns) for piece in told]
    for first_ns, last_ns, cause in _decided(list(_readings(process, begin_ns, end_ns, taken))):
        told.extend(Stretch(*piece, cause) for piece in without([(first_ns, last_ns)], taken))
    inside = [
        Stretch(*piece, stretch.cause, stretch.fall_bytes)
        for stretch in told
        for piece in clip([(stretch.begin_ns, stretch.end_ns)], begin_ns, end_ns)
    ]
    return _joined(sorted(inside, key=lambda stretch: stretch.begin_ns))


def _releases(process: ProcessView, begin_ns: int, end_ns: int) -> Iterator[Stretch]:
    """Falls of anonymous memory with their edges refined, those with short rests between them joined."""
    joined: list[Interval] = []
    for first_ns, last_ns in falling(process.memory, begin_ns, end_ns):
        if joined and _is_rest(process, joined[-1][1], first_ns):
            joined[-1] = (joined[-1][0], last_ns)
        else:
            joined.append((first_ns, last_ns))
    for first_ns, last_ns in joined:
        before, after = process.memory.at(first_ns, "anon"), process.memory.at(last_ns, "anon")
        if before is not None and after is not None and before - after >= RELEASE_BYTES:
            fall = Phase(
                kind=PhaseKind.RELEASE, begin_ns=first_ns, end_ns=last_ns, begin_bytes=before, end_bytes=after,
                samples=0,
            )  # fmt: skip
            edges = refined(process.memory, fall)
            yield Stretch(edges.begin_ns, edges.end_ns, Cause.RELEASING, before - after)


def _is_rest(process: ProcessView, begin_ns: int, end_ns: int) -> bool:
    """Whether a release goes on after a rest: a short one, or one in which the process was kept from running."""
    if end_ns - begin_ns <= JOIN_NS:
        return True
    times, run = process.activity.t_ns, process.activity.column("run_percent")
    rows = np.arange(np.searchsorted(times, begin_ns, side="right"), np.searchsorted(times, end_ns))
    if end_ns - begin_ns > STARVED_NS or not len(rows):
        return False
    runnable = process.activity.column("running")[rows]
    return bool((runnable > 0).all() and np.mean(run[rows]) < STARVED_PERCENT)


def _readings(
    process: ProcessView, begin_ns: int, end_ns: int, taken: list[Interval]
) -> Iterator[Reading]:
    """Each reading's window, cut where running turned into waiting; release time is taken off what ran."""
    series = process.activity
    times, run, running = series.t_ns, series.column("run_percent"), series.column("running")
    parked = _parked(process)
    lo = max(1, int(np.searchsorted(times, begin_ns)))
    hi = min(len(times), int(np.searchsorted(times, end_ns)) + 1)
    for k in range(lo, hi):
        first_ns, last_ns = int(times[k - 1]), int(times[k])
        in_release_ns = length_ns(clip(taken, first_ns, last_ns))
        free_ns = last_ns - first_ns - in_release_ns
        if free_ns <= 0:
            continue
        level = max(run[k - 1], run[k + 1] if k + 1 < len(run) else 0.0, 100.0) / 100
        ran_ns = max(0.0, run[k] / 100 * (last_ns - first_ns) - in_release_ns) / level
        share = min(1.0, ran_ns / free_ns)
        ran_before, runs_after = running[k - 1] > 0, running[k] > 0
        busy = _busy_cause(process, k, first_ns, last_ns)
        if ran_before and runs_after and share <= 1 - ALL_SHARE:
            yield first_ns, last_ns, None
        elif share >= ALL_SHARE or (ran_before and runs_after):
            yield first_ns, last_ns, busy
        elif share <= 1 - ALL_SHARE or not (ran_before or runs_after):
            yield first_ns, last_ns, _wait_cause(process, k - 1 if runs_after else k, parked)
        elif ran_before:
            cut = first_ns + int(share * (last_ns - first_ns))
            yield first_ns, cut, busy
            yield cut, last_ns, _wait_cause(process, k, parked)
        else:
            cut = last_ns - int(share * (last_ns - first_ns))
            yield first_ns, cut, _wait_cause(process, k - 1, parked)
            yield cut, last_ns, busy


def _decided(readings: list[Reading]) -> Iterator[tuple[int, int, Cause]]:
    """A process that was runnable when looked at but hardly ran was kept from running, or woke only to wait again: it
    did what it did on both sides where those agree, else it was busy."""
    causes = [cause for _, _, cause in readings]
    after: list[Cause | None] = [None] * len(causes)
    for k in range(len(causes) - 2, -1, -1):
        after[k] = causes[k + 1] or after[k + 1]
    before: Cause | None = None
    for k, (first_ns, last_ns, cause) in enumerate(readings):
        agreed = before if before is not None and before is after[k] else Cause.CPU_BUSY
        yield first_ns, last_ns, cause or agreed
        before = cause or before


def _parked(process: ProcessView) -> dict[str, float]:
    """Threads that wait in each way while another one runs: the idle ones of a pool, which explain no wait."""
    runs = process.activity.column("running") > 0
    if not runs.any():
        return dict.fromkeys(WAITS, 0.0)
    return {name: float(np.median(process.activity.column(name)[runs])) for name in WAITS}


def _busy_cause(process: ProcessView, k: int, first_ns: int, last_ns: int) -> Cause:
    """Page-faulting where memory rises with faults to match, else plainly busy."""
    row = process.activity
    faults, run = row.column("minor_faults_per_s")[k], row.column("run_percent")[k]
    before, after = process.memory.at(first_ns, "anon"), process.memory.at(last_ns, "anon")
    if before is None or after is None or run <= 0:
        return Cause.CPU_BUSY
    rise = (after - before) / ((last_ns - first_ns) / 1e9)
    is_storm = faults / (run / 100) >= FAULTS_PER_BUSY_S
    return Cause.PAGE_FAULTING if is_storm and rise >= FAULT_BYTES_PER_S * run / 100 else Cause.CPU_BUSY


def _wait_cause(process: ProcessView, k: int, parked: dict[str, float]) -> Cause:
    """By what more threads wait in than are parked there; the disk before the rest."""
    more = {name: process.activity.column(name)[k] - parked[name] for name in WAITS}
    if more["blocked"] > 0:
        return Cause.DISK_WAIT
    name = max(more, key=lambda way: more[way])
    if more[name] <= 0:
        return next((WAITS[way] for way in WAITS if process.activity.column(way)[k]), Cause.WAITING)
    return WAITS[name]


def _joined(told: list[Stretch]) -> list[Stretch]:
    """Neighbours of one cause joined, flickers between two of one cause taken into them."""
    merged: list[Stretch] = []
    for piece in told:
        _push(merged, piece)
        if len(merged) >= 3 and merged[-1].cause is merged[-3].cause and _is_flicker(merged[-2]):
            first, last = merged[-3], merged[-1]
            merged[-3:] = [Stretch(first.begin_ns, last.end_ns, last.cause, first.fall_bytes + last.fall_bytes)]
    return merged


def _push(merged: list[Stretch], piece: Stretch) -> None:
    if merged and merged[-1].cause is piece.cause and piece.begin_ns - merged[-1].end_ns <= JOIN_NS:
        before = merged.pop()
        piece = Stretch(before.begin_ns, piece.end_ns, piece.cause, before.fall_bytes + piece.fall_bytes)
    merged.append(piece)


def _is_flicker(piece: Stretch) -> bool:
    return piece.length_ns < SHORT_NS and piece.cause is not Cause.RELEASING
