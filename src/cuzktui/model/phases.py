"""Memory over time is a sequence of phases, found by a pure fold over samples: live and offline agree by construction.

A *run* is a stretch of samples whose range stays within a tolerance. A run that lasts and does not drift is a plateau;
what lies between plateaus is a move, upward (ramp) or downward (release), split where it turns. A fall that sampling
could not resolve is a cliff: its slope is then a lower bound.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec.structs import replace

PLATEAU_NS = 150_000_000
"""Shortest plateau: longer than the pauses a Python prover makes between two releases of one scope."""
TOLERANCE_BYTES = 8 << 20
TOLERANCE_SHARE = 0.005
"""Range of a run: 0.5 % of its level, or 8 MiB, which covers the heap noise of an interpreter at work."""
CLIFF_NS = 50_000_000
MAX_PHASES = 1024


class PhaseKind(StrEnum):
    RAMP = "ramp"
    PLATEAU = "plateau"
    RELEASE = "release"
    CLIFF = "cliff"


class Phase(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One stretch of memory over time."""

    kind: PhaseKind
    begin_ns: int
    end_ns: int
    begin_bytes: float
    end_bytes: float
    samples: int
    """Readings strictly inside a move, or within a plateau."""
    is_open: bool = False
    """It may still go on: its end is the newest sample."""

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns

    @property
    def level_bytes(self) -> float:
        """A plateau's mean; of a move, where it ends."""
        return self.end_bytes

    @property
    def change_bytes(self) -> float:
        return self.end_bytes - self.begin_bytes

    @property
    def slope_bytes_per_s(self) -> float:
        """Mean slope, negative for a fall; of a cliff, a lower bound in size."""
        return self.change_bytes / (self.length_ns / 1e9) if self.length_ns > 0 else 0.0


class Segmenter(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """State of the fold; `phases` are closed, `open_phase` is the one now."""

    phases: tuple[Phase, ...] = ()
    count: int = 0
    last_ns: int = 0
    last_bytes: float = 0.0
    run_begin_ns: int = 0
    run_count: int = 0
    low: float = 0.0
    high: float = 0.0
    low_first: tuple[int, float] = (0, 0.0)
    """When the run first came near its floor, and the value then: where a fall ended."""
    high_first: tuple[int, float] = (0, 0.0)
    low_last_ns: int = 0
    """When the run was last at its mean or below: where a rise began."""
    high_last_ns: int = 0
    """When it was last at its mean or above: where a fall began."""
    sums: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """Sums of t, y, t*t, t*y over the run; t in seconds from its begin, y in bytes less its first."""
    run_first: float = 0.0
    is_plateau: bool = False
    plateau_begin_ns: int = 0
    carried: tuple[float, int] = (0.0, 0)
    """Sum of values and count of an earlier plateau that this one continues."""
    direction: int = 0
    move_begin_ns: int = 0
    move_begin_bytes: float = 0.0
    turn_ns: int = 0
    turn_bytes: float = 0.0
    """Extreme of the move so far."""
    move_count: int = 0

    @property
    def is_falling(self) -> bool:
        """Memory falls now: a downward move is under way and the last run has not settled."""
        return self.direction < 0 and not self.is_plateau

    @property
    def level_bytes(self) -> float:
        return (self.carried[0] + self.run_first * self.run_count + self.sums[1]) / (self.carried[1] + self.run_count)

    @property
    def open_phase(self) -> Phase | None:
        """The phase under way."""
        if not self.count:
            return None
        if self.is_plateau:
            return _plateau(self, self.last_ns, is_open=True)
        if not self.direction:
            return None
        return _move(self, self.last_ns, self.last_bytes, is_open=True)

    @property
    def all_phases(self) -> tuple[Phase, ...]:
        """Closed phases and the open one."""
        now = self.open_phase
        return (*self.phases, now) if now is not None else self.phases


def step(state: Segmenter, t_ns: int, value: float) -> Segmenter:
    """The state after one more sample; a sample that is not later than the last one is passed over."""
    if not state.count:
        return _start_run(replace(state, count=1, move_begin_ns=t_ns, move_begin_bytes=value), t_ns, value)
    if t_ns <= state.last_ns:
        return state
    low, high = min(state.low, value), max(state.high, value)
    tolerance = _tolerance(high)
    if high - low <= tolerance:
        return _extend_run(state, t_ns, value, low, high, tolerance)
    return _start_run(_close_run(state, value), t_ns, value)


def _tolerance(level: float) -> float:
    return max(TOLERANCE_BYTES, TOLERANCE_SHARE * level)


def _start_run(state: Segmenter, t_ns: int, value: float) -> Segmenter:
    mark = (t_ns, value)
    is_further = (value - state.turn_bytes) * state.direction >= 0
    return replace(
        state, count=state.count + 1, last_ns=t_ns, last_bytes=value, run_begin_ns=t_ns, run_count=1, low=value,
        high=value, low_first=mark, high_first=mark, low_last_ns=t_ns, high_last_ns=t_ns, sums=(0.0, 0.0, 0.0, 0.0),
        run_first=value, is_plateau=False, carried=(0.0, 0),
        turn_ns=t_ns if is_further else state.turn_ns, turn_bytes=value if is_further else state.turn_bytes,
        move_count=state.move_count + 1,
    )  # fmt: skip


def _extend_run(state: Segmenter, t_ns: int, value: float, low: float, high: float, tolerance: float) -> Segmenter:
    near = tolerance / 4
    seconds, offset = (t_ns - state.run_begin_ns) / 1e9, value - state.run_first
    st, sy, stt, sty = state.sums
    mean = state.run_first + (sy + offset) / (state.run_count + 1)
    is_further = state.direction and (value - state.turn_bytes) * state.direction > 0
    grown = replace(
        state, count=state.count + 1, last_ns=t_ns, last_bytes=value, run_count=state.run_count + 1, low=low, high=high,
        low_first=(t_ns, value) if value < state.low_first[1] - near else state.low_first,
        high_first=(t_ns, value) if value > state.high_first[1] + near else state.high_first,
        low_last_ns=t_ns if value <= mean + near else state.low_last_ns,
        high_last_ns=t_ns if value >= mean - near else state.high_last_ns,
        sums=(st + seconds, sy + offset, stt + seconds * seconds, sty + seconds * offset),
        turn_ns=t_ns if is_further else state.turn_ns, turn_bytes=value if is_further else state.turn_bytes,
        move_count=state.move_count + 1,
    )  # fmt: skip
    if state.is_plateau or t_ns - state.run_begin_ns < PLATEAU_NS:
        return grown
    slope = _slope(grown)
    length_s = (t_ns - state.run_begin_ns) / 1e9
    if abs(slope) * length_s > tolerance / 2 or abs(slope) > 2 * tolerance:
        return grown
    return _settle(grown, tolerance)


def _slope(state: Segmenter) -> float:
    """Least-squares slope of the run, bytes per second."""
    st, sy, stt, sty = state.sums
    n = state.run_count
    spread = n * stt - st * st
    return (n * sty - st * sy) / spread if spread > 0 else 0.0


def _settle(state: Segmenter, tolerance: float) -> Segmenter:
    """The run has become a plateau: the move before it ends where the run first came near its level."""
    begin_ns = {1: state.high_first[0], -1: state.low_first[0], 0: state.run_begin_ns}[state.direction]
    settled = replace(state, is_plateau=True, plateau_begin_ns=begin_ns)
    if not state.direction:
        return replace(settled, move_count=0)
    change = abs(settled.level_bytes - state.move_begin_bytes)
    before = state.phases[-1] if state.phases else None
    if change < 2 * tolerance and before and before.kind is PhaseKind.PLATEAU and before.end_ns == state.move_begin_ns:
        return replace(
            settled, phases=state.phases[:-1], plateau_begin_ns=before.begin_ns, direction=0, move_count=0,
            carried=(before.level_bytes * before.samples, before.samples),
        )  # fmt: skip
    moved = _move(settled, begin_ns, settled.level_bytes)
    return replace(settled, phases=_joined(state.phases, moved), direction=0, move_count=0)


def _close_run(state: Segmenter, value: float) -> Segmenter:
    """The run ends because `value` left its range: a plateau is emitted, a move goes on, turns or begins."""
    direction = 1 if value > state.high else -1
    if state.is_plateau:
        drift = _slope(state) * (state.last_ns - state.run_begin_ns) / 1e9
        tolerance = _tolerance(state.high)
        is_creep = abs(drift) > tolerance / 2 and not state.carried[1] and drift * direction > 0
        if not is_creep or abs(value - state.last_bytes) > tolerance:
            edge_ns = state.high_last_ns if direction < 0 else state.low_last_ns
            edge_ns = state.last_ns if is_creep else max(edge_ns, state.plateau_begin_ns)
            phase = _plateau(state, edge_ns)
            return replace(
                state, phases=(*state.phases, phase)[-MAX_PHASES:], direction=direction, move_begin_ns=edge_ns,
                move_begin_bytes=phase.level_bytes, turn_ns=edge_ns, turn_bytes=phase.level_bytes, move_count=0,
                is_plateau=False,
            )  # fmt: skip
        begin = state.run_first
        return replace(
            state, direction=direction, move_begin_ns=state.plateau_begin_ns, move_begin_bytes=begin,
            turn_ns=state.last_ns, turn_bytes=state.last_bytes, move_count=state.run_count, is_plateau=False,
        )  # fmt: skip
    if state.direction in (0, direction):
        return replace(state, direction=direction)
    phase = _move(state, state.turn_ns, state.turn_bytes)
    return replace(
        state, phases=_joined(state.phases, phase), direction=direction, move_begin_ns=state.turn_ns,
        move_begin_bytes=state.turn_bytes, move_count=0,
    )  # fmt: skip


def _joined(phases: tuple[Phase, ...], phase: Phase) -> tuple[Phase, ...]:
    """Phases with one more; two moves of one direction that touch are one."""
    before = phases[-1] if phases else None
    falls = (PhaseKind.RELEASE, PhaseKind.CLIFF)
    if before is not None and before.end_ns == phase.begin_ns and before.kind is not PhaseKind.PLATEAU:
        is_same = before.kind is phase.kind or (before.kind in falls and phase.kind in falls)
        if is_same:
            joined = Phase(
                kind=phase.kind if phase.kind is PhaseKind.RAMP else PhaseKind.RELEASE, begin_ns=before.begin_ns,
                end_ns=phase.end_ns, begin_bytes=before.begin_bytes, end_bytes=phase.end_bytes,
                samples=before.samples + phase.samples + 1,
            )  # fmt: skip
            return (*phases[:-1], joined)
    return (*phases, phase)[-MAX_PHASES:]


def _plateau(state: Segmenter, end_ns: int, is_open: bool = False) -> Phase:
    level = state.level_bytes
    return Phase(
        kind=PhaseKind.PLATEAU, begin_ns=state.plateau_begin_ns, end_ns=end_ns, begin_bytes=level, end_bytes=level,
        samples=state.run_count + state.carried[1], is_open=is_open,
    )  # fmt: skip


def _move(state: Segmenter, end_ns: int, end_bytes: float, is_open: bool = False) -> Phase:
    length_ns = end_ns - state.move_begin_ns
    inside = max(0, state.move_count - (0 if is_open else state.run_count))
    if state.direction > 0:
        kind = PhaseKind.RAMP
    else:
        kind = PhaseKind.CLIFF if inside <= 2 and length_ns <= CLIFF_NS else PhaseKind.RELEASE
    return Phase(
        kind=kind, begin_ns=state.move_begin_ns, end_ns=end_ns, begin_bytes=state.move_begin_bytes,
        end_bytes=end_bytes, samples=inside, is_open=is_open,
    )  # fmt: skip
