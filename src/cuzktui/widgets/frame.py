"""A frame is a border with words in it: title on the upper line, finding on the lower, never over the contents."""

from __future__ import annotations

from collections.abc import Sequence

from cuzktui.widgets.dots import Glyphs
from cuzktui.widgets.grid import Grid, clip
from cuzktui.widgets.roles import Role

Words = Sequence[tuple[str, Role]]
"""Consecutive pieces of a line, each with its role."""


def framed(
    width: int,
    height: int,
    glyphs: Glyphs,
    title: Words = (),
    *,
    right: Words = (),
    foot: Words = (),
    focused: bool = False,
) -> Grid:
    """An empty panel.

    Args:
        title: words on the upper border, from the left.
        right: words on the upper border, at its right end; left out when the title leaves no room.
        foot: words on the lower border, from the left.
    Returns:
        A grid of `width` by `height`; its inside starts at (1, 1) and is two smaller each way.
    """
    grid = Grid(width, height)
    if width < 4 or height < 2:
        return grid
    role = Role.BORDER_FOCUS if focused else Role.BORDER
    corner_ul, corner_ur, corner_lr, corner_ll, line, side = tuple(glyphs.frame)
    grid.put(0, 0, corner_ul + line * (width - 2) + corner_ur, role)
    grid.put(0, height - 1, corner_ll + line * (width - 2) + corner_lr, role)
    for y in range(1, height - 1):
        grid.put(0, y, side, role)
        grid.put(width - 1, y, side, role)
    end = _on_border(grid, 2, 0, title, glyphs)
    right_width = sum(len(text) for text, _ in right) + 2
    if right and end + 2 + right_width <= width - 2:
        _on_border(grid, width - 2 - right_width, 0, right, glyphs)
    _on_border(grid, 2, height - 1, foot, glyphs)
    return grid


def _on_border(grid: Grid, x: int, y: int, pieces: Words, glyphs: Glyphs) -> int:
    pieces = [(text, role) for text, role in pieces if text]
    room = grid.width - 2 - x - 2
    if not pieces or room < 3:
        return x
    grid.put(x, y, " ")
    end = words(grid, x + 1, y, pieces, room, glyphs)
    return grid.put(end, y, " ")


def words(grid: Grid, x: int, y: int, pieces: Words, room: int, glyphs: Glyphs) -> int:
    """Writes pieces one after another into `room` cells, the last one cut with an ellipsis; returns the cell after."""
    for text, role in pieces:
        if room <= 0:
            break
        shown = clip(text, room, glyphs.ellipsis)
        x = grid.put(x, y, shown, role)
        room -= len(shown)
        if shown != text:
            break
    return x
