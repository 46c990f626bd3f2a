"""The same job under several policies and more than once: medians and spreads, fairly ordered, as table and picture."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

FIGURES = ("gap_ms", "outer_ms", "total_ms", "synth_ms", "release_ms", "peak_rss_bytes", "gap_explained_percent")
BAR_CELLS = 30


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure over the repetitions."""

    median: float
    least: float
    most: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread | None:
        return Spread(statistics.median(values), min(values), max(values)) if values else None


Table = dict[str, dict[str, Spread | None]]
"""By policy, by figure."""


def turns(policies: Sequence[str], repeat: int) -> list[str]:
    """The order of the jobs that count: every policy once a round, each round beginning with the next one."""
    return [policies[(first + i) % len(policies)] for first in range(repeat) for i in range(len(policies))]


def tabulate(runs: Sequence[tuple[str, dict[str, object]]]) -> Table:
    """Medians and spreads of what each run's report says."""
    table: Table = {}
    for policy in dict.fromkeys(policy for policy, _ in runs):
        answers = [answer for name, answer in runs if name == policy]
        table[policy] = {
            figure: Spread.of([float(value) for a in answers if isinstance(value := a.get(figure), (int, float))])
            for figure in FIGURES
        }
    return table


def markdown(circuit: str, num_circuits: int, repeat: int, table: Table) -> str:
    """The table and a picture of the gaps, as Markdown."""
    lines = [
        f"# {circuit} × {num_circuits} under each release policy", "",
        f"Median of {repeat} run(s), least and most in brackets; policies took turns, one warm-up before them.", "",
        "| policy | gap ms | prove ms | total ms | peak RSS GB | gap explained % |", "|---|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for policy, figures in table.items():
        cells = [
            said(figures["gap_ms"], 1, 1), said(figures["outer_ms"], 1, 0), said(figures["total_ms"], 1, 0),
            said(figures["peak_rss_bytes"], 1e9, 2), said(figures["gap_explained_percent"], 1, 1),
        ]  # fmt: skip
        lines.append(f"| {policy} | " + " | ".join(cells) + " |")
    gaps = {policy: spread.median for policy, figures in table.items() if (spread := figures["gap_ms"])}
    widest = max(gaps.values(), default=0.0)
    lines += ["", "```", "gap"]
    lines += [f"{policy:11} {_bar(gap, widest):{BAR_CELLS}} {gap:10.1f} ms" for policy, gap in gaps.items()]
    return "\n".join([*lines, "```", ""])


def as_dict(circuit: str, num_circuits: int, repeat: int, runs: Sequence[tuple[str, dict[str, object]]]) -> dict:
    """The experiment as plain numbers, strings, lists and objects."""
    policies = {
        policy: {
            name: None if spread is None else {"median": spread.median, "least": spread.least, "most": spread.most}
            for name, spread in figures.items()
        }
        for policy, figures in tabulate(runs).items()
    }
    answers = [answer for _, answer in runs]
    return {
        "circuit": circuit, "num_circuits": num_circuits, "repeat": repeat, "policies": policies, "runs": answers,
    }  # fmt: skip


def said(spread: Spread | None, unit: float, digits: int) -> str:
    """`median (least–most)` in a unit; a dash where no run had the figure."""
    if spread is None:
        return "–"
    median, least, most = (f"{value / unit:.{digits}f}" for value in (spread.median, spread.least, spread.most))
    return f"{median} ({least}–{most})"


def _bar(value: float, widest: float) -> str:
    eighths = round(8 * BAR_CELLS * value / widest) if widest > 0 else 0
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
