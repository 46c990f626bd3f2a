"""The help page is the table of keys, and how to read the picture."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from cuzktui.keymap import KEYS

READING = """\
gap      from the last computation of the prove call (inner clock) to its return (outer clock)
memory   anonymous resident memory of the prover; mapped key files are counted apart
bands    whose it is, by the prover's own ledger; what no owner claims is the process itself
lens     every reading of one fall of memory, on a time scale of its own
mouse    wheel zooms, a click on the graph reads a moment, a click on a job or a key picks it"""


class HelpScreen(ModalScreen[None]):
    """Keys and words; any of its keys closes it."""

    BINDINGS: ClassVar[list[Binding]] = [  # type: ignore[assignment]
        Binding("escape,q,question_mark,f1,enter,space", "close", "close", show=False)
    ]

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="box help"):
            yield Static(help_text(), markup=False)

    def action_close(self) -> None:
        self.dismiss(None)

    def on_click(self) -> None:
        self.dismiss(None)


def help_text() -> str:
    """The page as text."""
    keys = "\n".join(f"{key.shown:<6} {key.long}" for key in KEYS)
    return f"{keys}\n\n{READING}"
