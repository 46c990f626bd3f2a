"""Once a job has ended its panel says where the time went, every stretch with one name, and how much has none."""

from __future__ import annotations

from cuzktui import format as fmt
from cuzktui.analysis.attribution import Attribution, Kind
from cuzktui.widgets.dots import bar
from cuzktui.widgets.frame import Words, framed
from cuzktui.widgets.grid import Grid, clip
from cuzktui.widgets.roles import Role
from cuzktui.widgets.view import View

_ROLES = {
    Kind.QUEUE: Role.FAINT,
    Kind.SETUP: Role.STAGE_SETUP,
    Kind.COMPILE: Role.STAGE_SETUP,
    Kind.SRS_LOAD: Role.STAGE_SETUP,
    Kind.SYNTHESIS: Role.STAGE_SYNTH,
    Kind.PAGE_FAULTING: Role.SYSTEM,
    Kind.RELEASE: Role.GAP,
    Kind.VERIFY: Role.STAGE_VERIFY,
    Kind.LOCK_WAIT: Role.WARN,
    Kind.IDLE: Role.FAINT,
    Kind.UNEXPLAINED: Role.BAD,
}
_NAME_CELLS = 14
_NEGLIGIBLE = 0.02


def breakdown_grid(view: View, told: Attribution, width: int, height: int) -> Grid:
    """The panel as text."""
    explained = told.explained_percent
    title: Words = [("time", Role.TITLE), (" · explained ", Role.MUTED), (fmt.percent(explained), Role.STRONG)]
    foot: Words = ()
    if view.gap_explained_percent is not None:
        foot = [("of the gap ", Role.MUTED), (fmt.percent(view.gap_explained_percent), Role.TEXT)]
    grid = framed(width, height, view.glyphs, title, right=[(fmt.duration(told.total_ns), Role.STRONG)], foot=foot)
    inside = height - 2
    if inside < 1 or width < 24 or told.total_ns <= 0:
        return grid
    room = width - 4 - _NAME_CELLS - 9 - 6
    for y, (kind, length_ns) in enumerate(list(told.by_kind.items())[:inside], start=1):
        share = length_ns / told.total_ns
        role = _ROLES.get(kind, Role.KERNEL)
        if kind is Kind.UNEXPLAINED and share < _NEGLIGIBLE:
            role = Role.FAINT
        grid.put(2, y, clip(kind.value, _NAME_CELLS - 1, view.glyphs.ellipsis), role)
        if room >= 4:
            filled, rest = bar(share, room, view.glyphs)
            x = grid.put(2 + _NAME_CELLS, y, filled, role)
            grid.put(x, y, rest, Role.GRID)
        grid.put_right(width - 2 - 6, y, fmt.brief(length_ns), Role.TEXT)
        grid.put_right(width - 2, y, f"{100 * share:.0f} %", Role.MUTED)
    return grid
