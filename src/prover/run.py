"""A Run is one job's voice and brake: every span, stage and progress goes through it, and so does cancellation."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prover import wire
from prover.errors import Cancelled

Emit = Callable[[wire.Event], None]
PROGRESS_STEP_NS = 20_000_000
"""Thousands of steps a second would tell nobody more and cost the prover what each event costs."""


class Run:
    """What a routine needs to know of the job it works for.

    Args:
        emit: takes events; thread-safe, never blocks.
        job_id: empty for work outside a job (compile, setup from the command line).
    """

    def __init__(self, emit: Emit, job_id: str = "") -> None:
        self.emit, self.job_id = emit, job_id
        self._cancelled = threading.Event()
        self._brakes: tuple[threading.Event, ...] = (self._cancelled,)
        self._told: dict[tuple[wire.Stage, int | None], tuple[int, str]] = {}
        """Time and subject of the last progress of each stage."""
        self.stage_name: wire.Stage | None = None
        """Top-level stage the job is in: what a post-mortem names."""

    def cancel(self) -> None:
        self._cancelled.set()

    def part(self, emit: Emit, brake: threading.Event | None = None) -> Run:
        """The same job as one of several tells of it: through `emit`, and stopped by `brake` as well.

        Cancelling either cancels both.
        """
        part = copy.copy(self)
        part.emit, part._told = emit, {}
        if brake is not None:
            part._brakes = (*self._brakes, brake)
        return part

    @property
    def is_cancelled(self) -> bool:
        return any(brake.is_set() for brake in self._brakes)

    def check(self) -> None:
        """Raises Cancelled once the job was cancelled; called between chunks of work."""
        if self.is_cancelled:
            raise Cancelled(f"job {self.job_id} was cancelled")

    @contextmanager
    def stage(self, stage: wire.Stage, circuit: int | None = None) -> Iterator[None]:
        """Marks a stage of the protocol, failed or not."""
        thread = threading.current_thread().name
        if stage in wire.TOP_STAGES:
            self.stage_name = stage
        self.emit(wire.StageBegan(t_ns=now(), job_id=self.job_id, stage=stage, circuit=circuit, thread=thread))
        ok = False
        try:
            self.check()
            yield
            ok = True
        finally:
            self.emit(
                wire.StageEnded(t_ns=now(), job_id=self.job_id, stage=stage, circuit=circuit, thread=thread, ok=ok)
            )

    @contextmanager
    def span(
        self, name: str, *, stage: wire.Stage | None = None, circuit: int | None = None, ops: int | None = None,
        op: str = "", moved_bytes: int | None = None, lane: str = "cpu",
        cpu_clock: Callable[[], int] = time.thread_time_ns,
    ) -> Iterator[None]:  # fmt: skip
        """Times one routine: a row of the kernel table.

        Args:
            ops, moved_bytes: what its algorithm must do.
            cpu_clock: CPU time in ns of the threads that work; by default the calling thread alone.
        """
        begin_ns, cpu0_ns = now(), cpu_clock()
        yield
        self.emit(
            wire.Span(
                t_ns=now(), job_id=self.job_id, name=name, begin_ns=begin_ns, stage=stage, circuit=circuit, lane=lane,
                moved_bytes=moved_bytes, ops=ops, op=op, cpu_ns=cpu_clock() - cpu0_ns,
            )
        )  # fmt: skip

    def progress(
        self, stage: wire.Stage, done: int, total: int, unit: str = "", *, circuit: int | None = None, what: str = ""
    ) -> None:
        """How far a stage is; steps that follow closely on one told already are not told, the last always is."""
        t_ns, place = now(), (stage, circuit)
        last_ns, subject = self._told.get(place, (0, ""))
        if 0 < done < total and what == subject and t_ns - last_ns < PROGRESS_STEP_NS:
            return
        self._told[place] = t_ns, what
        self.emit(
            wire.Progress(
                t_ns=t_ns, job_id=self.job_id, stage=stage, circuit=circuit, done=done, total=total, unit=unit,
                what=what,
            )
        )  # fmt: skip

    def counter(self, stage: wire.Stage, circuit: int, total: int, unit: str) -> Callable[..., None]:
        """Progress of one circuit told by steps: call it with what was done since, and perhaps with what it was."""
        done = 0

        def add(step: int, what: str = "") -> None:
            nonlocal done
            done += step
            self.progress(stage, min(done, total), total, unit, circuit=circuit, what=what)

        return add

    def notice(self, text: str, level: str = "info") -> None:
        self.emit(wire.Notice(t_ns=now(), text=text, level=level, job_id=self.job_id))


def now() -> int:
    """CLOCK_MONOTONIC, ns: common to all processes of the host."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def silent() -> Run:
    """A Run for tests and tools: no job, events go nowhere."""
    return Run(lambda _event: None)
