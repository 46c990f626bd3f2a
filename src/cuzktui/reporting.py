"""What a recording shows, in words or as JSON: each job, each process that sent no events, or two jobs side by side."""

from __future__ import annotations

import json
from pathlib import Path

from cuzktui.analysis import JobReport, analyse, report_of
from cuzktui.analysis.compare import as_dict, compare, markdown
from cuzktui.analysis.postmortem import PostMortem, post_mortem
from cuzktui.analysis.stranger import stranger_report
from cuzktui.collector.reading import read_recording
from cuzktui.model.snapshot import Snapshot
from prover.errors import BadRequest


def report(path: Path, job_id: str | None, as_json: bool) -> int:
    """Prints a report of every job, or of the processes where there was none; returns the exit code.

    Raises:
        BadFile: it is no recording.
        BadRequest: it has no such job.
    """
    from cuzktui.headless import summary

    snapshot = analyse(read_recording(path))
    jobs = [job for job in snapshot.jobs if job_id in (None, job.job_id)]
    if job_id and not jobs:
        raise _no_job(path, job_id, snapshot)
    for job in jobs:
        answer = report_of(snapshot, job).as_dict()
        print(json.dumps(answer) if as_json else summary(answer) + "\n")
    strangers = [stranger_report(snapshot, pid) for pid in snapshot.processes] if not jobs else []
    for told in strangers:
        if told is not None:
            print(json.dumps(told.as_dict()) if as_json else told.as_text() + "\n")
    for dead in _post_mortems(snapshot):
        print(json.dumps({"post_mortem": dead.as_dict()}) if as_json else dead.as_text() + "\n")
    if not jobs and not any(strangers) and not as_json:
        print(f"{path}: {snapshot.events} events, no job and no process")
    return 0


def compare_jobs(
    left: Path, right: Path | None, jobs: tuple[str, ...], as_json: bool, output: Path | None = None
) -> int:
    """Prints two jobs side by side: the newest of each recording, or the two newest of one; returns the exit code.

    Args:
        right: a second recording; None compares two jobs of `left`.
        jobs: up to two job ids, left first, where not the newest are meant.
        output: written too, as JSON where its name ends so, else as Markdown.

    Raises:
        BadFile: one is no recording.
        BadRequest: a job is missing, or one recording has fewer than two.
    """
    one = analyse(read_recording(left))
    two = analyse(read_recording(right)) if right is not None else one
    names: tuple[str | None, ...] = (*jobs, None, None)
    if right is None and len(jobs) < 2:
        if len(one.jobs) < 2:
            raise BadRequest(f"{left} has {len(one.jobs)} job(s): name a second recording to compare with")
        names = (one.jobs[-2].job_id, one.jobs[-1].job_id) if not jobs else (jobs[0], None)
    first, second = _job(left, one, names[0]), _job(right or left, two, names[1])
    rows = compare(first, second)
    text = markdown(rows, _title(first), _title(second))
    data = json.dumps(as_dict(rows, first.job.job_id, second.job.job_id)) + "\n"
    if output is not None:
        from cuzktui.export.atomic import write_atomic

        write_atomic(output, (data if output.suffix == ".json" else text).encode())
    print(data if as_json else text, end="")
    return 0


def _post_mortems(snapshot: Snapshot) -> list[PostMortem]:
    """Of processes that a signal or an error ended, or that took a job with them; a plain end needs none."""
    dead = [post_mortem(snapshot, pid) for pid, process in snapshot.processes.items() if process.ended is not None]
    return [told for told in dead if told is not None and (told.signal or told.exit_code or told.job is not None)]


def _job(path: Path, snapshot: Snapshot, job_id: str | None) -> JobReport:
    job = snapshot.find_job(job_id) if job_id else (snapshot.jobs[-1] if snapshot.jobs else None)
    if job is None:
        raise _no_job(path, job_id, snapshot)
    return report_of(snapshot, job)


def _no_job(path: Path, job_id: str | None, snapshot: Snapshot) -> BadRequest:
    known = ", ".join(job.job_id for job in snapshot.jobs) or "none"
    return BadRequest(f"{path}: no job {job_id or ''} (jobs: {known})")


def _title(report: JobReport) -> str:
    job = report.job
    return f"{job.job_id} {job.circuit} × {job.num_circuits} {job.policy or ''}".strip()
