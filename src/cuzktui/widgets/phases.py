"""For a process that tells nothing the phases of its memory are the table, the newest first."""

from __future__ import annotations

from cuzktui import format as fmt
from cuzktui.model.phases import Phase, PhaseKind
from cuzktui.widgets.frame import Words, framed
from cuzktui.widgets.grid import Grid
from cuzktui.widgets.roles import Role
from cuzktui.widgets.view import View

_ROLES = {
    PhaseKind.RAMP: Role.STAGE_SYNTH,
    PhaseKind.PLATEAU: Role.TEXT,
    PhaseKind.RELEASE: Role.GAP_LABEL,
    PhaseKind.CLIFF: Role.GAP_LABEL,
}


def phase_grid(view: View, width: int, height: int) -> Grid:
    """The panel as text."""
    snapshot = view.snapshot
    title: Words = [("phases of memory", Role.TITLE), (" · seen from outside", Role.MUTED)]
    grid = framed(width, height, view.glyphs, title)
    inside = height - 2
    if inside < 1 or width < 30:
        return grid
    shown = list(reversed(snapshot.phases))[:inside]
    if not shown:
        grid.put(2, 1, "memory has not settled yet", Role.MUTED)
    for y, phase in enumerate(shown, start=1):
        grid.put_right(10, y, fmt.age(phase.begin_ns - snapshot.first_ns), Role.FAINT)
        grid.put(12, y, phase.kind.value, _ROLES[phase.kind])
        grid.put_right(30, y, _size(phase), Role.STRONG)
        if width >= 44:
            grid.put_right(40, y, fmt.duration(phase.length_ns), Role.TEXT)
        if width >= 58 and phase.kind is not PhaseKind.PLATEAU:
            bound = "≥ " if phase.kind is PhaseKind.CLIFF else ""
            grid.put_right(55, y, bound + fmt.rate(abs(phase.slope_bytes_per_s)), Role.MUTED)
    return grid


def _size(phase: Phase) -> str:
    if phase.kind is PhaseKind.PLATEAU:
        return fmt.size(phase.level_bytes)
    sign = "+" if phase.change_bytes >= 0 else "−"
    return f"{sign}{fmt.size(abs(phase.change_bytes))}"
