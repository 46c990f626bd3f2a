"""Several backends behind one make the proofs that each alone would, at once, and one that fails takes nobody along."""

from __future__ import annotations

import threading
from concurrent.futures import wait
from itertools import pairwise

import pytest

from prover import wire
from prover.arena import Arena
from prover.backends import lanes, select
from prover.backends.cpu.backend import CpuBackend
from prover.backends.cuda.failures import DeviceLost, NoDevice, OutOfDeviceMemory
from prover.backends.lanes import Lane, together
from prover.backends.select import over_cards
from prover.backends.spread import Spread, SpreadPinner
from prover.builtin import BuiltinWorkload
from prover.circuits.registry import build
from prover.errors import BackendError, BadRequest, Cancelled
from prover.gpu_list import parse_gpus
from prover.jobs import JobResult, Prover
from prover.keys import ProvingKey, QueryName
from prover.prove import Blinding
from prover.run import Run, silent
from prover.serve.hub import Hub
from prover.serve.queue import JobQueue
from prover.serve.request import JobRequest
from prover.serve.worker import Worker, WorkerOptions
from prover.setup import ToxicWaste
from prover.setup import test_setup as make_key
from prover.wire import Outcome, Policy, Stage

WASTE = ToxicWaste(tau=0x1234567, alpha=3, beta=5, gamma=11, delta=7)
PATIENCE_S = 20.0


class OneKey:
    def __init__(self, key: ProvingKey) -> None:
        self.key = key

    def key_for(self, r1cs, run: Run) -> ProvingKey:
        return self.key


class Card(CpuBackend):
    """A real backend under a card's name, on which a verb can be made to fail once."""

    def __init__(self, number: int) -> None:
        super().__init__(1)
        self.number, self.devices = number, (f"cuda:{number} Test",)
        self.faults: dict[str, BackendError] = {}
        self.threads_seen: set[str] = set()
        self.meeting: threading.Barrier | None = None
        """Where the cards wait for each other in `ntt_h`: passed only when they run at the same time."""

    def _enter(self, verb: str) -> None:
        self.threads_seen.add(threading.current_thread().name)
        fault = self.faults.pop(verb, None)
        if fault is not None:
            raise fault

    def load_key(self, key, run):
        self._enter("load_key")
        return super().load_key(key, run)

    def prep_msm(self, key, assignments, scope, run):
        self._enter("prep_msm")
        return super().prep_msm(key, assignments, scope, run)

    def ntt_h(self, key, a, b, c, run, circuit):
        self._enter("ntt_h")
        if self.meeting is not None:
            self.meeting.wait(PATIENCE_S)
        return super().ntt_h(key, a, b, c, run, circuit)

    def msm_h(self, key, h, run, circuit):
        self._enter("msm_h")
        return super().msm_h(key, h, run, circuit)

    def tail_msm(self, key, split, query, run, circuit):
        self._enter(f"tail_msm {query}")
        return super().tail_msm(key, split, query, run, circuit)


@pytest.fixture(scope="module")
def cubic_key() -> ProvingKey:
    return make_key(build("cubic").r1cs, silent(), waste=WASTE)


def blinding(count: int) -> list[Blinding]:
    return [Blinding(r=11 + i, s=13 * i + 1) for i in range(count)]


class House:
    """A prover over backends, its arena and everything it says."""

    def __init__(self, backend) -> None:
        self.events: list[wire.Event] = []
        self.backend = backend
        self.arena = Arena(self.events.append)
        self.prover = Prover(backend, self.arena)
        self.run = Run(self.events.append, "job")

    def prove(self, key: ProvingKey, count: int, run: Run | None = None) -> JobResult:
        workload = BuiltinWorkload("cubic", count, OneKey(key), seed=b"fixed")
        self.run = run or Run(self.events.append, "job")
        return self.prover.run_job(workload, Policy.SYNC_4K, self.run, blinding=blinding(count))

    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, wire.Notice)]


@pytest.fixture
def house():
    houses: list[House] = []

    def build_house(*backends, single: bool = False) -> House:
        houses.append(House(backends[0] if single else Spread(backends)))
        return houses[-1]

    yield build_house
    for one in houses:
        one.prover.close()
        assert one.arena.live_buffers() == []
        one.arena.close()


@pytest.mark.parametrize("cards", [1, 2, 3])
@pytest.mark.parametrize("circuits", [1, 2, 5])
def test_proofs_are_those_of_one_card_bit_for_bit(house, cubic_key, cards, circuits):
    one = house(CpuBackend(1), single=True).prove(cubic_key, circuits)
    spread = house(*(Card(i) for i in range(cards))).prove(cubic_key, circuits)
    assert spread.outcome is Outcome.PROVED and spread.verified
    assert spread.proof_bytes == one.proof_bytes and spread.public_inputs == one.public_inputs


def test_the_cards_work_at_the_same_time_each_on_its_own_thread(house, cubic_key):
    cards = [Card(0), Card(1)]
    meeting = threading.Barrier(2)
    for card in cards:
        card.meeting = meeting
    assert house(*cards).prove(cubic_key, 4).verified
    assert [card.threads_seen for card in cards] == [{"prover/cuda:0"}, {"prover/cuda:1"}]


def test_stages_and_spans_carry_the_jobs_circuit_numbers_and_their_cards_thread(house, cubic_key):
    home = house(Card(0), Card(1))
    home.prove(cubic_key, 5)
    for kind in (wire.StageBegan, wire.StageEnded, wire.Span):
        told = [e for e in home.events if isinstance(e, kind) and e.stage in (Stage.NTT_H, Stage.MSM_H)]
        assert {e.circuit for e in told} == {0, 1, 2, 3, 4}
    began = [e for e in home.events if isinstance(e, wire.StageBegan) and e.stage is Stage.NTT_H]
    assert {(e.circuit, e.thread) for e in began} == {(i, f"prover/cuda:{i % 2}") for i in range(5)}
    tails = [e for e in home.events if isinstance(e, wire.Span) and e.stage is Stage.TAIL_MSM and e.name == "msm l"]
    assert sorted(e.circuit for e in tails) == [0, 1, 2, 3, 4]


def test_progress_that_the_cards_share_is_their_sum_and_only_rises(house, cubic_key):
    class Telling(Card):
        def load_key(self, key, run):
            for done in range(1, 11):
                run.progress(Stage.SRS, done, 10, "bytes", what=str(done))
            return super().load_key(key, run)

    home = house(Telling(0), Telling(1), Telling(2))
    home.prove(cubic_key, 3)
    told = [e for e in home.events if isinstance(e, wire.Progress) and e.stage is Stage.SRS]
    assert len(told) == 30 and (told[-1].done, told[-1].total) == (30, 30)
    assert all(x.done * y.total <= y.done * x.total for x, y in pairwise(told))


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


def test_memory_for_the_host_is_the_sum_of_what_the_cards_take(cubic_key):
    cards = [Card(0), Card(1), Card(2)]
    spread = Spread(cards)
    profile = BuiltinWorkload("cubic", 5, OneKey(cubic_key)).profile(cubic_key, silent())
    need = spread.host_need(cubic_key, profile, 5)
    parts = [cards[0].host_need(cubic_key, profile, share) for share in (2, 2, 1)]
    assert need.split_bytes == sum(part.split_bytes for part in parts)
    assert need.tail_bases_bytes == 3 * parts[0].tail_bases_bytes
    assert spread.host_need(cubic_key, profile, 1) == cards[0].host_need(cubic_key, profile, 1)
    spread.close()


def test_a_card_that_does_not_warm_up_is_left_out_and_said():
    class Cold(Card):
        def warm_up(self, run):
            raise BackendError("cuda:1 Test: no kernel image")

    events: list[wire.Event] = []
    spread = Spread([Card(0), Cold(1)], ["cuda:2 is in exclusive use"])
    spread.warm_up(Run(events.append))
    said = [event.text for event in events if isinstance(event, wire.Notice)]
    assert said == [
        "a GPU is left out: cuda:2 is in exclusive use",
        "cuda:1 Test is left out: cuda:1 Test: no kernel image; circuits go to cuda:0 Test",
    ]
    assert spread.devices == ("cuda:0 Test",)
    spread.close()
    alone = Spread([Cold(1)])
    with pytest.raises(BackendError, match="no kernel image"):
        alone.warm_up(silent())
    alone.close()


def test_bases_of_a_setup_are_multiplied_on_a_card_that_works(cubic_key):
    cards = [Card(0), Card(1)]
    spread = Spread(cards)
    key = make_key(build("cubic").r1cs, silent(), waste=WASTE, bases=spread.fixed_bases())
    assert (key.h_query == cubic_key.h_query).all()
    assert (key.query(QueryName.B_G2).points == cubic_key.query(QueryName.B_G2).points).all()
    spread.close()


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


def test_one_card_is_its_own_backend_and_a_card_that_does_not_open_is_left_out():
    def open_card(number: int) -> Card:
        if number == 1:
            raise NoDevice("cuda:1 is in exclusive use")
        return Card(number)

    assert isinstance(over_cards((), 1, open_card), Card)
    assert isinstance(over_cards((2,), 3, open_card), Card)
    every = over_cards((), 3, open_card)
    assert isinstance(every, Spread) and every.devices == ("cuda:0 Test", "cuda:2 Test")
    every.close()
    chosen = over_cards((2, 0), 3, open_card)
    assert chosen.devices == ("cuda:2 Test", "cuda:0 Test")
    chosen.close()
    with pytest.raises(NoDevice, match="exclusive"):
        over_cards((1,), 3, open_card)
    with pytest.raises(BadRequest, match="--gpus 3: CUDA shows 3"):
        over_cards((0, 3), 3, open_card)
    with pytest.raises(BackendError, match="CUDA_VISIBLE_DEVICES"):
        over_cards((), 0, open_card)


def test_a_list_of_gpus_is_numbers_each_once():
    assert parse_gpus("") == parse_gpus("all") == () and parse_gpus("2,0") == (2, 0)
    for bad in ("x", "0,", "1,1", "-1", "64", "0;1", "٣", "0," * 500):
        with pytest.raises(BadRequest, match="--gpus"):
            parse_gpus(bad)
    with pytest.raises(BadRequest, match="do not go together"):
        parse_gpus("0", "cpu")


def test_a_service_tells_which_cards_it_has_and_which_it_has_left(monkeypatch):
    cards = [Card(0), Card(1)]
    for card in cards:
        card.name = "cuda"
    monkeypatch.setattr(select, "make_backend", lambda *_arguments: (Spread(cards), ""))
    hub = Hub(wire.Hello(t_ns=1, unix_ns=1, pid=1), Policy.SYNC_4K)
    queue = JobQueue(hub, Policy.SYNC_4K)
    worker = Worker(queue, WorkerOptions(backend="cuda", threads=1))
    working = threading.Thread(target=worker.work)
    working.start()

    def outcome(job_id: str) -> Outcome:
        job, _ = queue.submit(JobRequest(job_id, "cubic", 3))
        ended = threading.Event()
        job.call_when_ended(ended.set)
        assert job.outcome is not None or ended.wait(PATIENCE_S)
        return job.outcome

    try:
        assert outcome("first") is Outcome.PROVED
        assert hub.hello.devices == ["cuda:0 Test", "cuda:1 Test"] and hub.hello.backend == "cuda"
        cards[0].faults["msm_h"] = DeviceLost("cuda:0 Test", "gone")
        assert outcome("second") is Outcome.FAILED
        assert outcome("third") is Outcome.PROVED
        assert hub.hello.devices == ["cuda:1 Test"]
    finally:
        queue.stop("the test is over")
        working.join(PATIENCE_S)
    assert not working.is_alive()
