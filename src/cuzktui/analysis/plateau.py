"""Phases of a whole series come from the same fold as the live ones; edges are then refined between samples.

A fall is seen only at sampling instants. Its true edges lie where the line through its first (last) two inner samples
meets the level before (after) it, which is exact for a release at a constant rate, within what the samples bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cuzktui.model.phases import Phase, PhaseKind, Segmenter, step
from cuzktui.model.series import Floats, Ints, Series

STEP_PLATEAU_NS = 2_000_000_000
"""Longest rest on a stair; a longer one is a plateau in its own right."""
FALLS = (PhaseKind.RELEASE, PhaseKind.CLIFF)


@dataclass(frozen=True, slots=True)
class Edges:
    """A move with its ends refined; `slope_bytes_per_s` is None where sampling resolved nothing of it."""

    begin_ns: int
    end_ns: int
    change_bytes: float
    slope_bytes_per_s: float | None

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, slots=True)
class Staircase:
    """Three or more moves of one direction with short rests between them."""

    begin_ns: int
    end_ns: int
    begin_bytes: float
    end_bytes: float
    steps: int


def phases_of(samples: Iterable[tuple[int, float]]) -> tuple[Phase, ...]:
    """Phases of (t_ns, bytes) samples in order of time; the last one is open."""
    state = Segmenter()
    for t_ns, value in samples:
        state = step(state, t_ns, value)
    return state.all_phases


def staircases(phases: Sequence[Phase]) -> list[Staircase]:
    """The staircases among phases, in order."""
    found = []
    at = 0
    while at < len(phases):
        end = _stairs_from(phases, at)
        moves = (end - at + 1) // 2
        if moves >= 3:
            first, last = phases[at], phases[end - 1]
            found.append(Staircase(first.begin_ns, last.end_ns, first.begin_bytes, last.end_bytes, moves))
            at = end
        else:
            at += 1
    return found


def _stairs_from(phases: Sequence[Phase], at: int) -> int:
    """End (exclusive) of the alternation move, short plateau, move ... in one direction that starts at `at`."""
    if phases[at].kind is PhaseKind.PLATEAU:
        return at
    falls = phases[at].kind in FALLS
    end = at + 1
    while end + 1 < len(phases):
        rest, move = phases[end], phases[end + 1]
        is_rest = rest.kind is PhaseKind.PLATEAU and rest.length_ns <= STEP_PLATEAU_NS
        if not is_rest or move.kind is PhaseKind.PLATEAU or (move.kind in FALLS) != falls:
            break
        end += 2
    return end


def refined(series: Series, phase: Phase, column: str = "anon") -> Edges:
    """A move's edges between samples.

    Args:
        series: raw samples around the phase.
        phase: a ramp, release or cliff.
    """
    times, rows = series.window(phase.begin_ns, phase.end_ns)
    values = rows[:, series.columns.index(column)]
    inner = _inner(values, phase)
    change = phase.change_bytes
    if len(inner) < 2:
        return Edges(phase.begin_ns, phase.end_ns, change, phase.slope_bytes_per_s if len(inner) else None)
    t, v = times[inner], values[inner]
    begin_ns = _meet(t[0], v[0], t[1], v[1], phase.begin_bytes)
    end_ns = _meet(t[-1], v[-1], t[-2], v[-2], phase.end_bytes)
    begin_ns = min(max(begin_ns, phase.begin_ns), int(t[0]))
    end_ns = max(min(end_ns, phase.end_ns), int(t[-1]))
    length_ns = max(1, end_ns - begin_ns)
    return Edges(begin_ns, end_ns, change, change / (length_ns / 1e9))


def _inner(values: Floats, phase: Phase) -> Ints:
    """Rows whose value is clearly between the two levels."""
    low, high = sorted((phase.begin_bytes, phase.end_bytes))
    margin = 0.02 * (high - low)
    return ((values > low + margin) & (values < high - margin)).nonzero()[0]


def _meet(t0: int, v0: float, t1: int, v1: float, level: float) -> int:
    """When the line through two samples is at `level`."""
    if v1 == v0:
        return int(t0)
    return int(t0 + (level - v0) * (float(t1) - float(t0)) / (v1 - v0))
