"""Alarms come where trouble is measured, once, and stay away where there is none."""

from __future__ import annotations

import pytest

from builders import GB, MS, START, S, Story, mem
from cuzktui.analysis import analyse
from cuzktui.analysis.alarms import alarms
from cuzktui.analysis.forecast import forecast
from cuzktui.model.snapshot import Snapshot
from prover import wire
from prover.wire import Policy, Stage


def story(begin_ns: int = START, job_id: str = "job-1", **more) -> Story:
    return Story(begin_ns=begin_ns, job_id=job_id, **more)


def cut(events: list[wire.Event], t_ns: int) -> list[wire.Event]:
    return [event for event in events if event.t_ns <= t_ns]


def second_job(until_ns: int, **more) -> Snapshot:
    """A finished job and a second one like it, as far as a time after the second one's begin."""
    later = story(START + 60 * S, "job-2", **more)
    return analyse([*story().build(), *cut(later.build(), later.begin_ns + until_ns)])


def standing(snapshot_events: list[wire.Event], for_ns: int, *, busy: bool) -> Snapshot:
    """The same stream with readings only, for a while."""
    events = list(snapshot_events)
    last_ns = events[-1].t_ns
    run = max(e.user_ns for e in events if isinstance(e, wire.CpuSample))
    for step in range(1, for_ns // (200 * MS) + 1):
        t_ns = last_ns + step * 200 * MS
        run += 200 * MS if busy else 0
        events += [mem(t_ns, 8 * GB), wire.CpuSample(t_ns=t_ns, pid=41, run_ns=run, user_ns=run)]
    return analyse(events)


def test_a_job_that_runs_as_before_raises_no_alarm() -> None:
    for until_ms in (500, 2500, 4000, 6500, 8000):
        assert alarms(second_job(until_ms * MS)) == ()


def test_a_stage_that_lasts_far_longer_than_ever_is_told_with_both_times() -> None:
    first, later = story(), story(START + 60 * S, "job-2")
    events = [*first.build(), *cut(later.build(), later.prove_begin_ns + 100 * MS)]
    assert alarms(standing(events, 3 * S, busy=True)) == ()
    (alarm,) = alarms(standing(events, 6 * S, busy=True))
    assert alarm.key == "stall job-2 ntt_h of circuit 0"
    assert "job-2 has been in ntt_h of circuit 0 for 6.1" in alarm.text and "500 ms at most before" in alarm.text


def test_a_first_job_is_only_called_still_when_nothing_at_all_happens() -> None:
    events = cut(story().build(), story().prove_begin_ns + 100 * MS)
    assert alarms(standing(events, 40 * S, busy=True)) == ()
    (alarm,) = alarms(standing(events, 40 * S, busy=False))
    assert "stands still in ntt_h of circuit 0" in alarm.text and alarm.level == "warning"


def ramp(available_bytes: int, predicted: int | None, rise_bytes_per_s: float = 1e9) -> Snapshot:
    """Ten seconds of a ramp of a foreign prover, or of ours with a prediction."""
    events: list[wire.Event] = [wire.ProcessSeen(t_ns=START, pid=41, command="daemon", role="foreign")]
    if predicted is not None:
        events += [
            wire.Hello(t_ns=START, unix_ns=1, pid=41, backend="cpu"),
            wire.JobSubmitted(
                t_ns=START, job_id="j", circuit="c", num_circuits=1, policy=Policy.SYNC_4K,
                predicted_peak_bytes=predicted,
            ),
            wire.StageBegan(t_ns=START, job_id="j", stage=Stage.SYNTH),
        ]  # fmt: skip
    for k in range(500):
        events.append(mem(START + k * 20 * MS, 2e9 + k * 0.02 * rise_bytes_per_s))
    events.append(wire.HostSample(t_ns=START + 10 * S, mem_available_bytes=available_bytes))
    return analyse(events)


def test_a_ramp_that_meets_the_limit_is_told_before_it_does() -> None:
    (alarm,) = alarms(ramp(5_000_000_000, None))
    assert alarm.level == "error" and alarm.text.startswith("out of memory in 5.0")
    assert "the host has left" in alarm.text


def test_a_ramp_with_room_or_one_that_ends_before_the_limit_is_not() -> None:
    assert alarms(ramp(60_000_000_000, None)) == ()
    assert alarms(ramp(5_000_000_000, 14_000_000_000)) == ()
    assert len(alarms(ramp(5_000_000_000, 40_000_000_000))) == 1


def test_a_short_ramp_is_not_drawn_on_for_long() -> None:
    events = [wire.ProcessSeen(t_ns=START, pid=41, command="daemon", role="foreign")]
    events += [mem(START + k * 20 * MS, 2e9 + k * 8e7) for k in range(60)]
    far = wire.HostSample(t_ns=START + 1180 * MS, mem_available_bytes=58 * GB)
    near = wire.HostSample(t_ns=START + 1180 * MS, mem_available_bytes=4 * GB)
    assert alarms(analyse([*events, far])) == ()
    assert len(alarms(analyse([*events, near]))) == 1


def on_gpu(util: float, backend: str = "cuda", stage: Stage = Stage.MSM_H) -> Snapshot:
    """Six seconds of one stage with a GPU at a utilisation."""
    first, later = story(kernel_ms=40_000), story(START + 80 * S, "job-2")
    events = [*first.build(), *cut(later.build(), later.prove_begin_ns)]
    begin_ns = later.prove_begin_ns
    events[0] = wire.Hello(t_ns=events[0].t_ns, unix_ns=1, pid=41, backend=backend)
    events = [e for e in events if not isinstance(e, wire.Hello) or e is events[0]]
    events.append(wire.StageBegan(t_ns=begin_ns, job_id="job-2", stage=stage, circuit=0))
    for k in range(30):
        t_ns = begin_ns + k * 200 * MS
        run = 100 * S + 2 * k * 200 * MS
        events += [
            mem(t_ns, 8 * GB), wire.CpuSample(t_ns=t_ns, pid=41, run_ns=run, user_ns=run),
            wire.GpuSample(t_ns=t_ns, device=0, util_percent=util),
        ]  # fmt: skip
    return analyse(events)


def test_an_idle_gpu_in_a_gpu_stage_is_told() -> None:
    (alarm,) = alarms(on_gpu(0.0))
    assert "GPU idle for 5.80 s in msm_h, CPU at 200 %" in alarm.text and "fallen back" in alarm.text
    assert "runs on its cpu backend" in alarms(on_gpu(0.0, "cpu"))[0].text


@pytest.mark.parametrize(("util", "stage"), [(93.0, Stage.MSM_H), (0.0, Stage.WITNESS), (0.0, Stage.EPILOGUE)])
def test_a_gpu_at_work_or_in_a_stage_of_the_cpu_is_not(util: float, stage: Stage) -> None:
    assert [alarm for alarm in alarms(on_gpu(util, stage=stage)) if "GPU idle" in alarm.text] == []


def test_an_ended_prover_raises_no_alarm() -> None:
    snapshot = ramp(5_000_000_000, None)
    ended = wire.ProcessEnded(t_ns=snapshot.t_ns, pid=41, signal=9, reason="killed by signal 9")
    assert alarms(snapshot) and not alarms(analyse([*_events(snapshot), ended]))


def _events(snapshot: Snapshot) -> list[wire.Event]:
    process = snapshot.process
    assert process is not None
    seen = wire.ProcessSeen(t_ns=START, pid=41, command="daemon", role="foreign")
    rows = zip(process.memory.t_ns, process.memory.column("anon"), strict=True)
    return [seen, *(mem(int(t_ns), float(anon)) for t_ns, anon in rows)]


def test_the_end_is_forecast_from_what_each_stage_took_before() -> None:
    later = story(START + 60 * S, "job-2")
    for offset_ms in (300, 1200, 3000, 6000):
        snapshot = second_job(offset_ms * MS)
        assert snapshot.job is not None
        end_ns = forecast(snapshot, snapshot.job).end_ns
        assert end_ns == pytest.approx(later.end_ns, abs=300 * MS)


def test_a_first_job_that_was_slow_to_warm_up_does_not_lengthen_the_forecast_of_later_stages() -> None:
    first, later = story(srs_ms=20_000), story(START + 60 * S, "job-2")
    events = [*first.build(), *cut(later.build(), later.synth_begin_ns + 500 * MS)]
    snapshot = analyse(events)
    assert snapshot.job is not None
    assert forecast(snapshot, snapshot.job).end_ns == pytest.approx(later.end_ns, abs=100 * MS)


def test_the_peak_is_forecast_from_the_jobs_history_where_the_prover_gives_none() -> None:
    later = story(START + 60 * S, "job-2")
    events = [
        wire.JobSubmitted(t_ns=e.t_ns, job_id="job-2", circuit=e.circuit, num_circuits=2, policy=e.policy)
        if isinstance(e, wire.JobSubmitted) else e
        for e in cut(later.build(), later.synth_begin_ns + 100 * MS)
    ]  # fmt: skip
    snapshot = analyse([*story().build(), *events])
    assert snapshot.job is not None
    assert forecast(snapshot, snapshot.job).peak_bytes == pytest.approx(8.5e9, rel=0.01)
