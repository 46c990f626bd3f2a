"""A role says what a cell means; a palette says how that looks. Nothing but a palette names a colour."""

from __future__ import annotations

from enum import IntEnum, auto

from cuzktui.analysis.finding import SMALL_GAP_NS


class Role(IntEnum):
    """Meaning of a cell, small enough for one byte."""

    TEXT = 0
    MUTED = auto()
    FAINT = auto()
    TITLE = auto()
    STRONG = auto()
    BORDER = auto()
    BORDER_FOCUS = auto()
    GOOD = auto()
    WARN = auto()
    BAD = auto()
    GAP = auto()
    GAP_LABEL = auto()
    KEY = auto()
    ON = auto()
    MEMORY = auto()
    MAPPED = auto()
    MEMORY_LABEL = auto()
    LIMIT = auto()
    GRID = auto()
    STAGE_SETUP = auto()
    STAGE_SYNTH = auto()
    STAGE_PROVE = auto()
    STAGE_VERIFY = auto()
    KERNEL = auto()
    KERNEL_ALT = auto()
    GPU = auto()
    USER = auto()
    SYSTEM = auto()
    OWNER_ABC = auto()
    OWNER_ASSIGNMENT = auto()
    OWNER_SPLIT = auto()
    OWNER_TAIL = auto()
    OWNER_SRS = auto()
    OWNER_SCRATCH = auto()
    OWNER_POOL = auto()
    OWNER_SETUP = auto()
    CURSOR = auto()


def gap_role(gap_ns: int | None) -> Role:
    """How a gap's figure looks: one that is worth an operator's action is loud."""
    if gap_ns is None:
        return Role.MUTED
    return Role.GAP_LABEL if gap_ns >= SMALL_GAP_NS else Role.GOOD
