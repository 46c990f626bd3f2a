"""The gap of jobs with known releases: its length, what explains it, and what must not."""

from __future__ import annotations

import pytest

from builders import GB, MS, S, Story
from cuzktui.analysis import analyse, analyse_job
from cuzktui.analysis.gap import GapReport, gap_of
from cuzktui.analysis.intervals import clip, length_ns, union, without
from prover import wire
from prover.wire import Policy, Stage


def gap(story: Story, **changes: object) -> GapReport:
    report = analyse_job(story.build()).gap
    assert report is not None
    return report


def without_memory(story: Story) -> list[wire.Event]:
    return [e for e in story.build() if not isinstance(e, wire.MemSample)]


def test_a_synchronous_release_explains_its_gap_from_the_ledger() -> None:
    found = gap(Story())
    assert found.gap_ns == 800 * MS
    assert found.explained_percent == pytest.approx(100.0, abs=0.1)
    assert found.ledger_ns == 800 * MS
    assert found.released_bytes == 8 * GB
    assert found.munmap_bytes_per_s == pytest.approx(10 * GB)
    assert found.predicted_ns == pytest.approx(800 * MS, rel=0.01)
    assert found.fall_bytes == pytest.approx(8 * GB, rel=0.01)
    assert found.fall_bytes_per_s == pytest.approx(10 * GB, rel=0.05)
    assert found.ways == ("munmap",) and found.threads == ("release",)
    assert found.system_percent == pytest.approx(100.0, abs=1.0)
    assert found.gpu_percent is None


def test_falling_memory_alone_explains_a_gap_without_a_ledger() -> None:
    found = gap(Story(with_ledger=False))
    assert found.ledger_ns == 0 and found.munmap_bytes_per_s is None
    assert found.explained_percent == pytest.approx(100.0, abs=1.0)


def test_a_gap_without_release_stays_unexplained_although_a_stage_covers_it() -> None:
    story = Story()
    events = [e for e in without_memory(story) if not isinstance(e, (wire.BufferReleased, wire.CpuSample))]
    at = (story.inner_end_ns, story.outer_end_ns)
    events += [
        wire.StageBegan(t_ns=at[0], job_id=story.job_id, stage=Stage.RELEASE),
        wire.StageEnded(t_ns=at[1], job_id=story.job_id, stage=Stage.RELEASE),
        wire.Span(t_ns=at[1], begin_ns=at[0], job_id=story.job_id, name="release", stage=Stage.RELEASE),
    ]
    found = analyse_job(sorted(events, key=lambda e: e.t_ns))
    assert found.gap_explained_percent == 0.0
    assert found.attribution.explained_percent == pytest.approx(100 * (1 - 800 / 7090), abs=0.1)
    assert "unexplained" in found.finding


def test_half_a_release_explains_half_a_gap() -> None:
    events = [
        e for e in without_memory(Story()) if not (isinstance(e, wire.BufferReleased) and e.buffer_id > 4)
    ]
    report = analyse_job(events)
    assert report.gap_explained_percent == pytest.approx(50.0, abs=0.5)
    assert "50 % of it explained" in report.finding


def test_a_background_release_is_no_gap_and_does_not_explain_one() -> None:
    story = Story(gap_ms=3, async_ms=600, policy=Policy.ASYNC_4K, sample_ms=1)
    report = analyse_job(story.build())
    assert report.gap is not None
    assert report.gap.gap_ns == 3 * MS
    assert report.gap.explained_percent == 0.0
    assert report.gap.released_bytes == 0
    assert report.gap.background_bytes == 8 * GB
    assert report.gap.background_ns == 600 * MS
    assert report.finding.startswith("no gap: 3.00 ms of 4.00 s after the last kernel")
    assert "8.00 GB released in the background in 600 ms" in report.finding


def test_a_buffer_over_the_edge_of_the_gap_counts_in_proportion() -> None:
    story = Story(buffers=1, gap_ms=400)
    events = [e for e in story.build() if not isinstance(e, wire.BufferReleased)]
    begin_ns = story.inner_end_ns - 400 * MS
    events.append(
        wire.BufferReleased(t_ns=story.outer_end_ns, buffer_id=1, begin_ns=begin_ns, size_bytes=GB, how="munmap")
    )
    found = analyse_job(sorted(events, key=lambda e: e.t_ns)).gap
    assert found is not None and found.released_bytes == GB // 2


def test_the_gap_grows_and_is_explained_while_it_is_open() -> None:
    story = Story()
    shares = []
    for after_ms in (200, 400, 600):
        snapshot = analyse([e for e in story.build() if e.t_ns <= story.inner_end_ns + after_ms * MS])
        job = snapshot.job
        assert job is not None
        found = gap_of(snapshot, job)
        assert found is not None and found.is_open
        assert found.gap_ns == after_ms * MS
        shares.append(found.explained_percent)
    assert shares == [pytest.approx(100.0, abs=0.1)] * 3


def test_before_the_last_kernel_has_ended_there_is_no_gap() -> None:
    story = Story()
    snapshot = analyse([e for e in story.build() if e.t_ns < story.inner_end_ns])
    assert snapshot.job is not None and gap_of(snapshot, snapshot.job) is None


def test_recycled_buffers_cost_no_gap_and_are_said_to_be_kept() -> None:
    story = Story(gap_ms=1, policy=Policy.RECYCLE)
    events = [e for e in story.build() if not isinstance(e, (wire.BufferReleased, wire.MemSample))]
    events += [
        wire.BufferReleased(
            t_ns=story.inner_end_ns + k, buffer_id=k + 1, begin_ns=story.inner_end_ns + k, size_bytes=GB, how="pool"
        )
        for k in range(8)
    ]
    report = analyse_job(sorted(events, key=lambda e: e.t_ns))
    assert report.gap is not None and report.gap.released_bytes == 0
    assert "8.00 GB kept for the next job" in report.finding


def test_system_cpu_of_a_short_gap_is_not_diluted_by_the_computation_before_it() -> None:
    found = gap(Story(gap_ms=160))
    assert found.system_percent == pytest.approx(100.0, abs=5.0)


def test_sets_of_time_are_joined_clipped_and_subtracted() -> None:
    assert union([(5, 9), (0, 2), (2, 4), (8, 12), (3, 3), (9, 1)]) == [(0, 4), (5, 12)]
    assert clip([(0, 4), (5, 12)], 3, 6) == [(3, 4), (5, 6)]
    assert without([(0, 10)], [(2, 3), (5, 20)]) == [(0, 2), (3, 5)]
    assert length_ns(without([(0, S)], [])) == S
