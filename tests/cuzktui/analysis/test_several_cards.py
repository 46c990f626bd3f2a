"""A job whose circuits run beside each other is accounted for like any other: no part is longer than the clock."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzktui.analysis import analyse, analyse_job
from cuzktui.analysis.attribution import attribute
from cuzktui.export.layout import lay_out
from cuzktui.export.timing import render_timing
from prover import wire
from prover.arena import Arena
from prover.backends.cpu.backend import CpuBackend
from prover.backends.spread import Spread
from prover.builtin import BuiltinWorkload
from prover.circuits.registry import build
from prover.jobs import Prover, describe
from prover.run import Run, now, silent
from prover.serve.hub import Hub
from prover.serve.timing_log import TimingLog
from prover.setup import test_setup as make_key
from prover.wire import TOP_STAGES, Outcome, Policy, Stage

PARTS = ("queue_ms", "setup_ms", "srs_ms", "synth_ms", "outer_ms", "verify_ms")
H = (Stage.NTT_H, Stage.MSM_H)
MS = 1_000_000


class Circuits:
    def __init__(self, key) -> None:
        self.key = key

    def key_for(self, r1cs, run):
        return self.key


@pytest.fixture(scope="module")
def recorded() -> list[wire.Event]:
    """A job of five circuits over two backends, as a recording holds it."""
    events: list[wire.Event] = [wire.Hello(t_ns=now(), unix_ns=1, pid=1, backend="cuda", devices=["cuda:0", "cuda:1"])]
    spread = Spread([CpuBackend(1), CpuBackend(1)])
    prover = Prover(spread, Arena(events.append))
    keys = Circuits(make_key(build("poseidon-merkle:1").r1cs, silent()))
    workload = BuiltinWorkload("poseidon-merkle:1", 5, keys, threads=1)
    events.append(describe("job", workload, Policy.SYNC_4K))
    result = prover.run_job(workload, Policy.SYNC_4K, Run(events.append, "job"))
    events.append(
        wire.JobEnded(t_ns=now(), job_id="job", outcome=Outcome.PROVED, verified=True, metrics=result.metrics)
    )
    prover.close()
    return events


def runs(events: list[wire.Event], stage: Stage) -> list[tuple[int, int]]:
    began = {e.circuit: e.t_ns for e in events if isinstance(e, wire.StageBegan) and e.stage is stage}
    return [(began[e.circuit], e.t_ns) for e in events if isinstance(e, wire.StageEnded) and e.stage is stage]


def test_the_recording_has_stages_that_overlap(recorded):
    ordered = sorted(runs(recorded, Stage.MSM_H))
    assert any(later[0] < earlier[1] for earlier, later in pairwise(ordered))


def test_no_stage_is_longer_than_the_part_it_lies_in(recorded):
    report = analyse_job(recorded)
    stages = report.stages_ms
    inner = [stages[s] for s in (Stage.PREP_MSM, Stage.B_G2_MSM, Stage.BATCH_ADD, Stage.TAIL_MSM, Stage.EPILOGUE)]
    summed_ms = {stage: sum(end - begin for begin, end in runs(recorded, stage)) / MS for stage in H}
    for stage in H:
        assert stages[stage] <= summed_ms[stage] + 1e-6
        assert stages[stage] + sum(inner) <= stages[Stage.PROVE]
    assert sum(stages[stage] for stage in H) < sum(summed_ms.values()), "the cards' circuits overlap"
    assert report.number("inner_ms") <= report.number("outer_ms") <= report.total_ms
    assert report.number("gap_ms") == pytest.approx(report.number("outer_ms") - report.number("inner_ms"), abs=0.01)
    figures = json.loads(json.dumps(report.as_dict()))
    assert sum(figures[part] or 0 for part in PARTS) <= figures["total_ms"] * 1.02
    assert sum(figures["attribution_ms"].values()) == pytest.approx(report.total_ms, abs=0.01)


def test_every_export_of_it_can_be_written_and_lanes_do_not_touch(recorded):
    layout = lay_out(recorded)
    for lane in layout.lanes:
        open_ends: list[int] = []
        for piece in lane.slices:
            while open_ends and open_ends[-1] <= piece.begin_ns:
                open_ends.pop()
            assert not open_ends or piece.end_ns <= open_ends[-1]
            open_ends.append(piece.end_ns)
    assert render_timing(recorded).count(b"CUZK_NTT_H: ") == 5


def test_the_log_and_the_export_agree_on_the_time_of_h(recorded):
    log = TimingLog(Hub(recorded[0], Policy.SYNC_4K))
    said = [line for event in recorded for line in log.lines(event)]
    log.close()
    (told,) = (int(m[1]) for line in said if (m := re.search(r"ntt_msm_h_ms=(\d+)", line)))
    (exported,) = (int(m[1]) for m in re.finditer(rb"ntt_msm_h_ms=(\d+)", render_timing(recorded)))
    prove_ms = analyse_job(recorded).stages_ms[Stage.PROVE]
    assert abs(told - exported) <= 1 and told <= prove_ms


@dataclasses.dataclass(frozen=True)
class Piece:
    stage: Stage
    circuit: int
    begin_ms: int
    length_ms: int


pieces = st.builds(
    Piece, st.sampled_from([Stage.NTT_H, Stage.MSM_H, Stage.WITNESS]), st.integers(0, 5), st.integers(0, 900),
    st.integers(0, 400),
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(st.lists(pieces, max_size=12), st.integers(0, 1 << 30))
def test_parts_never_exceed_the_clock_however_stages_overlap(found, seed):
    start, end_ms = 10**9, 1400
    one_each = {(piece.stage, piece.circuit): piece for piece in found}.values()
    told: list[wire.Event] = [
        wire.StageBegan(t_ns=start, job_id="j", stage=Stage.PROVE),
        wire.StageEnded(t_ns=start + end_ms * MS, job_id="j", stage=Stage.PROVE),
    ]
    for piece in one_each:
        begin = start + piece.begin_ms * MS
        told.append(wire.StageBegan(t_ns=begin, job_id="j", stage=piece.stage, circuit=piece.circuit))
        told.append(
            wire.StageEnded(t_ns=begin + piece.length_ms * MS, job_id="j", stage=piece.stage, circuit=piece.circuit)
        )
    # Threads hand in events of one instant in any order, but each its own in turn.
    random.Random(seed).shuffle(told)
    told.sort(key=lambda e: (e.t_ns, isinstance(e, wire.StageEnded)))
    first = wire.JobSubmitted(t_ns=start, job_id="j", circuit="c", num_circuits=6, policy=Policy.SYNC_4K)
    last = wire.JobEnded(t_ns=start + end_ms * MS, job_id="j", outcome=Outcome.PROVED)
    snapshot = analyse([first, *told, last])
    job = snapshot.find_job("j")
    assert len(job.stages) == 1 + len(one_each)
    report = analyse_job([first, *told, last])
    assert all(0 <= value <= report.total_ms for value in report.stages_ms.values())
    parts = attribute(snapshot, job).parts
    assert sum(part.length_ns for part in parts) == end_ms * MS
    assert all(a.end_ns == b.begin_ns for a, b in pairwise(parts))
    assert set(report.stages_ms) == {Stage.PROVE, *(piece.stage for piece in one_each)}
    assert [stage for stage in report.stages_ms if stage in TOP_STAGES] == [Stage.PROVE]
