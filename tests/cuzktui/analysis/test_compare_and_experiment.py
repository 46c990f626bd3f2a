"""Two jobs side by side, and one job under several policies: deltas, medians, and no conclusion from scatter."""

from __future__ import annotations

import json

import pytest

from builders import GB, MS, START, S, Story
from cuzktui.analysis import JobReport, analyse_job
from cuzktui.analysis.compare import compare, markdown, offset_ns
from cuzktui.analysis.experiment import as_dict, conclusion, summarise
from cuzktui.analysis.experiment import markdown as experiment_markdown
from prover import wire
from prover.wire import Outcome, Policy, Stage


def report(policy: Policy, gap_ms: int, async_ms: int = 0, begin_ns: int = START) -> JobReport:
    return analyse_job(Story(policy=policy, gap_ms=gap_ms, async_ms=async_ms, begin_ns=begin_ns).build())


def test_a_comparison_has_the_delta_of_every_figure_and_stage() -> None:
    rows = {row.key: row for row in compare(report(Policy.SYNC_4K, 800), report(Policy.ASYNC_4K, 2, 700))}
    assert rows["gap_ms"].delta == pytest.approx(-798.0)
    assert rows["total_ms"].delta == pytest.approx(-798.0)
    assert rows["gap_ms"].ratio == pytest.approx(2 / 800)
    assert rows["synth_ms"].delta == 0.0
    assert (rows["released_bytes"].left, rows["released_bytes"].right) == (8 * GB, 0)
    assert [key for key in rows if key in ("queue_ms", "synth_ms", "prove_ms", "verify_ms")] == [
        "queue_ms", "synth_ms", "prove_ms", "verify_ms",
    ]  # fmt: skip


def test_a_figure_that_one_job_lacks_is_absent_and_not_zero() -> None:
    whole = report(Policy.SYNC_4K, 800)
    story = Story()
    cut = analyse_job([e for e in story.build() if e.t_ns < story.inner_end_ns])
    gap = next(row for row in compare(whole, cut) if row.key == "gap_ms")
    assert gap.right is None and gap.delta is None and gap.ratio is None
    assert "| gap | 800 ms | – | – |" in markdown(compare(whole, cut), "a", "b")


def test_a_comparison_reads_as_a_table() -> None:
    table = markdown(compare(report(Policy.SYNC_4K, 800), report(Policy.ASYNC_4K, 8, 700)), "sync-4k", "async-4k")
    assert "| | sync-4k | async-4k | change |" in table
    assert "| gap | 800 ms | 8.00 ms | -792 ms (×0.01) |" in table


def test_two_jobs_are_aligned_by_a_stage() -> None:
    one, two = report(Policy.SYNC_4K, 800).job, report(Policy.SYNC_4K, 800, begin_ns=START + 77 * S).job
    assert offset_ns(one, two, Stage.PROVE) == -77 * S
    assert offset_ns(one, two, Stage.COMPILE) is None


def test_an_experiment_gives_medians_and_spread_by_policy() -> None:
    slow, fast = (800, 900, 700), (2, 4)
    reports = [report(Policy.SYNC_4K, gap) for gap in slow] + [report(Policy.ASYNC_HUGE, gap, 99) for gap in fast]
    lines = summarise(reports)
    assert [line.policy for line in lines] == [Policy.SYNC_4K, Policy.ASYNC_HUGE]
    assert (lines[0].gap_ms.median, lines[0].gap_ms.low, lines[0].gap_ms.high) == (800.0, 700.0, 900.0)
    assert conclusion(lines) == "async-huge shortens the gap from 800 ms (sync-4k) to 3.00 ms."
    table = experiment_markdown(lines)
    assert "| sync-4k | 3 | 800 ms (700 ms to 900 ms) |" in table
    assert json.loads(json.dumps(as_dict(lines)))[1]["gap_ms"]["values"] == [2.0, 4.0]


def test_scatter_gives_no_conclusion() -> None:
    runs = [(Policy.SYNC_4K, 500), (Policy.SYNC_4K, 900), (Policy.SYNC_HUGE, 600), (Policy.SYNC_HUGE, 650)]
    lines = summarise([report(policy, gap_ms) for policy, gap_ms in runs])
    assert conclusion(lines) == "No policy shortens the gap of sync-4k by more than its runs scatter."


def test_failed_runs_are_counted_and_not_measured() -> None:
    story = Story()
    failed = [e for e in story.build() if e.t_ns < story.prove_begin_ns]
    failed.append(wire.JobEnded(t_ns=story.prove_begin_ns + MS, job_id=story.job_id, outcome=Outcome.FAILED, error="x"))
    line = summarise([report(Policy.SYNC_4K, 800), analyse_job(failed)])[0]
    assert (line.runs, line.failed) == (1, 1)
    assert line.total_ms.values == (7090.0,)
