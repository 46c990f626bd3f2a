"""A Canvas shows one Grid and repaints only the rows that changed; it has no thread, does no I/O, knows no source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from cuzktui.messages import PanelFailed
from cuzktui.widgets.grid import Grid, in_ascii, runs
from cuzktui.widgets.roles import Role
from cuzktui.widgets.view import View


@dataclass(frozen=True, slots=True)
class Look:
    """Styles by role: the only thing a canvas knows of colours."""

    styles: list[Style]

    def strip(self, row_key: tuple[str, bytes]) -> Strip:
        return Strip([Segment(text, self.styles[role]) for text, role in runs(row_key)], len(row_key[0]))


class Canvas(Widget):
    """Base of all panels. A panel says how a View becomes a Grid and which of its cells answer to the mouse."""

    DEFAULT_CSS: ClassVar[str] = "Canvas { padding: 0; border: none; }"

    def __init__(self, look: Look, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._look = look
        self._view: View | None = None
        self._keys: list[tuple[str, bytes]] = []
        self._strips: list[Strip] = []
        self.fault: Exception | None = None
        """Why the panel could not be drawn, the last time that it could not."""

    def draw(self, view: View, width: int, height: int) -> Grid:
        """The panel as a grid of exactly this size."""
        raise TypeError(f"{type(self).__name__} draws nothing")

    def show(self, view: View) -> int:
        """Takes a new view; returns how many rows changed and will be repainted."""
        self._view = view
        return self._redraw() if self.size.area and self.display else 0

    def _redraw(self) -> int:
        if self._view is None:
            return 0
        width, height = self.size
        try:
            grid = self.draw(self._view, width, height)
        except Exception as error:
            # one panel that meets data it cannot draw must not end the console, and with it the prover that it owns
            grid = _broken(error, width, height)
            self._tell(error)
        keys = [grid.row_key(y) for y in range(height)]
        if self._view.glyphs.mode == "ascii":
            keys = [in_ascii(key) for key in keys]
        same_size = len(keys) == len(self._keys) and bool(keys) and len(keys[0][0]) == len(self._keys[0][0])
        if same_size:
            changed = [y for y, (new, old) in enumerate(zip(keys, self._keys, strict=True)) if new != old]
            for y in changed:
                self._strips[y] = self._look.strip(keys[y])
        else:
            changed = list(range(height))
            self._strips = [self._look.strip(key) for key in keys]
        self._keys = keys
        if not same_size:
            self.refresh()
        elif changed:
            self.refresh(*_regions(changed, width))
        return len(changed)

    def _tell(self, error: Exception) -> None:
        if self.fault is None:
            self.post_message(PanelFailed(self.id or "", f"{type(error).__name__}: {error}"))
        self.fault = error

    def redress(self, look: Look) -> None:
        """Paints the panel in other styles."""
        self._look = look
        self._keys = []
        self._redraw()

    def on_resize(self) -> None:
        self._redraw()

    def render_line(self, y: int) -> Strip:
        if y < len(self._strips):
            return self._strips[y]
        return Strip.blank(self.size.width, self.rich_style)


def _broken(error: Exception, width: int, height: int) -> Grid:
    grid = Grid(width, height)
    for y, line in enumerate((f"{type(error).__name__}: {error}"[:400]).splitlines()[:height]):
        grid.put(1, y, line, Role.BAD)
    return grid


def _regions(rows: list[int], width: int) -> list[Region]:
    """Changed rows as few rectangles."""
    regions: list[Region] = []
    start = previous = rows[0]
    for y in rows[1:]:
        if y != previous + 1:
            regions.append(Region(0, start, width, previous - start + 1))
            start = y
        previous = y
    regions.append(Region(0, start, width, previous - start + 1))
    return regions
