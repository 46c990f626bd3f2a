"""The lines that the upstream daemon prints (`CUZK_TIMING:`, `CUZK_NTT_H:`, `TIMELINE,`), from measured figures only.

Keys are those of its split-prove build before release moved off the critical path, so that gap = `gpu_ms` of the
completion line less `pre_destructor_ms`. A figure that was not measured has no key. Milliseconds are rounded to whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from cuzktui.analysis.intervals import length_ns, union
from cuzktui.analysis.report import analyse
from cuzktui.model.snapshot import JobView, Snapshot
from prover.wire import Event, Stage


def render_timing(events: list[Event]) -> bytes:
    """Lines of every job whose computation has ended, in order of jobs."""
    snapshot = analyse(events)
    lines = [line for job in snapshot.jobs for line in _job_lines(snapshot, job)]
    return "".join(f"{line}\n" for line in lines).encode()


def _job_lines(snapshot: Snapshot, job: JobView) -> Iterator[str]:
    yield from _timeline(snapshot, job)
    if job.inner_ns is None:
        return
    stage = {name: _stage_ns(job, (name,)) for name in Stage}
    if stage[Stage.PREP_MSM]:
        yield f"CUZK_TIMING: prep_msm_ms={_ms(stage[Stage.PREP_MSM])}"
    for circuit in range(job.num_circuits):
        ntt_ns, msm_ns = (_stage_ns(job, (name,), circuit) for name in (Stage.NTT_H, Stage.MSM_H))
        if ntt_ns or msm_ns:
            parts = f"ntt_kernels={_ms(ntt_ns)}ms msm_invoke={_ms(msm_ns)}ms total={_ms(ntt_ns + msm_ns)}ms"
            yield f"CUZK_NTT_H: {parts}"
    h_ns = _stage_ns(job, (Stage.NTT_H, Stage.MSM_H))
    if h_ns:
        yield f"CUZK_TIMING: gpu_tid=0 ntt_msm_h_ms={_ms(h_ns)}"
    if stage[Stage.BATCH_ADD]:
        yield f"CUZK_TIMING: gpu_tid=0 batch_add_ms={_ms(stage[Stage.BATCH_ADD])}"
    if stage[Stage.TAIL_MSM]:
        whole_ns = h_ns + stage[Stage.BATCH_ADD] + stage[Stage.TAIL_MSM]
        yield f"CUZK_TIMING: gpu_tid=0 tail_msm_ms={_ms(stage[Stage.TAIL_MSM])} gpu_total_ms={_ms(whole_ns)}"
    if stage[Stage.B_G2_MSM]:
        yield f"CUZK_TIMING: b_g2_msm_ms={_ms(stage[Stage.B_G2_MSM])} num_circuits={job.num_circuits}"
    epilogue = f"epilogue_ms={_ms(stage[Stage.EPILOGUE])} " if job.stage(Stage.EPILOGUE) else ""
    yield f"CUZK_TIMING: {epilogue}pre_destructor_ms={_ms(job.inner_ns)}"
    background_ns = length_ns(union((r.begin_ns, r.end_ns) for r in job.releases if not r.synchronous))
    if background_ns:
        yield f"CUZK_TIMING: async_dealloc_ms={_ms(background_ns)}"
    if job.outer_ns is not None and job.outer_end_ns is not None:
        proof_bytes = len(job.proof_hex) // 2
        yield (
            f"{_wall_clock(snapshot, job.outer_end_ns)}  INFO cuzktui: GPU prove complete "
            f"proof_count={job.num_circuits} proof_bytes={proof_bytes} gpu_ms={_ms(job.outer_ns)}"
        )


def _timeline(snapshot: Snapshot, job: JobView) -> Iterator[str]:
    """`TIMELINE,<ms since the stream began>,<EVENT>,<job>,<detail>`; a comma in a job id would break the format."""
    name = job.job_id.replace(",", "_")
    marks: list[tuple[int, str]] = []
    circuits = {view.circuit for view in job.stages if view.circuit is not None}
    for circuit in sorted(circuits):
        made = [v for v in job.stages if v.circuit == circuit and v.stage in (Stage.WITNESS, Stage.EVAL_ABC)]
        if not made:
            continue
        marks.append((made[0].begin_ns, f"SYNTH_START,{name},partition={circuit}"))
        if made[-1].stage is Stage.EVAL_ABC and made[-1].end_ns is not None:
            length = _ms(made[-1].end_ns - made[0].begin_ns)
            marks.append((made[-1].end_ns, f"SYNTH_END,{name},partition={circuit},synth_ms={length}"))
    prove = job.stage(Stage.PROVE)
    if prove is not None:
        marks.append((prove.begin_ns, f"GPU_START,{name},worker=0"))
        if prove.end_ns is not None:
            marks.append((prove.end_ns, f"GPU_END,{name},worker=0,gpu_ms={_ms(prove.end_ns - prove.begin_ns)}"))
    for t_ns, text in sorted(marks):
        yield f"TIMELINE,{_ms(t_ns - snapshot.first_ns)},{text}"


def _stage_ns(job: JobView, names: Iterable[Stage], circuit: int | None = None) -> int:
    """Wall time that the runs of some stages cover, of one circuit or of all."""
    wanted = tuple(names)
    runs = [v for v in job.stages if v.stage in wanted and v.end_ns is not None and circuit in (None, v.circuit)]
    return length_ns(union((v.begin_ns, v.end_ns or 0) for v in runs))


def _ms(span_ns: int) -> int:
    return round(span_ns / 1e6)


def _wall_clock(snapshot: Snapshot, t_ns: int) -> str:
    hello = snapshot.hello or snapshot.collector
    unix_ns = hello.unix_ns + t_ns - hello.t_ns if hello is not None else t_ns
    return datetime.fromtimestamp(unix_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
