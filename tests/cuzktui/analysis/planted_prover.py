"""A prover reduced to causes: one job each, told through Run and Arena as the prover tells its own, written at the end.

`python planted_prover.py` prints event lines once all jobs are done; markers `CAUSE begin_ns end_ns` say when each was
planted, by clocks of their own. Memory goes back in the gap, between the inner and the outer clock: through a Scope for
the two unmaps, beside the ledger for `malloc_trim`. The sleep has no span: only samples can tell of it.
"""

from __future__ import annotations

import os
import sys
import time

from planted import CAUSES, GB, Act, compute, kept

from prover import wire
from prover.arena import Arena
from prover.run import Run, now
from prover.wire import Outcome, Owner, Policy, Stage

BORDER_MS = 150
REST_S = 0.1
"""Between a job and what the test itself gives back after it."""
BUFFERS = 8
UNMAPPED_BYTES = {"munmap_4k": 3 * GB, "munmap_huge": 2 * GB}
SPANS = {
    "free_small": ("drop rows", Stage.EPILOGUE),
    "fault_storm": ("fault in and lock pages", Stage.SYNTH),
    "lock_wait": ("wait for the device lock", Stage.PREP_MSM),
    "cpu_spin": ("bucket sums", Stage.TAIL_MSM),
    "disk_wait": ("write the key cache", Stage.SRS),
    "gc_pause": ("collect garbage", Stage.EPILOGUE),
}
"""Span and stage under which a prover would do each of these."""


def main(names: list[str]) -> None:
    events: list[wire.Event] = []
    emit = events.append
    emit(wire.Hello(t_ns=now(), unix_ns=time.time_ns(), pid=os.getpid()))
    arena = Arena(emit)
    for name in names:
        job(name, arena, Run(emit, name))
        kept.clear()
    arena.close()
    sys.stdout.buffer.write(b"".join(map(wire.encode, events)))


def job(name: str, arena: Arena, run: Run) -> None:
    """One job with one cause."""
    policy = Policy.SYNC_HUGE if name == "munmap_huge" else Policy.SYNC_4K
    run.emit(wire.JobSubmitted(t_ns=now(), job_id=name, circuit="none", num_circuits=1, policy=policy))
    scope = arena.scope(name, policy)
    with run.stage(Stage.SYNTH):
        act: Act = scope.release
        if name in UNMAPPED_BYTES:
            for k in range(BUFFERS):
                scope.array(f"a{k}", Owner.ABC, (UNMAPPED_BYTES[name] // BUFFERS // 8,)).fill(7)
        else:
            prepare, amount = CAUSES[name]
            act, _ = prepare(amount)
    began_ns = now()
    with run.stage(Stage.PROVE):
        with run.span("before", stage=Stage.PREP_MSM):
            compute(BORDER_MS)
        if name in SPANS:
            span, stage = SPANS[name]
            with run.stage(stage), run.span(span, stage=stage):
                timed(run, name, act)
        elif name == "sleep":
            timed(run, name, act)
        with run.span("after", stage=Stage.TAIL_MSM):
            compute(BORDER_MS)
        inner_ns = now() - began_ns
        run.emit(wire.InnerEnded(t_ns=began_ns + inner_ns, job_id=name, inner_ns=inner_ns))
        with run.stage(Stage.RELEASE):
            if name in UNMAPPED_BYTES or name == "malloc_trim":
                timed(run, name, act)
    outer_ns = now() - began_ns
    run.emit(wire.OuterEnded(t_ns=began_ns + outer_ns, job_id=name, outer_ns=outer_ns))
    run.emit(wire.JobEnded(t_ns=now(), job_id=name, outcome=Outcome.PROVED))
    time.sleep(REST_S)


def timed(run: Run, name: str, act: Act) -> None:
    begin_ns = time.monotonic_ns()
    act()
    end_ns = time.monotonic_ns()
    run.emit(wire.Marker(t_ns=end_ns, text=f"{name} {begin_ns} {end_ns}", by="planted"))


if __name__ == "__main__":
    main(sys.argv[1:] or list(CAUSES))
