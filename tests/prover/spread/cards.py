"""Cards for tests: real backends of one thread, on which a verb can be made to fail, and a prover over some of them."""

from __future__ import annotations

import threading

from prover import wire
from prover.arena import Arena
from prover.backends.cpu.backend import CpuBackend
from prover.backends.cuda.failures import DeviceLost
from prover.builtin import BuiltinWorkload
from prover.errors import BackendError
from prover.jobs import JobResult, Prover
from prover.keys import ProvingKey
from prover.prove import Blinding
from prover.run import Run
from prover.wire import Policy

PATIENCE_S = 20.0


class OneKey:
    def __init__(self, key: ProvingKey) -> None:
        self.key = key

    def key_for(self, r1cs, run: Run) -> ProvingKey:
        return self.key


class Fate:
    """What the cards of a process share, as CUDA has it: one is lost, and none works any more."""

    lost = ""


class Card(CpuBackend):
    """A real backend under a card's name, on which a verb can be made to fail once."""

    def __init__(self, number: int, fate: Fate | None = None) -> None:
        super().__init__(1)
        self.fate = fate or Fate()
        self.number, self.devices = number, (f"cuda:{number} Test",)
        self.faults: dict[str, BackendError] = {}
        self.threads_seen: set[str] = set()
        self.meeting: threading.Barrier | None = None
        """Where the cards wait for each other in `ntt_h`: passed only when they run at the same time."""

    @property
    def lost(self) -> str:
        return self.fate.lost

    def _enter(self, verb: str) -> None:
        self.threads_seen.add(threading.current_thread().name)
        if self.lost:
            raise DeviceLost(self.devices[0], "met the loss of another")
        fault = self.faults.pop(verb, None)
        if isinstance(fault, DeviceLost):
            self.fate.lost = fault.ever_after
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


def two_cards() -> list[Card]:
    """Of one process."""
    fate = Fate()
    return [Card(0, fate), Card(1, fate)]


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
