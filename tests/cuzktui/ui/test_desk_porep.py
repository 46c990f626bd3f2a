"""A console that was given a C1 output proves it with the keys that prove a circuit."""

from __future__ import annotations

import threading
from collections.abc import Callable

from cuzktui.desk import PAIR_POLICIES, Desk
from cuzktui.model import store
from cuzktui.widgets.view import CircuitChoice
from prover.wire import Policy

FILES = {"c1_path": "/data/c1.json", "key_path": "/data/porep.params"}


class Asked:
    """A control that keeps what it was asked for."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, int, object, dict[str, str]]] = []
        self.came = threading.Event()

    def submit(self, circuit: str = "", num_circuits: int = 1, policy: object = None, **files: str) -> str:
        self.requests.append((circuit, num_circuits, policy, files))
        self.came.set()
        return "job"

    def cancel(self, job_id: str = "") -> bool:
        return False

    def set_policy(self, policy: Policy) -> Policy:
        return policy


def desk(control: Asked, said: list[str]) -> Desk:
    def post(work: Callable[[], None]) -> None:
        work()

    choice = CircuitChoice("porep c1.json", 1, tuple(FILES.items()))
    return Desk(control, post, lambda text, _level: said.append(text), choice)


def test_p_sends_the_files_and_no_circuit():
    control, said = Asked(), []
    desk(control, said).prove()
    assert control.came.wait(5)
    assert control.requests == [("", 1, Policy.SYNC_4K, FILES)]
    assert said == ["asked for porep c1.json with sync-4k"]


def test_the_pair_begins_with_the_same_files():
    control = Asked()
    desk(control, []).prove_pair()
    assert control.came.wait(5)
    assert control.requests == [("", 1, PAIR_POLICIES[0], FILES)]


def test_an_experiment_asks_for_a_built_in_circuit():
    control, said = Asked(), []
    desk(control, said).experiment(store.empty())
    assert control.requests == [] and "built-in circuit" in said[0]
