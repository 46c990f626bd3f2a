"""The experiment page: what each policy costs so far, in medians with their spread, and what still runs."""

from __future__ import annotations

from cuzktui import format as fmt
from cuzktui.analysis.trials import Spread, Table
from cuzktui.trial import Trial
from cuzktui.widgets.canvas import Canvas
from cuzktui.widgets.dots import bar
from cuzktui.widgets.frame import Words, framed, words
from cuzktui.widgets.grid import Grid
from cuzktui.widgets.roles import Role, gap_role
from cuzktui.widgets.view import View

_COLUMNS = (("gap_ms", "gap"), ("outer_ms", "prove call"), ("total_ms", "total"), ("peak_rss_bytes", "peak resident"))
_NAME_CELLS = 13
_CELLS = 27


class ExperimentPanel(Canvas):
    """The trial that runs, or the last one."""

    def draw(self, view: View, width: int, height: int) -> Grid:
        return experiment_grid(view, width, height)


def experiment_grid(view: View, width: int, height: int) -> Grid:
    """The page as text."""
    trial = view.trial
    title: Words = [("experiment", Role.TITLE), (" · one job under each release policy", Role.MUTED)]
    foot: Words = [("c stops it · e writes Markdown and JSON · Esc goes back, it runs on", Role.MUTED)]
    grid = framed(width, height, view.glyphs, title, foot=foot)
    if trial is None or width < 40 or height < 5:
        return grid
    words(grid, 2, 1, _state(view, trial), width - 4, view.glyphs)
    table = trial.table()
    y = _draw_table(grid, table, 3)
    _draw_bars(grid, view, table, y + 1)
    return grid


def _state(view: View, trial: Trial) -> Words:
    line: list[tuple[str, Role]] = [
        (f"{trial.circuit} ×{trial.num_circuits}", Role.STRONG), (f", {trial.repeat} of each  ", Role.MUTED),
    ]  # fmt: skip
    if trial.ended:
        return [*line, (f"ended early: {trial.ended}", Role.BAD)]
    if trial.is_over:
        return [*line, ("done", Role.GOOD), (", Markdown and JSON written", Role.MUTED)]
    job = view.snapshot.find_job(trial.job_id) if trial.job_id else None
    doing = "asked for" if job is None else "settling" if job.is_done else "running"
    what = "warm-up" if trial.asked == 1 else f"{trial.asked - 1} of {len(trial.order) - 1}"
    return [*line, (f"{what} ", Role.STRONG), (f"{trial.policy} {doing}", Role.TEXT)]


def _draw_table(grid: Grid, table: Table, y: int) -> int:
    """Medians with least and most; returns the row after."""
    shown = max(1, min(len(_COLUMNS), (grid.width - 4 - _NAME_CELLS) // _CELLS))
    for number, (_, name) in enumerate(_COLUMNS[:shown]):
        grid.put(2 + _NAME_CELLS + number * _CELLS, y, f"{name} (least–most)", Role.MUTED)
    for policy, figures in table.items():
        y += 1
        grid.put(2, y, policy, Role.STRONG)
        for number, (key, _) in enumerate(_COLUMNS[:shown]):
            spread = figures[key]
            role = gap_role(int(spread.median * 1e6)) if key == "gap_ms" and spread is not None else Role.TEXT
            grid.put(2 + _NAME_CELLS + number * _CELLS, y, _said(key, spread), role)
    return y + 1


def _said(key: str, spread: Spread | None) -> str:
    if spread is None:
        return fmt.ABSENT
    say = fmt.size if key.endswith("_bytes") else fmt.milliseconds
    return f"{say(spread.median)} ({say(spread.least)}–{say(spread.most)})"


def _draw_bars(grid: Grid, view: View, table: Table, y: int) -> None:
    """Median gaps on one scale."""
    gaps = {policy: spread.median for policy, figures in table.items() if (spread := figures["gap_ms"]) is not None}
    widest = max(gaps.values(), default=0.0)
    room = grid.width - 4 - _NAME_CELLS - 12
    if not gaps or room < 10:
        return
    grid.put(2, y, "median gap", Role.MUTED)
    for policy, gap in gaps.items():
        y += 1
        if y >= grid.height - 1:
            return
        grid.put(2, y, policy, Role.TEXT)
        filled, rest = bar(gap / widest if widest else None, room, view.glyphs)
        x = grid.put(2 + _NAME_CELLS, y, filled, gap_role(int(gap * 1e6)))
        grid.put(x, y, rest, Role.GRID)
        grid.put_right(grid.width - 2, y, fmt.milliseconds(gap), Role.STRONG)
