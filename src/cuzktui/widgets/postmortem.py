"""The post-mortem page: why the process ended, and the last thirty seconds of its memory as they were."""

from __future__ import annotations

import textwrap
from dataclasses import replace

from msgspec.structs import replace as with_fields

from cuzktui.analysis.postmortem import KEPT_NS, PostMortem, post_mortem
from cuzktui.widgets.canvas import Canvas
from cuzktui.widgets.frame import framed
from cuzktui.widgets.grid import Grid, plain
from cuzktui.widgets.memory import memory_grid
from cuzktui.widgets.roles import Role
from cuzktui.widgets.view import View

_NAME_CELLS = 10
AFTER_NS = 1_000_000_000
"""So much is shown after the end."""


class PostMortemPanel(Canvas):
    """Of the process that ended last."""

    def draw(self, view: View, width: int, height: int) -> Grid:
        return post_mortem_grid(view, width, height)


def post_mortem_grid(view: View, width: int, height: int) -> Grid:
    """The page as text: words above, memory below where there is room."""
    told = post_mortem(view.snapshot)
    keys = "r starts it again · Esc goes back" if view.can_restart and told is not None else "Esc goes back"
    grid = framed(width, height, view.glyphs, [("post-mortem", Role.TITLE)], foot=[(keys, Role.MUTED)])
    if width < 30 or height < 4:
        return grid
    if told is None:
        grid.put(2, 1, "no watched process has ended", Role.MUTED)
        return grid
    chart_rows = max(0, (height - 2) * 3 // 5) if height >= 20 else 0
    lines = list(_lines(told, width - 4))
    for y, (head, words, role) in enumerate(lines[: height - 2 - chart_rows], start=1):
        grid.put(2, y, head, Role.MUTED)
        grid.put(2 + _NAME_CELLS, y, words, role)
    if chart_rows:
        grid.paste(1, height - 1 - chart_rows, memory_grid(_last_seconds(view, told), width - 2, chart_rows))
    return grid


def _lines(told: PostMortem, room: int) -> list[tuple[str, str, Role]]:
    lines: list[tuple[str, str, Role]] = []
    for number, (name, text) in enumerate(told.lines()):
        role = Role.BAD if number == 0 else Role.TEXT
        for at, piece in enumerate(textwrap.wrap(plain(text), max(8, room - _NAME_CELLS)) or [""]):
            lines.append((name[: _NAME_CELLS - 1] if at == 0 else "", piece, role))
    return lines


def _last_seconds(view: View, told: PostMortem) -> View:
    """The view of the process that ended, its time axis ending just after it did."""
    snapshot = with_fields(view.snapshot, main_pid=told.process.pid)
    end_ns, span_s = told.ended_ns + AFTER_NS, (KEPT_NS + AFTER_NS) / 1e9
    return replace(view, snapshot=snapshot, end_ns=end_ns, span_s=span_s, cursor_ns=None, is_live=False)
