"""The jobs strip has a line a job, newest first: what was asked, its two clocks, its gap and what came of it."""

from __future__ import annotations

from textual import events

from cuzktui import format as fmt
from cuzktui.messages import JobPicked
from cuzktui.model.snapshot import JobView
from cuzktui.widgets.canvas import Canvas
from cuzktui.widgets.frame import Words, framed, words
from cuzktui.widgets.grid import Grid, clip
from cuzktui.widgets.header import job_state, state_role
from cuzktui.widgets.roles import Role, gap_role
from cuzktui.widgets.view import View

_COLUMNS = (("gap", 9), ("inner", 9), ("outer", 9), ("total", 9), ("peak", 9))
_NAME_CELLS = 28


class JobsPanel(Canvas):
    """Jobs; a click brings one into the picture."""

    def draw(self, view: View, width: int, height: int) -> Grid:
        return jobs_grid(view, width, height)

    def on_click(self, event: events.Click) -> None:
        if self._view is None:
            return
        shown = _newest_first(self._view)
        at = event.y - 2
        if 0 <= at < len(shown):
            self.post_message(JobPicked(shown[at].job_id))


def _newest_first(view: View) -> list[JobView]:
    return list(reversed(view.snapshot.jobs))


def jobs_grid(view: View, width: int, height: int) -> Grid:
    """The panel as text."""
    shown = _newest_first(view)
    waiting = len(view.snapshot.queued)
    title: Words = [("jobs", Role.TITLE), (f" · {waiting} waiting" if waiting else "", Role.MUTED)]
    foot: Words = [("next ", Role.FAINT), (f"{view.choice} · {view.policy.value}", Role.MUTED)]
    if view.is_read_only or view.snapshot.is_replay:
        foot = ()
    grid = framed(width, height, view.glyphs, title, foot=foot)
    inside = height - 2
    if inside < 1 or width < 30:
        return grid
    room = width - 4
    columns = _COLUMNS[: max(0, (room - _NAME_CELLS - 11) // 9)]
    name_cells = room - 11 - sum(cells for _, cells in columns)
    if not shown and (view.is_read_only or view.snapshot.is_replay):
        grid.put(2, 1, "no job seen yet", Role.MUTED)
        return grid
    if not shown:
        words(
            grid,
            2,
            1,
            [("no job yet · ", Role.MUTED), ("p", Role.KEY), (" makes the first proof", Role.MUTED)],
            room,
            view.glyphs,
        )
        return grid
    x = 2 + name_cells
    for name, cells in columns:
        grid.put_right(x + cells, 1, name, Role.FAINT)
        x += cells
    for y, job in enumerate(shown[: inside - 1], start=2):
        _draw_job(grid, view, job, y, name_cells, columns)
    return grid


def _draw_job(
    grid: Grid, view: View, job: JobView, y: int, name_cells: int, columns: tuple[tuple[str, int], ...]
) -> None:
    now_ns = view.snapshot.t_ns
    policy = f" · {job.policy.value}" if job.policy is not None else ""
    name = f"{job.circuit or job.kind} ×{job.num_circuits}{policy}"
    role = Role.STRONG if not job.is_done else Role.TEXT
    grid.put(2, y, clip(name, name_cells - 1, view.glyphs.ellipsis), role)
    gap_ns = job.gap_ns(now_ns)
    figures = {
        "inner": (fmt.brief(job.inner_ns), Role.TEXT),
        "gap": (fmt.brief(gap_ns), gap_role(gap_ns)),
        "outer": (fmt.brief(job.outer_ns), Role.TEXT),
        "total": (fmt.brief(job.length_ns(now_ns)), Role.MUTED),
        "peak": (fmt.size(job.peak_anon_bytes), Role.MUTED),
    }
    x = 2 + name_cells
    for column, cells in columns:
        text, column_role = figures[column]
        grid.put_right(x + cells, y, text, column_role)
        x += cells
    grid.put_right(grid.width - 2, y, job_state(job), state_role(job))
