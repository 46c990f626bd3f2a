"""A post-mortem says what was read and claims a kill for memory only on the kernel's word."""

from __future__ import annotations

import json
import signal

from builders import MS, S, Story
from cuzktui.analysis import analyse
from cuzktui.analysis.postmortem import PostMortem, post_mortem
from prover import wire

STORY = Story()
DIES_NS = STORY.inner_end_ns - 590 * MS


def died(reason: str, *more: wire.Event, number: int | None = signal.SIGKILL, stage: str = "prove/msm_h") -> PostMortem:
    """The prover of a story, ended in the middle of its kernels."""
    events = [e for e in STORY.build() if e.t_ns <= DIES_NS]
    host = wire.HostSample(
        t_ns=DIES_NS - 400 * MS, mem_available_bytes=70_000_000, cgroup_bytes=24_000_000_000,
        cgroup_limit_bytes=24_100_000_000, oom_kills=3,
    )  # fmt: skip
    end = wire.ProcessEnded(t_ns=DIES_NS, pid=41, signal=number, reason=reason, stage=stage)
    found = post_mortem(analyse([*events, host, *more, end]))
    assert found is not None
    return found


def test_a_kill_for_memory_is_named_with_stage_job_and_memory() -> None:
    told = died("killed by the kernel for memory (the cgroup's oom_kill count rose)")
    assert told.is_kill_for_memory
    assert told.verdict() == (
        "prover 41 killed by the kernel for memory (the cgroup's oom_kill count rose) in stage prove/msm_h, "
        "with 8.50 GB resident"
    )
    assert told.job is not None and told.job.job_id == "job-1" and told.stage_ns is not None and told.stage_ns > 0
    assert told.host_available_bytes == 70_000_000 and told.cgroup_limit_bytes == 24_100_000_000


def test_a_signal_from_a_person_is_not_called_a_kill_for_memory() -> None:
    told = died("killed by signal 9 (SIGKILL)")
    assert not told.is_kill_for_memory
    assert told.verdict() == (
        "prover 41 killed by signal 9 (SIGKILL) in stage prove/msm_h, with 8.50 GB resident; "
        "the kernel counted no kill for memory"
    )


def test_the_kernels_own_line_is_evidence_and_is_quoted_only_where_it_names_the_process() -> None:
    ours = wire.LogLine(t_ns=DIES_NS, source="kernel", text="Out of memory: Killed process 41 (python) total-vm:1kB")
    other = wire.LogLine(t_ns=DIES_NS, source="kernel", text="Out of memory: Killed process 4177 (x) total-vm:41kB")
    told = died("killed by the kernel for memory (its log names the process)", ours, other)
    assert told.kernel_lines == (ours.text,)
    assert ours.text in told.as_text() and other.text not in told.as_text()


def test_an_exit_code_is_told_as_it_is() -> None:
    told = died("exited with code 3", number=None, stage="")
    assert told.verdict() == "prover 41 exited with code 3, with 8.50 GB resident"
    assert not told.is_kill_for_memory


def test_what_was_said_in_the_last_thirty_seconds_is_kept_and_older_words_are_not() -> None:
    old = wire.Notice(t_ns=DIES_NS - 40 * S, text="long ago")
    late = wire.Notice(t_ns=DIES_NS - 2 * S, text="memory is tight", level="warning")
    told = died("killed by signal 9 (SIGKILL)", old, late)
    assert [words for _, words in told.said] == ["memory is tight"]
    assert "−2.00 s" in told.as_text()


def test_the_report_is_json_and_a_living_process_has_none() -> None:
    answer = json.loads(json.dumps(died("killed by signal 9 (SIGKILL)").as_dict()))
    assert answer["signal"] == 9 and answer["stage"] == "prove/msm_h" and answer["killed_for_memory"] is False
    assert post_mortem(analyse(STORY.build())) is None


def test_a_stranger_that_was_never_read_still_has_a_post_mortem() -> None:
    events = [
        wire.ProcessSeen(t_ns=S, pid=7, command="node", role="foreign"),
        wire.ProcessEnded(t_ns=2 * S, pid=7, exit_code=1, reason="exited with code 1"),
    ]
    told = post_mortem(analyse(events))
    assert told is not None and told.verdict() == "process 7 exited with code 1" and told.last_bytes is None
    assert "–" in told.as_text()
