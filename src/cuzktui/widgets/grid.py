"""A Grid is a rectangle of characters and roles: what is put outside is cut, what could move a cursor is replaced.

Every panel is drawn by a pure function into a Grid, so that a test reads a panel as text and the screen repaints only
the rows that changed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from cuzktui.widgets.roles import Role

_RUNS = re.compile(rb"(.)\1*", re.DOTALL)


class Grid:
    """Mutable character cells with one role each; the origin is the upper left corner."""

    __slots__ = ("_cells", "_roles", "height", "width")

    def __init__(self, width: int, height: int, role: Role = Role.TEXT) -> None:
        self.width, self.height = max(0, width), max(0, height)
        self._cells = [[" "] * self.width for _ in range(self.height)]
        self._roles = [bytearray([role]) * self.width for _ in range(self.height)]

    def put(self, x: int, y: int, text: str, role: Role = Role.TEXT) -> int:
        """Writes a text at a cell; returns the cell after it, cut or not."""
        text = plain(text)
        end = x + len(text)
        if not 0 <= y < self.height or x >= self.width or end <= 0:
            return end
        skip, stop = max(0, -x), min(len(text), self.width - x)
        first, last = x + skip, x + stop
        self._cells[y][first:last] = text[skip:stop]
        self._roles[y][first:last] = bytes((role,)) * (last - first)
        return end

    def put_right(self, right: int, y: int, text: str, role: Role = Role.TEXT) -> int:
        """Writes a text that ends before cell `right`; returns its first cell."""
        start = right - len(plain(text))
        self.put(start, y, text, role)
        return start

    def fill(self, x: int, y: int, text: str, roles: bytes) -> None:
        """Writes a row of a chart: glyphs of this program and as many roles."""
        if 0 <= y < self.height and 0 <= x < self.width:
            stop = min(len(text), self.width - x)
            self._cells[y][x : x + stop] = text[:stop]
            self._roles[y][x : x + stop] = roles[:stop]

    def paint(self, x: int, y: int, width: int, role: Role) -> None:
        """Changes the role of a stretch of cells and leaves their characters."""
        first, last = max(0, x), min(self.width, x + width)
        if 0 <= y < self.height and first < last:
            self._roles[y][first:last] = bytes((role,)) * (last - first)

    def paste(self, x: int, y: int, other: Grid) -> None:
        """Copies another grid into this one."""
        for row in range(other.height):
            self.fill(x, y + row, other.text_row(row), bytes(other._roles[row]))

    def text_row(self, y: int) -> str:
        return "".join(self._cells[y])

    def role_at(self, x: int, y: int) -> Role:
        return Role(self._roles[y][x])

    def row_key(self, y: int) -> tuple[str, bytes]:
        """What a row looks like: equal keys need no repaint."""
        return "".join(self._cells[y]), bytes(self._roles[y])

    def text(self) -> str:
        """The whole grid as lines, without trailing blanks: what a test reads."""
        return "\n".join(self.text_row(y).rstrip() for y in range(self.height))


_ASCII = str.maketrans(
    {
        "·": ".",
        "×": "x",
        "−": "-",
        "–": "-",
        "…": ".",
        "↓": "v",
        "↑": "^",
        "→": ">",
        "←": "<",
        "°": " ",
        "µ": "u",
        "≥": ">",
    }
)
"""Signs of the panels that a terminal without UTF-8 cannot show, one for one."""


def in_ascii(row_key: tuple[str, bytes]) -> tuple[str, bytes]:
    """A row in seven bits: signs by their likeness, anything else by a question mark."""
    text, roles = row_key
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii"), roles


def runs(row_key: tuple[str, bytes]) -> Iterator[tuple[str, int]]:
    """A row cut where its role changes."""
    text, roles = row_key
    for match in _RUNS.finditer(roles):
        yield text[match.start() : match.end()], roles[match.start()]


@lru_cache(maxsize=4096)
def plain(text: str) -> str:
    """The text with control, combining and double-width characters replaced: one character is one cell."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if _is_one_cell(c) else "?" for c in text)


@lru_cache(maxsize=2048)
def _is_one_cell(char: str) -> bool:
    return (
        (char.isprintable() or char == " ")
        and unicodedata.east_asian_width(char) not in "WF"
        and not unicodedata.combining(char)
        and unicodedata.category(char) not in ("Cf", "Mn", "Me", "Cs", "Co", "Cn")
    )


def clip(text: str, width: int, ellipsis: str = "…") -> str:
    """The text cut to a width, with a sign that it was."""
    if len(text) <= width:
        return text
    return text[: max(0, width - len(ellipsis))] + ellipsis[: max(0, width)]
