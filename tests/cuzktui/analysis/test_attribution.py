"""Every nanosecond of a job has one class, the classes add up, and the stronger evidence wins."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import GB, MS, START, S, Story, mem
from cuzktui.analysis import analyse
from cuzktui.analysis.attribution import Attribution, Kind, attribute
from prover import wire
from prover.wire import Stage


def attributed(events: list[wire.Event]) -> Attribution:
    snapshot = analyse(sorted(events, key=lambda e: e.t_ns))
    assert snapshot.job is not None
    return attribute(snapshot, snapshot.job)


def stage(name: Stage, begin_ms: int, end_ms: int, circuit: int | None = None) -> list[wire.Event]:
    at = {"job_id": "j", "stage": name, "circuit": circuit}
    return [wire.StageBegan(t_ns=START + begin_ms * MS, **at), wire.StageEnded(t_ns=START + end_ms * MS, **at)]


def span(name: str, begin_ms: int, end_ms: int, lane: str = "cpu", of: Stage | None = None) -> wire.Span:
    return wire.Span(
        t_ns=START + end_ms * MS, begin_ns=START + begin_ms * MS, job_id="j", name=name, lane=lane, stage=of
    )


def test_a_whole_job_adds_up_and_is_explained() -> None:
    story = Story()
    found = attributed(list(story.build()))
    assert found.total_ns == story.end_ns - story.begin_ns
    assert sum(found.by_kind.values()) == found.total_ns
    assert found.explained_percent == pytest.approx(100.0)
    assert found.length_ns(Kind.RELEASE) == 800 * MS
    assert found.length_ns(Kind.SYNTHESIS) == 2 * S
    assert found.length_ns(Kind.QUEUE) == 40 * MS
    assert found.length_ns(Kind.SRS_LOAD) == 200 * MS
    assert found.length_ns(Kind.VERIFY) == 50 * MS


def test_device_kernels_win_over_transfers_and_transfers_over_cpu_work() -> None:
    events = [
        *stage(Stage.PROVE, 0, 1000),
        span("b_g2_msm", 0, 1000, of=Stage.B_G2_MSM),
        span("h2d", 200, 600, lane="cuda:0 s1"),
        span("msm_h", 400, 800, lane="cuda:0 s0"),
    ]
    found = attributed(list(events))
    assert [(p.kind, p.detail, p.length_ns // MS) for p in found.parts] == [
        (Kind.CPU_MSM, "b_g2_msm", 200),
        (Kind.TRANSFER, "h2d", 200),
        (Kind.KERNEL, "msm_h", 400),
        (Kind.CPU_MSM, "b_g2_msm", 200),
    ]


def test_faulting_memory_in_ahead_of_synthesis_is_page_faulting_not_synthesis() -> None:
    events = [
        *stage(Stage.SYNTH, 0, 1000),
        span("fault in and lock pages", 0, 300, of=Stage.SYNTH),
        span("eval_abc", 0, 900, of=Stage.EVAL_ABC),
    ]
    found = attributed(list(events))
    assert found.length_ns(Kind.PAGE_FAULTING) == 300 * MS
    assert found.length_ns(Kind.SYNTHESIS) == 700 * MS


def test_the_prove_stage_alone_explains_nothing() -> None:
    found = attributed([*stage(Stage.PROVE, 0, 1000), span("ntt_h", 100, 300, of=Stage.NTT_H)])
    assert found.length_ns(Kind.UNEXPLAINED) == 800 * MS
    assert found.explained_percent == pytest.approx(20.0)


def test_time_in_which_the_process_does_not_run_is_idle() -> None:
    events: list[wire.Event] = [
        *stage(Stage.PROVE, 0, 5000),
        *(wire.CpuSample(t_ns=START + k * 200 * MS, pid=41, user_ns=5 * S, system_ns=S) for k in range(26)),
        *(mem(START + k * 20 * MS, GB) for k in range(250)),
    ]
    assert attributed(events).length_ns(Kind.IDLE) == 5 * S
    read = [event for event in events if isinstance(event, wire.CpuSample)]
    parked = [msgspec.structs.replace(event, run_ns=0, wchan={"futex_do_wait": 3}) for event in read]
    assert attributed([*events[:2], *parked]).length_ns(Kind.IDLE) == 5 * S, "nobody knows who is parked"
    busy = [e for e in events if not isinstance(e, wire.CpuSample)]
    busy += [wire.CpuSample(t_ns=START + k * 200 * MS, pid=41, user_ns=k * 200 * MS) for k in range(26)]
    assert attributed(busy).length_ns(Kind.IDLE) == 0


@pytest.mark.parametrize(
    ("waits", "kind"),
    [
        ({"futex_do_wait": 4}, Kind.LOCK_WAIT),
        ({"futex_do_wait": 3, "hrtimer_nanosleep": 1}, Kind.IDLE),
        ({"futex_do_wait": 3, "ep_poll": 1}, Kind.IDLE),
        ({}, Kind.IDLE),
    ],
)
def test_a_wait_that_no_span_tells_of_is_for_a_lock_where_one_thread_more_than_usual_is_in_one(
    waits: dict[str, int], kind: Kind
) -> None:
    events: list[wire.Event] = [*stage(Stage.SYNTH, 0, 3000), *stage(Stage.PROVE, 3000, 6000)]
    for k in range(31):
        busy_ns = min(k, 15) * 200 * MS
        events.append(
            wire.CpuSample(
                t_ns=START + k * 200 * MS, pid=41, user_ns=busy_ns, run_ns=busy_ns, threads=4,
                states={"R": 1, "S": 3} if k < 15 else {"S": 4},
                wchan={"futex_do_wait": 3} if k < 15 else waits,
            )
        )  # fmt: skip
    found = attributed(events)
    assert found.length_ns(Kind.SYNTHESIS) == found.length_ns(kind) == 3 * S
    assert {part.evidence for part in found.parts if part.kind is kind} == {"samples"}


def test_synthesis_spent_in_the_kernel_on_first_touch_is_page_faulting() -> None:
    events: list[wire.Event] = [
        *stage(Stage.SYNTH, 0, 2000),
        *(
            wire.CpuSample(
                t_ns=START + k * 200 * MS, pid=41, user_ns=max(0, k - 5) * 200 * MS,
                system_ns=min(k, 5) * 190 * MS, minor_faults=min(k, 5) * 50_000,
            )
            for k in range(11)
        ),
    ]  # fmt: skip
    found = attributed(events)
    assert found.length_ns(Kind.PAGE_FAULTING) == S
    assert found.length_ns(Kind.SYNTHESIS) == S


def test_a_job_that_runs_is_attributed_up_to_now() -> None:
    story = Story()
    events = [e for e in story.build() if e.t_ns <= story.synth_begin_ns + S]
    snapshot = analyse(events)
    assert snapshot.job is not None
    found = attribute(snapshot, snapshot.job)
    assert found.parts[-1].kind is Kind.SYNTHESIS and found.parts[-1].end_ns == snapshot.t_ns


def test_a_job_that_waits_for_the_compiler_is_not_merely_queued() -> None:
    compile_began = wire.StageBegan(t_ns=START - S, job_id="", stage=Stage.COMPILE)
    compile_ended = wire.StageEnded(t_ns=START + 700 * MS, job_id="", stage=Stage.COMPILE)
    events = [compile_began, compile_ended, *stage(Stage.QUEUE, 0, 800), *stage(Stage.SETUP, 600, 1000)]
    found = attributed(events)
    assert [(p.kind, p.length_ns // MS) for p in found.parts] == [(Kind.COMPILE, 600), (Kind.SETUP, 400)]


LANES = st.sampled_from(("cpu", "cuda:0 s0"))
PIECES = st.lists(st.tuples(st.integers(0, 900), st.integers(0, 900), LANES), max_size=30)


@given(PIECES)
def test_parts_are_contiguous_whatever_the_spans(pieces: list[tuple[int, int, str]]) -> None:
    events: list[wire.Event] = [*stage(Stage.SYNTH, 0, 400), *stage(Stage.PROVE, 400, 1000)]
    events += [span("k", begin, end, lane) for begin, end, lane in pieces]
    found = attributed(events)
    assert (found.parts[0].begin_ns, found.total_ns) == (START, S)
    for before, after in itertools.pairwise(found.parts):
        assert before.end_ns == after.begin_ns and before.length_ns > 0
        assert (before.kind, before.detail, before.evidence) != (after.kind, after.detail, after.evidence)
