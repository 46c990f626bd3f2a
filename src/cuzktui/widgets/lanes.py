"""Lanes are rows under the memory graph on its own time axis: what ran when, and how busy the machine was."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuzktui import format as fmt
from cuzktui.analysis.finding import SMALL_GAP_NS
from cuzktui.analysis.outside import Cause, stretches
from cuzktui.model.snapshot import JobView, ProcessView, Snapshot
from cuzktui.widgets.axis import TimeAxis
from cuzktui.widgets.dots import Glyphs
from cuzktui.widgets.grid import Grid
from cuzktui.widgets.roles import Role
from prover.wire import Stage

STAGE_ROLES = {
    Stage.QUEUE: Role.FAINT,
    Stage.COMPILE: Role.STAGE_SETUP,
    Stage.SETUP: Role.STAGE_SETUP,
    Stage.SRS: Role.STAGE_SETUP,
    Stage.SYNTH: Role.STAGE_SYNTH,
    Stage.PROVE: Role.STAGE_PROVE,
    Stage.VERIFY: Role.STAGE_VERIFY,
}
"""Stages of the upper lane; the gap is drawn over the end of `prove`."""

_CAUSE_ROLES = {
    Cause.RELEASING: Role.GAP,
    Cause.PAGE_FAULTING: Role.SYSTEM,
    Cause.CPU_BUSY: Role.USER,
    Cause.DISK_WAIT: Role.STAGE_PROVE,
    Cause.LOCK_WAIT: Role.WARN,
}


@dataclass(frozen=True, slots=True)
class Block:
    """A named stretch of time."""

    begin_ns: int
    end_ns: int
    name: str
    role: Role
    device: str = ""
    """The card it ran on, such as `cuda:1`."""


def stage_blocks(jobs: Iterable[JobView], now_ns: int) -> list[Block]:
    """Top-level stages of jobs, then their gaps, in the order to draw them."""
    stages: list[Block] = []
    gaps: list[Block] = []
    for job in jobs:
        for view in job.stages:
            role = STAGE_ROLES.get(view.stage)
            if role is not None and view.circuit is None:
                end_ns = view.end_ns or job.ended_ns or now_ns
                stages.append(Block(view.begin_ns, end_ns, view.stage.value, role))
        gap_ns = job.gap_ns(now_ns)
        if job.inner_end_ns is not None and gap_ns:
            is_small = gap_ns < SMALL_GAP_NS and not job.is_in_gap
            name = f"{'gap' if is_small else 'GAP'} {fmt.duration(gap_ns)}"
            role = Role.STAGE_VERIFY if is_small else Role.GAP
            gaps.append(Block(job.inner_end_ns, job.inner_end_ns + gap_ns, name, role))
    # waiting is drawn under what was waited for
    return sorted(stages, key=lambda block: block.name != Stage.QUEUE) + gaps


def cause_blocks(process: ProcessView, axis: TimeAxis) -> list[Block]:
    """What a process that tells nothing was doing, as far as it can be inferred from outside; releases last."""
    told = stretches(process, axis.begin_ns, axis.end_ns)
    blocks = [Block(s.begin_ns, s.end_ns, s.cause.value, _CAUSE_ROLES.get(s.cause, Role.FAINT)) for s in told]
    return sorted(blocks, key=lambda block: block.role is Role.GAP)


def kernel_blocks(jobs: Iterable[JobView], begin_ns: int, end_ns: int, resolution_ns: int) -> list[Block]:
    """Spans in a window, those of one name and card that touch at the axis' resolution joined."""
    found: list[Block] = []
    last: dict[tuple[str, str], int] = {}
    spans = [s for job in jobs for s in job.spans if s.t_ns >= begin_ns and s.begin_ns <= end_ns]
    for span in sorted(spans, key=lambda s: s.begin_ns):
        device = span.lane.partition(" ")[0] if span.lane.startswith("cuda:") else ""
        at = last.get((device, span.name))
        if at is not None and span.begin_ns <= found[at].end_ns + resolution_ns:
            joined = found[at]
            found[at] = Block(joined.begin_ns, max(joined.end_ns, span.t_ns), span.name, Role.KERNEL, device)
        else:
            last[device, span.name] = len(found)
            found.append(Block(span.begin_ns, span.t_ns, span.name, Role.KERNEL, device))
    return found


def by_card(blocks: list[Block], rows: int) -> dict[str, list[Block]]:
    """Named rows, a card each, where blocks come from several; else empty.

    What ran on the CPU is in the first row, and cards beyond the number of rows are in the last.
    """
    devices = sorted({block.device for block in blocks if block.device}, key=lambda name: (len(name), name))
    if len(devices) < 2 or rows < 2:
        return {}
    groups = [[name] for name in devices[: rows - 1]] + ([devices[rows - 1 :]] if len(devices) >= rows else [])
    names = [group[0] if len(group) == 1 else f"{group[0]} +{len(group) - 1}" for group in groups]
    groups[0].append("")
    return {name: [b for b in blocks if b.device in group] for name, group in zip(names, groups, strict=True)}


def packed(blocks: list[Block], axis: TimeAxis, rows: int) -> list[list[Block]]:
    """Blocks laid into rows so that none hides another; what does not fit joins the last row."""
    lanes: list[list[Block]] = [[] for _ in range(rows)]
    ends = [-1] * rows
    for block in blocks:
        first, last = axis.cell(block.begin_ns), axis.cell(block.end_ns)
        if last < 0 or first >= axis.cells:
            continue
        row = next((r for r in range(rows) if ends[r] < first), rows - 1)
        lanes[row].append(block)
        ends[row] = max(ends[row], last)
    return [lane for lane in lanes if lane]


def draw_blocks(grid: Grid, x: int, y: int, axis: TimeAxis, blocks: list[Block], glyphs: Glyphs) -> None:
    """One lane: each block a bar with its name at its left end where it fits, and where no later block lies over it."""
    full = glyphs.bar[0]
    longest = max((b for b in blocks if b.role is Role.GAP), key=lambda b: b.end_ns - b.begin_ns, default=None)
    newest_ns = max((block.end_ns for block in blocks), default=0)
    lies_over = {axis.cell(max(b.begin_ns, b.end_ns - 1)) for b in blocks if b.role is Role.GAP}
    owners = [-1] * axis.cells
    shown: list[tuple[int, Block, Role, int, int]] = []
    for number, block in enumerate(blocks):
        first = max(0, axis.cell(block.begin_ns))
        last = min(axis.cells - 1, axis.cell(max(block.begin_ns, block.end_ns - 1)))
        if last < 0 or first >= axis.cells or last < first:
            continue
        role = Role.KERNEL_ALT if block.role is Role.KERNEL and number % 2 else block.role
        grid.put(x + first, y, full * (last - first + 1), role)
        owners[first : last + 1] = [number] * (last - first + 1)
        shown.append((number, block, role, first, last))
    previous = -2
    for number, block, role, first, last in shown:
        width = last - first + 1
        label = block.name if len(block.name) < width else block.name.split(" ")[0]
        is_gap = block.name.lower().startswith("gap ")
        # one release of several is named beside its bar, if that can be seen: the name lies over what was done then
        may_lie_outside = block.end_ns >= newest_ns or (block is longest and width > 1)
        if is_gap or (role is Role.GAP and (len(block.name) + 4 <= width or may_lie_outside)):
            strong = Role.GAP_LABEL if role is Role.GAP else Role.GOOD
            _name_gap(grid, x, y, axis, block.name, strong, first, last)
        elif len(label) < width and role is not Role.GAP:
            has_room = width > len(label) + 1
            at = first + (1 if (first in lies_over or previous == first - 1) and has_room else 0)
            if (has_room or first not in lies_over) and set(owners[at : at + len(label)]) == {number}:
                grid.put(x + at, y, label, role)
        previous = last


def _name_gap(grid: Grid, x: int, y: int, axis: TimeAxis, name: str, role: Role, first: int, last: int) -> None:
    """A gap is named inside where it fits, else after it, else before it: it is what the operator came to see."""
    text = f" {name} "
    if len(text) <= last - first - 1:
        start = (first + last + 1 - len(text)) // 2
    elif last + 1 + len(text) <= axis.cells:
        start = last + 1
    else:
        start = first - len(text)
    if start >= 0:
        grid.put(x + start, y, text, role)


def draw_levels(
    grid: Grid, x: int, y: int, columns: NDArray[np.float64], ceiling: float, dots_wide: int, glyphs: Glyphs, role: Role
) -> None:
    """One lane of bars from empty to full; a cell without a reading stays blank."""
    by_cell = columns.reshape(-1, dots_wide)
    known = np.logical_not(np.isnan(by_cell).all(axis=1, keepdims=False))
    values = np.fmax.reduce(by_cell, axis=1)
    last = len(glyphs.spark) - 1
    steps = np.where(known, np.rint(np.nan_to_num(values) / max(ceiling, 1e-9) * last), 0).clip(0, last).astype(int)
    low = glyphs.spark[1]
    levels = zip(steps.tolist(), known.tolist(), strict=True)
    text = "".join(glyphs.spark[step] if step else (low if is_known else " ") for step, is_known in levels)
    roles = bytes(role if s else Role.GRID for s in steps.tolist())
    grid.fill(x, y, text, roles)


def shown_jobs(snapshot: Snapshot, axis: TimeAxis) -> list[JobView]:
    """Jobs, and the service's own work, that reach into the window; the oldest first."""
    now_ns = snapshot.t_ns
    found = [j for j in snapshot.jobs if j.first_ns <= axis.end_ns and (j.ended_ns or now_ns) >= axis.begin_ns]
    return [snapshot.service, *found] if snapshot.service is not None else found
