"""`report` and `compare` print what a recording shows: jobs, strangers or two jobs; what it has not is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders import GB, MS, START, S, Story, mem
from cuzktui.reporting import compare_jobs, report
from prover import wire
from prover.errors import BadFile, BadRequest
from prover.wire import Policy


def recorded(path: Path, *stories: Story) -> Path:
    events = [event for story in stories for event in story.build()]
    path.write_bytes(b"".join(map(wire.encode, events)))
    return path


def pair(path: Path) -> Path:
    slow = Story(job_id="a")
    fast = Story(job_id="b", begin_ns=START + 20 * S, gap_ms=2, async_ms=700, policy=Policy.ASYNC_4K)
    return recorded(path, slow, fast)


def test_every_job_is_reported_or_the_one_that_was_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = pair(tmp_path / "run.jsonl")
    assert report(path, None, as_json=True) == 0
    assert [json.loads(line)["gap_ms"] for line in capsys.readouterr().out.splitlines()] == [800.0, 2.0]
    assert report(path, "b", as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["policy"] == "async-4k"
    with pytest.raises(BadRequest, match="no job c"):
        report(path, "c", as_json=False)


def test_a_recording_without_jobs_is_reported_by_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.jsonl"
    seen = wire.ProcessSeen(t_ns=START, pid=41, command="stranger --fast", role="foreign")
    levels = [4 * GB] * 60 + [k * GB // 10 for k in range(40, 0, -1)] + [0] * 60
    samples = [mem(START + k * 20 * MS, level) for k, level in enumerate(levels)]
    hello = wire.Hello(t_ns=START - 1, unix_ns=0, source="collector")
    path.write_bytes(b"".join(map(wire.encode, [hello, seen, *samples])))
    assert report(path, None, as_json=False) == 0
    out = capsys.readouterr().out
    assert "stranger --fast" in out and "inferred gap" in out and "releasing 4.00 GB" in out


def test_the_two_newest_jobs_of_a_recording_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare_jobs(pair(tmp_path / "run.jsonl"), None, (), as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["left"], told["right"]) == ("a", "b")
    assert next(f["delta"] for f in told["figures"] if f["key"] == "gap_ms") == pytest.approx(-798.0)


def test_two_recordings_are_compared_by_their_newest_or_named_jobs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = pair(tmp_path / "one.jsonl"), recorded(tmp_path / "two.jsonl", Story(job_id="c", gap_ms=400))
    assert compare_jobs(one, two, (), as_json=False) == 0
    assert "| gap | 2.00 ms | 400 ms |" in capsys.readouterr().out
    assert compare_jobs(one, two, ("a", "c"), as_json=False) == 0
    assert "| gap | 800 ms | 400 ms |" in capsys.readouterr().out


def test_what_cannot_be_compared_is_refused_with_a_reason(tmp_path: Path) -> None:
    single = recorded(tmp_path / "single.jsonl", Story(job_id="c"))
    with pytest.raises(BadRequest, match=r"has 1 job\(s\): name a second recording"):
        compare_jobs(single, None, (), as_json=False)
    with pytest.raises(BadRequest, match="no job x"):
        compare_jobs(single, single, ("x",), as_json=False)
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(b"not a recording\n")
    with pytest.raises(BadFile):
        compare_jobs(torn, single, (), as_json=False)
