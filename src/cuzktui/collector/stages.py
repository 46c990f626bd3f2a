"""Which stages of which jobs are open: what a post-mortem names, and what speeds the memory schedule up."""

from __future__ import annotations

from cuzktui.collector.memory import AFTER_FALL_NS, MAX_HOT_NS, MemorySampler
from prover import wire
from prover.wire import Stage

NEAR_RELEASE = frozenset({Stage.BATCH_ADD, Stage.TAIL_MSM, Stage.EPILOGUE})
"""Stages of milliseconds to seconds after which memory falls."""


class OpenStages:
    """Follows one prover's stages."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, Stage, int | None], None] = {}
        self.jobs: set[str] = set()
        """Jobs submitted and not ended."""

    def apply(self, event: wire.Event) -> None:
        match event:
            case wire.JobSubmitted(job_id=job_id):
                self.jobs.add(job_id)
            case wire.StageBegan(job_id=job_id, stage=stage, circuit=circuit):
                self._open[job_id, stage, circuit] = None
            case wire.StageEnded(job_id=job_id, stage=stage, circuit=circuit):
                self._open.pop((job_id, stage, circuit), None)
            case wire.JobEnded(job_id=job_id):
                self.jobs.discard(job_id)
                for key in [key for key in self._open if key[0] == job_id]:
                    del self._open[key]

    def where(self) -> str:
        """The stage work is in, outermost and innermost: `prove/msm_h`; empty when nothing is open.

        A job that only waits in the queue does not hide the stage of the one that runs.
        """
        working = [key for key in self._open if key[1] is not Stage.QUEUE] or list(self._open)
        if not working:
            return ""
        job_id, inner, _ = working[-1]
        outer = next((key[1] for key in working if key[0] == job_id and key[1] in wire.TOP_STAGES), inner)
        return outer.value if outer == inner else f"{outer.value}/{inner.value}"

    def clear(self) -> None:
        """The prover is gone: nothing is open any more."""
        self._open.clear()
        self.jobs.clear()


def heat(event: wire.Event, sampler: MemorySampler) -> None:
    """Speeds the memory schedule up when this event says that a release is near or running."""
    match event:
        case wire.StageBegan(stage=stage) if stage in NEAR_RELEASE:
            sampler.warm(event.t_ns + MAX_HOT_NS)
        case wire.InnerEnded() | wire.StageBegan(stage=Stage.RELEASE):
            sampler.hot(event.t_ns + MAX_HOT_NS)
        case wire.OuterEnded() | wire.StageEnded(stage=Stage.RELEASE) | wire.JobEnded():
            sampler.cool()
            sampler.settle(event.t_ns + AFTER_FALL_NS)
        case wire.BufferReleased(how=how) if how in ("munmap", "trim"):
            sampler.hot(event.t_ns + AFTER_FALL_NS)
