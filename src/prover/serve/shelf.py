"""What the service needs to know of proving keys in memory; whoever holds them answers without waiting for a proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Entry:
    """A key that is loaded."""

    circuit_id: str
    size_bytes: int
    in_use: bool
    """A job is proving with it now."""
    last_used_ns: int
    """CLOCK_MONOTONIC."""


class Shelf(Protocol):
    def entries(self) -> list[Entry]: ...

    def preload(self, circuit_id: str) -> int | None:
        """Loads a circuit's key, making a test setup where there is none; nanoseconds, None when it was loaded.

        Raises:
            ProverError: `unknown circuit ID: X`, or why it could not be loaded.
        """

    def evict(self, circuit_id: str) -> int | None:
        """Drops the key; the bytes, None when it was not loaded, 0 when a job is using it."""
