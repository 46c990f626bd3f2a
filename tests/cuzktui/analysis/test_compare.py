"""Two jobs side by side: every figure and stage with its delta, absent where one of them lacks it."""

from __future__ import annotations

import pytest

from builders import GB, START, S, Story
from cuzktui.analysis import JobReport, analyse_job
from cuzktui.analysis.compare import compare, markdown, offset_ns
from prover.wire import Policy, Stage


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
