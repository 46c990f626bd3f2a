"""Folding a stream gives the state that a screen draws, whatever order, gaps or nonsense the stream has."""

from __future__ import annotations

import ast
import random
import time
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import GB, MS, START, Profile, S, Story, mem
from cuzktui.model import store
from cuzktui.model.snapshot import Snapshot
from prover import wire
from prover.wire import Outcome, Owner, Place, Policy, Stage


def folded(events: list[wire.Event]) -> Snapshot:
    return store.apply_all(store.empty(), events)


def test_a_whole_job_leaves_its_stages_clocks_kernels_and_peak() -> None:
    story = Story()
    snapshot = folded(story.build())
    job = snapshot.job
    assert job is not None and job.job_id == story.job_id
    assert job.outcome is Outcome.PROVED and job.verified
    assert job.gap_ns(snapshot.t_ns) == story.gap_ms * MS
    assert job.inner_ns == story.kernel_ms * MS
    assert job.peak_anon_bytes == story.baseline_bytes + story.total_bytes
    prove = job.stage(Stage.PROVE)
    assert prove is not None and prove.length_ns(0) == (story.kernel_ms + story.gap_ms) * MS
    row = job.kernels[("msm_h", "cpu")]
    assert (row.count, row.total_ns, row.max_ns) == (2, S, 500 * MS)
    assert row.ops_per_s == pytest.approx(2 * (1 << 18) / 1.0)
    assert row.roof_percent == pytest.approx(50.0)
    assert snapshot.running is None and snapshot.queued == ()


def test_the_gap_counts_up_while_it_is_open() -> None:
    story = Story()
    events = [e for e in story.build() if e.t_ns <= story.inner_end_ns + 300 * MS]
    snapshot = folded(events)
    job = snapshot.job
    assert job is not None and job.is_in_gap
    gap = job.gap_ns(snapshot.t_ns)
    assert gap is not None and 260 * MS <= gap <= 300 * MS
    assert snapshot.running == story.job_id
    lens = snapshot.lens
    assert lens is not None and lens.is_open and lens.job_id == story.job_id
    assert lens.gap_ns(snapshot.t_ns) == gap
    assert lens.fallen_bytes == pytest.approx(10 * GB * gap / S, rel=0.1)


def test_the_lens_closes_once_memory_has_settled_and_keeps_its_samples() -> None:
    story = Story()
    lens = folded(story.build()).lens
    assert lens is not None and lens.end_ns is not None
    assert lens.gap_end_ns == story.outer_end_ns
    assert 250 * MS <= lens.end_ns - story.outer_end_ns <= 600 * MS
    inside = lens.samples.window(story.inner_end_ns, story.outer_end_ns)[0]
    assert len(inside) == story.gap_ms // story.sample_ms + 1
    assert lens.samples.t_ns[0] <= story.inner_end_ns - 80 * MS


def test_a_fall_of_a_stranger_opens_a_lens_and_one_of_our_idle_prover_does_not() -> None:
    fall = [mem(START + k * 20 * MS, (4 - max(0, k - 50) * 0.1) * GB if k < 90 else 0.0) for k in range(200)]
    stranger = folded(fall)
    assert stranger.lens is not None and stranger.lens.reason == "memory falls"
    assert stranger.lens.end_ns is not None
    ours = folded([wire.Hello(t_ns=START - 1, unix_ns=0, pid=41), *fall])
    assert ours.lens is None


def test_a_job_that_began_before_the_watch_is_taken_in_as_it_comes() -> None:
    story = Story()
    events = [e for e in story.build() if e.t_ns > story.prove_begin_ns]
    snapshot = folded(events)
    job = snapshot.job
    assert job is not None and job.submitted_ns is None
    assert job.gap_ns(snapshot.t_ns) == story.gap_ms * MS


def test_a_job_cut_off_by_the_death_of_its_prover_has_failed() -> None:
    story = Story()
    events = [e for e in story.build() if e.t_ns <= story.prove_begin_ns + S]
    dead = wire.ProcessEnded(t_ns=events[-1].t_ns + 1, pid=41, signal=9, reason="killed by signal 9")
    snapshot = folded([*events, dead])
    job = snapshot.job
    assert job is not None and job.outcome is Outcome.FAILED and "signal 9" in job.error
    assert snapshot.is_lost and snapshot.running is None


def test_a_new_prover_is_drawn_after_the_old_one_died() -> None:
    again = [
        wire.ProcessEnded(t_ns=START + 90 * S, pid=41, signal=9),
        wire.ProcessSeen(t_ns=START + 91 * S, pid=77, command="python -m prover serve"),
        wire.Hello(t_ns=START + 91 * S, unix_ns=0, pid=77),
        mem(START + 92 * S, GB, pid=77),
    ]
    snapshot = folded([*Story().build(), *again])
    assert snapshot.main_pid == 77 and not snapshot.is_lost
    assert snapshot.ledger.host_bytes == 0


def test_taking_up_a_watch_again_doubles_nothing() -> None:
    story = Story()
    events = [e for e in story.build() if e.t_ns <= story.prove_begin_ns + S]
    before = folded(events)
    state = wire.State(t_ns=events[-1].t_ns, policy=Policy.SYNC_4K, running=story.job_id)
    again = [state, *(e for e in events if isinstance(e, (wire.JobSubmitted, wire.StageBegan, wire.BufferAllocated)))]
    touched = [e for e in events if isinstance(e, wire.BufferTouched)]
    after = folded([*events, *again, *touched])
    assert after.ledger.host_bytes == before.ledger.host_bytes == story.total_bytes
    assert len(after.jobs) == 1
    job, was = after.jobs[0], before.jobs[0]
    assert len(job.stages) == len(was.stages)


def test_cpu_time_becomes_percents_over_at_least_200_ms() -> None:
    samples = [
        wire.CpuSample(
            t_ns=START + k * 50 * MS, pid=41, user_ns=30 * k * MS, system_ns=10 * k * MS, minor_faults=100 * k
        )
        for k in range(21)
    ]
    process = folded(list(samples)).process
    assert process is not None
    assert len(process.cpu) == 5
    assert process.cpu.last("user_percent") == pytest.approx(60.0)
    assert process.cpu.last("system_percent") == pytest.approx(20.0)
    assert process.cpu.last("minor_faults_per_s") == pytest.approx(2000.0)
    assert process.cpu.last("run_percent") is None


def test_a_reused_pid_does_not_give_negative_percents() -> None:
    samples = [
        wire.CpuSample(t_ns=START, pid=41, user_ns=5 * S),
        wire.CpuSample(t_ns=START + S, pid=41, user_ns=1 * S),
        wire.CpuSample(t_ns=START + 2 * S, pid=41, user_ns=2 * S),
    ]
    process = folded(list(samples)).process
    assert process is not None and process.cpu.column("user_percent").tolist() == [100.0]


def test_an_unread_gpu_is_none_and_no_gpu_says_why() -> None:
    snapshot = folded([wire.GpuSample(t_ns=1, device=0, error="GPU is lost")])
    assert snapshot.gpus[0].last.util_percent is None
    assert snapshot.gpus[0].series.last("util_percent") is None
    assert folded(Story().build()).gpu_note == "no NVIDIA driver"


def test_older_snapshots_are_not_changed_by_later_events() -> None:
    events = Story().build()
    middle = folded(events[: len(events) // 2])
    frozen = msgspec.structs.asdict(middle)
    samples = middle.process.memory.column("anon").copy() if middle.process else None
    store.apply_all(middle, events[len(events) // 2 :])
    assert msgspec.structs.asdict(middle) == frozen
    assert middle.process is not None and (middle.process.memory.column("anon") == samples).all()


def test_order_of_arrival_within_a_quarter_second_does_not_matter() -> None:
    events = Story().build()
    rng = random.Random(3)
    late = sorted(events, key=lambda e: e.t_ns + (0 if isinstance(e, wire.MemSample) else rng.randint(0, 250) * MS))
    straight, shuffled = folded(events), folded(late)
    one, two = straight.job, shuffled.job
    assert one is not None and two is not None
    assert (one.gap_ns(0), one.inner_ns, one.outer_ns) == (two.gap_ns(0), two.inner_ns, two.outer_ns)
    assert len(one.releases) == len(two.releases)
    assert straight.phases == shuffled.phases
    assert shuffled.ledger.host_bytes == 0


EVENTS = st.one_of(
    st.builds(wire.StageBegan, t_ns=st.integers(), job_id=st.sampled_from("ab"), stage=st.sampled_from(Stage)),
    st.builds(wire.StageEnded, t_ns=st.integers(), job_id=st.sampled_from("ab"), stage=st.sampled_from(Stage)),
    st.builds(wire.InnerEnded, t_ns=st.integers(0, 10**12), job_id=st.sampled_from("ab"), inner_ns=st.integers()),
    st.builds(wire.OuterEnded, t_ns=st.integers(0, 10**12), job_id=st.sampled_from("ab"), outer_ns=st.integers()),
    st.builds(
        wire.BufferAllocated, t_ns=st.integers(0, 10**12), buffer_id=st.integers(-3, 3), job_id=st.sampled_from("ab"),
        label=st.just("x"), owner=st.sampled_from(Owner), place=st.sampled_from(Place), size_bytes=st.integers(-9, GB),
    ),
    st.builds(
        wire.BufferReleased, t_ns=st.integers(0, 10**12), buffer_id=st.integers(-3, 3), begin_ns=st.integers(0, 10**12),
        size_bytes=st.integers(-9, 10**9), how=st.sampled_from(("munmap", "pool", "trim", ""))
    ),
    st.builds(wire.ProcessSeen, t_ns=st.integers(0, 10**12), pid=st.integers(0, 3), command=st.just("x")),
    st.builds(wire.ProcessEnded, t_ns=st.integers(0, 10**12), pid=st.integers(0, 3)),
    st.builds(
        wire.MemSample, t_ns=st.integers(0, 10**12), pid=st.integers(0, 3), resident_bytes=st.integers(-9, 10**12),
        shared_bytes=st.integers(-9, 10**12),
    ),
    st.builds(wire.CpuSample, t_ns=st.integers(0, 10**12), pid=st.integers(0, 3), user_ns=st.integers(-9, 10**12)),
    st.builds(wire.JobEnded, t_ns=st.integers(), job_id=st.sampled_from("ab"), outcome=st.sampled_from(Outcome)),
)  # fmt: skip


@given(st.lists(EVENTS, max_size=60))
def test_no_stream_of_events_can_break_the_fold(events: list[wire.Event]) -> None:
    snapshot = folded(events)
    assert snapshot.ledger.host_bytes == sum(b.resident_bytes for b in snapshot.ledger.buffers.values()
                                             if b.event.place in (Place.HOST, Place.PINNED))  # fmt: skip
    assert all(size >= 0 for size in snapshot.ledger.resident.values())


def test_nothing_grows_without_limit() -> None:
    events: list[wire.Event] = []
    for k in range(3000):
        events += [
            wire.StageBegan(t_ns=k, job_id=f"j{k}", stage=Stage.SYNTH),
            wire.Notice(t_ns=k, text="x"),
            wire.ProcessSeen(t_ns=k, pid=k + 1, command="x", role="foreign"),
            wire.SourceChanged(t_ns=k, source=f"s{k}", alive=True),
            wire.GpuSample(t_ns=k, device=k),
            wire.Span(t_ns=k, job_id="j2999", name=f"n{k}", begin_ns=k),
            wire.Progress(t_ns=k, job_id="j2999", stage=Stage.SYNTH, circuit=k, done=1, total=2),
        ]
    snapshot = folded(events)
    assert len(snapshot.jobs) <= 64 and len(snapshot.notices) <= 500
    assert len(snapshot.processes) <= 64 and len(snapshot.sources) <= 32 and len(snapshot.gpus) <= 64
    job = snapshot.find_job("j2999")
    assert job is not None and len(job.kernels) <= 256 and len(job.progress) <= 512


def test_every_event_of_the_wire_is_folded() -> None:
    assert set(get_args(wire.AnyEvent)) == set(store._FOLDS)


def test_the_prediction_of_admission_is_kept_with_its_parts() -> None:
    parts = {"abc": 3 * GB, "assignment": GB}
    events = [
        wire.JobSubmitted(t_ns=START, job_id="a", circuit="x", num_circuits=1, policy=Policy.RECYCLE),
        wire.JobPredicted(t_ns=START + 1, job_id="a", peak_bytes=4 * GB, parts_bytes=parts),
    ]
    job = folded(list(events)).jobs[0]
    assert job.predicted_peak_bytes == 4 * GB and job.predicted_parts == parts


def test_twenty_thousand_events_a_second_are_folded() -> None:
    events = [e for k in range(20) for e in Story(job_id=f"j{k}", begin_ns=START + k * 10 * S, buffers=60).build()]
    began = time.process_time()
    snapshot = folded(events)
    took = time.process_time() - began
    assert len(snapshot.jobs) == 20
    assert len(events) / took > 20_000, f"{len(events) / took:.0f} events a second of CPU time"


def test_the_model_needs_no_clock_no_terminal_and_no_files() -> None:
    allowed = {"__future__", "collections", "enum", "typing", "numpy", "msgspec", "cuzktui", "prover"}
    for module in Path(store.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.partition(".")[0] for name in names} <= allowed, f"{module.name} imports {names}"
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            assert not (is_call and node.func.id == "open"), f"{module.name} opens a file"


def test_times_and_begins_out_of_any_range_are_counted_and_passed_over() -> None:
    events: list[wire.Event] = [
        mem(1 << 63, GB),
        mem(-(1 << 63), GB),
        wire.Span(t_ns=START, job_id="a", name="x", begin_ns=1 << 63),
        wire.BufferReleased(t_ns=START, buffer_id=1, begin_ns=-(1 << 63), size_bytes=1, how="munmap"),
    ]
    snapshot = folded(events)
    assert snapshot.unknown == 4 and not snapshot.jobs and not snapshot.processes


def test_the_lens_of_a_stranger_stops_counting_when_the_stranger_has_ended() -> None:
    profile = Profile([(START, 1e9), (START + 100 * MS, 1e9), (START + 200 * MS, 3e8)])
    events = [wire.ProcessSeen(t_ns=START, pid=41, command="x", role="foreign"), *profile.samples(5 * MS)]
    falling = store.apply_all(store.empty(), events)
    assert falling.lens is not None and falling.lens.is_open
    ended = store.apply(falling, wire.ProcessEnded(t_ns=START + 210 * MS, pid=41, exit_code=0))
    later = store.apply(ended, wire.HostSample(t_ns=START + 9000 * MS))
    assert later.lens is not None and not later.lens.is_open
    assert later.lens.gap_ns(later.t_ns) <= 210 * MS
