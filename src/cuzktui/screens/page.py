"""A page covers the main screen with one canvas, follows the same views, and goes away on Escape."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen

from cuzktui.widgets.canvas import Canvas
from cuzktui.widgets.view import View


class PageScreen(ModalScreen[None]):
    """Shows a canvas over everything.

    Args:
        name: of the page.
        canvas: what it shows.
        view: its first view.
    """

    BINDINGS: ClassVar[list[Binding]] = [  # type: ignore[assignment]
        Binding("escape,q,enter,space,k,w,n", "close", "close", show=False),
        Binding("e", "app.export_page", "write", show=False),
        Binding("c", "app.cancel", "cancel", show=False),
        Binding("r", "restart", "restart", show=False),
    ]

    def __init__(self, name: str, canvas: Canvas, view: View) -> None:
        super().__init__(classes="page")
        self.page = name
        self._canvas, self._first = canvas, view

    def compose(self) -> ComposeResult:
        yield self._canvas

    def on_mount(self) -> None:
        self.show(self._first)

    def show(self, view: View) -> None:
        """Takes the next view."""
        self._first = view
        self._canvas.show(view)

    def on_resize(self) -> None:
        self.call_after_refresh(lambda: self._canvas.show(self._first))

    async def action_restart(self) -> None:
        """Starts the prover again; what is under the page is then worth more than the page."""
        if self._first.snapshot.needs_restart:
            self.dismiss(None)
        await self.app.run_action("app.restart")

    def action_close(self) -> None:
        self.dismiss(None)
