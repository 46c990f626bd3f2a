"""A prover reduced to its memory: fills buffers of the real arena, computes, gives them back, and tells it as events.

`python releasing.py POLICY TOTAL_BYTES [LEAK_BYTES]` writes event lines to stdout once everything is given back: the
writing is no part of what is measured. A leak is memory filled beside the arena, of which no event tells.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np

from prover import wire
from prover.arena import Arena
from prover.pages import report_pages
from prover.run import Run, now
from prover.wire import Outcome, Owner, Policy, Stage

BUFFERS = 16


def main(policy: Policy, total_bytes: int, leak_bytes: int = 0) -> None:
    events: list[wire.Event] = []
    emit = events.append
    emit(wire.Hello(t_ns=now(), unix_ns=time.time_ns(), pid=os.getpid()))
    arena = Arena(emit, pool_budget_bytes=2 * total_bytes)
    run = Run(emit, "j")
    time.sleep(0.3)
    emit(wire.JobSubmitted(t_ns=now(), job_id="j", circuit="none", num_circuits=1, policy=policy))
    scope = arena.scope("j", policy)
    shape = (total_bytes // BUFFERS // 32, 4)
    with run.stage(Stage.SYNTH):
        rows = [scope.array(f"a{k}", Owner.ABC, shape, stage=Stage.SYNTH) for k in range(BUFFERS)]
        for row in rows:
            row.fill(7)
    del row
    leak = np.full(leak_bytes, 7, np.uint8)
    report_pages(arena, run)
    began_ns = now()
    with run.stage(Stage.PROVE):
        compute(rows[0][:4096].copy())
        rows.clear()
        inner_ns = now() - began_ns
        emit(wire.InnerEnded(t_ns=began_ns + inner_ns, job_id="j", inner_ns=inner_ns))
        with run.stage(Stage.RELEASE):
            scope.release()
    outer_ns = now() - began_ns
    emit(wire.OuterEnded(t_ns=began_ns + outer_ns, job_id="j", outer_ns=outer_ns))
    emit(wire.JobEnded(t_ns=now(), job_id="j", outcome=Outcome.PROVED))
    time.sleep(0.4)
    del leak
    arena.close()
    sys.stdout.buffer.write(b"".join(map(wire.encode, events)))


def compute(values: np.ndarray) -> None:
    """User time only, for half a second."""
    end_ns = now() + 500_000_000
    while now() < end_ns:
        values *= np.uint64(3)


if __name__ == "__main__":
    main(Policy(sys.argv[1]), *map(int, sys.argv[2:]))
