"""CUDA events are made once and lent again and again: none is destroyed while its device is there.

A verb takes hundreds of them. CuPy destroys an event with its last reference, which fails on a dead context and is said
on stderr each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Events:
    """Events of one kind.

    Args:
        make: a new one, when all that there are have been lent.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._all: list[Any] = []
        self._idle: list[Any] = []

    def take(self) -> Any:
        """One that nobody uses; it holds a moment once it is recorded."""
        if not self._idle:
            self._all.append(self._make())
            return self._all[-1]
        return self._idle.pop()

    def give(self, *events: Any) -> None:
        """Lends these again: their moments have been read, or waited for."""
        self._idle.extend(events)

    def take_back(self) -> None:
        """Lends all of them again: whoever has some will not look at them any more."""
        self._idle = list(self._all)
