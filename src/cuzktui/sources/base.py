"""A source delivers decoded events in order to one callback, from a thread of its own, and never raises there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from prover import wire

Emit = Callable[[wire.Event], None]


class Source(Protocol):
    """A stream of events."""

    kind: str
    """live: own prover; attached: somebody else's; replay: a recording."""

    @property
    def title(self) -> str:
        """What the header shows: `prover 41207`, `run.jsonl` ..."""

    @property
    def owns_prover(self) -> bool:
        """Whether `restart_prover` can be asked for."""

    def start(self, emit: Emit) -> None:
        """Begins to deliver; returns at once. `emit` must be quick and thread-safe."""

    def stop(self) -> None:
        """Ends the stream and whatever this source started; afterwards `emit` is not called any more."""

    def restart_prover(self, lost_pid: int = 0) -> None:
        """Starts the prover again after it ended; does nothing while one is alive that may stay.

        Args:
            lost_pid: of a prover that has lost its GPUs, which is ended first.

        Raises:
            BadRequest: this source has no prover of its own, or it cannot be started.
        """
