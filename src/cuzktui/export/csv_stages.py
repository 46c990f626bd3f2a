"""One row a stage run, in order of begin; times in milliseconds since the stream's first event, absent cells empty."""

from __future__ import annotations

import csv
import io

from cuzktui.analysis.report import analyse
from cuzktui.model.snapshot import JobView, StageView
from prover.wire import Event

HEADER = (
    "job_id", "circuit_name", "policy", "stage", "circuit", "begin_ms", "end_ms", "wall_ms", "cpu_ms", "spans", "ops",
    "moved_bytes", "thread", "ok",
)  # fmt: skip


def render_csv(events: list[Event]) -> bytes:
    """The stages of every job; a stage that has not ended has no end and no wall time."""
    snapshot = analyse(events)
    base_ns = snapshot.first_ns
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    views = [*((snapshot.service,) if snapshot.service else ()), *snapshot.jobs]
    rows = [(stage.begin_ns, _row(job, stage, base_ns)) for job in views for stage in job.stages]
    writer.writerows(row for _, row in sorted(rows, key=lambda pair: pair[0]))
    return out.getvalue().encode()


def _row(job: JobView, stage: StageView, base_ns: int) -> list[object]:
    spans = [
        span for span in job.spans
        if span.stage is stage.stage and (stage.circuit is None or span.circuit == stage.circuit)
        and span.begin_ns >= stage.begin_ns and (stage.end_ns is None or span.t_ns <= stage.end_ns)
    ]  # fmt: skip
    cpu_ns = [span.cpu_ns for span in spans if span.cpu_ns is not None]
    end_ns = stage.end_ns
    return [
        job.job_id, job.circuit, job.policy.value if job.policy else "", stage.stage.value,
        "" if stage.circuit is None else stage.circuit, _ms(stage.begin_ns - base_ns),
        "" if end_ns is None else _ms(end_ns - base_ns), "" if end_ns is None else _ms(end_ns - stage.begin_ns),
        _ms(sum(cpu_ns)) if cpu_ns else "", len(spans), sum(span.ops or 0 for span in spans),
        sum(span.moved_bytes or 0 for span in spans), stage.thread, "" if end_ns is None else int(stage.ok),
    ]  # fmt: skip


def _ms(length_ns: int) -> str:
    return f"{length_ns / 1e6:.3f}"
