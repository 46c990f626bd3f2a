"""Everything a first proof would compile is compiled before it, as one visible stage whose bar only rises.

A compile inside a job would be counted as that job's synthesis or setup, and its numbers would not be the prover's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext

from msgspec.structs import replace

from prover import wire
from prover.backends import Backend
from prover.precompile import beside, warm_up_setup
from prover.run import Run
from prover.wire import Stage


def warm_up(backend: Backend, run: Run, *, with_setup: bool) -> None:
    """Compiles or loads the kernels of backend and synthesis, and of the setup where no key was made yet;
    deletes kernels of sources long gone.

    Raises:
        Cancelled: between two steps.
        BackendError: the backend cannot run here.
    """
    from prover.backends.cpu.aging import prune
    from prover.backends.cpu.jit import cache_root
    from prover.circuits.warm import warm_up as warm_up_synthesis

    parts: list[tuple[int, Callable[[Run], None]]] = [(65, backend.warm_up), (15, warm_up_synthesis)]
    if with_setup:
        parts.append((20, warm_up_setup))
    total = sum(weight for weight, _ in parts)
    base = 0
    for i, (weight, part) in enumerate(parts):
        with beside(run, with_setup) if i == 0 else nullcontext():
            part(_part_of(run, base, weight, total))
        base += weight
    prune(cache_root(), time.time_ns())
    run.progress(Stage.COMPILE, total, total, "percent", what="ready")


def _part_of(run: Run, base: int, weight: int, total: int) -> Run:
    """The same run, its compile progress mapped into base .. base + weight of the whole."""

    def emit(event: wire.Event) -> None:
        if isinstance(event, wire.Progress) and event.stage is Stage.COMPILE and event.total:
            done = base + weight * min(event.done, event.total) // event.total
            event = replace(event, done=done, total=total, unit="percent")
        run.emit(event)

    return run.part(emit)
