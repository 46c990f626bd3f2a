"""Sets of time are lists of disjoint (begin_ns, end_ns), ascending; every function here keeps that."""

from __future__ import annotations

from collections.abc import Iterable

Interval = tuple[int, int]


def union(pieces: Iterable[Interval]) -> list[Interval]:
    """The time that any piece covers; empty and backward pieces cover none."""
    joined: list[Interval] = []
    for begin, end in sorted(piece for piece in pieces if piece[1] > piece[0]):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return joined


def clip(pieces: Iterable[Interval], begin_ns: int, end_ns: int) -> list[Interval]:
    """The part of a set inside [begin, end]."""
    return union((max(begin, begin_ns), min(end, end_ns)) for begin, end in pieces)


def without(pieces: Iterable[Interval], taken: Iterable[Interval]) -> list[Interval]:
    """The part of one set that another does not cover."""
    left = union(pieces)
    for begin, end in union(taken):
        left = [part for piece in left for part in ((piece[0], min(piece[1], begin)), (max(piece[0], end), piece[1]))]
        left = [piece for piece in left if piece[1] > piece[0]]
    return left


def length_ns(pieces: Iterable[Interval]) -> int:
    """Total length of a set."""
    return sum(end - begin for begin, end in pieces)


def share_within(piece: Interval, begin_ns: int, end_ns: int) -> float:
    """The share of one interval's length that lies inside [begin, end]; of an instant, 1 or 0."""
    begin, end = piece
    if end <= begin:
        return 1.0 if begin_ns <= begin <= end_ns else 0.0
    return max(0, min(end, end_ns) - max(begin, begin_ns)) / (end - begin)
