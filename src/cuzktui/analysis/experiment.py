"""One job under several release policies, repeated: medians with their spread, never the figure of one lucky run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from cuzktui import format as text
from cuzktui.analysis.report import JobReport
from prover.wire import Outcome, Policy


@dataclass(frozen=True, slots=True)
class Spread:
    """A sample of one figure."""

    values: tuple[float, ...]

    @property
    def median(self) -> float | None:
        return statistics.median(self.values) if self.values else None

    @property
    def low(self) -> float | None:
        return min(self.values, default=None)

    @property
    def high(self) -> float | None:
        return max(self.values, default=None)

    def said_ms(self) -> str:
        """Median and range: `318 ms (301 ms to 402 ms)`."""
        if self.median is None:
            return text.ABSENT
        if len(self.values) == 1:
            return text.milliseconds(self.median)
        return f"{text.milliseconds(self.median)} ({text.milliseconds(self.low)} to {text.milliseconds(self.high)})"


@dataclass(frozen=True, slots=True)
class PolicyRuns:
    """What was measured under one policy."""

    policy: Policy
    runs: int
    failed: int
    gap_ms: Spread
    outer_ms: Spread
    total_ms: Spread
    munmap_bytes_per_s: Spread
    peak_rss_bytes: Spread
    gap_explained_percent: Spread


def summarise(reports: Sequence[JobReport]) -> list[PolicyRuns]:
    """One line a policy, in the order in which policies were first run; failed runs are counted, not measured."""
    policies = dict.fromkeys(r.job.policy for r in reports if r.job.policy is not None)
    return [_runs(policy, [r for r in reports if r.job.policy is policy]) for policy in policies]


def _runs(policy: Policy, reports: list[JobReport]) -> PolicyRuns:
    good = [report for report in reports if report.job.outcome is Outcome.PROVED]
    figures = [report.as_dict() for report in good]

    def spread(key: str) -> Spread:
        found = (figure.get(key) for figure in figures)
        return Spread(tuple(float(value) for value in found if isinstance(value, (int, float))))

    return PolicyRuns(
        policy=policy, runs=len(good), failed=len(reports) - len(good), gap_ms=spread("gap_ms"),
        outer_ms=spread("outer_ms"), total_ms=spread("total_ms"), munmap_bytes_per_s=spread("munmap_bytes_per_s"),
        peak_rss_bytes=spread("peak_rss_bytes"), gap_explained_percent=spread("gap_explained_percent"),
    )  # fmt: skip


def markdown(lines: Sequence[PolicyRuns]) -> str:
    """The experiment as a table, its first policy as the reference."""
    told = ["| policy | runs | gap | outer clock | total | munmap | peak |", "|---|---:|---:|---:|---:|---:|---:|"]
    for line in lines:
        runs = f"{line.runs}" + (f" ({line.failed} failed)" if line.failed else "")
        clocks = (line.gap_ms.said_ms(), line.outer_ms.said_ms(), line.total_ms.said_ms())
        sizes = (text.rate(line.munmap_bytes_per_s.median), text.size(line.peak_rss_bytes.median))
        told.append(f"| {' | '.join((line.policy.value, runs, *clocks, *sizes))} |")
    return "\n".join([*told, "", conclusion(lines)]).rstrip() + "\n"


def conclusion(lines: Sequence[PolicyRuns]) -> str:
    """One sentence: what the best policy saves over the first one, if more than the runs scatter."""
    measured = [line for line in lines if line.gap_ms.median is not None]
    if len(measured) < 2:
        return ""
    first, best = measured[0], min(measured, key=lambda line: line.gap_ms.median or 0.0)
    before, after = first.gap_ms.median or 0.0, best.gap_ms.median or 0.0
    scatter = max((line.gap_ms.high or 0.0) - (line.gap_ms.low or 0.0) for line in (first, best))
    if best is first or before - after <= scatter:
        return f"No policy shortens the gap of {first.policy} by more than its runs scatter."
    return (
        f"{best.policy} shortens the gap from {text.milliseconds(before)} ({first.policy}) to "
        f"{text.milliseconds(after)}."
    )


def as_dict(lines: Sequence[PolicyRuns]) -> list[dict[str, object]]:
    """The experiment as plain objects; every figure with all its values."""
    names = ("gap_ms", "outer_ms", "total_ms", "munmap_bytes_per_s", "peak_rss_bytes", "gap_explained_percent")
    told: list[dict[str, object]] = []
    for line in lines:
        row: dict[str, object] = {"policy": line.policy.value, "runs": line.runs, "failed": line.failed}
        for name in names:
            spread: Spread = getattr(line, name)
            row[name] = {"median": spread.median, "low": spread.low, "high": spread.high, "values": list(spread.values)}
        told.append(row)
    return told
