"""One thread a card: everything of a card is made, used and let go on that thread alone.

What several lanes do at once ends together: the first failure brakes the others, and nobody goes on before all stand.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Generic, ParamSpec, TypeVar

from msgspec.structs import replace

from prover import wire
from prover.backends import Backend
from prover.errors import Cancelled
from prover.run import Emit, Run

P = ParamSpec("P")
T = TypeVar("T")


class Lane:
    """A backend and the thread that it lives on.

    Args:
        backend: of one device.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.name = backend.devices[0]
        self._ident = 0
        self._pool: ThreadPoolExecutor | None = None

    def call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `work` returns or raises, on the lane's thread, whoever calls.

        Views of buffers come as arguments, never inside a function: a traceback keeps its functions, and with them
        what they enclose, when the buffers must go.
        """
        if threading.get_ident() == self._ident:
            return work(*args, **kwargs)
        return self.start(work, *args, **kwargs).result()

    def start(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """The same, without waiting for it."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, initializer=self._begin)
        return self._pool.submit(work, *args, **kwargs)

    def close(self) -> None:
        """Gives the backend back and ends the thread; work that comes later begins another."""
        self.call(self.backend.close)
        if self._pool is not None:
            self._pool.shutdown()
            self._pool, self._ident = None, 0

    def _begin(self) -> None:
        self._ident = threading.get_ident()
        threading.current_thread().name = f"prover/{self.name.split()[0]}"


@dataclass(slots=True)
class Outcome(Generic[T]):
    """What came of one lane's work."""

    value: T | None = None
    error: BaseException | None = None
    turn: int = 0
    """Of a failure: how many came before it."""


def together(
    lanes: Sequence[Lane], work: Callable[[int], T], brake: threading.Event, *, each_for_itself: bool = False
) -> list[Outcome[T]]:  # fmt: skip
    """Calls work(0), work(1), .. on as many lanes at once; returns when every one of them has ended.

    Args:
        brake: set at the first failure and when the caller is interrupted: work has to look at it.
        each_for_itself: a failure does not stop the others.
    """

    failed: list[int] = []

    def braking(at: int) -> T:
        try:
            return work(at)
        except BaseException:
            failed.append(at)
            if not each_for_itself:
                brake.set()
            raise

    running = [lane.start(braking, at) for at, lane in enumerate(lanes)]
    try:
        wait(running)
    except BaseException:
        # The caller's thread was interrupted; buffers that lanes still read must outlive them.
        brake.set()
        wait(running)
        raise
    return [
        Outcome(error=error, turn=failed.index(at)) if (error := one.exception()) else Outcome(one.result())
        for at, one in enumerate(running)
    ]


def cause(outcomes: Sequence[Outcome[T]]) -> BaseException | None:
    """The first failure, which the others followed from; None where all went well.

    Frames of the others are cleared, since they hold views of buffers that are given back next.
    """
    in_turn = sorted(outcomes, key=lambda outcome: outcome.turn)
    errors = [outcome.error for outcome in in_turn if outcome.error is not None]
    if not errors:
        return None
    first = next((error for error in errors if not isinstance(error, Cancelled)), errors[0])
    for error in errors:
        if error is not first:
            traceback.clear_frames(error.__traceback__)
    return first


class Choir:
    """Several lanes' telling of one job, joined.

    Circuits get the job's numbers (lane k of n has circuits k, k + n, ..), and progress of a whole stage is the sum.

    Args:
        run: the job's.
        size: number of lanes that speak.
    """

    def __init__(self, run: Run, size: int) -> None:
        self._run, self._size = run, size
        self._lock = threading.Lock()
        self._heard: dict[wire.Stage, dict[int, wire.Progress]] = {}

    def voice(self, at: int, brake: threading.Event | None = None) -> Run:
        """The job as lane `at` hears it and speaks of it; `brake` stops it as a cancellation does."""
        return self._run.part(self._emit(at), brake)

    def _emit(self, at: int) -> Emit:
        def emit(event: wire.Event) -> None:
            circuit = getattr(event, "circuit", None)
            if circuit is not None:
                self._run.emit(replace(event, circuit=at + self._size * circuit))  # type: ignore[call-arg]
            elif isinstance(event, wire.Progress) and self._size > 1:
                self._sum(at, event)
            else:
                self._run.emit(event)

        return emit

    def _sum(self, at: int, event: wire.Progress) -> None:
        """Lanes that have not spoken yet are taken to have as much to do as those that have."""
        with self._lock:
            heard = self._heard.setdefault(event.stage, {})
            heard[at] = event
            total = sum(one.total for one in heard.values()) * self._size // len(heard)
            self._run.emit(replace(event, done=sum(one.done for one in heard.values()), total=total))
