"""An expectation is what an operator says a foreign process will hold; it is drawn beside memory and never as memory.

It is written `name=SIZE` or `name=COUNTxSIZE`, comma separated: `srs=47GB,partitions=10x16.7GB`. It travels as a
marker, so that a recording and its replay know it too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cuzktui.model.snapshot import EXPECTATION, Snapshot
from prover.errors import BadRequest

MAX_PARTS = 16
MAX_TEXT = 1000
MAX_BYTES = 1 << 60
_NAME, _COUNT, _SIZE = r"([\w .+-]{1,24}?)", r"(?:(\d{1,6})\s*[x×*]\s*)?", r"(\d{1,18}(?:\.\d{1,6})?)\s*([kKMGT]?i?B?)"
_PART = re.compile(rf"\s*{_NAME}\s*=\s*{_COUNT}{_SIZE}\s*", re.ASCII)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True, slots=True)
class Expected:
    """One part of the expected stack."""

    name: str
    count: int
    each_bytes: int

    @property
    def size_bytes(self) -> int:
        return self.count * self.each_bytes


def parsed(text: str) -> tuple[Expected, ...]:
    """The parts of an expectation, in the order written: the first is the lowest of the stack.

    Raises:
        BadRequest: a part cannot be read, is named twice, or is too large; it is named.
    """
    pieces = text.split(",") if len(text) <= MAX_TEXT else []
    if not 1 <= len(pieces) <= MAX_PARTS:
        raise BadRequest(f"--expect: from 1 to {MAX_PARTS} parts, e.g. srs=47GB,partitions=10x16.7GB")
    parts: list[Expected] = []
    for piece in pieces:
        match = _PART.fullmatch(piece)
        if match is None:
            raise BadRequest(f"--expect {piece.strip()[:60]!r}: write name=SIZE or name=COUNTxSIZE, e.g. srs=47GB")
        name, count, number, unit = match[1], int(match[2] or 1), match[3], match[4].lower().removesuffix("b")
        scale = _BINARY[unit[0]] if unit.endswith("i") and unit != "i" else _UNITS.get(unit)
        if scale is None or count < 1 or float(number) * scale * count >= MAX_BYTES:
            raise BadRequest(f"--expect {piece.strip()[:60]!r}: the size is none, or too large")
        if any(part.name == name for part in parts):
            raise BadRequest(f"--expect: {name} is named twice")
        parts.append(Expected(name, count, round(float(number) * scale)))
    return tuple(parts)


def expected_of(snapshot: Snapshot) -> tuple[Expected, ...]:
    """The newest expectation that was put into the stream; empty where there is none that can be read."""
    for marker in reversed(snapshot.markers[-200:]):
        if marker.by == EXPECTATION:
            try:
                return parsed(marker.text)
            except BadRequest:
                return ()
    return ()


def levels(parts: tuple[Expected, ...]) -> list[tuple[str, int]]:
    """Heights of the stack after each part, from below."""
    heights, top = [], 0
    for part in parts:
        top += part.size_bytes
        heights.append((part.name, top))
    return heights
