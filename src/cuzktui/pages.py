"""Pages are what does not fit the main screen: compare, post-mortem, experiment; each writes what it shows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from cuzktui.analysis.compare import as_dict as compared_dict
from cuzktui.analysis.compare import compare, markdown
from cuzktui.analysis.report import report_of
from cuzktui.analysis.trials import as_dict as trial_dict
from cuzktui.analysis.trials import markdown as trial_markdown
from cuzktui.export.atomic import write_atomic
from cuzktui.screens.page import PageScreen
from cuzktui.trial import Trial
from cuzktui.widgets.canvas import Canvas, Look
from cuzktui.widgets.compare import ComparePanel, compared_jobs
from cuzktui.widgets.experiment import ExperimentPanel
from cuzktui.widgets.postmortem import PostMortemPanel
from cuzktui.widgets.view import View
from prover.errors import BadRequest

PANELS: dict[str, Callable[[Look], Canvas]] = {
    "compare": lambda look: ComparePanel(look, id="page"),
    "post-mortem": lambda look: PostMortemPanel(look, id="page"),
    "experiment": lambda look: ExperimentPanel(look, id="page"),
}


def page(name: str, look: Look, view: View) -> PageScreen:
    """The screen of one page.

    Raises:
        KeyError: no page has that name.
    """
    return PageScreen(name, PANELS[name](look), view)


def write_page(name: str, view: View, folder: Path) -> str:
    """Writes what a page shows as Markdown and JSON; returns the sentence to show.

    Raises:
        BadRequest: it has nothing to write, or the folder cannot be written.
    """
    if name == "compare":
        return write_comparison(view, folder)
    if name == "experiment" and view.trial is not None and view.trial.runs:
        return write_trial(view.trial, folder)
    raise BadRequest("this page has nothing to write; e on the main screen writes a trace of everything")


def write_comparison(view: View, folder: Path) -> str:
    """Both jobs of the comparison."""
    jobs = compared_jobs(view)
    if jobs is None:
        raise BadRequest("there are no two jobs to compare")
    one, two = (report_of(view.snapshot, job) for job in jobs)
    names = [f"{job.job_id} {job.policy or ''}".strip() for job in jobs]
    rows = compare(one, two)
    return _write(folder, "compare", markdown(rows, *names), compared_dict(rows, jobs[0].job_id, jobs[1].job_id))


def write_trial(trial: Trial, folder: Path) -> str:
    """The table, the picture and every run of an experiment."""
    text = trial_markdown(trial.circuit, trial.num_circuits, trial.repeat, trial.table())
    return _write(
        folder, "experiment", text, trial_dict(trial.circuit, trial.num_circuits, trial.repeat, trial.runs)
    )


def _write(folder: Path, what: str, text: str, data: dict[str, object]) -> str:
    base = folder / f"cuzktui-{what}-{time.strftime('%Y%m%d-%H%M%S')}"
    write_atomic(base.with_suffix(".md"), text.encode())
    write_atomic(base.with_suffix(".json"), (json.dumps(data, indent=1) + "\n").encode())
    return f"written to {base}.md and .json"
