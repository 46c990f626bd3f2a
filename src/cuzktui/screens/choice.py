"""A choice is a short list in a box: arrows and Enter, or a click; Escape leaves everything as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option


class ChoiceScreen(ModalScreen[str | None]):
    """Asks for one of a few names.

    Args:
        question: the line above the list.
        lines: what each name means.
        names: in the order shown.
        current: the name that is marked.
    """

    BINDINGS: ClassVar[list[Binding]] = [Binding("escape,q", "cancel", "cancel", show=False)]  # type: ignore[assignment]

    def __init__(self, question: str, lines: Mapping[str, str], names: Sequence[str], current: str) -> None:
        super().__init__()
        self._question, self._lines, self._names, self._current = question, lines, names, current

    def compose(self) -> ComposeResult:
        width = max(len(name) for name in self._names)
        with Vertical(classes="box choice"):
            yield Static(self._question, markup=False)
            yield OptionList(
                *(Option(f"{name.ljust(width)}  {self._lines.get(name, '')}", id=name) for name in self._names),
                markup=False,
            )

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.highlighted = list(self._names).index(self._current) if self._current in self._names else 0
        options.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)

    def action_cancel(self) -> None:
        self.dismiss(None)
