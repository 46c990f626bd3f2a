"""The same job under each release policy, in turn and more than once, so that what differs is the policy alone.

The first job warms kernels, keys and page tables up and does not count. Policies take turns within each round, and each
round begins with another one, so that a drift of the machine meets all of them alike.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cuzktui.headless import Received, Request, Stopped, run_job, stoppable
from cuzktui.progress import ProgressLines
from cuzktui.sources.session import Session, SessionSpec
from prover.errors import BadRequest

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
            _cell(figures["gap_ms"], 1, 1), _cell(figures["outer_ms"], 1, 0), _cell(figures["total_ms"], 1, 0),
            _cell(figures["peak_rss_bytes"], 1e9, 2), _cell(figures["gap_explained_percent"], 1, 1),
        ]  # fmt: skip
        lines.append(f"| {policy} | " + " | ".join(cells) + " |")
    gaps = {policy: spread.median for policy, figures in table.items() if (spread := figures["gap_ms"])}
    widest = max(gaps.values(), default=0.0)
    lines += ["", "```", "gap"]
    lines += [f"{policy:11} {_bar(gap, widest):{BAR_CELLS}} {gap:10.1f} ms" for policy, gap in gaps.items()]
    return "\n".join([*lines, "```", ""])


def run(
    request: Request, policies: Sequence[str], repeat: int, spec: SessionSpec, *, as_json: bool, output: Path | None
) -> int:
    """Runs the experiment and prints its table; returns the exit code.

    Raises:
        BadRequest: a job was refused or failed, or the output cannot be written.
        ProverDied: the prover ended before its job.
    """
    lines = ProgressLines(sys.stderr, quiet=True)
    runs: list[tuple[str, dict[str, object]]] = []
    order = turns(policies, repeat)
    try:
        with stoppable():
            session = Session(spec)
            try:
                received = Received(lines.apply)
                session.start(received.add)
                for number, policy in enumerate([order[0], *order]):
                    what = "warm-up" if number == 0 else f"{number} of {len(order)}"
                    answer = _one(session, received, request, policy)
                    gap_ms, outer_ms = answer["gap_ms"], answer["outer_ms"]
                    lines.line(f"{what:10} {policy:11} gap {gap_ms:9.1f} ms  prove {outer_ms:9.0f} ms")
                    if number:
                        runs.append((policy, answer))
            finally:
                lines.hushed = True
                session.stop()
    except Stopped as stopped:
        lines.line(str(stopped))
        return 128 + stopped.number
    table = tabulate(runs)
    text = markdown(request.circuit, request.num_circuits, repeat, table)
    data = {"circuit": request.circuit, "num_circuits": request.num_circuits, "repeat": repeat}
    data_json = json.dumps(data | {"policies": _plain(table), "runs": [answer for _, answer in runs]})
    if output:
        from cuzktui.export.atomic import write_atomic

        write_atomic(output, (data_json if output.suffix == ".json" else text).encode())
    print(data_json if as_json else text)
    return 0


def _one(session: Session, received: Received, request: Request, policy: str) -> dict[str, object]:
    from cuzktui.analysis import analyse_job

    job_id = run_job(session, received, Request(request.circuit, request.num_circuits, policy, request.files))
    answer = analyse_job(received.events, job_id).as_dict()
    if not answer["verified"]:
        raise BadRequest(f"{request.circuit} under {policy}: {answer['error'] or answer['outcome']}")
    return answer | {"proof_hex": ""}


def _plain(table: Table) -> dict[str, dict[str, object]]:
    return {
        policy: {
            name: None if spread is None else {"median": spread.median, "least": spread.least, "most": spread.most}
            for name, spread in figures.items()
        }
        for policy, figures in table.items()
    }


def _cell(spread: Spread | None, unit: float, digits: int) -> str:
    if spread is None:
        return "–"
    median, least, most = (f"{value / unit:.{digits}f}" for value in (spread.median, spread.least, spread.most))
    return f"{median} ({least}–{most})"


def _bar(value: float, widest: float) -> str:
    eighths = round(8 * BAR_CELLS * value / widest) if widest > 0 else 0
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
