"""Columns of dots become glyphs: a cell is 2 by 4 dots in braille, 1 by 8 in blocks and 1 by 4 in ASCII."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

GraphMode = Literal["braille", "block", "ascii"]


@dataclass(frozen=True, slots=True)
class Glyphs:
    """How finely a cell can be filled, and by which characters."""

    mode: GraphMode
    dots_wide: int
    dots_high: int
    table: NDArray[np.str_]
    """`(dots_high + 1,) * dots_wide` glyphs: how far each dot column of the cell is filled from below."""
    bar: str
    """Three characters of a horizontal bar: full, half, rest."""
    spark: str
    """Levels of a one-row bar from empty to full."""
    frame: str
    """Corners clockwise from upper left, then horizontal and vertical."""
    bullet: str
    tick: str
    ellipsis: str


def _braille() -> NDArray[np.str_]:
    left, right = (0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08)
    rows = [
        [chr(0x2800 + sum(left[:a]) + sum(right[:b])) if a or b else " " for b in range(5)] for a in range(5)
    ]  # fmt: skip
    return np.array(rows)


GLYPHS = {
    "braille": Glyphs("braille", 2, 4, _braille(), "━╸─", " ▁▂▃▄▅▆▇█", "╭╮╯╰─│", "●", "╵", "…"),
    "block": Glyphs("block", 1, 8, np.array(list(" ▁▂▃▄▅▆▇█")), "━╸─", " ▁▂▃▄▅▆▇█", "╭╮╯╰─│", "●", "╵", "…"),
    "ascii": Glyphs("ascii", 1, 4, np.array(list(" .:+#")), "#=.", " .:-=+*#", "++++-|", "*", "+", "."),
}


def area(heights: NDArray[np.float64], rows: int, glyphs: Glyphs) -> list[str]:
    """A filled area as rows of text, the upper row first.

    Args:
        heights: share of the full height for each dot column, 0 to 1; NaN draws nothing. Length is a multiple of
            `glyphs.dots_wide`. A share above zero always shows at least one dot.
        rows: cells high.
    """
    high = glyphs.dots_high
    shares = np.nan_to_num(heights, nan=0.0, posinf=1.0, neginf=0.0).clip(0.0, 1.0)
    dots = np.where(shares > 0, np.maximum(1, np.rint(shares * rows * high)), 0).astype(np.int64)
    base = high * np.arange(rows - 1, -1, -1, dtype=np.int64)[:, None]
    filled = np.clip(dots[None, :] - base, 0, high)
    if glyphs.dots_wide == 2:
        cells = glyphs.table[filled[:, 0::2], filled[:, 1::2]]
    else:
        cells = glyphs.table[filled]
    return ["".join(row) for row in cells.tolist()]


def bar(share: float | None, width: int, glyphs: Glyphs) -> tuple[str, str]:
    """A horizontal bar as its filled part and its rest; together `width` cells."""
    full, half, rest = tuple(glyphs.bar)
    if share is None:
        return "", rest * width
    halves = round(min(1.0, max(0.0, share)) * width * 2)
    filled = full * (halves // 2) + (half if halves % 2 else "")
    return filled, rest * (width - len(filled))


def spark(values: list[float], width: int, glyphs: Glyphs, ceiling: float | None = None) -> str:
    """The last `width` values as one row of bars, right-aligned; a value above zero always shows."""
    shown = values[-width:] if width > 0 else []
    top = ceiling if ceiling is not None else max(shown, default=0.0)
    last = len(glyphs.spark) - 1
    if top <= 0:
        return glyphs.spark[0] * width
    marks = (glyphs.spark[max(1 if v > 0 else 0, min(last, round(v / top * last)))] for v in shown)
    return "".join(marks).rjust(width)
