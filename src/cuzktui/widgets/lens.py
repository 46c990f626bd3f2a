"""The gap lens shows one fall of memory on a time scale of its own, at most 20 ms a dot, and counts the gap up.

Its vertical scale is its own too, from the lowest to the highest sample it shows; both ends are written beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from textual import events

from cuzktui import format as fmt
from cuzktui.messages import LensDismissed
from cuzktui.model.snapshot import JobView, Lens
from cuzktui.widgets.axis import TimeAxis, binned, ticks
from cuzktui.widgets.canvas import Canvas
from cuzktui.widgets.digits import ROWS, large
from cuzktui.widgets.dots import Glyphs, area
from cuzktui.widgets.frame import framed, words
from cuzktui.widgets.grid import Grid
from cuzktui.widgets.roles import Role, gap_role
from cuzktui.widgets.view import View

DOTS_MS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20)
"""How long a dot column of the lens may be."""
_SETTLED_SHARE = 0.02
_LEAD_SHARE = 0.15


@dataclass(frozen=True, slots=True)
class Fall:
    """What the samples of a lens say about its fall."""

    end_ns: int
    """When memory had come down to within 2 % of where it stayed; the newest sample while it still falls."""
    levels: int
    """Distinct readings strictly between the top and the floor."""
    fallen_bytes: float
    bytes_per_s: float | None
    """Mean slope between a twentieth and nineteen twentieths of the way down."""


class LensPanel(Canvas):
    """The lens; a click closes it."""

    def draw(self, view: View, width: int, height: int) -> Grid:
        return lens_grid(view, width, height)

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.post_message(LensDismissed())


def fall_of(lens: Lens) -> Fall:
    """The fall that a lens has caught so far."""
    times, values = lens.samples.t_ns, lens.samples.column("anon")
    first = int(np.searchsorted(times, lens.begin_ns, side="right"))
    if first == len(times):
        return Fall(lens.begin_ns, 0, 0.0, None)
    times = np.concatenate(([lens.begin_ns], times[first:]))
    values = np.concatenate(([lens.top_bytes], values[first:]))
    floor = float(values.min())
    drop = lens.top_bytes - floor
    if drop <= 0:
        return Fall(lens.begin_ns, 0, 0.0, None)
    # the first time it is down: what rises later belongs to the next job
    last = int(np.argmax(values <= floor + _SETTLED_SHARE * drop))
    way = values[: last + 1]
    inside = way[(way > floor + 0.005 * drop) & (way < lens.top_bytes - 0.005 * drop)]
    started = np.flatnonzero(values < lens.top_bytes - 0.05 * drop)
    ended = np.flatnonzero(values <= floor + 0.05 * drop)
    slope = None
    if started.size and ended.size:
        a, b = max(0, int(started[0]) - 1), int(ended[0])
        if times[b] > times[a]:
            slope = float(values[a] - values[b]) / (int(times[b] - times[a]) / 1e9)
    return Fall(int(times[last]), int(np.unique(inside).size), drop, slope)


def lens_axis(lens: Lens, fall: Fall, now_ns: int, cells: int, dots_wide: int) -> TimeAxis:
    """The finest scale that holds the fall; one longer than 20 ms a dot allows is followed at its newest end."""
    if lens.is_open:
        end_ns = max(now_ns, lens.begin_ns)
    else:
        end_ns = max(fall.end_ns, lens.gap_end_ns or 0, lens.begin_ns)
    length_ns = max(end_ns - lens.begin_ns, 20_000_000)
    needed_ns = length_ns * (1 + 2 * _LEAD_SHARE)
    dots = max(1, cells * dots_wide)
    dot_ns = next((ms * 10**6 for ms in DOTS_MS if ms * 10**6 * dots >= needed_ns), DOTS_MS[-1] * 10**6)
    lead_ns = int(length_ns * _LEAD_SHARE)
    begin_ns = lens.begin_ns - lead_ns
    if dot_ns * dots < needed_ns:
        begin_ns = end_ns - int(dot_ns * dots * (1 - _LEAD_SHARE / 2))
    return TimeAxis(begin_ns // dot_ns * dot_ns, dot_ns, max(1, cells), dots_wide)


def lens_grid(view: View, width: int, height: int) -> Grid:
    """The panel as text."""
    lens, glyphs = view.lens, view.glyphs
    if lens is None:
        return framed(width, height, glyphs, [("gap lens", Role.TITLE)])
    job = view.snapshot.find_job(lens.job_id) if lens.job_id else None
    fall = fall_of(lens)
    cells = width - 4
    axis = lens_axis(lens, fall, view.snapshot.t_ns, cells, glyphs.dots_wide)
    title = [("gap lens", Role.TITLE), (f" · {axis.dot_ns // 10**6} ms a dot", Role.MUTED)]
    if axis.begin_ns > lens.begin_ns:
        title.append((f" · last {fmt.duration(axis.span_ns)}", Role.MUTED))
    foot = [(_policy_of(job), Role.TEXT), ("  l closes", Role.FAINT)]
    if lens.is_open:
        foot = [("following …", Role.WARN)]
    grid = framed(width, height, glyphs, title, foot=foot, focused=lens.is_open)
    inside = height - 2
    if cells < 8 or inside < 3:
        return grid
    text_rows = min(ROWS + 2, max(1, inside - 5))
    chart_rows = inside - text_rows - 1
    if chart_rows >= 2:
        _draw_fall(grid, lens, axis, chart_rows, glyphs, view.snapshot.t_ns)
    _draw_figures(grid, view, lens, fall, 1 + max(0, inside - text_rows), text_rows)
    return grid


def _draw_fall(grid: Grid, lens: Lens, axis: TimeAxis, rows: int, glyphs: Glyphs, now_ns: int) -> None:
    columns = binned(lens.samples.t_ns, lens.samples.column("anon"), axis)
    known = columns[~np.isnan(columns)]
    if not known.size:
        return
    high, low = float(known.max()), float(known.min())
    # a memory that does not move must look like a plateau, not like its own noise
    low = max(0.0, min(low - 0.08 * (high - low), high * 0.9))
    text = area((columns - low) / max(1.0, (high - low) * 1.06), rows, glyphs)
    gap_end_ns = lens.begin_ns + lens.gap_ns(now_ns)
    first, last = axis.cell(lens.begin_ns), axis.cell(gap_end_ns)
    roles = bytes(Role.GAP if first <= cell <= last else Role.MEMORY for cell in range(axis.cells))
    for row, line in enumerate(text):
        grid.fill(2, 1 + row, line, roles)
    side = glyphs.frame[5]
    for t_ns in (lens.begin_ns, gap_end_ns if lens.gap_end_ns is not None else None):
        if t_ns is None or not 0 <= (cell := axis.cell(t_ns)) < axis.cells:
            continue
        for row in range(rows):
            if text[row][cell] == " ":
                grid.put(2 + cell, 1 + row, side, Role.GAP)
    _put_level(grid, 1, fmt.size(high), axis.cells)
    _put_level(grid, rows, fmt.size(float(known.min())), axis.cells)
    for cell, offset_ns in ticks(axis, lens.begin_ns, 10):
        mark = f"{glyphs.tick}{fmt.age(offset_ns)}"
        if cell + len(mark) <= axis.cells:
            grid.put(2 + cell, 1 + rows, mark, Role.FAINT)


def _put_level(grid: Grid, y: int, text: str, cells: int) -> None:
    grid.put_right(2 + cells, y, f" {text}", Role.MEMORY_LABEL)


def _draw_figures(grid: Grid, view: View, lens: Lens, fall: Fall, y: int, rows: int) -> None:
    now_ns = view.snapshot.t_ns
    gap_ns = lens.gap_ns(now_ns)
    is_counting = lens.gap_end_ns is None and lens.is_open
    loud = Role.GAP_LABEL if is_counting else gap_role(gap_ns)
    name = "gap" if lens.reason == "inner ended" else "fall"
    state = "counting" if is_counting else "after the last computation" if name == "gap" else "memory fell"
    if rows >= ROWS + 2:
        for row, digits in enumerate(large(fmt.duration(gap_ns), view.glyphs)):
            grid.put(2, y + row, digits, loud)
        right = grid.width - 2
        grid.put_right(right, y, name.upper(), loud)
        if is_counting:
            grid.put_right(right, y + 1, view.glyphs.bullet + " " + state, Role.WARN)
        y += ROWS
        rows -= ROWS
    else:
        line = [(f"{name} {fmt.duration(gap_ns)} ", loud), (state, Role.MUTED)]
        words(grid, 2, y, line, grid.width - 4, view.glyphs)
        y += 1
        rows -= 1
    # without a reading on the way down only a bound of the slope is known
    sign = "" if fall.levels or fall.bytes_per_s is None else "≥ "
    took = fmt.duration(max(0, fall.end_ns - lens.begin_ns))
    is_wide = grid.width >= 36
    released = " released" if is_wide else ""
    seen = f"{fall.levels} levels seen · {took} to fall" if is_wide else f"{fall.levels} levels in {took}"
    lines = [
        [
            (f"{fmt.size(fall.fallen_bytes)}{released}", Role.TEXT),
            (f" at {sign}{fmt.rate(fall.bytes_per_s)}", Role.STRONG),
        ],
        [(seen, Role.MUTED)],
    ]
    if not fall.fallen_bytes and not lens.is_open:
        lines = [[("no memory was given back", Role.MUTED)]]
    for line in lines[:rows]:
        words(grid, 2, y, line, grid.width - 4, view.glyphs)
        y += 1


def _policy_of(job: JobView | None) -> str:
    return job.policy.value if job is not None and job.policy is not None else "not our job"
