"""A TimeAxis maps time to dot columns; its right edge moves by whole dots, so a scrolling chart keeps its shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NICE_S = (
    2, 5, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 180, 240, 300, 360, 420, 480, 600, 720, 900, 1200, 1800,
    3600, 7200, 14400, 28800, 86400,
)  # fmt: skip
"""Window lengths that zooming steps through, in seconds."""


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """A window of time over a number of cells."""

    begin_ns: int
    dot_ns: int
    cells: int
    dots_wide: int

    @property
    def dots(self) -> int:
        return self.cells * self.dots_wide

    @property
    def end_ns(self) -> int:
        return self.begin_ns + self.dot_ns * self.dots

    @property
    def span_ns(self) -> int:
        return self.dot_ns * self.dots

    def cell(self, t_ns: float) -> int:
        """The cell a time falls into; outside the window it is below 0 or at least `cells`."""
        return int((t_ns - self.begin_ns) // (self.dot_ns * self.dots_wide))

    def time_of(self, cell: int) -> int:
        """The time at the middle of a cell, ns."""
        return self.begin_ns + int((cell + 0.5) * self.dot_ns * self.dots_wide)

    def edges(self) -> NDArray[np.int64]:
        """The `dots + 1` borders of the dot columns, ns."""
        return self.begin_ns + self.dot_ns * np.arange(self.dots + 1, dtype=np.int64)


def axis_ending(end_ns: int, span_s: float, cells: int, dots_wide: int) -> TimeAxis:
    """A window of `span_s` seconds whose right edge is the first dot border after `end_ns`."""
    dots = max(1, cells * dots_wide)
    dot_ns = max(1, int(span_s * 1e9) // dots)
    last = end_ns // dot_ns + 1
    return TimeAxis((last - dots) * dot_ns, dot_ns, cells, dots_wide)


def ticks(axis: TimeAxis, anchor_ns: int, cells_apart: int = 14) -> list[tuple[int, int]]:
    """Cells and offsets from an anchor (ns) at round times, at least `cells_apart` apart."""
    if axis.cells <= 0:
        return []
    wanted_ns = axis.dot_ns * axis.dots_wide * cells_apart
    step_ns = _round_up(wanted_ns)
    first = -(-(axis.begin_ns - anchor_ns) // step_ns)
    found = []
    while (t_ns := anchor_ns + first * step_ns) < axis.end_ns:
        found.append((axis.cell(t_ns), first * step_ns))
        first += 1
    return found


def _round_up(span_ns: int) -> int:
    for unit_ns in (10**6, 10**7, 10**8, 10**9):
        for factor in (1, 2, 5):
            if unit_ns * factor >= span_ns:
                return unit_ns * factor
    for seconds in (10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800):
        if seconds * 10**9 >= span_ns:
            return seconds * 10**9
    return 86_400 * 10**9


def window_for(span_ns: int) -> int:
    """The shortest nice window, in seconds, that holds a span."""
    return next((s for s in NICE_S if s * 10**9 >= span_ns), NICE_S[-1])


def binned(
    times_ns: NDArray[np.int64], values: NDArray[np.float64], axis: TimeAxis, *, hold_ns: int | None = None
) -> NDArray[np.float64]:
    """The highest value in each dot column; a column without a sample keeps the last one before it.

    Args:
        times_ns: ascending.
        values: as many; NaN is a reading that could not be taken.
        hold_ns: how long a value stays without a new sample; None is without end.
    Returns:
        `(axis.dots,)`; NaN before the first sample, after the last one's column, and where nothing was read for long.
    """
    out = np.full(axis.dots, np.nan)
    edges = axis.edges()
    bounds = np.searchsorted(times_ns, edges)
    counts = np.diff(bounds)
    hit = np.flatnonzero(counts)
    if bounds[-1] == 0:
        return out
    if hit.size:
        # reduceat runs to the end of the array in its last group, so the array is cut at the window's end
        out[hit] = np.fmax.reduceat(values[: bounds[-1]], bounds[:-1][hit])
    last_before = bounds[1:] - 1
    known = (counts == 0) & (last_before >= 0)
    held = last_before[known]
    kept = values[held]
    age_ns = edges[1:][known] - times_ns[held]
    stale = edges[:-1][known] > times_ns[-1]
    if hold_ns is not None:
        stale |= age_ns > hold_ns
    out[known] = np.where(stale, np.nan, kept)
    return out
