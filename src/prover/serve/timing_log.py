"""The lines that upstream's daemon writes to stderr, as they become known: whoever parses its log parses ours.

Only what was measured is written. Keys are those of upstream's log: pre_destructor is the inner clock, `gpu_ms` of
`GPU prove complete` the outer one, so that their difference is the gap. A line is one write.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from prover import wire
from prover.run import now
from prover.serve.hub import Hub
from prover.wire import Stage

MAX_JOBS = 64
GPU_STAGES = (Stage.NTT_H, Stage.BATCH_ADD, Stage.TAIL_MSM)
"""What upstream's GPU total is made of; `ntt_h` stands for `msm_h` too."""


@dataclass(slots=True)
class _Cover:
    """Wall time in which at least one run was open: circuits of several cards run beside each other."""

    open: int = 0
    since_ns: int = 0
    spent_ns: int = 0

    def begin(self, t_ns: int) -> None:
        if self.open == 0:
            self.since_ns = t_ns
        self.open += 1

    def end(self, t_ns: int) -> None:
        if self.open == 1:
            self.spent_ns += max(0, t_ns - self.since_ns)
        self.open = max(0, self.open - 1)


@dataclass(slots=True)
class _Job:
    num_circuits: int = 1
    began: dict[tuple[Stage, int | None], int] = field(default_factory=dict)
    covers: dict[Stage, _Cover] = field(default_factory=dict)
    """By stage; upstream times `ntt_h` and `msm_h` as one, which is kept under the first."""
    pending: set[int] = field(default_factory=set)
    """Buffers that have not been given back."""
    deferred_ns: int = 0
    is_computed: bool = False
    is_over: bool = False


class TimingLog:
    """Args:
    hub: whose events to write about.
    descriptor: where to; a descriptor that nobody reads any more is written to no longer.
    """

    def __init__(self, hub: Hub, descriptor: int = 2) -> None:
        self._began_ns = now()
        self._jobs: dict[str, _Job] = {}
        self._buffers: dict[int, str] = {}
        self._descriptor = descriptor
        _, self._watcher = hub.watch()
        self._thread = threading.Thread(target=self._follow, name="prover/timing", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Writes what is queued, then ends."""
        self._watcher.close()
        self._thread.join(2.0)

    def _follow(self) -> None:
        for line in self._watcher.lines():
            event = wire.decode(line)
            if event is None:
                continue
            for text in self.lines(event):
                try:
                    os.write(self._descriptor, f"{text}\n".encode())
                except OSError:
                    return

    def lines(self, event: wire.Event) -> Iterator[str]:
        """What becomes known with one more event."""
        match event:
            case wire.JobSubmitted():
                while len(self._jobs) >= MAX_JOBS:
                    self._forget(next(iter(self._jobs)))
                self._jobs.setdefault(event.job_id, _Job()).num_circuits = event.num_circuits
            case wire.BufferAllocated() if event.job_id in self._jobs:
                self._buffers[event.buffer_id] = event.job_id
                self._jobs[event.job_id].pending.add(event.buffer_id)
            case wire.BufferReleased():
                yield from self._released(event)
            case wire.StageBegan() if event.job_id in self._jobs:
                job = self._jobs[event.job_id]
                job.began[event.stage, event.circuit] = event.t_ns
                job.covers.setdefault(_timed(event.stage), _Cover()).begin(event.t_ns)
                yield from self._stage_began(event)
            case wire.StageEnded() if event.job_id in self._jobs:
                yield from self._stage_ended(event, self._jobs[event.job_id])
            case wire.InnerEnded() if event.job_id in self._jobs:
                job = self._jobs[event.job_id]
                job.is_computed = True
                epilogue = _ms(_spent_ns(job, Stage.EPILOGUE))
                yield f"CUZK_TIMING: epilogue_ms={epilogue} pre_destructor_ms={_ms(event.inner_ns)}"
            case wire.OuterEnded() if event.job_id in self._jobs:
                count = self._jobs[event.job_id].num_circuits
                yield (
                    f"{_wall_clock()}  INFO cuzk_prover: GPU prove complete proof_count={count} "
                    f"proof_bytes={192 * count} gpu_ms={_ms(event.outer_ns)}"
                )
            case wire.JobEnded() if event.job_id in self._jobs:
                if event.outcome is not wire.Outcome.PROVED:
                    reason = event.error.replace("\n", " ")
                    yield f"{_wall_clock()} ERROR cuzk_prover: job {event.job_id} {event.outcome}: {reason}"
                self._jobs[event.job_id].is_over = True
                if not self._jobs[event.job_id].pending:
                    self._forget(event.job_id)

    def _stage_began(self, event: wire.StageBegan) -> Iterator[str]:
        if event.stage is Stage.WITNESS:
            yield self._timeline(event, "SYNTH_START", f"partition={event.circuit}")
        elif event.stage is Stage.PROVE:
            yield self._timeline(event, "GPU_START", "worker=0")

    def _stage_ended(self, event: wire.StageEnded, job: _Job) -> Iterator[str]:
        length_ns = event.t_ns - job.began.get((event.stage, event.circuit), event.t_ns)
        job.covers.setdefault(_timed(event.stage), _Cover()).end(event.t_ns)
        if not event.ok:
            return
        match event.stage:
            case Stage.EVAL_ABC:
                synth_ns = event.t_ns - job.began.get((Stage.WITNESS, event.circuit), event.t_ns)
                yield self._timeline(event, "SYNTH_END", f"partition={event.circuit},synth_ms={_ms(synth_ns)}")
            case Stage.PREP_MSM:
                yield f"CUZK_TIMING: prep_msm_ms={_ms(length_ns)}"
            case Stage.B_G2_MSM:
                yield f"CUZK_TIMING: b_g2_msm_ms={_ms(length_ns)} num_circuits={job.num_circuits}"
            case Stage.MSM_H:
                ntt_ns = job.began.get((Stage.MSM_H, event.circuit), event.t_ns) - job.began.get(
                    (Stage.NTT_H, event.circuit), event.t_ns
                )
                parts = f"ntt_kernels={_ms(ntt_ns)}ms msm_invoke={_ms(length_ns)}ms"
                yield f"CUZK_NTT_H: {parts} total={_ms(ntt_ns + length_ns)}ms"
            case Stage.BATCH_ADD:
                yield f"CUZK_TIMING: gpu_tid=0 ntt_msm_h_ms={_ms(_spent_ns(job, Stage.NTT_H))}"
                yield f"CUZK_TIMING: gpu_tid=0 batch_add_ms={_ms(length_ns)}"
            case Stage.TAIL_MSM:
                total_ns = sum(_spent_ns(job, stage) for stage in GPU_STAGES)
                yield f"CUZK_TIMING: gpu_tid=0 tail_msm_ms={_ms(length_ns)} gpu_total_ms={_ms(total_ns)}"
            case Stage.PROVE:
                yield self._timeline(event, "GPU_END", f"worker=0,gpu_ms={_ms(length_ns)}")

    def _released(self, event: wire.BufferReleased) -> Iterator[str]:
        job_id = self._buffers.pop(event.buffer_id, "")
        job = self._jobs.get(job_id)
        if job is None:
            return
        job.pending.discard(event.buffer_id)
        if not event.synchronous:
            job.deferred_ns += event.t_ns - event.begin_ns
        if job.is_computed and not job.pending and job.deferred_ns:
            yield f"CUZK_TIMING: async_dealloc_ms={_ms(job.deferred_ns)}"
            job.deferred_ns = 0
        if job.is_over and not job.pending:
            self._forget(job_id)

    def _forget(self, job_id: str) -> None:
        job = self._jobs.pop(job_id, None)
        for buffer_id in job.pending if job else ():
            self._buffers.pop(buffer_id, None)

    def _timeline(self, event: wire.StageBegan | wire.StageEnded, name: str, detail: str) -> str:
        """`TIMELINE,<ms since the start>,<EVENT>,<job>,<detail>`; a comma in an id would break the format."""
        job = "".join(c if c.isprintable() and c != "," else "_" for c in event.job_id)
        return f"TIMELINE,{_ms(event.t_ns - self._began_ns)},{name},{job},{detail}"


def _timed(stage: Stage) -> Stage:
    return Stage.NTT_H if stage is Stage.MSM_H else stage


def _spent_ns(job: _Job, stage: Stage) -> int:
    return job.covers[stage].spent_ns if stage in job.covers else 0


def _ms(span_ns: int) -> int:
    return round(span_ns / 1e6)


def _wall_clock() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
