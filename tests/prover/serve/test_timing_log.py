"""Upstream's log lines, written while a real job runs, against the events of the same job."""

from __future__ import annotations

import os
import re

import pytest

from prover import wire
from prover.serve.hub import Hub
from prover.serve.timing_log import TimingLog
from prover.wire import Owner, Place, Policy, Stage

from .daemon import Daemon

FIELD = re.compile(r"(\w+)=(-?\d+)(?:ms)?\b")


@pytest.fixture(scope="module")
def logged() -> tuple[list[wire.Event], list[str]]:
    """The events of one job of two circuits, and the lines written about it."""
    daemon = Daemon("--log-timing")
    events = []
    for event in daemon.events():
        if isinstance(event, wire.State):
            daemon.submit("cubic", num_circuits=2, job_id="a,b", policy="async-4k")
        events.append(event)
        if isinstance(event, wire.JobEnded):
            break
    status, said = daemon.end()
    assert status == 0
    return events, said.splitlines()


def fields(lines: list[str], key: str) -> list[dict[str, int]]:
    return [{k: int(v) for k, v in FIELD.findall(line)} for line in lines if f"{key}=" in line]


def test_the_two_clocks_give_the_gap(logged):
    events, lines = logged
    inner = next(e for e in events if isinstance(e, wire.InnerEnded)).inner_ns
    outer = next(e for e in events if isinstance(e, wire.OuterEnded)).outer_ns
    assert [f["pre_destructor_ms"] for f in fields(lines, "pre_destructor_ms")] == [round(inner / 1e6)]
    (complete,) = (line for line in lines if "GPU prove complete" in line)
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z  INFO ", complete)
    assert FIELD.findall(complete)[-3:] == [
        ("proof_count", "2"), ("proof_bytes", "384"), ("gpu_ms", str(round(outer / 1e6))),
    ]  # fmt: skip


def test_stages_have_the_length_of_their_events(logged):
    events, lines = logged
    keys = {Stage.PREP_MSM: "prep_msm_ms", Stage.B_G2_MSM: "b_g2_msm_ms", Stage.TAIL_MSM: "tail_msm_ms"}
    for stage, key in keys.items():
        began = next(e.t_ns for e in events if isinstance(e, wire.StageBegan) and e.stage is stage)
        ended = next(e.t_ns for e in events if isinstance(e, wire.StageEnded) and e.stage is stage)
        assert [f[key] for f in fields(lines, key)] == [round((ended - began) / 1e6)]
    assert len([line for line in lines if line.startswith("CUZK_NTT_H: ")]) == 2
    (total,) = fields(lines, "gpu_total_ms")
    (h,) = fields(lines, "ntt_msm_h_ms")
    (ones,) = fields(lines, "batch_add_ms")
    parts = h["ntt_msm_h_ms"] + ones["batch_add_ms"] + total["tail_msm_ms"]
    assert total["gpu_total_ms"] == pytest.approx(parts, abs=2)


def test_the_timeline_names_job_and_partition_and_cannot_be_broken_by_an_id(logged):
    timeline = [line.split(",", 4) for line in logged[1] if line.startswith("TIMELINE,")]
    assert [(event, job, re.sub(",[a-z]+_ms=.*", "", detail)) for _, _, event, job, detail in timeline] == [
        ("SYNTH_START", "a_b", "partition=0"), ("SYNTH_END", "a_b", "partition=0"),
        ("SYNTH_START", "a_b", "partition=1"), ("SYNTH_END", "a_b", "partition=1"),
        ("GPU_START", "a_b", "worker=0"), ("GPU_END", "a_b", "worker=0"),
    ]  # fmt: skip
    times = [int(fields[1]) for fields in timeline]
    assert times == sorted(times)


def test_a_deferred_release_is_told_once_it_is_over():
    inside, outside = os.pipe()
    hub = Hub(wire.Hello(t_ns=1, unix_ns=1), Policy.ASYNC_4K)
    log = TimingLog(hub, outside)
    ms = 10**6
    hub.emit(wire.JobSubmitted(t_ns=0, job_id="j", circuit="c", num_circuits=1, policy=Policy.ASYNC_4K))
    for i in (1, 2):
        hub.emit(
            wire.BufferAllocated(
                t_ns=i, buffer_id=i, job_id="j", label="a", owner=Owner.ABC, place=Place.HOST, size_bytes=4096
            )
        )
    hub.emit(wire.InnerEnded(t_ns=5, job_id="j", inner_ns=70 * ms))
    hub.emit(wire.JobEnded(t_ns=6, job_id="j", outcome=wire.Outcome.PROVED))
    for i, length in ((1, 30), (2, 12)):
        hub.emit(
            wire.BufferReleased(
                t_ns=100 * ms + length * ms, buffer_id=i, begin_ns=100 * ms, size_bytes=4096, how="munmap",
                synchronous=False,
            )
        )  # fmt: skip
    log.close()
    os.close(outside)
    with os.fdopen(inside) as reader:
        assert reader.read().splitlines() == [
            "CUZK_TIMING: epilogue_ms=0 pre_destructor_ms=70", "CUZK_TIMING: async_dealloc_ms=42",
        ]  # fmt: skip


def test_a_log_that_nobody_reads_stops_without_harm():
    inside, outside = os.pipe()
    os.close(inside)
    hub = Hub(wire.Hello(t_ns=1, unix_ns=1), Policy.SYNC_4K)
    log = TimingLog(hub, outside)
    hub.emit(wire.JobSubmitted(t_ns=0, job_id="j", circuit="c", num_circuits=1, policy=Policy.SYNC_4K))
    hub.emit(wire.InnerEnded(t_ns=5, job_id="j", inner_ns=1))
    log.close()
    os.close(outside)
