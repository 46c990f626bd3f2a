"""A card that fails stops its job on every card and gives everything back; one that is lost ends them all."""

from __future__ import annotations

import threading
from concurrent.futures import wait

import pytest
from cards import PATIENCE_S, Card, Fate, OneKey, two_cards

from prover import wire
from prover.arena import Arena
from prover.backends import lanes
from prover.backends.cpu.backend import CpuBackend
from prover.backends.cuda.failures import DeviceLost, OutOfDeviceMemory
from prover.backends.lanes import Lane, together
from prover.backends.spread import Spread
from prover.builtin import BuiltinWorkload
from prover.circuits.registry import build
from prover.errors import BackendError, Cancelled
from prover.jobs import Prover
from prover.run import Run, silent
from prover.wire import Policy, Stage


@pytest.mark.parametrize("verb", ["prep_msm", "ntt_h", "msm_h", "tail_msm b_g2", "tail_msm l"])
def test_a_lost_card_fails_its_job_and_every_later_one_is_refused_at_once(house, cubic_key, verb):
    fate = Fate()
    cards = [Card(number, fate) for number in range(3)]
    home = house(*cards)
    home.prove(cubic_key, 5)
    cards[1].faults[verb] = DeviceLost("cuda:1 Test", "unspecified launch failure")
    with pytest.raises(DeviceLost, match="cuda:1 Test is lost"):
        home.prove(cubic_key, 5)
    assert home.arena.live_buffers() == [] and home.backend.devices == home.backend.cards == ()
    for card in cards:
        card.threads_seen.clear()
    home.events.clear()
    for _ in range(2):
        with pytest.raises(BackendError) as caught:
            home.prove(cubic_key, 2)
        said = str(caught.value)
        assert said.startswith("cuda:1 Test was lost (unspecified launch failure), and with one card CUDA gives up all")
        assert "restart the prover (`r` in the console)" in said
    assert home.events == [] and not any(card.threads_seen for card in cards)
    assert home.arena.live_buffers() == []


@pytest.mark.parametrize("first", [0, 1])
def test_the_card_that_was_lost_first_is_named_though_another_meets_its_loss_and_says_so_sooner(
    house, cubic_key, first
):  # fmt: skip
    told = threading.Event()

    class Slow(Card):
        def _enter(self, verb):
            try:
                super()._enter(verb)
            except DeviceLost:
                assert told.wait(PATIENCE_S)
                raise

    class Next(Card):
        def _enter(self, verb):
            while verb == "msm_h" and not self.lost:
                threading.Event().wait(0.001)
            try:
                super()._enter(verb)
            except DeviceLost:
                threading.Timer(0.2, told.set).start()
                raise

    fate = Fate()
    cards = [(Slow if number == first else Next)(number, fate) for number in range(2)]
    home = house(*cards)
    cards[first].faults["msm_h"] = DeviceLost(f"cuda:{first} Test", "fell off the bus")
    with pytest.raises(DeviceLost, match=f"cuda:{first} Test is lost .fell off the bus"):
        home.prove(cubic_key, 2)


def test_keys_setups_and_verbs_are_refused_too_once_a_card_is_lost(house, cubic_key):
    cards = two_cards()
    home = house(*cards)
    resident = home.backend.load_key(cubic_key, home.run)
    cards[0].fate.lost = "cuda:0 Test was lost"
    scope = home.arena.scope("job", Policy.SYNC_4K)
    for refused in (
        lambda: home.backend.load_key(cubic_key, home.run),
        lambda: home.backend.prep_msm(resident, [], scope, home.run),
        lambda: home.backend.resident_setup(build("cubic").r1cs, home.run),
        home.backend.fixed_bases,
        lambda: home.backend.warm_up(home.run),
    ):
        with pytest.raises(BackendError, match="cuda:0 Test was lost"):
            refused()
    resident.close()


def test_the_first_failure_is_the_one_that_is_told(house, cubic_key):
    class Later(Card):
        def ntt_h(self, key, a, b, c, run, circuit):
            while not run.is_cancelled:
                threading.Event().wait(0.001)
            raise OutOfDeviceMemory(9 << 30, 1 << 30, "cuda:0 Test")

    failing = Card(1)
    failing.faults["ntt_h"] = BackendError("cuda:1 Test: refused")
    with pytest.raises(BackendError, match="cuda:1 Test: refused"):
        house(Later(0), failing).prove(cubic_key, 2)


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


def test_a_key_goes_to_the_cards_that_have_room_for_it_and_to_none_is_an_error(house, cubic_key):
    cards = [Card(0), Card(1)]
    home = house(*cards)
    fault = OutOfDeviceMemory(9 << 30, 1 << 30, "cuda:0 Test")
    cards[0].faults["load_key"] = fault
    assert home.prove(cubic_key, 3).verified
    (notice,) = home.notices()
    assert str(fault) in notice and notice.endswith("circuits go to cuda:1 Test")
    home.prover.evict()
    cards[0].faults["load_key"] = cards[1].faults["load_key"] = fault
    with pytest.raises(OutOfDeviceMemory):
        home.prove(cubic_key, 3)


def test_a_card_that_is_lost_while_it_takes_a_key_is_the_end_though_the_others_took_it(house, cubic_key):
    cards = two_cards()
    home = house(*cards)
    cards[0].faults["load_key"] = DeviceLost("cuda:0 Test", "gone")
    with pytest.raises(DeviceLost, match="cuda:0 Test is lost"):
        home.prove(cubic_key, 3)
    assert home.notices() == []


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
    """Page-locks as a card does; one that is lost cannot undo it, and says nothing."""

    def __init__(self, card: Card) -> None:
        self.card, self.held = card, set[int]()

    def pin(self, address: int, size_bytes: int) -> None:
        if not self.card.lost:
            self.held.add(address)

    def unpin(self, address: int) -> None:
        self.held.discard(address)


def test_memory_that_a_lost_card_had_locked_comes_back_and_a_cpu_proves_in_the_same_arena(cubic_key):
    cards = two_cards()
    for card in cards:
        card.pinner = Locks(card)
    spread = Spread(cards)
    assert spread.pinner is cards[0].pinner
    events: list[wire.Event] = []
    arena = Arena(events.append, pinner=spread.pinner)
    scope = arena.scope("job", Policy.SYNC_4K)
    scope.array("first", wire.Owner.ABC, (1024,), place=wire.Place.PINNED)
    assert len(cards[0].pinner.held) == 1 and cards[1].pinner.held == set()
    cards[0].fate.lost = "cuda:0 Test was lost"
    scope.array("second", wire.Owner.ABC, (1024,), place=wire.Place.PINNED)
    scope.release()
    assert arena.live_buffers() == [] and not any(isinstance(e, wire.BufferLeaked) for e in events)
    prover = Prover(CpuBackend(1), arena)
    assert prover.run_job(BuiltinWorkload("cubic", 1, OneKey(cubic_key)), Policy.SYNC_4K, silent()).verified
    spread.close()
    prover.close()
