"""The memory panel is the largest: memory, stages, kernels, GPU and CPU on one time axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from textual import events

from cuzktui import format as fmt
from cuzktui.analysis.expectation import expected_of, levels
from cuzktui.analysis.finding import SMALL_GAP_NS
from cuzktui.analysis.reconcile import allowance_bytes, reconciled
from cuzktui.messages import ChartPointed, ChartZoomed
from cuzktui.model.snapshot import JobView, ProcessView
from cuzktui.widgets import chart, lanes
from cuzktui.widgets.axis import TimeAxis, axis_ending, binned, ticks
from cuzktui.widgets.canvas import Canvas
from cuzktui.widgets.frame import Words, framed
from cuzktui.widgets.grid import Grid
from cuzktui.widgets.roles import Role
from cuzktui.widgets.scale import ByteScale, byte_scale
from cuzktui.widgets.view import View

GUTTER = 10
"""Cells left of the time axis: figures and names of lanes."""
_SLOW_HOLD_NS = 1_500_000_000
"""A reading made five times a second is drawn until the next one, not longer than this."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A row under the chart."""

    name: str
    kind: str
    """ticks | cause | stage | kernel | gpu | user | system"""
    row: int = 0
    """Which row of kernels, or which GPU."""


class MemoryPanel(Canvas):
    """The memory graph with its lanes; the wheel zooms, a click places the cursor."""

    def draw(self, view: View, width: int, height: int) -> Grid:
        return memory_grid(view, width, height)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.post_message(ChartZoomed(-1))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.post_message(ChartZoomed(1))

    def on_click(self, event: events.Click) -> None:
        if self._view is None:
            return
        axis = axis_of(self._view, self.size.width)
        cell = event.x - 1 - GUTTER
        self.post_message(ChartPointed(axis.time_of(cell) if 0 <= cell < axis.cells else None))


def axis_of(view: View, width: int) -> TimeAxis:
    """The time axis of a memory panel of this width."""
    return axis_ending(view.end_ns, view.span_s, max(1, width - 2 - GUTTER), view.glyphs.dots_wide)


def memory_grid(view: View, width: int, height: int) -> Grid:
    """The panel as text."""
    snapshot, glyphs = view.snapshot, view.glyphs
    grid = framed(width, height, glyphs, _title(view), right=_right(view))
    process = snapshot.process
    axis = axis_of(view, width)
    inside = height - 2
    if inside < 1 or width < GUTTER + 8:
        return grid
    rows = _lanes(view, inside)
    chart_rows = inside - len(rows)
    jobs = lanes.shown_jobs(snapshot, axis)
    if process is None:
        grid.put(1 + GUTTER, 1 + chart_rows // 2, "waiting for the first reading of a process …", Role.MUTED)
    elif chart_rows > 0:
        _draw_chart(grid, view, axis, chart_rows, process, jobs)
    _draw_lanes(grid, view, axis, 1 + chart_rows, rows, process, jobs)
    if view.cursor_ns is not None and 0 <= (cell := axis.cell(view.cursor_ns)) < axis.cells:
        for y in range(1, height - 1):
            grid.paint(1 + GUTTER + cell, y, 1, Role.CURSOR)
    return grid


def _draw_chart(
    grid: Grid, view: View, axis: TimeAxis, rows: int, process: ProcessView, jobs: list[JobView]
) -> None:  # fmt: skip
    snapshot = view.snapshot
    anon = chart.memory_columns(process.memory, axis, "anon")
    top = chart.memory_columns(process.memory, axis, "resident") if view.with_mapped else anon
    predicted = _predicted(view, process)
    stack = levels(expected_of(snapshot))
    scale = _scale(top, max([predicted or 0.0, *(float(height) for _, height in stack)]), rows)
    chart.draw_scale(grid, 1, 1, GUTTER, axis.cells, scale)
    held = reconciled(snapshot)
    itself, allowed = (held.baseline_bytes, allowance_bytes(held.peak_bytes)) if held is not None else (np.inf, 0.0)
    bands = chart.band_columns(snapshot.ledger, axis, anon, itself, allowed)
    if not view.with_mapped:
        bands[-1] = np.inf
    gaps = [
        (job.inner_end_ns, job.inner_end_ns + gap_ns)
        for job in jobs
        if job.inner_end_ns is not None
        and (gap_ns := job.gap_ns(snapshot.t_ns)) is not None
        and (gap_ns >= SMALL_GAP_NS or job.is_in_gap)
    ]
    if predicted is not None and scale.share(predicted) <= 1:
        row = 1 + scale.row(predicted)
        grid.put(1 + GUTTER, row, "┄" * axis.cells if view.glyphs.mode != "ascii" else "-" * axis.cells, Role.LIMIT)
    area = Grid(axis.cells, scale.rows)
    chart.draw_area(area, 0, 0, axis, scale, view.glyphs, top, bands, gaps)
    _overlay(grid, area, 1 + GUTTER, 1)
    if predicted is not None and scale.share(predicted) <= 1:
        grid.put(2 + GUTTER, 1 + scale.row(predicted), f" predicted peak {fmt.size(predicted)} ", Role.LIMIT)
    chart.draw_expected(grid, 1 + GUTTER, 1, axis.cells, scale, stack, "-" if view.glyphs.mode == "ascii" else "┄")
    grid.put(1, 1, scale.unit, Role.FAINT)
    chart.draw_labels(grid, 1 + GUTTER, 1, axis, scale, process.phases)


def _overlay(grid: Grid, area: Grid, x: int, y: int) -> None:
    """Lays the area over the scale: where nothing is filled, the scale shows through."""
    for row in range(area.height):
        text, roles = area.row_key(row)
        at = 0
        for piece in text.split(" "):
            if piece:
                grid.fill(x + at, y + row, piece, roles[at : at + len(piece)])
            at += len(piece) + 1


def _scale(top: NDArray[np.float64], predicted: float | None, rows: int) -> ByteScale:
    known = top[~np.isnan(top)]
    highest = float(known.max()) if known.size else 0.0
    return byte_scale(0.0, max(highest * 1.06, (predicted or 0.0) * 1.06, 64e6), rows)


def _predicted(view: View, process: ProcessView) -> float | None:
    """The prover predicts resident memory; without the mapped part on the graph that part is taken off."""
    job = view.job
    if job is None or job.is_done or job.predicted_peak_bytes is None:
        return None
    mapped = 0.0 if view.with_mapped else process.memory.last("shared") or 0.0
    return max(0.0, job.predicted_peak_bytes - mapped)


def _lanes(view: View, inside: int) -> list[Lane]:
    """Rows under the chart, the most telling first; the chart keeps at least half of the panel."""
    wanted = [Lane("", "ticks")]
    wanted += [Lane("cause", "cause")] if view.is_stranger else [Lane("stage", "stage"), Lane("kernel", "kernel", 0)]
    gpus = sorted(view.snapshot.gpus)
    wanted += [Lane("gpu" if len(gpus) == 1 else f"gpu{device}", "gpu", device) for device in gpus[:1]]
    wanted += [Lane("user", "user"), Lane("sys", "system")]
    wanted += [Lane(f"gpu{device}", "gpu", device) for device in gpus[1:8]]
    if not view.is_stranger:
        wanted += [Lane("", "kernel", number) for number in ((1, 2) if inside >= 22 else (1,))]
    room = max(0, min(inside - 4, inside // 2))
    if inside >= 30:
        room = max(room, len(wanted))
    chosen = wanted[:room]
    order = ("ticks", "cause", "stage", "kernel", "gpu", "user", "system")
    return sorted(chosen, key=lambda lane: (order.index(lane.kind), lane.row))


def _draw_lanes(
    grid: Grid, view: View, axis: TimeAxis, y: int, rows: list[Lane], process: ProcessView | None, jobs: list[JobView]
) -> None:
    snapshot, glyphs, x = view.snapshot, view.glyphs, 1 + GUTTER
    kernel_rows = sum(lane.kind == "kernel" for lane in rows)
    cell_ns = axis.dot_ns * axis.dots_wide
    blocks = lanes.kernel_blocks(jobs, axis.begin_ns, axis.end_ns, cell_ns) if kernel_rows else []
    cards = lanes.by_card(blocks, kernel_rows)
    packed = list(cards.values()) or (lanes.packed(blocks, axis, kernel_rows) if kernel_rows else [])
    for lane in rows:
        name = list(cards)[lane.row] if lane.kind == "kernel" and lane.row < len(cards) else lane.name
        grid.put(1, y, name[: GUTTER - 1], Role.MUTED)
        if lane.kind == "ticks":
            _draw_ticks(grid, view, axis, y)
        elif lane.kind == "cause" and process is not None:
            lanes.draw_blocks(grid, x, y, axis, lanes.cause_blocks(process, axis), glyphs)
        elif lane.kind == "stage":
            lanes.draw_blocks(grid, x, y, axis, lanes.stage_blocks(jobs, snapshot.t_ns), glyphs)
        elif lane.kind == "kernel":
            if lane.row < len(packed):
                lanes.draw_blocks(grid, x, y, axis, packed[lane.row], glyphs)
        else:
            _draw_meter(grid, view, axis, y, lane, process)
        y += 1


def _draw_ticks(grid: Grid, view: View, axis: TimeAxis, y: int) -> None:
    for cell, offset_ns in ticks(axis, view.anchor_ns):
        mark = f"{view.glyphs.tick}{fmt.age(offset_ns)}"
        if cell + len(mark) <= axis.cells:
            grid.put(1 + GUTTER + cell, y, mark, Role.FAINT)


def _draw_meter(grid: Grid, view: View, axis: TimeAxis, y: int, lane: Lane, process: ProcessView | None) -> None:
    snapshot, glyphs, kind = view.snapshot, view.glyphs, lane.kind
    if kind == "gpu":
        series, column, role, ceiling = snapshot.gpus[lane.row].series, "util_percent", Role.GPU, 100.0
    elif process is not None:
        role = Role.USER if kind == "user" else Role.SYSTEM
        series, column, ceiling = process.cpu, f"{kind}_percent", _cpu_ceiling(view)
    else:
        return
    columns = binned(series.t_ns, series.column(column), axis, hold_ns=_SLOW_HOLD_NS)
    at_ns = view.cursor_ns if view.cursor_ns is not None else view.end_ns
    value = series.at(at_ns, column)
    grid.put_right(1 + GUTTER - 1, y, "–" if value is None else f"{value:.0f}%", role)
    lanes.draw_levels(grid, 1 + GUTTER, y, columns, ceiling, axis.dots_wide, glyphs, role)


def _cpu_ceiling(view: View) -> float:
    for hello in (view.snapshot.hello, view.snapshot.collector):
        if hello is not None and hello.cpu_count:
            return 100.0 * hello.cpu_count
    return 100.0


def _title(view: View) -> Words:
    snapshot, process = view.snapshot, view.snapshot.process
    title: list[tuple[str, Role]] = [("memory", Role.TITLE)]
    if process is None:
        return title
    at_ns = view.cursor_ns if view.cursor_ns is not None else view.end_ns
    title += [(" · anon ", Role.MUTED), (fmt.size(process.memory.at(at_ns, "anon")), Role.STRONG)]
    if view.cursor_ns is not None:
        title.append((f" at {fmt.age(view.cursor_ns - view.anchor_ns)}", Role.CURSOR))
    title += [(" · mapped ", Role.MUTED), (fmt.size(process.memory.at(at_ns, "shared")), Role.TEXT)]
    if view.with_mapped:
        title.append((" on top", Role.MAPPED))
    host = snapshot.host
    if host is not None:
        available = fmt.size_of(host.mem_available_bytes, host.mem_total_bytes)
        title += [(" · available ", Role.MUTED), (available, Role.TEXT)]
        if host.cgroup_limit_bytes is not None:
            cgroup = fmt.size_of(host.cgroup_bytes, host.cgroup_limit_bytes)
            title += [(" · cgroup ", Role.MUTED), (cgroup, Role.TEXT)]
    return title


def _right(view: View) -> Words:
    return [(fmt.age(view.span_s * 1e9), Role.FAINT)]
