"""Large digits, three rows high: for the one number on the screen that counts."""

from __future__ import annotations

from cuzktui.widgets.dots import Glyphs

_SHAPES = {
    "0": ("█▀█", "█ █", "▀▀▀"), "1": ("▀█ ", " █ ", "▀▀▀"), "2": ("▀▀█", "█▀▀", "▀▀▀"), "3": ("▀▀█", " ▀█", "▀▀▀"),
    "4": ("█ █", "▀▀█", "  ▀"), "5": ("█▀▀", "▀▀█", "▀▀▀"), "6": ("█▀▀", "█▀█", "▀▀▀"), "7": ("▀▀█", "  █", "  ▀"),
    "8": ("█▀█", "█▀█", "▀▀▀"), "9": ("█▀█", "▀▀█", "▀▀▀"), ".": (" ", " ", "▀"), "–": ("   ", "▀▀▀", "   "),
}  # fmt: skip
ROWS = 3


def large(text: str, glyphs: Glyphs) -> list[str]:
    """A figure as rows of equal length; its unit, and in ASCII mode all of it, keeps its ordinary size."""
    figure, _, unit = text.partition(" ")
    if glyphs.mode == "ascii" or any(c not in _SHAPES for c in figure):
        return ["", "", text]
    rows = [" ".join(_SHAPES[c][row] for c in figure) for row in range(ROWS)]
    rows[-1] += f" {unit}" if unit else ""
    width = max(map(len, rows))
    return [row.ljust(width) for row in rows]
