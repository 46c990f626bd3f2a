"""The synthesis panel shows the stage now with its progress, and how far each circuit has come."""

from __future__ import annotations

from cuzktui import format as fmt
from cuzktui.analysis.forecast import Forecast, alike
from cuzktui.model.snapshot import JobView, StageView
from cuzktui.widgets.breakdown import breakdown_grid
from cuzktui.widgets.canvas import Canvas
from cuzktui.widgets.dots import bar
from cuzktui.widgets.frame import Words, framed, words
from cuzktui.widgets.grid import Grid
from cuzktui.widgets.lanes import STAGE_ROLES
from cuzktui.widgets.roles import Role
from cuzktui.widgets.view import View
from prover.wire import Progress, Stage

_UNITS = {"kernel": "kernels", "constraint": "constraints"}


class SynthesisPanel(Canvas):
    """Stage now, then a bar a circuit."""

    def draw(self, view: View, width: int, height: int) -> Grid:
        if view.attribution is not None and not view.is_service_busy:
            return breakdown_grid(view, view.attribution, width, height)
        return synthesis_grid(view, width, height)


def synthesis_grid(view: View, width: int, height: int) -> Grid:
    """The panel as text."""
    job = _shown(view)
    title = [("synthesis", Role.TITLE)]
    if job is not None and job.job_id:
        each = f"{fmt.count(job.num_constraints)} rows" if job.num_constraints else "circuits"
        title.append((f" · {job.num_circuits} × {each}", Role.MUTED))
    grid = framed(width, height, view.glyphs, title, foot=_outlook(view))
    inside = height - 2
    if inside < 1 or width < 16:
        return grid
    if job is None:
        if view.is_read_only or view.snapshot.is_replay:
            grid.put(2, 1, "no job seen yet", Role.MUTED)
            return grid
        words(grid, 2, 1, [("press ", Role.MUTED), ("p", Role.KEY), (" to prove ", Role.MUTED)], width - 4, view.glyphs)
        words(grid, 2, 2, [(str(view.choice), Role.STRONG)], width - 4, view.glyphs)
        return grid
    y = 1 + _draw_stage(grid, view, job, 1)
    circuits = _circuits(job)
    rows = 1 + inside - y
    for index in circuits[-rows:] if rows > 0 else []:
        _draw_circuit(grid, view, job, index, y)
        y += 1
    return grid


def _outlook(view: View) -> Words:
    """When the job should reply, and whether memory lasts until then."""
    ahead, now_ns = view.forecast, view.snapshot.t_ns
    if ahead is None:
        return ()
    if ahead.out_of_memory_ns is not None and not _fits(view, ahead):
        return [(f"out of {ahead.limit} memory in {fmt.duration(max(0, ahead.out_of_memory_ns - now_ns))}", Role.BAD)]
    if ahead.end_ns is None:
        return ()
    left_ns, job = ahead.end_ns - now_ns, view.job
    if left_ns <= 0 or job is None:
        return ()
    # without an earlier job of its kind only the end of the stage that runs is foreseen
    stage = job.stage_now
    what = "done" if alike(view.snapshot, job) or stage is None else f"{stage.stage.value} done"
    return [(f"{what} in about ", Role.MUTED), (fmt.duration(left_ns), Role.TEXT)]


def _fits(view: View, ahead: Forecast) -> bool:
    """The predicted peak is known and there is room for it: a ramp towards it is no alarm."""
    process = view.snapshot.process
    resident = process.memory.last("resident") if process is not None else None
    if ahead.peak_bytes is None or ahead.headroom_bytes is None or resident is None:
        return False
    return ahead.peak_bytes - resident <= ahead.headroom_bytes


def _shown(view: View) -> JobView | None:
    """The job, or the service's own work while there is no job."""
    return view.snapshot.service if view.is_service_busy else view.job


def _draw_stage(grid: Grid, view: View, job: JobView, y: int) -> int:
    """The stage now, its bar and its figures; returns the rows used."""
    now_ns = view.snapshot.t_ns
    width = grid.width - 4
    stage = _top_stage(job)
    if job.is_in_gap:
        gap = fmt.duration(job.gap_ns(now_ns))
        words(
            grid,
            2,
            y,
            [("GAP ", Role.GAP_LABEL), (gap, Role.STRONG), (" nothing computes", Role.MUTED)],
            width,
            view.glyphs,
        )
        return 1
    if stage is None:
        state = f"done in {fmt.duration(job.length_ns(now_ns))}" if job.is_done else "queued"
        role = Role.BAD if job.error else Role.GOOD
        words(grid, 2, y, [(job.error or state, role if job.is_done else Role.MUTED)], width, view.glyphs)
        return 1
    inner = job.stage_now or stage
    name = stage.stage.value if inner.stage is stage.stage else f"{stage.stage.value} {inner.stage.value}"
    took = fmt.duration(stage.length_ns(now_ns))
    words(grid, 2, y, [(name, STAGE_ROLES.get(stage.stage, Role.TEXT))], width - len(took) - 1, view.glyphs)
    grid.put_right(2 + width, y, took, Role.STRONG)
    progress = job.progress.get((stage.stage, None)) or job.progress.get((inner.stage, None))
    if progress is None or progress.total <= 0:
        return 1
    filled, rest = bar(progress.done / progress.total, width, view.glyphs)
    x = grid.put(2, y + 1, filled, STAGE_ROLES.get(stage.stage, Role.TEXT))
    grid.put(x, y + 1, rest, Role.GRID)
    words(grid, 2, y + 2, [(_figures(progress), Role.MUTED), (f" {progress.what}", Role.FAINT)], width, view.glyphs)
    return 3


def _figures(progress: Progress) -> str:
    unit = _UNITS.get(progress.unit, progress.unit)
    if unit == "percent":
        return fmt.percent(100 * progress.done / progress.total)
    if progress.total >= 100_000:
        return f"{fmt.count(progress.done)} of {fmt.count(progress.total)} {unit}".rstrip()
    return f"{progress.done} of {progress.total} {unit}".rstrip()


def _top_stage(job: JobView) -> StageView | None:
    if job.is_done:
        return None
    for stage in reversed(job.stages):
        if stage.end_ns is None and stage.circuit is None and stage.stage in STAGE_ROLES:
            return stage
    return None


def _circuits(job: JobView) -> list[int]:
    count = job.num_circuits if job.job_id else 0
    return list(range(min(count, 256)))


def circuit_share(job: JobView, index: int) -> float | None:
    """How far the synthesis of one circuit has come, 0 to 1; None before it was begun."""
    synth = job.stage(Stage.SYNTH)
    if synth is not None and synth.end_ns is not None and synth.ok:
        return 1.0
    parts = [_part(job, Stage.WITNESS, index), _part(job, Stage.EVAL_ABC, index)]
    whole = job.progress.get((Stage.SYNTH, index))
    if whole is not None and whole.total > 0:
        parts = [whole.done / whole.total]
    known = [part for part in parts if part is not None]
    return sum(known) / len(parts) if known else None


def _part(job: JobView, stage: Stage, index: int) -> float | None:
    view = job.stage(stage, index)
    if view is not None and view.end_ns is not None:
        return 1.0
    progress = job.progress.get((stage, index))
    if progress is not None and progress.total > 0:
        return progress.done / progress.total
    return 0.0 if view is not None else None


def _draw_circuit(grid: Grid, view: View, job: JobView, index: int, y: int) -> None:
    share = circuit_share(job, index)
    label = f"{index:>2} "
    figure = fmt.ABSENT if share is None else f"{100 * share:.0f} %"
    x = grid.put(2, y, label, Role.MUTED)
    filled, rest = bar(share, max(0, grid.width - 4 - len(label) - 6), view.glyphs)
    x = grid.put(x, y, filled, Role.STAGE_SYNTH if share is None or share < 1 else Role.GOOD)
    grid.put(x, y, rest, Role.GRID)
    grid.put_right(grid.width - 2, y, figure, Role.TEXT)
