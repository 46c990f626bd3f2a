"""Memory beyond baseline and ledger is called unexplained, and only that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from builders import GB, MS, START, S, Story
from cuzktui.analysis import analyse
from cuzktui.analysis.reconcile import Reconciled, reconciled
from cuzktui.collector.memory import MemorySampler
from cuzktui.model.snapshot import Snapshot
from prover import wire
from prover.wire import Policy

TOTAL_BYTES, LEAK_BYTES = 1 << 30, 500_000_000


def with_leak(events: list[wire.Event], from_ns: int, leak_bytes: int) -> list[wire.Event]:
    """The same readings with so much more from a time on."""
    return [
        wire.MemSample(
            t_ns=e.t_ns, pid=e.pid, resident_bytes=e.resident_bytes + leak_bytes, shared_bytes=e.shared_bytes
        )
        if isinstance(e, wire.MemSample) and e.t_ns >= from_ns else e
        for e in events
    ]  # fmt: skip


def at_plateau(snapshot: Snapshot, story: Story) -> Reconciled:
    found = reconciled(snapshot, story.inner_end_ns - 500 * MS)
    assert found is not None
    return found


def test_a_ledger_that_tells_everything_leaves_nothing_unexplained() -> None:
    story = Story()
    found = at_plateau(analyse(story.build()), story)
    assert found.baseline_bytes == pytest.approx(0.3 * GB) and found.ledger_bytes == 8 * GB
    assert abs(found.unexplained_bytes) < 1e6 and not found.is_off


def test_a_leak_within_a_job_is_unexplained() -> None:
    story = Story()
    found = at_plateau(analyse(with_leak(story.build(), story.synth_begin_ns + MS, LEAK_BYTES)), story)
    assert found.unexplained_bytes == pytest.approx(LEAK_BYTES, rel=0.01) and found.is_off


def test_a_leak_that_stays_is_unexplained_in_every_later_job() -> None:
    stories = [Story(job_id=f"job-{k}", begin_ns=START + 20 * k * S) for k in range(4)]
    events = [event for story in stories for event in story.build()]
    leaking = with_leak(events, stories[2].prove_begin_ns, LEAK_BYTES)
    snapshot = analyse(leaking)
    assert [at_plateau(snapshot, story).is_off for story in stories] == [False, False, True, True]


def test_warming_up_in_the_first_job_is_part_of_the_baseline_of_the_others() -> None:
    stories = [Story(job_id=f"job-{k}", begin_ns=START + 20 * k * S) for k in range(3)]
    events = [event for story in stories for event in story.build()]
    snapshot = analyse(with_leak(events, stories[0].synth_begin_ns + MS, LEAK_BYTES))
    assert [at_plateau(snapshot, story).is_off for story in stories] == [True, False, False]


def test_a_ledger_that_claims_too_much_is_off_as_well() -> None:
    story = Story()
    found = at_plateau(analyse(with_leak(story.build(), story.synth_begin_ns + MS, -LEAK_BYTES)), story)
    assert found.unexplained_bytes == pytest.approx(-LEAK_BYTES, rel=0.01) and found.is_off


def test_a_stranger_has_no_ledger_to_hold_memory_against() -> None:
    events = [e for e in Story(with_ledger=False).build() if not isinstance(e, wire.Hello)]
    assert reconciled(analyse(events)) is None


def watched(policy: Policy, leak_bytes: int) -> Snapshot:
    """A real process with a real arena and, beside it, so much memory that it tells nobody of."""
    samples: list[wire.Event] = []
    program = Path(__file__).with_name("releasing.py")
    command = [sys.executable, str(program), policy.value, str(TOTAL_BYTES), str(leak_bytes)]
    sampler = MemorySampler(samples.append)
    sampler.start()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        sampler.watch(child.pid)
        events = [event for line in child.stdout if (event := wire.decode(line)) is not None]
    sampler.stop()
    return analyse(sorted([*events, *samples], key=lambda event: event.t_ns))


@pytest.mark.parametrize("policy", list(Policy))
def test_ledger_and_memory_of_a_real_process_agree_within_three_percent_under_each_policy(policy: Policy) -> None:
    snapshot = watched(policy, 0)
    job = snapshot.job
    assert job is not None and job.inner_end_ns is not None
    found = reconciled(snapshot, job.inner_end_ns - 50 * MS)
    assert found is not None and found.unexplained_percent is not None
    assert abs(found.unexplained_percent) < 3.0 and not found.is_off


def test_half_a_gigabyte_planted_beside_the_ledger_is_shown_as_unexplained() -> None:
    snapshot = watched(Policy.SYNC_4K, LEAK_BYTES)
    job = snapshot.job
    assert job is not None and job.inner_end_ns is not None
    found = reconciled(snapshot, job.inner_end_ns - 50 * MS)
    assert found is not None and found.is_off
    assert found.unexplained_bytes == pytest.approx(LEAK_BYTES, rel=0.05)
