"""The memory chart is the reading itself as a filled area; owners only colour it, words only lie on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuzktui import format as fmt
from cuzktui.model.ledger import Ledger
from cuzktui.model.phases import Phase, PhaseKind
from cuzktui.model.series import Series
from cuzktui.widgets.axis import TimeAxis, binned
from cuzktui.widgets.dots import Glyphs, area
from cuzktui.widgets.grid import Grid
from cuzktui.widgets.roles import Role
from cuzktui.widgets.scale import ByteScale
from prover.wire import Owner

STACK: tuple[tuple[Owner, Role, str], ...] = (
    (Owner.SRS, Role.OWNER_SRS, "@"),
    (Owner.SETUP, Role.OWNER_SETUP, "*"),
    (Owner.POOL, Role.OWNER_POOL, "o"),
    (Owner.ASSIGNMENT, Role.OWNER_ASSIGNMENT, "="),
    (Owner.ABC, Role.OWNER_ABC, "#"),
    (Owner.SPLIT, Role.OWNER_SPLIT, "%"),
    (Owner.TAIL_BASES, Role.OWNER_TAIL, "+"),
    (Owner.SCRATCH, Role.OWNER_SCRATCH, "-"),
)
"""Owners from the bottom of the stack, with the letter that fills their band where there is no colour."""
REST: tuple[tuple[Role, str], ...] = ((Role.MEMORY, ":"), (Role.WARN, "?"), (Role.MAPPED, "."))
"""Above the owners: the process itself, what nobody explains, and mapped memory."""
BANDS = len(STACK) + 2
"""Bands that end at or below anonymous memory."""


def memory_columns(memory: Series, axis: TimeAxis, column: str) -> NDArray[np.float64]:
    """One column of memory (anon, shared, resident) for each dot column, bytes."""
    return binned(memory.t_ns, memory.column(column), axis)


def band_columns(
    ledger: Ledger, axis: TimeAxis, top: NDArray[np.float64], itself_bytes: float = np.inf, allowance_bytes: float = 0.0
) -> NDArray[np.float64]:
    """Upper edges of the bands for each dot column, `(BANDS, dots)`, never above what was measured.

    Above the owners comes the process itself, then what nobody explains, which ends at `top`, anonymous memory; what
    lies above that is mapped. The ledger's last row is in force until the next, so its columns are held to the end of
    the axis.

    Args:
        itself_bytes: what the process itself holds beyond its buffers, allocated ones included.
        allowance_bytes: so much more is let pass; where there is more than that, all of it is unexplained.
    """
    edges = np.zeros((BANDS, axis.dots))
    edges[-2:] = np.nan_to_num(top)
    series = ledger.series
    if not len(series):
        return edges
    rows = np.searchsorted(series.t_ns, axis.edges()[1:]) - 1
    known = rows >= 0
    running = np.zeros(axis.dots)
    for band, (owner, _, _) in enumerate(STACK):
        held = np.where(known, series.column(owner.value)[np.maximum(rows, 0)], 0.0)
        running = running + held
        edges[band] = np.fmin(running, np.nan_to_num(top))
    reserved = np.where(known, series.column("allocated")[np.maximum(rows, 0)], np.inf)
    explained = np.fmax(running, reserved) + itself_bytes
    edges[-2] = np.where(edges[-1] - explained > allowance_bytes, explained, edges[-1])
    return edges


def draw_area(
    grid: Grid, x: int, y: int, axis: TimeAxis, scale: ByteScale, glyphs: Glyphs, top: NDArray[np.float64],
    bands: NDArray[np.float64], gaps: list[tuple[int, int]],
) -> None:  # fmt: skip
    """The filled area, coloured by owner, and by the gap where a gap is."""
    rows = area((top - scale.low) / (scale.high - scale.low), scale.rows, glyphs)
    tops = np.nan_to_num(top).reshape(axis.cells, axis.dots_wide).max(axis=1)
    roles = _cell_roles(axis, scale, bands, tops, gaps)
    letters = "".join([*(letter for _, _, letter in STACK), *(letter for _, letter in REST)])
    for row, text in enumerate(rows):
        if glyphs.mode == "ascii":
            ids = _cell_bands(axis, scale, bands, tops, row)
            text = "".join(letters[i] if c == "#" else c for c, i in zip(text, ids.tolist(), strict=True))
        grid.fill(x, y + row, text, roles[row])


def _cell_bands(
    axis: TimeAxis, scale: ByteScale, bands: NDArray[np.float64], tops: NDArray[np.float64], row: int
) -> NDArray[np.int64]:
    """Band of each cell of a row, the owners' first, then those of `REST`.

    A cell is judged at its middle, or just under the top of the area where that lies lower.
    """
    middle = scale.high - (row + 0.5) * (scale.high - scale.low) / scale.rows
    value = np.minimum(middle, np.nextafter(tops, 0.0))
    by_cell = bands.reshape(BANDS, axis.cells, axis.dots_wide).max(axis=2)
    return (by_cell <= value).sum(axis=0)


def _cell_roles(
    axis: TimeAxis, scale: ByteScale, bands: NDArray[np.float64], tops: NDArray[np.float64],
    gaps: list[tuple[int, int]],
) -> list[bytes]:  # fmt: skip
    table = np.array([*(role for _, role, _ in STACK), *(role for role, _ in REST)], dtype=np.uint8)
    rows = []
    for row in range(scale.rows):
        roles = table[_cell_bands(axis, scale, bands, tops, row)]
        for begin_ns, end_ns in gaps:
            first, last = max(0, axis.cell(begin_ns)), axis.cell(end_ns)
            roles[first : max(0, last + 1)] = Role.GAP
        rows.append(roles.tobytes())
    return rows


def draw_scale(grid: Grid, x: int, y: int, gutter: int, cells: int, scale: ByteScale) -> None:
    """Figures left of the chart and faint dots across it; drawn first, the area lies over them."""
    for row, text in scale.marks():
        grid.put_right(x + gutter - 1, y + row, text, Role.MUTED)
        for cell in range(0, cells, 4):
            grid.put(x + gutter + cell, y + row, "·", Role.GRID)


def draw_labels(grid: Grid, x: int, y: int, axis: TimeAxis, scale: ByteScale, phases: tuple[Phase, ...]) -> None:
    """Slope of the largest fall that the window shows, then level and length of its highest plateau, where both fit."""
    shown = [p for p in phases if p.end_ns >= axis.begin_ns and p.begin_ns <= axis.end_ns]
    falls = [p for p in shown if p.kind in (PhaseKind.RELEASE, PhaseKind.CLIFF)]
    largest = min(falls, key=lambda p: p.change_bytes, default=None)
    taken: Label | None = None
    if largest is not None and -largest.change_bytes > 0.15 * (scale.high - scale.low):
        taken = _fall_label(axis, scale, largest)
        _put(grid, x, y, taken, Role.GAP_LABEL)
    plateaus = [p for p in shown if p.kind is PhaseKind.PLATEAU and scale.share(p.level_bytes) > 0.3]
    if plateaus:
        highest = max(plateaus, key=lambda p: p.level_bytes * min(p.length_ns, 10**9))
        label = _plateau_label(axis, scale, highest)
        if label is not None and not _overlap(label, taken):
            _put(grid, x, y, label, Role.MEMORY_LABEL)


Label = tuple[int, int, str]
"""Cell, row and words."""


def _put(grid: Grid, x: int, y: int, label: Label | None, role: Role) -> None:
    if label is not None:
        grid.put(x + label[0], y + label[1], label[2], role)


def _overlap(one: Label, other: Label | None) -> bool:
    if other is None or one[1] != other[1]:
        return False
    return one[0] < other[0] + len(other[2]) and other[0] < one[0] + len(one[2])


def draw_expected(
    grid: Grid, x: int, y: int, cells: int, scale: ByteScale, stack: list[tuple[str, int]], dash: str
) -> None:
    """Lines where an operator's expected stack ends after each part, marked as expectation."""
    for name, height in stack:
        if scale.share(height) <= 1:
            row = y + scale.row(height)
            grid.put(x, row, dash * cells, Role.LIMIT)
            grid.put(x + 1, row, f" expected: {name} up to {fmt.size(height)} ", Role.LIMIT)


def _plateau_label(axis: TimeAxis, scale: ByteScale, plateau: Phase) -> Label | None:
    text = f" plateau {fmt.size(plateau.level_bytes)} · {fmt.duration(plateau.length_ns)} "
    first = max(0, axis.cell(plateau.begin_ns))
    last = min(axis.cells - 1, axis.cell(plateau.end_ns))
    row = min(scale.rows - 1, scale.row(plateau.level_bytes) + 1)
    start = (first + last + 1 - len(text)) // 2 if last - first + 1 >= len(text) else last + 1 - len(text)
    return (start, row, text) if start >= 0 else None


def _fall_label(axis: TimeAxis, scale: ByteScale, fall: Phase) -> Label | None:
    sign = "≥ " if fall.kind is PhaseKind.CLIFF else "−"
    text = f" {sign}{fmt.rate(-fall.slope_bytes_per_s)} "
    row = scale.row((fall.begin_bytes + fall.end_bytes) / 2)
    start = axis.cell(fall.end_ns) + 1
    if start + len(text) > axis.cells:
        start = max(0, axis.cell(fall.begin_ns)) - len(text)
    return (start, row, text) if 0 <= start <= axis.cells - len(text) else None
