"""A job's figures: the parts add up, the peak is the sampled one, the ledger agrees with memory, or it is said."""

from __future__ import annotations

import json
import time

import pytest

from builders import GB, MS, START, S, Story, mem
from cuzktui.analysis import analyse, analyse_job
from cuzktui.analysis.finding import finding
from cuzktui.analysis.forecast import forecast
from prover import wire
from prover.errors import BadRequest
from prover.wire import Policy

REQUIRED = (
    "verified", "proof_hex", "policy", "queue_ms", "setup_ms", "srs_ms", "synth_ms", "inner_ms", "outer_ms", "gap_ms",
    "release_ms", "verify_ms", "total_ms", "peak_rss_bytes", "peak_predicted_bytes", "explained_percent",
    "gap_explained_percent", "stages",
)  # fmt: skip


def test_the_report_has_every_figure_that_a_script_asks_for() -> None:
    figures = json.loads(json.dumps(analyse_job(Story().build()).as_dict()))
    assert not [name for name in REQUIRED if name not in figures]
    assert figures["gap_ms"] == 800.0 and figures["total_ms"] == 7090.0
    assert figures["outer_ms"] - figures["inner_ms"] == figures["gap_ms"]
    assert figures["peak_rss_bytes"] == 8_500_000_000
    assert figures["lens_levels"] >= 10
    assert sum(figures["attribution_ms"].values()) == pytest.approx(7090.0)


def test_the_parts_add_up_to_the_total_and_a_missing_part_is_seen() -> None:
    report = analyse_job(Story().build())
    assert report.parts_off_percent == pytest.approx(0.0, abs=0.1)
    wrong = [
        wire.JobEnded(t_ns=e.t_ns, job_id=e.job_id, outcome=e.outcome, metrics={"total_ms": 9000.0})
        if isinstance(e, wire.JobEnded) else e
        for e in Story().build()
    ]  # fmt: skip
    off = analyse_job(wrong).parts_off_percent
    assert off is not None and off > 20


def test_the_provers_own_clocks_come_before_computed_ones() -> None:
    events = [
        wire.JobEnded(t_ns=e.t_ns, job_id=e.job_id, outcome=e.outcome, metrics={"synth_ms": 1999.5, "policy": "x"})
        if isinstance(e, wire.JobEnded) else e
        for e in Story().build()
    ]  # fmt: skip
    figures = analyse_job(events).as_dict()
    assert figures["synth_ms"] == 1999.5 and figures["srs_ms"] == 200.0


def test_ledger_and_memory_agree_at_the_plateau_and_a_hidden_buffer_is_seen() -> None:
    story = Story()
    check = analyse_job(story.build()).plateau
    assert check is not None
    assert check.difference_percent == pytest.approx(0.0, abs=0.5)
    assert check.anon_bytes == pytest.approx(8.3 * GB)
    hidden = [e for e in story.build() if not (isinstance(e, wire.BufferAllocated) and e.buffer_id == 1)]
    off = analyse_job(hidden).plateau
    assert off is not None and off.difference_percent == pytest.approx(100 / 8.3, abs=0.5)


def test_a_job_is_found_by_its_id_and_an_unknown_one_is_an_error() -> None:
    events = [*Story(job_id="a").build(), *Story(job_id="b", begin_ns=START + 20 * S, gap_ms=400).build()]
    assert analyse_job(events, "a").number("gap_ms") == 800.0
    assert analyse_job(events, "b").number("gap_ms") == 400.0
    assert analyse_job(events).job.job_id == "b"
    with pytest.raises(BadRequest, match="no job c in the recording"):
        analyse_job(events, "c")
    with pytest.raises(BadRequest, match="jobs: none"):
        analyse_job([])


def test_the_finding_is_one_sentence_of_measured_figures() -> None:
    gpu = [wire.GpuSample(t_ns=START + k * 200 * MS, device=0, util_percent=0.0) for k in range(40)]
    report = analyse_job(sorted([*Story().build(), *gpu], key=lambda e: e.t_ns))
    assert report.finding == (
        "800 ms of 4.80 s after the last kernel: releasing 8.00 GB at 10.0 GB/s"
        " · munmap · in thread release · system CPU 100 % · GPU idle"
    )


def test_the_finding_counts_while_the_gap_is_open() -> None:
    story = Story()
    snapshot = analyse([e for e in story.build() if e.t_ns <= story.inner_end_ns + 400 * MS])
    assert finding(snapshot).startswith("400 ms since the last kernel and counting: releasing 4.00 GB at 10.0 GB/s")


def test_a_failed_job_is_found_with_its_reason() -> None:
    story = Story()
    events = [e for e in story.build() if e.t_ns < story.prove_begin_ns]
    failed = {"outcome": wire.Outcome.FAILED, "error": "out of memory"}
    events.append(wire.JobEnded(t_ns=story.prove_begin_ns, job_id=story.job_id, **failed))
    assert analyse_job(events).finding == "job job-1 failed: out of memory"


def test_a_strangers_release_is_told_as_inferred() -> None:
    events = [mem(START + k * 20 * MS, (4 - min(20, max(0, k - 50)) * 0.2) * GB) for k in range(120)]
    assert finding(analyse(events)) == "memory fell by 4.00 GB in 400 ms: 10.0 GB/s (inferred)"
    assert finding(analyse(events[:60])).startswith("memory falls by")
    assert finding(analyse(events[:40])) == ""


def test_findings_while_it_happens_equal_findings_at_the_end() -> None:
    story = Story()
    events = story.build()
    at_reply = analyse([e for e in events if e.t_ns <= story.end_ns])
    at_end = analyse(events)
    assert at_reply.job is not None and at_end.job is not None
    assert finding(at_reply, at_reply.job) == finding(at_end, at_end.job)


def test_a_forecast_takes_earlier_jobs_of_the_same_shape() -> None:
    first, second = Story(job_id="a"), Story(job_id="b", begin_ns=START + 20 * S)
    events = [*first.build(), *(e for e in second.build() if e.t_ns <= second.prove_begin_ns)]
    snapshot = analyse(events)
    assert snapshot.job is not None and snapshot.job.job_id == "b"
    end_ns = forecast(snapshot, snapshot.job).end_ns
    assert end_ns is not None and abs(end_ns - second.end_ns) < 50 * MS


def test_memory_that_will_not_last_is_forecast_from_the_ramp() -> None:
    story = Story()
    half_ns = story.synth_begin_ns + S
    host = wire.HostSample(t_ns=half_ns, mem_available_bytes=6 * GB, cgroup_bytes=10 * GB, cgroup_limit_bytes=12 * GB)
    snapshot = analyse([*(e for e in story.build() if e.t_ns <= half_ns), host])
    assert snapshot.job is not None
    ahead = forecast(snapshot, snapshot.job)
    assert (ahead.limit, ahead.headroom_bytes) == ("cgroup", 2 * GB)
    assert ahead.out_of_memory_ns is not None
    assert abs(ahead.out_of_memory_ns - half_ns - S // 2) < 60 * MS
    later = analyse([*(e for e in story.build() if e.t_ns <= story.inner_end_ns), host])
    assert later.job is not None and forecast(later, later.job).out_of_memory_ns is None


def test_an_hour_at_50_hz_is_analysed_in_five_seconds() -> None:
    hour = [Story(job_id=f"j{k}", begin_ns=START + k * 60 * S, kernel_ms=50_000) for k in range(60)]
    events = [event for story in hour for event in story.build()]
    assert sum(isinstance(e, wire.MemSample) for e in events) > 160_000
    began = time.process_time()
    report = analyse_job(events, "j30")
    took = time.process_time() - began
    assert report.gap_explained_percent == pytest.approx(100.0, abs=0.1)
    assert took < 5.0, f"{took:.1f} s of CPU time"


def test_policies_are_told_apart() -> None:
    slow, fast = Story(), Story(gap_ms=1, async_ms=700, policy=Policy.ASYNC_4K)
    gaps = [analyse_job(s.build()).number("gap_ms") for s in (slow, fast)]
    assert gaps == [800.0, 1.0]
