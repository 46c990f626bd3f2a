"""Recordings of real proofs: what was found while they ran is what is found at the end, and their traces are sound.

`gigabyte_sync_4k.jsonl` is one proof of sha256-chain:16 x 16 on a busy two-core machine, its quiet stretches thinned.
The others are excerpts from an H200: 67.8 GB of buffers of sha256-chain:640 x 18 (the pair that ships as the
demonstration, and one on huge pages), and one partition of a 32 GiB sector.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import cuzktui
from cuzktui.analysis import analyse, analyse_job
from cuzktui.analysis.finding import finding
from cuzktui.collector.reading import read_recording
from cuzktui.export.chrome import render_chrome
from cuzktui.model import store
from cuzktui.model.phases import PhaseKind
from prover import wire
from prover.wire import Outcome
from trace_checker import faults

ROOT = Path(__file__).parents[2]
RECORDINGS = [
    ROOT / "data" / "gigabyte_sync_4k.jsonl", Path(cuzktui.__file__).parent / "demo" / "run.jsonl",
    ROOT / "data" / "h200_sync_huge.jsonl", ROOT / "data" / "h200_porep_32gib.jsonl",
]  # fmt: skip


@cache
def events_of(path: Path) -> tuple[wire.Event, ...]:
    return tuple(read_recording(path))


@pytest.fixture(params=RECORDINGS, ids=lambda path: path.stem)
def events(request: pytest.FixtureRequest) -> list[wire.Event]:
    return list(events_of(request.param))


def test_phases_found_while_it_ran_stay_as_they_were(events: list[wire.Event]) -> None:
    final = analyse(events).phases
    snapshot = store.empty()
    for k, event in enumerate(events):
        snapshot = store.apply(snapshot, event)
        if k % 500 == 0 and snapshot.process is not None:
            settled = snapshot.process.segmenter.phases[:-2]
            assert final[: len(settled)] == settled


def test_the_finding_at_the_reply_is_the_finding_at_the_end(events: list[wire.Event]) -> None:
    final, snapshot = analyse(events), store.empty()
    for event in events:
        snapshot = store.apply(snapshot, event)
        if isinstance(event, wire.JobEnded):
            live, later = snapshot.find_job(event.job_id), final.find_job(event.job_id)
            assert live is not None and later is not None
            if any(release.synchronous for release in live.releases):
                assert finding(snapshot, live).partition(" · ")[0] == finding(final, later).partition(" · ")[0]


def test_every_job_is_explained_and_its_parts_add_up(events: list[wire.Event]) -> None:
    for job in analyse(events).jobs:
        report = analyse_job(events, job.job_id)
        assert job.outcome is Outcome.PROVED
        assert report.explained_percent is not None and report.explained_percent >= 99.0
        assert report.parts_off_percent is not None and abs(report.parts_off_percent) < 2.0
        assert report.predicted_peak_bytes == pytest.approx(report.peak_rss_bytes, rel=0.1)


def test_the_trace_of_a_real_proof_passes_the_checker(events: list[wire.Event]) -> None:
    assert faults(render_chrome(events)) == []
    assert faults(render_chrome(events[: len(events) * 2 // 3])) == []


def test_the_gap_of_a_gigabyte_is_its_bytes_over_the_munmap_rate() -> None:
    report = analyse_job(events_of(RECORDINGS[0]))
    assert report.gap is not None and report.gap.predicted_ns is not None
    assert report.gap.released_bytes > 1_000_000_000
    assert report.gap.gap_ns == pytest.approx(report.gap.predicted_ns, rel=0.15)
    assert report.gap_explained_percent is not None and report.gap_explained_percent >= 95.0
    assert report.plateau is not None and report.plateau.difference_percent is not None
    assert abs(report.plateau.difference_percent) < 5.0
    assert report.lens is not None and report.lens.levels >= 10
    assert [p.kind for p in report.phases[-2:]] == [PhaseKind.RELEASE, PhaseKind.PLATEAU]


def test_the_demonstration_shows_a_gap_and_then_none() -> None:
    snapshot = analyse(events_of(RECORDINGS[1]))
    slow, fast = (analyse_job(events_of(RECORDINGS[1]), job.job_id) for job in snapshot.jobs[:2])
    assert slow.gap is not None and fast.gap is not None
    assert fast.gap.gap_ns < 0.1 * slow.gap.gap_ns
    assert "releasing" in slow.finding and fast.finding.startswith("no gap")


def test_thirty_seven_gigabytes_are_gone_from_the_critical_path_when_released_in_the_background() -> None:
    """What the demonstration shows: the same job on the same host, released before the reply and after it."""
    slow, quick = (analyse_job(events_of(RECORDINGS[1]), job.job_id) for job in analyse(events_of(RECORDINGS[1])).jobs)
    assert slow.gap is not None and quick.gap is not None
    assert slow.gap.released_bytes > 37e9 and quick.gap.background_bytes > 37e9
    assert slow.gap.gap_ns > 2_000_000_000 and quick.gap.gap_ns < 1_000_000
    assert slow.gap.gap_ns == pytest.approx(slow.gap.predicted_ns, rel=0.05)


@pytest.mark.parametrize("path", RECORDINGS[1:], ids=lambda path: path.stem)
def test_a_real_card_was_read_while_it_proved(path: Path) -> None:
    samples = [event for event in events_of(path) if isinstance(event, wire.GpuSample)]
    assert all("H200" in sample.name and not sample.error for sample in samples)
    assert max(sample.power_w or 0 for sample in samples) > 200
    assert max(sample.util_percent or 0 for sample in samples) > 90
    assert max(sample.process_bytes or 0 for sample in samples) > 30e9


@pytest.mark.parametrize("path", RECORDINGS[1:], ids=lambda path: path.stem)
def test_an_excerpt_names_no_folder_of_the_machine_it_was_made_on(path: Path) -> None:
    text = path.read_bytes()
    assert b"/tmp" not in text and b"/root" not in text and b"/home" not in text
