"""The kernel table has one row for each routine of a job, the costliest first: how often, how long, how fast."""

from __future__ import annotations

from collections import Counter

from cuzktui import format as fmt
from cuzktui.model.snapshot import JobView, KernelRow
from cuzktui.widgets.canvas import Canvas
from cuzktui.widgets.dots import spark
from cuzktui.widgets.frame import Words, framed, words
from cuzktui.widgets.grid import Grid, clip
from cuzktui.widgets.phases import phase_grid
from cuzktui.widgets.roles import Role
from cuzktui.widgets.view import View

_NAME_CELLS = 12
_RATE_CELLS = 18
_OPS = {"point_add": "adds", "constraint": "rows", "sha256_block": "blocks", "point_double": "doubles"}
"""Shorter words for what is counted."""


class KernelPanel(Canvas):
    """Kernel timings."""

    def draw(self, view: View, width: int, height: int) -> Grid:
        if view.is_stranger:
            return phase_grid(view, width, height)
        return kernel_grid(view, width, height)


def kernel_grid(view: View, width: int, height: int) -> Grid:
    """The panel as text."""
    job = view.job
    rows = sorted(job.kernels.values(), key=lambda row: -row.total_ns) if job is not None else []
    has_roof = any(row.roof_percent is not None for row in rows)
    title: Words = [("kernels", Role.TITLE), (" · % of roof" if has_roof else " · share of their time", Role.MUTED)]
    inside = height - 2
    hidden = len(rows) - inside
    foot: Words = [(f"{hidden} more", Role.FAINT)] if hidden > 0 else []
    grid = framed(width, height, view.glyphs, title, right=_total(job, view.snapshot.t_ns), foot=foot)
    if inside < 1 or width < 24:
        return grid
    if not rows:
        grid.put(2, 1, "no routine has run yet", Role.MUTED)
        return grid
    whole_ns = sum(row.total_ns for row in rows) or 1
    names = Counter(row.name for row in rows)
    for y, row in enumerate(rows[:inside], start=1):
        name = row.name if names[row.name] == 1 else f"{row.name} {row.lane.removeprefix('cuda:')}"
        _draw_row(grid, view, row, name, whole_ns, has_roof, y)
    return grid


def _draw_row(grid: Grid, view: View, row: KernelRow, name: str, whole_ns: int, has_roof: bool, y: int) -> None:
    width = grid.width - 4
    figure = fmt.percent(row.roof_percent) if has_roof else f"{100 * row.total_ns / whole_ns:.0f} %"
    x = 2
    cells = _NAME_CELLS if grid.width < 54 else _NAME_CELLS + 4
    grid.put(x, y, clip(name, cells, view.glyphs.ellipsis), Role.KERNEL)
    x += cells + 1
    times = f"{row.count:>3} × {fmt.brief(row.median_ns):>7}"
    x = grid.put(x, y, times, Role.TEXT) + 1
    if x + 8 <= 2 + width:
        grid.put_right(x + 8, y, fmt.brief(row.total_ns), Role.STRONG)
        x += 9
    if x + 6 <= 2 + width:
        grid.put_right(x + 5, y, figure, Role.MUTED)
        x += 6
    room = 2 + width - x
    if room >= _RATE_CELLS + 5 and (rate := _rate(row)):
        words(grid, x + 1, y, [(rate, Role.FAINT)], _RATE_CELLS, view.glyphs)
        room -= _RATE_CELLS + 2
    if room >= 3:
        shown = spark([float(v) for v in row.recent_ns], min(room, 24), view.glyphs, ceiling=max(row.recent_ns) * 1.25)
        grid.put_right(2 + width, y, shown, Role.KERNEL)


def _rate(row: KernelRow) -> str:
    if row.ops_per_s is not None:
        return f"{fmt.count(row.ops_per_s)} {_OPS.get(row.op, row.op)}/s"
    return fmt.rate(row.bytes_per_s) if row.bytes_per_s is not None else ""


def _total(job: JobView | None, now_ns: int) -> Words:
    if job is None:
        return []
    if job.inner_ns is not None:
        return [("inner ", Role.MUTED), (fmt.duration(job.inner_ns), Role.TEXT)]
    return []
