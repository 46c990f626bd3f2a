"""What a recording shows of a process that sent no events: its memory's phases, its time by cause, how it ended.

Everything here is inferred from outside and marked so. The inferred gap is the last large release: what a caller
waited for after the computation that stood before it.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuzktui import format as text
from cuzktui.analysis.outside import Cause, Stretch, stretches
from cuzktui.analysis.plateau import refined, staircases
from cuzktui.model.phases import Phase, PhaseKind
from cuzktui.model.snapshot import ProcessView, Snapshot

GAP_BYTES = 64 << 20
"""A smaller last release is tidying up."""
PLATEAU_SHARE = 0.05
"""Plateaus below this share of the peak are not told."""


@dataclass(frozen=True, slots=True)
class StrangerReport:
    """One foreign process; times are CLOCK_MONOTONIC ns, sizes bytes."""

    process: ProcessView
    begin_ns: int
    end_ns: int
    stretches: tuple[Stretch, ...]
    phases: tuple[Phase, ...]
    gap: Stretch | None
    """The last large release."""

    @property
    def by_cause(self) -> dict[Cause, int]:
        """Nanoseconds of each cause that occurs, longest first."""
        sums: dict[Cause, int] = {}
        for piece in self.stretches:
            sums[piece.cause] = sums.get(piece.cause, 0) + piece.length_ns
        return dict(sorted(sums.items(), key=lambda pair: -pair[1]))

    @property
    def told_phases(self) -> list[Phase]:
        """Moves, and plateaus high enough to matter."""
        floor = PLATEAU_SHARE * self.process.peak_anon_bytes
        return [p for p in self.phases if p.kind is not PhaseKind.PLATEAU or p.level_bytes >= floor]

    def as_dict(self) -> dict[str, object]:
        """Plain numbers, strings, lists and objects; every inferred figure under `inferred`."""
        process, ended = self.process, self.process.ended
        cpu = process.cpu_before
        return {
            "pid": process.pid,
            "command": process.command,
            "watched_ms": (self.end_ns - self.begin_ns) / 1e6,
            "ended": ended.reason if ended is not None else None,
            "exit_code": ended.exit_code if ended is not None else None,
            "signal": ended.signal if ended is not None else None,
            "peak_rss_bytes": process.peak_resident_bytes,
            "peak_anon_bytes": process.peak_anon_bytes,
            "user_ms": cpu[1] / 1e6 if cpu else None,
            "system_ms": cpu[2] / 1e6 if cpu else None,
            "minor_faults": cpu[4] if cpu else None,
            "phases": [self._phase(phase) for phase in self.told_phases],
            "staircases": [
                {"steps": x.steps, "begin_ms": self._ms(x.begin_ns), "end_ms": self._ms(x.end_ns)}
                for x in staircases(self.phases)
            ],
            "inferred": {
                "time_ms": {cause.value: ns / 1e6 for cause, ns in self.by_cause.items()},
                "gap_ms": self.gap.length_ns / 1e6 if self.gap else None,
                "gap_bytes": self.gap.fall_bytes if self.gap else None,
            },
        }

    def as_text(self) -> str:
        """The report for a reader."""
        process = self.process
        lines = [f"process {process.pid}   {process.command or 'unknown command'}"]
        ended = process.ended
        how = ended.reason if ended is not None else "still running"
        lines.append(f"watched       {text.duration(self.end_ns - self.begin_ns)}, {how}")
        cpu = process.cpu_before
        split = f", user {text.duration(cpu[1])}, system {text.duration(cpu[2])}" if cpu else ""
        lines.append(f"peak          {text.size(process.peak_resident_bytes)} resident{split}")
        for phase in self.told_phases:
            lines.append(f"{phase.kind.value:13} {self._told(phase)}")
        times = ", ".join(f"{cause.value} {text.duration(ns)}" for cause, ns in self.by_cause.items())
        lines.append(f"inferred      {times or 'nothing: too few readings'}")
        if self.gap is not None:
            rate = self.gap.fall_bytes / (self.gap.length_ns / 1e9) if self.gap.length_ns else None
            lines.append(
                f"inferred gap  {text.duration(self.gap.length_ns)}: releasing {text.size(self.gap.fall_bytes)} "
                f"at {text.rate(rate)}"
            )
        return "\n".join(lines)

    def _phase(self, phase: Phase) -> dict[str, object]:
        edges = None if phase.kind is PhaseKind.PLATEAU else refined(self.process.memory, phase)
        return {
            "kind": phase.kind.value,
            "begin_ms": self._ms(edges.begin_ns if edges else phase.begin_ns),
            "end_ms": self._ms(edges.end_ns if edges else phase.end_ns),
            "from_bytes": phase.begin_bytes,
            "to_bytes": phase.end_bytes,
            "bytes_per_s": edges.slope_bytes_per_s if edges else None,
        }

    def _told(self, phase: Phase) -> str:
        at = f"at {text.duration(phase.begin_ns - self.begin_ns)}"
        if phase.kind is PhaseKind.PLATEAU:
            return f"{at}: {text.size(phase.level_bytes)} for {text.duration(phase.length_ns)}"
        edges = refined(self.process.memory, phase)
        least = "at least " if phase.kind is PhaseKind.CLIFF else ""
        rate = abs(phase.slope_bytes_per_s if edges.slope_bytes_per_s is None else edges.slope_bytes_per_s)
        levels = f"{text.size(phase.begin_bytes)} to {text.size(phase.end_bytes)}"
        return f"{at}: {levels} in {text.duration(edges.length_ns)}, {least}{text.rate(rate)}"

    def _ms(self, t_ns: int) -> float:
        return (t_ns - self.begin_ns) / 1e6


def stranger_report(snapshot: Snapshot, pid: int | None = None) -> StrangerReport | None:
    """The report of a watched process, the drawn one by default; None where it was never read."""
    process = snapshot.processes.get(pid) if pid is not None else snapshot.process
    if process is None or not len(process.memory):
        return None
    begin_ns = int(process.memory.t_ns[0])
    end_ns = process.ended.t_ns if process.ended is not None else int(process.memory.t_ns[-1])
    told = tuple(stretches(process, begin_ns, end_ns))
    large = [s for s in told if s.cause is Cause.RELEASING and s.fall_bytes >= GAP_BYTES]
    return StrangerReport(
        process=process, begin_ns=begin_ns, end_ns=end_ns, stretches=told, phases=process.phases,
        gap=large[-1] if large else None,
    )  # fmt: skip
