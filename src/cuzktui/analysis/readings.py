"""Each reading of a stranger's CPU time and threads says what its window was spent on, or that it does not tell.

A window that was used up by running was busy; one that was not used was spent waiting, in what its threads waited in
when looked at; one in between is cut where the time that ran is used up. All windows are judged at once, in arrays.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from cuzktui.analysis.intervals import Interval, union
from cuzktui.model.series import Floats, Ints
from cuzktui.model.snapshot import ProcessView

ALL_SHARE = 0.9
"""A window that ran this share of its time ran, one that ran the rest waited; between the two it is cut. A process
that was runnable at both ends of a window ran as far as it was let."""
HARDLY_SHARE = 0.2
"""A window that ran less although the process was runnable at both ends does not tell by itself: a writer that waits
for a disk uses an eighth of a core and is often looked at as it copies."""
FAULT_BYTES_PER_S = 100e6
"""Memory that is touched for the first time at less than this is heap growth beside other work."""
FAULTS_PER_BUSY_S = 20_000.0
"""Faults a second of CPU time: a fault of a 4K page takes about 0.5 us, of a huge page about 100 us."""
PARKED_ROWS = 4096
"""Readings over which it is judged which threads are always parked."""


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
"""Columns of threads that wait, and what they wait for; the disk before the rest."""

Reading = tuple[int, int, Cause]
"""Begin, end and cause of a stretch."""

_CODES = (Cause.PAGE_FAULTING, Cause.CPU_BUSY, *WAITS.values())
_FAULTING, _BUSY, _FIRST_WAIT = 0, 1, 2
_UNTOLD = -1
Codes = NDArray[np.int64]


def readings(process: ProcessView, begin_ns: int, end_ns: int, taken: list[Interval]) -> list[Reading]:
    """What the windows in [begin, end] were spent on, neighbours of one cause joined.

    Args:
        taken: time that is known to be release; it is taken off what ran.
    """
    series = process.activity
    lo = max(1, int(np.searchsorted(series.t_ns, begin_ns)))
    hi = min(len(series), int(np.searchsorted(series.t_ns, end_ns)) + 1)
    if hi <= lo:
        return []
    rows = np.arange(lo, hi)
    first, last = series.t_ns[rows - 1], series.t_ns[rows]
    share = _shares(process, rows, first, last, taken)
    ran_before = series.column("running")[rows - 1] > 0
    runs_after = series.column("running")[rows] > 0
    waits = _waits(process, np.arange(lo - 1, hi))
    busy = _busy(process, rows, first, last)
    cut = first + np.where(ran_before, share, 1.0 - share) * (last - first)
    is_whole = (share >= ALL_SHARE) | (ran_before & runs_after)
    is_wait = (share <= 1 - ALL_SHARE) | ~(ran_before | runs_after)
    before = np.where(ran_before, busy, waits[:-1])
    after = np.where(ran_before, waits[1:], busy)
    waited = np.where(runs_after, waits[:-1], waits[1:])
    before = np.where(is_whole, busy, np.where(is_wait, waited, before))
    after = np.where(is_whole | is_wait, before, after)
    is_untold = ran_before & runs_after & (share <= HARDLY_SHARE)
    before[is_untold] = after[is_untold] = _UNTOLD
    marks = np.stack((first, cut.astype(np.int64)), axis=1).ravel()
    codes = _decided(np.stack((before, after), axis=1).ravel())
    return _runs(marks, codes, int(last[-1]))


def _shares(process: ProcessView, rows: Ints, first: Ints, last: Ints, taken: list[Interval]) -> Floats:
    """Share of each window, release aside, that ran; against its neighbours where more than one core ran there."""
    run = process.activity.column("run_percent")
    released = _covered(taken, last) - _covered(taken, first)
    free = (last - first) - released
    following = np.append(run[rows[1:]], run[rows[-1] + 1] if rows[-1] + 1 < len(run) else 0.0)
    level = np.maximum(np.maximum(run[rows - 1], following), 100.0) / 100
    ran = np.maximum(0.0, run[rows] / 100 * (last - first) - released) / level
    share: Floats = np.minimum(1.0, ran / np.maximum(free, 1.0))
    return share


def _covered(taken: list[Interval], times: Ints) -> Floats:
    """How much of a set of time lies before each time."""
    pieces = union(taken)
    if not pieces:
        return np.zeros(len(times))
    edges = np.array(pieces, np.float64).ravel()
    lengths = np.array([end - begin for begin, end in pieces], np.float64)
    sums = np.concatenate(([0.0], np.repeat(np.cumsum(lengths), 2)))[: len(edges)]
    covered: Floats = np.interp(times.astype(np.float64), edges, sums)
    return covered


def _busy(process: ProcessView, rows: Ints, first: Ints, last: Ints) -> Codes:
    """Page-faulting where memory rises with faults to match, else plainly busy."""
    faults = process.activity.column("minor_faults_per_s")[rows]
    run = np.maximum(process.activity.column("run_percent")[rows], 1e-3) / 100
    if not len(process.memory):
        return np.full(len(rows), _BUSY)
    times, anon = process.memory.t_ns, process.memory.column("anon")
    at = [np.maximum(np.searchsorted(times, t, side="right") - 1, 0) for t in (first, last)]
    rise = (anon[at[1]] - anon[at[0]]) / (np.maximum(last - first, 1) / 1e9)
    is_storm = (faults / run >= FAULTS_PER_BUSY_S) & (rise >= FAULT_BYTES_PER_S * run)
    return np.where(is_storm, _FAULTING, _BUSY)


def _waits(process: ProcessView, rows: Ints) -> Codes:
    """What the threads that are not always parked wait in, at each reading."""
    names = list(WAITS)
    counts = np.stack([process.activity.column(name)[rows] for name in names], axis=1)
    earlier = np.arange(max(0, int(rows[-1]) - PARKED_ROWS), int(rows[-1]) + 1)
    runs = earlier[process.activity.column("running")[earlier] > 0]
    parked = np.zeros(len(names))
    if len(runs):
        parked = np.array([float(np.median(process.activity.column(name)[runs])) for name in names])
    more = counts - parked
    chosen = np.where(more.max(axis=1) > 0, more.argmax(axis=1), (counts > 0).argmax(axis=1))
    nothing = (more.max(axis=1) <= 0) & (counts.max(axis=1) <= 0)
    chosen = np.where(more[:, 0] > 0, 0, np.where(nothing, names.index("unreadable"), chosen))
    codes: Codes = chosen + _FIRST_WAIT
    return codes


def _decided(codes: Codes) -> Codes:
    """A process that was runnable when looked at but hardly ran was kept from running, or woke only to wait again: it
    did what it did on both sides where those agree, else it was busy."""
    told = np.flatnonzero(codes != _UNTOLD)
    if len(told) == len(codes):
        return codes
    at = np.arange(len(codes))
    if not len(told):
        return np.full(len(codes), _BUSY)
    before = told[np.maximum(np.searchsorted(told, at, side="right") - 1, 0)]
    after = told[np.minimum(np.searchsorted(told, at), len(told) - 1)]
    agrees = (codes[before] == codes[after]) & (before <= at) & (after >= at)
    return np.where(codes != _UNTOLD, codes, np.where(agrees, codes[before], _BUSY))


def _runs(marks: Ints, codes: Codes, end_ns: int) -> list[Reading]:
    """Stretches of equal codes; marks are begins, empty pieces vanish."""
    ends = np.append(marks[1:], end_ns)
    kept = ends > marks
    marks, ends, codes = marks[kept], ends[kept], codes[kept]
    if not len(marks):
        return []
    changes = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    stops = np.append(changes[1:], len(codes)) - 1
    pieces = zip(marks[changes].tolist(), ends[stops].tolist(), codes[changes].tolist(), strict=True)
    return [(begin, end, _CODES[code]) for begin, end, code in pieces]
