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
from prover.wire import Owner, Place, Policy

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


def row_of_jobs(count: int, **how: int) -> tuple[list[Story], list[wire.Event]]:
    """Jobs one after another, each at rest for ten seconds before the next one."""
    stories = [Story(job_id=f"job-{k}", begin_ns=START + 20 * k * S, **how) for k in range(count)]
    return stories, [event for story in stories for event in story.build()]


def test_a_heap_that_is_tidied_after_a_job_lowers_the_baseline() -> None:
    stories, events = row_of_jobs(3)
    at_ns = stories[1].end_ns + 200 * MS
    snapshot = analyse(with_leak(events, at_ns, -16_000_000))
    idle, last = reconciled(snapshot, at_ns + 100 * MS), at_plateau(snapshot, stories[2])
    assert idle is not None and idle.unexplained_bytes == 0 and last.unexplained_bytes == pytest.approx(0, abs=1e6)
    before = at_plateau(snapshot, stories[1])
    assert before.baseline_bytes - idle.baseline_bytes == pytest.approx(16_000_000)


def test_what_a_new_circuit_keeps_raises_the_baseline_by_no_more_than_is_let_pass() -> None:
    stories, events = row_of_jobs(6)
    for story in stories[2:]:
        events = with_leak(events, story.synth_begin_ns - 10 * MS, 20_000_000)
    snapshot = analyse(events)
    found = [at_plateau(snapshot, story).unexplained_bytes for story in stories[2:]]
    assert found == pytest.approx([0, 0, 0, 80_000_000], abs=1e6)


def test_a_release_under_way_is_no_rest() -> None:
    stories, events = row_of_jobs(3)
    began_ns, gone_ns = stories[1].end_ns + 300 * MS, stories[2].synth_begin_ns - 50 * MS
    events = with_leak(with_leak(events, began_ns, GB), gone_ns, -GB)
    events += [
        wire.BufferAllocated(
            t_ns=began_ns, buffer_id=99, job_id="job-1", label="late", owner=Owner.ABC, place=Place.HOST, size_bytes=GB
        ),
        wire.BufferTouched(t_ns=began_ns, buffer_id=99, resident_bytes=GB),
        wire.BufferReleased(
            t_ns=gone_ns + 100 * MS, buffer_id=99, begin_ns=gone_ns - 50 * MS, size_bytes=GB, how="munmap"
        ),
    ]  # fmt: skip
    found = at_plateau(analyse(sorted(events, key=lambda event: event.t_ns)), stories[2])
    assert found.baseline_bytes == pytest.approx(0.3 * GB) and not found.is_off


def test_the_baseline_found_live_is_the_one_found_afterwards() -> None:
    stories, events = row_of_jobs(4)
    events = with_leak(events, stories[1].end_ns + 200 * MS, -16_000_000)
    events = with_leak(events, stories[3].synth_begin_ns - 10 * MS, 20_000_000)
    looks = [at for story in stories for at in (story.inner_end_ns - 500 * MS, story.end_ns + 400 * MS)]
    whole = analyse(events)
    for at_ns in looks:
        live = reconciled(analyse([event for event in events if event.t_ns <= at_ns]), at_ns)
        after = reconciled(whole, at_ns)
        assert live is not None and after is not None and live.baseline_bytes == after.baseline_bytes


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
