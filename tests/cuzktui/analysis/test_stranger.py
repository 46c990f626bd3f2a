"""What is told of a process that tells nothing: phases, time by cause, the inferred gap, its end; all from samples."""

from __future__ import annotations

import json

import pytest

from builders import GB, MS, START, Profile, S, mem
from cuzktui.analysis import analyse
from cuzktui.analysis.finding import finding
from cuzktui.analysis.outside import Cause
from cuzktui.analysis.stranger import StrangerReport, stranger_report
from prover import wire


def stranger(release_ms: int = 400, fall_to: float = 0.1, cpu_every_ms: int = 20) -> list[wire.Event]:
    """1 s asleep, a ramp of page faults to 4 GB in 1 s, 2 s of computing, a release, 1 s asleep, exit."""
    after = 4000 + release_ms
    corners = [(0, 0.1), (1000, 0.1), (2000, 4.0), (4000, 4.0), (after, fall_to), (after + 1000, fall_to)]
    profile = Profile([(START + at * MS, level * GB) for at, level in corners])
    events: list[wire.Event] = [wire.ProcessSeen(t_ns=START - 1, pid=41, command="stranger", role="foreign")]
    events += profile.samples(4 * MS)
    for at in range(0, 5000 + release_ms, cpu_every_ms):
        run_ms = min(max(0, at - 1000), 3000 + release_ms)
        system_ms = min(max(0, at - 1000), 1000) + min(max(0, at - 4000), release_ms)
        is_asleep = at < 1000 or at >= after
        events.append(
            wire.CpuSample(
                t_ns=START + at * MS, pid=41, run_ns=run_ms * MS, user_ns=(run_ms - system_ms) * MS,
                system_ns=system_ms * MS, minor_faults=min(max(0, at - 1000), 1000) * 950, threads=1,
                states={"S": 1} if is_asleep else {"R": 1}, wchan={"hrtimer_nanosleep": 1} if is_asleep else {},
            )
        )  # fmt: skip
    end = START + (5000 + release_ms) * MS
    events.append(wire.ProcessEnded(t_ns=end, pid=41, exit_code=0, reason="exited with code 0"))
    return sorted(events, key=lambda e: e.t_ns)


def reported(events: list[wire.Event]) -> StrangerReport:
    report = stranger_report(analyse(events))
    assert report is not None
    return report


def test_its_phases_levels_and_gap_are_inferred() -> None:
    report = reported(stranger())
    kinds = [phase.kind.value for phase in report.told_phases]
    assert kinds == ["ramp", "plateau", "release"]
    assert report.gap is not None
    assert report.gap.fall_bytes == pytest.approx(3.9 * GB, rel=0.01)
    assert abs(report.gap.length_ns - 400 * MS) <= 20 * MS


@pytest.mark.parametrize("cpu_every_ms", [20, 200])
def test_its_time_is_told_by_cause(cpu_every_ms: int) -> None:
    by_cause = reported(stranger(cpu_every_ms=cpu_every_ms)).by_cause
    assert by_cause[Cause.CPU_BUSY] == pytest.approx(2 * S, rel=0.05)
    assert by_cause[Cause.PAGE_FAULTING] == pytest.approx(S, rel=0.05)
    assert by_cause[Cause.SLEEPING] == pytest.approx(2 * S, rel=0.12)
    assert by_cause[Cause.RELEASING] == pytest.approx(400 * MS, rel=0.05)


def test_a_process_that_gives_nothing_back_has_no_gap_and_no_release() -> None:
    report = reported(stranger(release_ms=400, fall_to=4.0))
    assert report.gap is None and Cause.RELEASING not in report.by_cause
    assert finding(analyse(stranger(fall_to=4.0))) == ""


def test_its_report_is_plain_data_and_plain_text() -> None:
    report = reported(stranger())
    figures = json.loads(json.dumps(report.as_dict()))
    assert figures["exit_code"] == 0 and figures["peak_anon_bytes"] == 4 * GB
    assert figures["inferred"]["gap_ms"] == pytest.approx(400, abs=20)
    assert figures["user_ms"] == pytest.approx(2000, abs=10)
    told = report.as_text()
    assert "inferred gap" in told and "exited with code 0" in told and "4.00 GB for 2.00 s" in told


def test_the_sentence_about_a_stranger_has_its_circumstances() -> None:
    told = finding(analyse(stranger()))
    assert told.startswith("memory fell by 3.90 GB in 400 ms: 9.75 GB/s (inferred)")
    assert "system CPU 100 %" in told


def waiting(states: dict[str, int], wchan: dict[str, int]) -> set[Cause]:
    """Causes told of a process with two parked workers that computes for a second and then waits for one."""
    events: list[wire.Event] = [mem(START + k * 20 * MS, GB) for k in range(100)]
    parked = {"futex_do_wait": 2} if wchan else {}
    for k in range(100):
        busy = k < 50
        events.append(
            wire.CpuSample(
                t_ns=START + k * 20 * MS, pid=41, run_ns=min(k, 50) * 20 * MS, threads=3,
                states={"R": 1, "S": 2} if busy else {"S": 2 + states.get("S", 0), "D": states.get("D", 0)},
                wchan=parked if busy else {**parked, **{w: n + parked.get(w, 0) for w, n in wchan.items()}},
            )
        )  # fmt: skip
    return set(reported(sorted(events, key=lambda e: e.t_ns)).by_cause) - {Cause.CPU_BUSY}


@pytest.mark.parametrize(
    ("states", "wchan", "cause"),
    [
        ({"S": 1}, {"hrtimer_nanosleep": 1}, Cause.SLEEPING),
        ({"S": 1}, {"futex_do_wait": 1}, Cause.LOCK_WAIT),
        ({"S": 1}, {"anon_pipe_read": 1}, Cause.OTHER_WAIT),
        ({"D": 1}, {"folio_wait_bit_common": 1}, Cause.DISK_WAIT),
        ({"S": 1}, {}, Cause.WAITING),
        ({"D": 1}, {}, Cause.DISK_WAIT),
    ],
)
def test_a_wait_is_named_by_what_is_waited_in_beside_parked_workers(
    states: dict[str, int], wchan: dict[str, int], cause: Cause
) -> None:
    assert waiting(states, wchan) == {cause}


def test_a_process_that_was_never_read_has_no_report() -> None:
    assert stranger_report(analyse([wire.ProcessSeen(t_ns=START, pid=41, command="x")])) is None
