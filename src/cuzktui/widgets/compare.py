"""Two jobs side by side: their stages on one scale, each begun at the same place, and every figure with its change."""

from __future__ import annotations

from cuzktui import format as fmt
from cuzktui.analysis.compare import Row, compare
from cuzktui.analysis.report import JobReport, report_of
from cuzktui.model.snapshot import JobView
from cuzktui.widgets.canvas import Canvas
from cuzktui.widgets.frame import Words, framed, words
from cuzktui.widgets.grid import Grid, clip
from cuzktui.widgets.lanes import STAGE_ROLES
from cuzktui.widgets.roles import Role
from cuzktui.widgets.view import View
from prover.wire import TOP_STAGES, Stage

SMALL_CHANGE = 0.02
"""A change of less than this share is noise and stays quiet."""
_BETTER_WHEN_LESS = ("_ms", "_bytes")
_NEUTRAL = ("munmap_bytes_per_s", "released_bytes", "background_bytes")


class ComparePanel(Canvas):
    """The comparison of the pair, of the picked job with the newest other one, or of the last two."""

    def draw(self, view: View, width: int, height: int) -> Grid:
        return compare_grid(view, width, height)


def compared_jobs(view: View) -> tuple[JobView, JobView] | None:
    """The two jobs to compare, older first; None while there are not two that ended."""
    pair = [job for job in view.pair_jobs() if job.outer_end_ns is not None]
    if len(pair) == 2 and not view.job_id:
        return pair[0], pair[1]
    ended = [job for job in view.snapshot.jobs if job.outer_end_ns is not None]
    picked = next((job for job in ended if job.job_id == view.job_id), None)
    others = [job for job in ended if job is not picked]
    if picked is not None and others:
        one, two = sorted((picked, others[-1]), key=lambda job: job.first_ns)
        return one, two
    return (ended[-2], ended[-1]) if len(ended) > 1 else None


def compare_grid(view: View, width: int, height: int) -> Grid:
    """The page as text."""
    jobs = compared_jobs(view)
    title: Words = [("compare", Role.TITLE), (" · two jobs, stages aligned", Role.MUTED)]
    foot: Words = [("e writes Markdown and JSON · Esc goes back", Role.MUTED)]
    grid = framed(width, height, view.glyphs, title, foot=foot)
    if width < 40 or height < 6:
        return grid
    if jobs is None:
        grid.put(2, 1, "two jobs that have ended are needed: p makes one, x makes a pair", Role.MUTED)
        return grid
    one, two = (report_of(view.snapshot, job) for job in jobs)
    y = _draw_names(grid, view, one, two)
    y = _draw_stages(grid, view, jobs, y + 1)
    _draw_rows(grid, compare(one, two), y + 1)
    return grid


def _draw_names(grid: Grid, view: View, one: JobReport, two: JobReport) -> int:
    for y, (mark, report) in enumerate((("A", one), ("B", two)), start=1):
        job = report.job
        policy = job.policy.value if job.policy is not None else fmt.ABSENT
        line: Words = [
            (f"{mark} ", Role.KEY), (f"{job.job_id} ", Role.STRONG),
            (f"{job.circuit} ×{job.num_circuits} ", Role.TEXT), (policy, Role.STRONG),
            (f"  {report.finding}", Role.MUTED),
        ]  # fmt: skip
        words(grid, 2, y, line, grid.width - 4, view.glyphs)
    return 2


def _draw_stages(grid: Grid, view: View, jobs: tuple[JobView, JobView], y: int) -> int:
    """Each stage gets cells by the longer of its runs, so that both begin at the same cell; returns the last row."""
    lengths = [(stage, _length_ns(jobs[0], stage), _length_ns(jobs[1], stage)) for stage in TOP_STAGES]
    shown = [(stage, a, b) for stage, a, b in lengths if max(a, b) > 0]
    room = grid.width - 6
    longest = sum(max(a, b) for _, a, b in shown)
    if not shown or room < 20:
        return y
    full, empty = ("#", ".") if view.glyphs.mode == "ascii" else ("█", "─")
    x = 4
    grid.put(2, y + 1, "A", Role.KEY)
    grid.put(2, y + 2, "B", Role.KEY)
    for number, (stage, a, b) in enumerate(shown):
        last = number == len(shown) - 1
        cells = grid.width - 2 - x if last else max(1, round(room * max(a, b) / longest))
        cells = min(cells, grid.width - 2 - x - (len(shown) - 1 - number))
        grid.put(x, y, clip(stage.value, cells, view.glyphs.ellipsis) if cells > 2 else "", Role.MUTED)
        for row, length in ((1, a), (2, b)):
            filled = round(cells * length / max(a, b))
            grid.put(x, y + row, full * filled, STAGE_ROLES[stage])
            grid.put(x + filled, y + row, empty * (cells - filled), Role.GRID)
            job = jobs[row - 1]
            gap = job.gap_ns(view.snapshot.t_ns) or 0
            if stage is Stage.PROVE and length and gap:
                gap_cells = min(filled, round(filled * gap / length))
                grid.paint(x + filled - gap_cells, y + row, gap_cells, Role.GAP)
        x += cells
    return y + 3


def _length_ns(job: JobView, stage: Stage) -> int:
    return sum(view.length_ns(view.begin_ns) for view in job.stages if view.stage is stage and view.circuit is None)


def _draw_rows(grid: Grid, rows: list[Row], y: int) -> None:
    columns = (26, 40, 54)
    for x, name in zip((*columns, 68), ("A", "B", "change", ""), strict=True):
        grid.put_right(x + 10, y, name, Role.MUTED)
    for row in rows:
        y += 1
        if y >= grid.height - 1:
            return
        grid.put(2, y, row.name, Role.TEXT)
        for x, value in zip(columns, (row.said(row.left), row.said(row.right)), strict=False):
            grid.put_right(x + 10, y, value, Role.STRONG)
        if row.delta is not None:
            sign = "+" if row.delta > 0 else ""
            grid.put_right(columns[2] + 10, y, f"{sign}{row.said(row.delta)}", change_role(row))
        if row.ratio is not None:
            grid.put(columns[2] + 12, y, f"×{fmt.three_digits(row.ratio)}", change_role(row))


def change_role(row: Row) -> Role:
    """Whether a change is for the better, for the worse, or no news."""
    delta = row.delta
    base = max(abs(row.left or 0.0), abs(row.right or 0.0))
    if delta is None or base == 0 or abs(delta) < SMALL_CHANGE * base or row.key in _NEUTRAL:
        return Role.MUTED
    if row.key.endswith(_BETTER_WHEN_LESS):
        return Role.GOOD if delta < 0 else Role.WARN
    return Role.MUTED
