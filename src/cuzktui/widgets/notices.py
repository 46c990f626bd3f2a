"""Notices are sentences for the operator, newest at the bottom, each with its moment and its weight in a letter."""

from __future__ import annotations

import textwrap

from cuzktui import format as fmt
from cuzktui.widgets.canvas import Canvas
from cuzktui.widgets.frame import framed
from cuzktui.widgets.grid import Grid, plain
from cuzktui.widgets.roles import Role
from cuzktui.widgets.view import View

_LEVELS = {"info": ("i", Role.MUTED), "warning": ("!", Role.WARN), "error": ("E", Role.BAD)}
_KEPT = 40
_LINES = 6
"""Of one notice at most."""


class NoticePanel(Canvas):
    """What happened."""

    def draw(self, view: View, width: int, height: int) -> Grid:
        return notice_grid(view, width, height)


def notice_grid(view: View, width: int, height: int) -> Grid:
    """The panel as text."""
    snapshot = view.snapshot
    foot = [(f"{snapshot.dropped} events lost", Role.WARN)] if snapshot.dropped else []
    grid = framed(width, height, view.glyphs, [("notices", Role.TITLE)], foot=foot)
    inside = height - 2
    if inside < 1 or width < 24:
        return grid
    lines: list[tuple[str, str, Role]] = []
    for notice in snapshot.notices[-_KEPT:]:
        mark, role = _LEVELS.get(notice.level, _LEVELS["info"])
        moment = fmt.clock(notice.t_ns - snapshot.first_ns)[3:]
        body = textwrap.wrap(plain(notice.text), max(8, width - 4 - 8)) or [""]
        lines.append((f"{moment} {mark} ", body[0], role))
        lines += [(" " * 8, rest, role) for rest in body[1:_LINES]]
    if not lines:
        grid.put(2, 1, "nothing to report", Role.FAINT)
    for y, (head, body_text, role) in enumerate(lines[-inside:], start=1):
        grid.put(2, y, head, Role.FAINT if role is Role.MUTED else role)
        grid.put(10, y, body_text, Role.TEXT if role is Role.MUTED else role)
    return grid
