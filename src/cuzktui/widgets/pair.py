"""The pair panel sets two jobs side by side, on one scale, and says in one line what their gaps differ by."""

from __future__ import annotations

import numpy as np

from cuzktui import format as fmt
from cuzktui.model.snapshot import JobView, Lens
from cuzktui.widgets.axis import TimeAxis, binned
from cuzktui.widgets.canvas import Canvas
from cuzktui.widgets.dots import area
from cuzktui.widgets.frame import Words, framed, words
from cuzktui.widgets.grid import Grid
from cuzktui.widgets.header import job_state, state_role
from cuzktui.widgets.lens import DOTS_MS, fall_of
from cuzktui.widgets.roles import Role, gap_role
from cuzktui.widgets.view import View


class PairPanel(Canvas):
    """Two falls of memory side by side."""

    def draw(self, view: View, width: int, height: int) -> Grid:
        return pair_grid(view, width, height)


def pair_grid(view: View, width: int, height: int) -> Grid:
    """The panel as text."""
    jobs = view.pair_jobs()
    foot: Words = () if comparison(jobs) else [("the second job follows the first", Role.MUTED)]
    grid = framed(
        width,
        height,
        view.glyphs,
        [("pair", Role.TITLE), (" · same proof, two ways to give memory back", Role.MUTED)],
        foot=foot,
    )
    inside, half = height - 2, (width - 3) // 2
    if inside < 2 or half < 16:
        return grid
    side = view.glyphs.frame[5]
    for y in range(1, height - 1):
        grid.put(1 + half, y, side, Role.BORDER)
    dot_ns = _dot_ns(view, jobs, (half - 2) * view.glyphs.dots_wide)
    for number, x in enumerate((1, 2 + half)):
        if number < len(jobs):
            _draw_side(grid, view, jobs[number], x, half, inside, dot_ns)
        else:
            grid.put(x + 1, 1, "waiting …", Role.MUTED)
    return grid


def _lens_of(view: View, job: JobView) -> Lens | None:
    return next((lens for lens in reversed(view.snapshot.lenses) if lens.job_id == job.job_id), None)


def _dot_ns(view: View, jobs: list[JobView], dots: int) -> int:
    """One time scale for both sides."""
    longest = 20_000_000
    for job in jobs:
        lens = _lens_of(view, job)
        if lens is not None:
            longest = max(longest, fall_of(lens).end_ns - lens.begin_ns, lens.gap_ns(view.snapshot.t_ns))
    return next((ms * 10**6 for ms in DOTS_MS if ms * 10**6 * dots >= longest * 1.3), DOTS_MS[-1] * 10**6)


def _draw_side(grid: Grid, view: View, job: JobView, x: int, width: int, rows: int, dot_ns: int) -> None:
    policy = job.policy.value if job.policy is not None else fmt.ABSENT
    gap_ns = job.gap_ns(view.snapshot.t_ns)
    line: Words = [
        (policy, Role.STRONG), ("  gap ", Role.MUTED), (fmt.duration(gap_ns), gap_role(gap_ns)),
        ("  outer ", Role.MUTED), (fmt.duration(job.outer_ns), Role.TEXT), ("  ", Role.MUTED),
        (job_state(job), state_role(job)),
    ]  # fmt: skip
    words(grid, x + 1, 1, line, width - 2, view.glyphs)
    lens = _lens_of(view, job)
    cells, chart_rows = width - 2, rows - 1
    if lens is None or cells < 4 or chart_rows < 1:
        return
    lead = cells * view.glyphs.dots_wide // 10
    axis = TimeAxis(lens.begin_ns - lead * dot_ns, dot_ns, cells, view.glyphs.dots_wide)
    columns = binned(lens.samples.t_ns, lens.samples.column("anon"), axis)
    # what memory does once it has come down belongs to the next job
    ended_ns = max(fall_of(lens).end_ns, lens.begin_ns + (gap_ns or 0))
    columns[axis.edges()[:-1] > ended_ns + (ended_ns - lens.begin_ns) // 4 + 2 * dot_ns] = np.nan
    known = columns[~np.isnan(columns)]
    if not known.size:
        return
    text = area(columns / max(1.0, lens.top_bytes * 1.05), chart_rows, view.glyphs)
    first, last = axis.cell(lens.begin_ns), axis.cell(lens.begin_ns + (gap_ns or 0))
    roles = bytes(Role.GAP if first <= cell <= last else Role.MEMORY for cell in range(cells))
    for row, row_text in enumerate(text):
        grid.fill(x + 1, 2 + row, row_text, roles)


def comparison(jobs: list[JobView]) -> Words:
    """The gaps of two finished jobs in one sentence; empty while one is missing."""
    gaps = [job.gap_ns(0) for job in jobs if job.outer_end_ns is not None]
    if len(gaps) < 2 or gaps[0] is None or gaps[1] is None:
        return []
    first, second = (job.policy.value if job.policy is not None else fmt.ABSENT for job in jobs[:2])
    saved_ns = gaps[0] - gaps[1]
    pieces: list[tuple[str, Role]] = [
        (f"gap {fmt.duration(gaps[0])} with {first}, {fmt.duration(gaps[1])} with {second}", Role.STRONG)
    ]
    if saved_ns > 0:
        pieces.append((f": {second} answers {fmt.duration(saved_ns)} sooner", Role.GOOD))
    else:
        pieces.append((f": {second} does not answer sooner here", Role.WARN))
    return pieces
