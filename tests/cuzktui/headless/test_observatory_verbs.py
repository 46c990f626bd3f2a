"""Expectations, post-mortems and comparisons from the command line, on real processes and real recordings."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
from cli_support import cuzktui

from builders import MS, START, S, Story
from cuzktui.analysis import analyse
from cuzktui.analysis.expectation import Expected, expected_of
from cuzktui.collector.reading import read_recording
from cuzktui.reporting import compare_jobs, report
from cuzktui.sources.session import Session, SessionSpec
from prover import wire
from prover.wire import Policy

KILLED = "import os, signal; held = bytearray(50_000_000); os.kill(os.getpid(), signal.SIGKILL)"


def written(path: Path, events: list[wire.Event]) -> Path:
    path.write_bytes(b"".join(map(wire.encode, events)))
    return path


def test_a_recorded_command_keeps_its_expectation_and_how_it_died(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    done = cuzktui("record", "-o", path, "--expect", "heap=50MB", "--", sys.executable, "-c", KILLED)
    assert done.returncode == 0, done.stderr
    assert expected_of(analyse(read_recording(path))) == (Expected("heap", 1, 50_000_000),)
    told = cuzktui("report", path).stdout
    assert "killed by signal 9 (SIGKILL), with " in told and "resident; the kernel counted no kill for memory" in told
    lines = [json.loads(line) for line in cuzktui("report", path, "--json").stdout.splitlines()]
    assert lines[-1]["post_mortem"]["signal"] == 9 and not lines[-1]["post_mortem"]["killed_for_memory"]


@pytest.mark.parametrize("verb", ["attach", "record"])
def test_an_expectation_that_cannot_be_read_is_refused(verb: str) -> None:
    done = cuzktui(verb, "--pid", os.getpid(), "--expect", "srs=big", timeout=30)
    assert done.returncode == 2 and "srs=big" in done.stderr


def test_a_session_puts_the_expectation_into_its_stream(tmp_path: Path) -> None:
    events: list[wire.Event] = []
    session = Session(SessionSpec(start_prover=False, pids=(os.getpid(),), expect="srs=47GB"))
    session.start(events.append)
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not any(isinstance(e, wire.Marker) for e in events):
            time.sleep(0.02)
    finally:
        session.stop()
    assert [part.name for part in expected_of(analyse(events))] == ["srs"]


def test_a_job_that_died_is_reported_with_its_post_mortem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = Story()
    events = [e for e in story.build() if e.t_ns <= story.inner_end_ns - 100 * MS]
    reason = "killed by the kernel for memory (the cgroup's oom_kill count rose)"
    end = wire.ProcessEnded(t_ns=events[-1].t_ns, pid=41, signal=9, reason=reason, stage="prove/tail_msm")
    assert report(written(tmp_path / "run.jsonl", [*events, end]), None, as_json=False) == 0
    told = capsys.readouterr().out
    assert "prover 41 killed by the kernel for memory" in told and "in stage prove/tail_msm" in told
    assert "job-1 sha256-chain:8 × 2" in told


def test_a_job_that_ended_well_needs_no_post_mortem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = Story().build()
    end = wire.ProcessEnded(t_ns=events[-1].t_ns, pid=41, exit_code=0, reason="exited with code 0")
    report(written(tmp_path / "run.jsonl", [*events, end]), None, as_json=False)
    assert "ended " not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["table.md", "table.json"])
def test_a_comparison_is_written_by_its_name(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow = Story(job_id="a").build()
    fast = Story(job_id="b", begin_ns=START + 20 * S, gap_ms=2, async_ms=700, policy=Policy.ASYNC_4K).build()
    compare_jobs(written(tmp_path / "run.jsonl", [*slow, *fast]), None, (), False, tmp_path / name)
    text = (tmp_path / name).read_text()
    if name.endswith(".json"):
        figures = {figure["key"]: figure["delta"] for figure in json.loads(text)["figures"]}
        assert figures["gap_ms"] == -798.0
    else:
        assert text == capsys.readouterr().out and "| gap | 800 ms | 2.00 ms |" in text
