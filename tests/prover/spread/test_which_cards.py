"""Which cards are used: those that are chosen, can be opened and are not lost; and everybody is told."""

from __future__ import annotations

import threading

import pytest
from cards import PATIENCE_S, Card, two_cards

from prover import wire
from prover.backends import select
from prover.backends.cpu.backend import CpuBackend
from prover.backends.cuda.failures import DeviceLost, NoDevice
from prover.backends.select import over_cards
from prover.backends.spread import Spread
from prover.errors import BackendError, BadRequest
from prover.gpu_list import parse_gpus
from prover.run import Run, silent
from prover.serve.hub import Hub
from prover.serve.queue import JobQueue
from prover.serve.request import JobRequest
from prover.serve.worker import Worker, WorkerOptions
from prover.wire import Outcome, Policy, Stage


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


def test_cards_warm_up_one_after_another_so_that_kernels_are_compiled_once():
    told: list[str] = []

    class Compiling(Card):
        def warm_up(self, run):
            told.append(f"begin {self.number}")
            for done in range(1, 4):
                run.progress(Stage.COMPILE, done, 3, "units", what=str(done))
            told.append(f"end {self.number}")

    events: list[wire.Event] = []
    spread = Spread([Compiling(0), Compiling(1)])
    spread.warm_up(Run(events.append))
    assert told == ["begin 0", "end 0", "begin 1", "end 1"]
    assert [(e.done, e.total) for e in events] == [(1, 6), (2, 6), (3, 6), (4, 6), (5, 6), (6, 6)]
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


def test_a_service_tells_which_cards_it_has_and_that_it_lost_them_and_goes_on_with_the_cpu(monkeypatch):
    cards = two_cards()
    for card in cards:
        card.name = "cuda"
    backends = {"cuda": Spread(cards), "cpu": CpuBackend(1)}
    monkeypatch.setattr(select, "make_backend", lambda name, *_arguments: (backends[name], ""))
    hub = Hub(wire.Hello(t_ns=1, unix_ns=1, pid=1), Policy.SYNC_4K)
    queue = JobQueue(hub, Policy.SYNC_4K)
    worker = Worker(queue, WorkerOptions(backend="cuda", threads=1))
    working = threading.Thread(target=worker.work)
    working.start()

    def outcome(job_id: str, backend: str = "") -> Outcome:
        job, _ = queue.submit(JobRequest(job_id, "cubic", 3, backend=backend))
        ended = threading.Event()
        job.call_when_ended(ended.set)
        assert job.outcome is not None or ended.wait(PATIENCE_S)
        errors.append(job.error)
        return job.outcome

    errors: list[str] = []
    try:
        assert outcome("first") is Outcome.PROVED
        assert hub.hello.devices == ["cuda:0 Test", "cuda:1 Test"] and hub.hello.backend == "cuda"
        assert hub.hello.gpu_lost == ""
        cards[0].faults["msm_h"] = DeviceLost("cuda:0 Test", "gone")
        assert outcome("second") is Outcome.FAILED
        assert "cuda:0 Test is lost" in errors[-1]
        assert hub.hello.devices == [] and hub.hello.backend == "cuda"
        assert hub.hello.gpu_lost.startswith("cuda:0 Test was lost (gone)")
        _, watcher = hub.watch()
        assert outcome("third") is Outcome.FAILED and errors[-1] == hub.hello.gpu_lost
        assert outcome("fourth", "cpu") is Outcome.PROVED
        hub.unwatch(watcher)
        told = [wire.decode(line) for line in watcher.lines()]
        assert not any(isinstance(event, wire.Hello) for event in told), "said once"
        begun = {event.stage for event in told if isinstance(event, wire.StageBegan) and event.job_id == "third"}
        assert begun == {Stage.QUEUE, Stage.SETUP}
    finally:
        queue.stop("the test is over")
        working.join(PATIENCE_S)
    assert not working.is_alive()
