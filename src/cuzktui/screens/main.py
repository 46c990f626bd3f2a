"""The main screen lays panels out by the size of the terminal, and hands each the same View."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.geometry import Size
from textual.screen import Screen

from cuzktui.widgets.canvas import Canvas, Look
from cuzktui.widgets.finding import FindingLine, is_long
from cuzktui.widgets.footer import FooterLine
from cuzktui.widgets.header import Header
from cuzktui.widgets.jobs import JobsPanel
from cuzktui.widgets.kernels import KernelPanel
from cuzktui.widgets.ledger import LedgerPanel
from cuzktui.widgets.lens import LensPanel
from cuzktui.widgets.machine import MachinePanel
from cuzktui.widgets.memory import MemoryPanel
from cuzktui.widgets.notices import NoticePanel
from cuzktui.widgets.pair import PairPanel
from cuzktui.widgets.synthesis import SynthesisPanel
from cuzktui.widgets.view import View

WIDTHS = ((70, "tiny"), (110, "small"), (150, "standard"))
HEIGHTS = ((16, "tiny"), (32, "small"), (44, "standard"))
"""Below each limit the layout has that name; beyond the last it is full."""


class MainScreen(Screen[None]):
    """Everything at once."""

    AUTO_FOCUS: ClassVar[str | None] = None

    def __init__(self, look: Look) -> None:
        super().__init__(id="main")
        self._look = look

    def compose(self) -> ComposeResult:
        look = self._look
        yield Header(look, id="header")
        with Horizontal(id="top"):
            yield MemoryPanel(look, id="memory")
            yield LensPanel(look, id="lens")
        yield FindingLine(look, id="finding")
        with Horizontal(id="middle"):
            yield SynthesisPanel(look, id="synthesis")
            yield KernelPanel(look, id="kernels")
            yield MachinePanel(look, id="machine")
        with Horizontal(id="bottom"):
            yield JobsPanel(look, id="jobs")
            yield LedgerPanel(look, id="ledger")
            yield NoticePanel(look, id="notices")
            yield PairPanel(look, id="pair")
        yield FooterLine(look, id="footer")

    def on_mount(self) -> None:
        self._lay_out(self.app.size)

    def on_resize(self) -> None:
        self._lay_out(self.app.size)

    def _lay_out(self, size: Size) -> None:
        wide, high = layout_of(size.width, WIDTHS), layout_of(size.height, HEIGHTS)
        for name in ("tiny", "small", "standard", "full"):
            self.set_class(name == wide, f"-wide-{name}")
            self.set_class(name == high, f"-high-{name}")

    def show(self, view: View, *, lens_only: bool = False) -> None:
        """Hands a view to the panels; between two full pictures only to those that follow the gap."""
        self.set_class(view.lens is not None, "-lens")
        self.set_class(bool(view.pair), "-pair")
        if not lens_only:
            self.set_class(is_long(view, self.size.width), "-long")
        for panel in self.query(Canvas):
            if not lens_only or panel.id in ("lens", "finding"):
                panel.show(view)

    def redress(self, look: Look) -> None:
        """Paints everything in another palette."""
        self._look = look
        for panel in self.query(Canvas):
            panel.redress(look)


def layout_of(cells: int, limits: tuple[tuple[int, str], ...]) -> str:
    """Name of the layout for so many cells."""
    return next((name for limit, name in limits if cells < limit), "full")
