"""A card that fails stops its job on every card, gives everything back, and takes no other card along."""

from __future__ import annotations

import threading
from concurrent.futures import wait

import pytest
from cards import PATIENCE_S, Card

from prover import wire
from prover.arena import Arena
from prover.backends import lanes
from prover.backends.cuda.failures import DeviceLost, OutOfDeviceMemory
from prover.backends.lanes import Lane, together
from prover.backends.spread import Spread, SpreadPinner
from prover.errors import Cancelled
from prover.run import Run
from prover.wire import Policy, Stage


@pytest.mark.parametrize("verb", ["prep_msm", "ntt_h", "msm_h", "tail_msm b_g2", "tail_msm l"])
def test_a_lost_card_fails_its_job_and_the_next_one_goes_to_the_others(house, cubic_key, verb):
    cards = [Card(0), Card(1), Card(2)]
    home = house(*cards)
    whole = home.prove(cubic_key, 5)
    cards[1].faults[verb] = DeviceLost("cuda:1 Test", "unspecified launch failure")
    with pytest.raises(DeviceLost, match="cuda:1 Test is lost"):
        home.prove(cubic_key, 5)
    assert home.arena.live_buffers() == [] and home.notices() == []
    assert home.backend.devices == ("cuda:0 Test", "cuda:2 Test")
    cards[1].threads_seen.clear()
    again = home.prove(cubic_key, 5)
    assert again.proof_bytes == whole.proof_bytes
    assert cards[1].threads_seen == set()
    (notice,) = home.notices()
    assert notice.startswith("cuda:1 Test is left out: cuda:1 Test is lost")
    assert notice.endswith("circuits go to cuda:0 Test, cuda:2 Test")
    home.prove(cubic_key, 2)
    assert len(home.notices()) == 1


def test_when_no_card_is_left_the_error_stays(house, cubic_key):
    cards = [Card(0), Card(1)]
    home = house(*cards)
    home.prove(cubic_key, 2)
    for card in cards:
        card.faults["ntt_h"] = DeviceLost(card.devices[0], "fell off the bus")
    for _ in range(3):
        with pytest.raises(DeviceLost, match="fell off the bus"):
            home.prove(cubic_key, 2)
    assert home.backend.devices == ()


def test_a_failure_stops_the_other_cards_before_the_buffers_go(house, cubic_key):
    begun, stopped = threading.Event(), threading.Event()

    class Waiting(Card):
        def ntt_h(self, key, a, b, c, run, circuit):
            begun.set()
            while not stopped.wait(0.005):
                try:
                    run.check()
                except Cancelled:
                    assert len(home.arena.live_buffers()) > 0
                    stopped.set()
                    raise
            return super().ntt_h(key, a, b, c, run, circuit)

    class Failing(Card):
        def ntt_h(self, key, a, b, c, run, circuit):
            assert begun.wait(PATIENCE_S)
            raise DeviceLost("cuda:1 Test", "gone")

    home = house(Waiting(0), Failing(1))
    with pytest.raises(DeviceLost, match="cuda:1"):
        home.prove(cubic_key, 4)
    assert stopped.is_set() and home.arena.live_buffers() == []
    ended = [e for e in home.events if isinstance(e, wire.StageEnded) and e.stage is Stage.NTT_H]
    assert {e.circuit for e in ended} == {0, 1} and not any(e.ok for e in ended)


def test_a_card_out_of_memory_is_left_out_of_the_next_job_but_never_the_last_one(house, cubic_key):
    cards = [Card(0), Card(1)]
    home = house(*cards)
    home.prove(cubic_key, 2)
    cards[0].faults["msm_h"] = OutOfDeviceMemory(9 << 30, 1 << 30, "cuda:0 Test")
    with pytest.raises(OutOfDeviceMemory, match=r"cuda:0 Test has 1\.1 GB free"):
        home.prove(cubic_key, 2)
    assert home.prove(cubic_key, 2).verified
    assert home.notices() == ["cuda:0 Test is left out: it ran out of device memory; circuits go to cuda:1 Test"]
    cards[1].faults["msm_h"] = OutOfDeviceMemory(9 << 30, 1 << 30, "cuda:1 Test")
    with pytest.raises(OutOfDeviceMemory, match="cuda:1 Test"):
        home.prove(cubic_key, 2)
    assert home.prove(cubic_key, 2).verified
    assert home.backend.devices == ("cuda:0 Test", "cuda:1 Test"), "it works, and other keys may fit"


@pytest.mark.parametrize("fault", [OutOfDeviceMemory(9 << 30, 1 << 30, "cuda:0 Test"), DeviceLost("cuda:0 Test", "x")])
def test_a_key_goes_to_the_cards_that_can_take_it_and_to_none_is_an_error(house, cubic_key, fault):
    cards = [Card(0), Card(1)]
    home = house(*cards)
    cards[0].faults["load_key"] = fault
    assert home.prove(cubic_key, 3).verified
    (notice,) = home.notices()
    assert str(fault) in notice and notice.endswith("circuits go to cuda:1 Test")
    home.prover.evict()
    cards[0].faults["load_key"] = cards[1].faults["load_key"] = fault
    with pytest.raises(type(fault)):
        home.prove(cubic_key, 3)


def test_a_key_whose_last_card_is_lost_moves_to_one_that_had_no_room(house, cubic_key):
    cards = [Card(0), Card(1)]
    home = house(*cards)
    cards[0].faults["load_key"] = OutOfDeviceMemory(9 << 30, 1 << 30, "cuda:0 Test")
    cards[1].faults["msm_h"] = DeviceLost("cuda:1 Test", "gone")
    with pytest.raises(DeviceLost):
        home.prove(cubic_key, 2)
    assert home.prove(cubic_key, 2).verified
    assert home.notices()[-1].endswith("circuits go to cuda:0 Test")


@pytest.mark.parametrize("stage", [Stage.SRS, Stage.PREP_MSM, Stage.B_G2_MSM, Stage.NTT_H, Stage.TAIL_MSM])
def test_a_cancelled_job_stops_on_every_card_and_gives_its_memory_back(house, cubic_key, stage):
    home = house(Card(0), Card(1))

    def emit(event: wire.Event) -> None:
        home.events.append(event)
        if isinstance(event, wire.StageBegan) and event.stage is stage:
            run.cancel()

    run = Run(emit, "job")
    with pytest.raises(Cancelled):
        home.prove(cubic_key, 4, run)
    assert home.arena.live_buffers() == []
    began = [(e.stage, e.circuit) for e in home.events if isinstance(e, wire.StageBegan)]
    ended = [(e.stage, e.circuit) for e in home.events if isinstance(e, wire.StageEnded)]
    assert sorted(began, key=str) == sorted(ended, key=str)
    assert home.prove(cubic_key, 4).verified


def test_lanes_stand_still_before_an_interrupted_caller_goes_on(monkeypatch):
    spread = [Lane(Card(0)), Lane(Card(1))]
    brake, stood, waits = threading.Event(), [], []

    def interrupted(futures):
        waits.append(len(futures))
        if len(waits) == 1:
            raise KeyboardInterrupt
        return wait(futures)

    def work(at: int) -> None:
        assert brake.wait(PATIENCE_S)
        stood.append(at)

    monkeypatch.setattr(lanes, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        together(spread, work, brake)
    assert sorted(stood) == [0, 1] and waits == [2, 2]
    for lane in spread:
        lane.close()


class Locks:
    def __init__(self) -> None:
        self.held: set[int] = set()

    def pin(self, address: int, size_bytes: int) -> None:
        self.held.add(address)

    def unpin(self, address: int) -> None:
        self.held.remove(address)


def test_memory_that_a_lost_card_had_locked_stays_mapped_and_is_told_as_leaked():
    cards = [Card(0), Card(1)]
    for card in cards:
        card.pinner = Locks()
    spread = Spread(cards)
    assert isinstance(spread.pinner, SpreadPinner)
    events: list[wire.Event] = []
    arena = Arena(events.append, pinner=spread.pinner)
    scope = arena.scope("job", Policy.SYNC_4K)
    scope.array("first", wire.Owner.ABC, (1024,), place=wire.Place.PINNED)
    (kept,) = cards[0].pinner.held
    spread._lanes[0].lost = DeviceLost("cuda:0 Test", "gone")
    scope.array("second", wire.Owner.ABC, (1024,), place=wire.Place.PINNED)
    assert len(cards[1].pinner.held) == 1
    scope.release()
    assert cards[0].pinner.held == {kept} and cards[1].pinner.held == set()
    assert [e.label for e in events if isinstance(e, wire.BufferLeaked)] == ["first"]
    spread.close()
