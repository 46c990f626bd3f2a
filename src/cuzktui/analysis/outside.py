"""What can be told of a process that tells nothing: only from its memory, its CPU time and what its threads wait in.

Every answer is inferred and says so. A release is claimed only where anonymous memory fell; nothing else is evidence
of one. Between two readings of CPU time the border of running and waiting lies where the time that ran is used up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cuzktui.analysis.gap import falling
from cuzktui.analysis.intervals import Interval, clip, without
from cuzktui.analysis.plateau import refined
from cuzktui.analysis.readings import Cause, readings
from cuzktui.model.phases import Phase, PhaseKind
from cuzktui.model.snapshot import ProcessView

SHORT_NS = 50_000_000
"""A shorter stretch between two of one kind is a flicker of the readings."""
RELEASE_BYTES = 8 << 20
"""A fall of less is the heap's own business."""
JOIN_NS = 20_000_000
STARVED_NS = 150_000_000
STARVED_PERCENT = 30.0
"""A runnable process that gets less of a core than this is waiting for the scheduler."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of one inferred cause."""

    begin_ns: int
    end_ns: int
    cause: Cause
    fall_bytes: float = 0.0
    """For a release: how far anonymous memory came down."""

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns


def stretches(process: ProcessView, begin_ns: int, end_ns: int) -> list[Stretch]:
    """Contiguous stretches of [begin, end] as far as there are readings."""
    told = list(_releases(process, begin_ns, end_ns))
    taken = [(piece.begin_ns, piece.end_ns) for piece in told]
    for first_ns, last_ns, cause in readings(process, begin_ns, end_ns, taken):
        told.extend(Stretch(*piece, cause) for piece in without([(first_ns, last_ns)], taken))
    inside = [
        Stretch(*piece, stretch.cause, stretch.fall_bytes)
        for stretch in told
        for piece in clip([(stretch.begin_ns, stretch.end_ns)], begin_ns, end_ns)
    ]
    return _joined(sorted(inside, key=lambda stretch: stretch.begin_ns))


def _releases(process: ProcessView, begin_ns: int, end_ns: int) -> Iterator[Stretch]:
    """Falls of anonymous memory with their edges refined, those with short rests between them joined."""
    joined: list[Interval] = []
    for first_ns, last_ns in falling(process.memory, begin_ns, end_ns):
        if joined and _is_rest(process, joined[-1][1], first_ns):
            joined[-1] = (joined[-1][0], last_ns)
        else:
            joined.append((first_ns, last_ns))
    for first_ns, last_ns in joined:
        before, after = process.memory.at(first_ns, "anon"), process.memory.at(last_ns, "anon")
        if before is not None and after is not None and before - after >= RELEASE_BYTES:
            fall = Phase(
                kind=PhaseKind.RELEASE, begin_ns=first_ns, end_ns=last_ns, begin_bytes=before, end_bytes=after,
                samples=0,
            )  # fmt: skip
            edges = refined(process.memory, fall)
            yield Stretch(edges.begin_ns, edges.end_ns, Cause.RELEASING, before - after)


def _is_rest(process: ProcessView, begin_ns: int, end_ns: int) -> bool:
    """Whether a release goes on after a rest: a short one, or one in which the process was kept from running."""
    if end_ns - begin_ns <= JOIN_NS:
        return True
    times, run = process.activity.t_ns, process.activity.column("run_percent")
    rows = np.arange(np.searchsorted(times, begin_ns, side="right"), np.searchsorted(times, end_ns))
    if end_ns - begin_ns > STARVED_NS or not len(rows):
        return False
    runnable = process.activity.column("running")[rows]
    return bool((runnable > 0).all() and np.mean(run[rows]) < STARVED_PERCENT)


def _joined(told: list[Stretch]) -> list[Stretch]:
    """Neighbours of one cause joined, flickers between two of one cause taken into them."""
    merged: list[Stretch] = []
    for piece in told:
        _push(merged, piece)
        if len(merged) >= 3 and merged[-1].cause is merged[-3].cause and _is_flicker(merged[-2]):
            first, last = merged[-3], merged[-1]
            merged[-3:] = [Stretch(first.begin_ns, last.end_ns, last.cause, first.fall_bytes + last.fall_bytes)]
    return merged


def _push(merged: list[Stretch], piece: Stretch) -> None:
    if merged and merged[-1].cause is piece.cause and piece.begin_ns - merged[-1].end_ns <= JOIN_NS:
        before = merged.pop()
        piece = Stretch(before.begin_ns, piece.end_ns, piece.cause, before.fall_bytes + piece.fall_bytes)
    merged.append(piece)


def _is_flicker(piece: Stretch) -> bool:
    return piece.length_ns < SHORT_NS and piece.cause is not Cause.RELEASING
