"""On every recording that is kept here, what was found while it happened equals what is found at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuzktui.analysis import JobReport, analyse, report_of
from cuzktui.analysis.alarms import alarms
from cuzktui.analysis.plateau import phases_of
from cuzktui.analysis.reconcile import reconciled
from cuzktui.collector.reading import read_recording
from cuzktui.live import DEMO_RECORDING
from cuzktui.model import store
from cuzktui.model.snapshot import Snapshot
from cuzktui.trial import has_settled
from prover import wire

DATA = Path(__file__).parents[2] / "data"
RECORDINGS = sorted({DEMO_RECORDING, *DATA.rglob("*.jsonl")})
SETTLED_NS = 1_500_000_000


def online(events: list[wire.Event]) -> dict[str, JobReport]:
    """Each job's report, taken once as a console takes it: soon after its end and its release in the background,
    from a snapshot with bounded history."""
    snapshot, told = store.empty(), {}
    for event in events:
        snapshot = store.apply(snapshot, event)
        due(snapshot, told, SETTLED_NS)
    due(snapshot, told, 0)
    return told


def due(snapshot: Snapshot, told: dict[str, JobReport], after_ns: int) -> None:
    for job in snapshot.jobs:
        if job.job_id in told or job.ended_ns is None or snapshot.t_ns < job.ended_ns + after_ns:
            continue
        if not after_ns or has_settled(snapshot, job):
            told[job.job_id] = report_of(snapshot, job)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_findings_taken_live_equal_findings_taken_at_the_end(path: Path) -> None:
    events = list(read_recording(path))
    live, last = online(events), analyse(events)
    assert live and set(live) == {job.job_id for job in last.jobs if job.is_done}
    for job in last.jobs:
        one, two = live[job.job_id], report_of(last, job)
        assert one.finding == two.finding and one.finding
        assert one.gap is not None and two.gap is not None
        assert (one.gap.begin_ns, one.gap.end_ns) == (two.gap.begin_ns, two.gap.end_ns)
        assert one.gap.explained == two.gap.explained
        assert one.attribution.by_kind == two.attribution.by_kind
        assert (one.lens.levels if one.lens else None) == (two.lens.levels if two.lens else None)
        assert (one.peak_rss_bytes, one.peak_anon_bytes) == (two.peak_rss_bytes, two.peak_anon_bytes)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_phases_found_live_equal_phases_of_the_whole_series(path: Path) -> None:
    snapshot = analyse(read_recording(path))
    process = snapshot.process
    assert process is not None
    rows = zip(process.memory.t_ns.tolist(), process.memory.column("anon").tolist(), strict=True)
    assert process.phases == phases_of(rows)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_jobs_of_a_healthy_prover_leave_nothing_unexplained(path: Path) -> None:
    snapshot = analyse(read_recording(path))
    for job in snapshot.jobs:
        at_ns = job.inner_end_ns
        found = reconciled(snapshot, at_ns - 20_000_000) if at_ns is not None else None
        assert found is not None and not found.has_leak and not found.is_off, found


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_a_healthy_run_raises_no_alarm(path: Path) -> None:
    snapshot, looked_ns = store.empty(), 0
    for event in read_recording(path):
        snapshot = store.apply(snapshot, event)
        if snapshot.t_ns - looked_ns >= 250_000_000:
            looked_ns = snapshot.t_ns
            assert alarms(snapshot) == ()
