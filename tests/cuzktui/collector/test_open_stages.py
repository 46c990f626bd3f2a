"""Open stages name where the prover died, and tell the memory schedule when to hurry."""

from __future__ import annotations

import pytest

from cuzktui.collector.memory import AFTER_FALL_NS
from cuzktui.collector.stages import OpenStages, heat
from prover import wire
from prover.wire import Stage


def began(stage: Stage, job_id: str = "1", circuit: int | None = None) -> wire.StageBegan:
    return wire.StageBegan(t_ns=0, job_id=job_id, stage=stage, circuit=circuit)


def ended(stage: Stage, job_id: str = "1", circuit: int | None = None) -> wire.StageEnded:
    return wire.StageEnded(t_ns=0, job_id=job_id, stage=stage, circuit=circuit)


@pytest.mark.parametrize(("events", "where"), [
    ([], ""),
    ([began(Stage.SRS)], "srs"),
    ([began(Stage.PROVE), began(Stage.MSM_H, circuit=2)], "prove/msm_h"),
    ([began(Stage.PROVE), began(Stage.NTT_H, circuit=0), ended(Stage.NTT_H, circuit=0)], "prove"),
    ([began(Stage.SYNTH), ended(Stage.SYNTH), began(Stage.PROVE), began(Stage.RELEASE)], "prove/release"),
    ([began(Stage.PROVE), began(Stage.MSM_H), began(Stage.QUEUE, "2")], "prove/msm_h"),
    ([began(Stage.QUEUE, "2")], "queue"),
    ([began(Stage.COMPILE, "")], "compile"),
    ([began(Stage.PROVE), wire.JobEnded(t_ns=1, job_id="1", outcome=wire.Outcome.FAILED)], ""),
])  # fmt: skip
def test_the_innermost_open_stage_is_named_with_the_one_around_it(events, where):
    stages = OpenStages()
    for event in events:
        stages.apply(event)
    assert stages.where() == where


class Schedule:
    """Notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.until_ns = 0

    def warm(self, until_ns: int) -> None:
        self.asked.append("warm")

    def hot(self, until_ns: int) -> None:
        self.asked.append("hot")
        self.until_ns = until_ns

    def cool(self) -> None:
        self.asked.append("cool")

    def settle(self, at_ns: int) -> None:
        self.asked.append("settle")
        self.until_ns = at_ns


def test_the_schedule_follows_a_job_to_the_end_of_its_release():
    schedule = Schedule()
    for event in (
        began(Stage.MSM_H), began(Stage.TAIL_MSM), wire.InnerEnded(t_ns=10, job_id="1", inner_ns=10),
        wire.OuterEnded(t_ns=50, job_id="1", outer_ns=50),
    ):  # fmt: skip
        heat(event, schedule)
    assert schedule.asked == ["warm", "hot", "cool", "settle"]
    assert schedule.until_ns == 50 + AFTER_FALL_NS


@pytest.mark.parametrize(("how", "hot"), [("munmap", True), ("trim", True), ("pool", False), ("device", False)])
def test_a_release_in_the_background_is_followed_and_a_recycled_buffer_is_not(how, hot):
    schedule = Schedule()
    heat(wire.BufferReleased(t_ns=5, buffer_id=1, begin_ns=1, size_bytes=9, how=how, synchronous=False), schedule)
    assert (schedule.asked == ["hot"]) is hot
