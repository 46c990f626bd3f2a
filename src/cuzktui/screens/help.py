"""The help page is the table of keys, and how to read the picture."""

from __future__ import annotations

import textwrap
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from cuzktui.keymap import KEYS

BORDER_CELLS = 8
"""Border, padding and scroll bar of the box."""
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
            yield Static(help_text(self.app.size.width * 96 // 100 - BORDER_CELLS), markup=False)

    def action_close(self) -> None:
        self.dismiss(None)

    def on_click(self) -> None:
        self.dismiss(None)


def help_text(cells: int) -> str:
    """The page as text no wider than `cells`; what does not fit goes on under its own words."""
    keys = [_entry(f"{key.shown:<6} ", key.long, cells) for key in KEYS]
    words = [_entry(line[:9], line[9:], cells) for line in READING.splitlines()]
    return "\n".join([*keys, "", *words])


def _entry(name: str, words: str, cells: int) -> str:
    indent = " " * len(name)
    return textwrap.fill(words, max(len(name) + 12, cells), initial_indent=name, subsequent_indent=indent)
