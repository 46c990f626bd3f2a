"""What an operator must be able to read off each panel, at any size, in any glyph set, in any state of the stream."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scene import MS, PID, Scene, one_proof, opening, proof

from cuzktui.model import store
from cuzktui.model.snapshot import Snapshot
from cuzktui.told import Told
from cuzktui.widgets import (
    breakdown,
    finding,
    footer,
    header,
    jobs,
    kernels,
    ledger,
    lens,
    machine,
    memory,
    notices,
    pair,
    phases,
    synthesis,
)
from cuzktui.widgets.dots import GLYPHS
from cuzktui.widgets.roles import Role
from cuzktui.widgets.view import View
from prover.wire import (
    BufferLeaked,
    GpuSample,
    InnerEnded,
    JobEnded,
    JobSubmitted,
    Notice,
    Outcome,
    Owner,
    Policy,
    ProcessEnded,
    ProcessSeen,
    Progress,
    SourceChanged,
    Span,
    Stage,
    StageBegan,
    StageEnded,
)

PANELS = (
    finding.finding_grid,
    footer.footer_grid,
    header.header_grid,
    jobs.jobs_grid,
    kernels.kernel_grid,
    ledger.ledger_grid,
    lens.lens_grid,
    machine.machine_grid,
    memory.memory_grid,
    notices.notice_grid,
    pair.pair_grid,
    synthesis.synthesis_grid,
)
DONE = one_proof(gpu=True).events


def fold(events: list) -> Snapshot:  # type: ignore[type-arg]
    return store.apply_all(store.empty(), events)


def view_of(snapshot: Snapshot, **changes: object) -> View:
    view = View(snapshot, end_ns=snapshot.t_ns, span_s=10, lens=snapshot.lens)
    return replace(view, **changes)  # type: ignore[arg-type]


def until_inner_ended() -> list:  # type: ignore[type-arg]
    at = next(i for i, event in enumerate(DONE) if isinstance(event, InnerEnded))
    return DONE[: at + 30]


@settings(max_examples=60)
@given(
    st.integers(0, len(DONE)), st.integers(1, 130), st.integers(1, 40), st.sampled_from(sorted(GLYPHS)), st.booleans()
)
def test_every_panel_draws_every_moment_at_every_size(
    cut: int, width: int, height: int, mode: str, looks_back: bool
) -> None:
    snapshot = fold(DONE[:cut])
    view = view_of(snapshot, glyphs=GLYPHS[mode], pair=("job-1", "job-1"))
    if looks_back:
        view = replace(
            view, end_ns=(snapshot.first_ns + snapshot.t_ns) // 2, cursor_ns=snapshot.first_ns, is_live=False
        )
    for draw in PANELS:
        grid = draw(view, width, height)
        assert (grid.width, grid.height) == (width, height)
        if mode == "ascii":
            assert not set(grid.text()) & set("⣿█━╭│┬▸●")


def test_the_graph_names_plateau_slope_and_gap() -> None:
    text = memory.memory_grid(view_of(fold(DONE)), 150, 24).text()
    assert "plateau 1.38 GB" in text
    assert "−12.0 GB/s" in text
    assert "GAP 100 ms" in text
    for lane in ("stage", "kernel", "gpu", "user", "sys"):
        assert f"│{lane}" in text
    for stage in ("compile", "synth", "prove", "msm_h"):
        assert stage in text


def test_the_graph_shows_the_predicted_peak_while_the_job_runs_only() -> None:
    assert "predicted peak 1.47 GB" in memory.memory_grid(view_of(fold(until_inner_ended())), 150, 24).text()
    assert "predicted" not in memory.memory_grid(view_of(fold(DONE)), 150, 24).text()


def test_bands_take_their_letters_in_ascii_from_their_owners() -> None:
    text = memory.memory_grid(view_of(fold(until_inner_ended()), glyphs=GLYPHS["ascii"]), 120, 24).text()
    for letter in "=#%+":
        assert letter * 4 in text


def test_a_stage_with_progress_is_shown_with_its_figures() -> None:
    scene = Scene()
    opening(scene)
    scene.add(StageBegan(t_ns=scene.t_ns, job_id="", stage=Stage.COMPILE))
    scene.add(
        Progress(t_ns=scene.t_ns, job_id="", stage=Stage.COMPILE, done=12, total=40, unit="kernel", what="msm_g1")
    )
    text = synthesis.synthesis_grid(view_of(fold(scene.events)), 40, 8).text()
    assert "compile" in text and "12 of 40 kernels msm_g1" in text and "━" in text


def test_each_circuit_has_its_bar() -> None:
    text = synthesis.synthesis_grid(view_of(fold(DONE)), 40, 8).text()
    assert text.count("100 %") == 4


def test_kernels_are_listed_costliest_first_with_their_roof() -> None:
    text = kernels.kernel_grid(view_of(fold(DONE)), 80, 10).text()
    assert text.index("msm_h") < text.index("tail_msm") < text.index("ntt_h")
    assert "4 ×  320 ms" in text and "1.28 s" in text and "61 %" in text


def test_a_host_without_a_gpu_says_why() -> None:
    text = machine.machine_grid(view_of(fold(one_proof().events)), 44, 10).text()
    assert "no GPU" in text and "libnvidia-ml.so.1 was not found" in text


def test_an_unread_gpu_value_is_a_dash_and_never_zero() -> None:
    scene = Scene()
    opening(scene)
    scene.add(GpuSample(t_ns=scene.t_ns, device=0, name="NVIDIA H200", error="GPU is lost"))
    text = machine.machine_grid(view_of(fold(scene.events)), 44, 10).text()
    assert "GPU is lost" in text
    assert "util" in text and "–" in text
    assert "0 W" not in text and "0 %" not in text


def test_the_ledger_names_owners_and_leaks() -> None:
    snapshot = fold(
        [
            *until_inner_ended(),
            BufferLeaked(t_ns=1, buffer_id=2, label="abc 0", owner=Owner.ABC, size_bytes=150_000_000),
        ]
    )
    text = ledger.ledger_grid(view_of(snapshot), 44, 10).text()
    assert "a, b, c" in text and "assignment" in text
    assert "LEAK abc 0: 150 MB still in use" in text


def test_the_header_says_lost_replay_and_recording() -> None:
    snapshot = fold(DONE)
    assert "not recording" in header.header_grid(view_of(snapshot), 120).text()
    assert "● rec 00:00:08" in header.header_grid(view_of(snapshot, recording="run.jsonl"), 120).text()
    replayed = store.apply_all(store.empty(is_replay=True), DONE)
    assert "REPLAY" in header.header_grid(view_of(replayed), 120).text()
    lost = store.apply(snapshot, SourceChanged(t_ns=snapshot.t_ns, source="collector", alive=False, detail="killed"))
    assert "LOST collector" in header.header_grid(view_of(lost), 120).text()
    narrow = header.header_grid(view_of(snapshot, recording="run.jsonl"), 80).text()
    assert "verified" in narrow and "job-1 · sha" in narrow, "the state is never what is cut"
    absent = store.apply(
        fold(one_proof().events), SourceChanged(t_ns=1, source="nvml", alive=False, detail="no driver")
    )
    assert "LOST" not in header.header_grid(view_of(absent), 120).text()


def test_a_dead_prover_is_named_with_signal_stage_and_remedy() -> None:
    events = until_inner_ended()
    t_ns = max(event.t_ns for event in events)
    ended = ProcessEnded(t_ns=t_ns, pid=PID, signal=9, reason="killed by signal 9", stage="prove")
    view = view_of(fold([*events, ended]))
    line = finding.finding_grid(replace(view, can_restart=True), 120).text()
    assert f"prover {PID} ended in stage prove: killed by signal 9" in line
    assert "r starts it again" in line
    assert "r starts" not in finding.finding_grid(view, 120).text()
    assert "LOST prover" in header.header_grid(view, 120).text()
    assert "prove " not in synthesis.synthesis_grid(view, 40, 6).text()


def test_a_failed_job_shows_its_reason() -> None:
    scene = Scene()
    opening(scene)
    error = "witness does not satisfy constraint 17"
    scene.add(JobEnded(t_ns=scene.t_ns, job_id="job-9", outcome=Outcome.FAILED, error=error))
    view = view_of(fold(scene.events))
    assert error in synthesis.synthesis_grid(view, 60, 6).text()
    assert "failed" in jobs.jobs_grid(view, 90, 6).text()


def test_an_error_is_on_the_line_under_the_graph_until_it_is_old() -> None:
    scene = Scene()
    opening(scene)
    scene.add(Notice(t_ns=scene.t_ns, text="the disk is full: recording stopped", level="error"))
    assert "the disk is full" in finding.finding_grid(view_of(fold(scene.events)), 120).text()
    assert "the disk is full" in notices.notice_grid(view_of(fold(scene.events)), 60, 5).text()
    scene.wait(20_000, step_ms=1000)
    assert "the disk is full" not in finding.finding_grid(view_of(fold(scene.events)), 120).text()


def test_a_pair_is_compared_in_one_sentence() -> None:
    scene = Scene()
    opening(scene)
    proof(scene, "job-1", Policy.SYNC_4K)
    proof(scene, "job-2", Policy.ASYNC_4K, compile_first=False)
    scene.wait(800)
    view = view_of(fold(scene.events), pair=("job-1", "job-2"))
    assert pair.pair_grid(view, 110, 10).text().count("verified") == 2
    text = finding.finding_grid(view, 110).text()
    assert "gap 100 ms with sync-4k, 2.00 ms with async-4k: async-4k answers 98.0 ms sooner" in text
    half = pair.pair_grid(view_of(fold(scene.events), pair=("job-1",)), 110, 10).text()
    assert "waiting" in half


def test_a_pair_that_gained_nothing_says_so() -> None:
    scene = Scene()
    opening(scene)
    proof(scene, "job-1", Policy.ASYNC_4K)
    proof(scene, "job-2", Policy.SYNC_4K, compile_first=False)
    view = view_of(fold(scene.events), pair=("job-1", "job-2"))
    assert "does not answer sooner" in finding.finding_grid(view, 110).text()


def test_the_footer_offers_only_keys_that_do_something() -> None:
    idle = footer.footer_grid(view_of(fold(one_proof().events[:5])), 160).text()
    assert "p prove" in idle and "c cancel" not in idle and "v verify" not in idle
    running = footer.footer_grid(view_of(fold(until_inner_ended())), 160).text()
    assert "c cancel" in running
    replayed = store.apply_all(store.empty(is_replay=True), DONE)
    assert "prove" not in footer.footer_grid(view_of(replayed), 160).text()


def test_an_ended_job_says_where_its_time_went() -> None:
    snapshot = fold(DONE)
    told = Told().about(snapshot)
    assert told.attribution is not None and told.gap_explained_percent is not None
    view = view_of(snapshot, attribution=told.attribution, gap_explained_percent=told.gap_explained_percent)
    text = breakdown.breakdown_grid(view, told.attribution, 44, 14).text()
    for kind in ("release", "synthesis", "compile", "verify"):
        assert kind in text
    assert "explained" in text and "of the gap 100 %" in text


def test_what_is_told_is_asked_again_only_where_something_changed() -> None:
    snapshot = fold(DONE)
    told = Told().about(snapshot)
    assert told.about(snapshot) is told
    running = told.about(fold(until_inner_ended()))
    assert running.attribution is None and running.forecast is not None


def test_a_job_alike_an_earlier_one_has_a_predicted_end() -> None:
    scene = Scene()
    opening(scene)
    proof(scene, "job-1", compile_first=False)
    scene.wait(1000)
    first = len(scene.events)
    proof(scene, "job-2", compile_first=False)
    cut = first + (len(scene.events) - first) // 2
    snapshot = fold(scene.events[:cut])
    text = synthesis.synthesis_grid(view_of(snapshot, forecast=Told().about(snapshot).forecast), 40, 8).text()
    assert "done in about" in text


def stranger() -> Snapshot:
    scene = Scene()
    scene.add(ProcessSeen(t_ns=scene.t_ns, pid=PID, command="bench --all", role="foreign"))
    scene.wait(1000, user=0.0)
    scene.wait(800, grow_bytes=2e9, user=0.2, system=0.8)
    scene.wait(1500, user=1.0)
    scene.wait(200, grow_bytes=-2e9, step_ms=2, user=0.0, system=1.0)
    scene.wait(1000, user=0.0)
    return fold(scene.events)


def test_a_process_that_tells_nothing_is_read_from_outside() -> None:
    view = view_of(stranger(), is_read_only=True, source="attached")
    assert view.is_stranger
    graph = memory.memory_grid(view, 140, 24).text()
    assert "cause" in graph and "releasing" in graph and "stage" not in graph
    table = phases.phase_grid(view, 70, 10).text()
    assert "release" in table and "−2.00 GB" in table and "10.0 GB/s" in table
    line = header.header_grid(view, 120).text()
    assert f"process {PID}" in line and "bench --all" in line and "next" not in line
    assert "press p" not in synthesis.synthesis_grid(view, 40, 8).text()


def test_mapped_memory_is_drawn_on_top_only_when_asked_for() -> None:
    view = view_of(fold(DONE), glyphs=GLYPHS["ascii"])
    without = memory.memory_grid(view, 120, 24)
    with_mapped = memory.memory_grid(replace(view, with_mapped=True), 120, 24)
    roles = [{grid.role_at(x, y) for x in range(120) for y in range(24)} for grid in (without, with_mapped)]
    assert Role.MAPPED not in roles[0] and Role.MAPPED in roles[1]
    assert "mapped 120 MB on top" in with_mapped.text()


def test_each_gpu_has_a_lane_and_kernels_of_two_lanes_are_told_apart() -> None:
    scene = Scene(gpu=True)
    opening(scene)
    proof(scene)
    for device in (1, 2, 3):
        scene.add(GpuSample(t_ns=scene.t_ns, device=device, name="NVIDIA H200", util_percent=50.0))
    began = scene.t_ns - 10 * MS
    scene.add(Span(t_ns=scene.t_ns, job_id="job-1", name="msm_h", begin_ns=began, lane="cuda:1 s1"))
    view = view_of(fold(scene.events))
    graph = memory.memory_grid(view, 120, 40).text()
    assert all(f"│gpu{device}" in graph for device in range(4))
    table = kernels.kernel_grid(view, 80, 12).text()
    assert "msm_h 0 s1" in table and "msm_h 1 s1" in table


def test_a_job_that_waits_for_the_compiler_shows_the_compiler() -> None:
    scene = Scene()
    opening(scene)
    scene.add(StageBegan(t_ns=scene.t_ns, job_id="", stage=Stage.COMPILE))
    scene.add(Progress(t_ns=scene.t_ns, job_id="", stage=Stage.COMPILE, done=3, total=6, unit="kernel", what="NTT"))
    job = JobSubmitted(t_ns=scene.t_ns, job_id="job-1", circuit="cubic", num_circuits=1, policy=Policy.RECYCLE)
    scene.add(job)
    scene.add(StageBegan(t_ns=scene.t_ns, job_id="job-1", stage=Stage.QUEUE))
    assert "3 of 6 kernels NTT" in synthesis.synthesis_grid(view_of(fold(scene.events)), 40, 8).text()
    scene.add(StageEnded(t_ns=scene.t_ns, job_id="job-1", stage=Stage.QUEUE))
    scene.add(StageBegan(t_ns=scene.t_ns, job_id="job-1", stage=Stage.SETUP))
    assert "setup" in synthesis.synthesis_grid(view_of(fold(scene.events)), 40, 8).text()


@pytest.mark.parametrize("width", [24, 40, 80, 120, 200])
def test_the_footer_always_shows_help_and_the_way_out(width: int) -> None:
    line = footer.footer_grid(view_of(fold(until_inner_ended())), width).text()
    assert line.rstrip().endswith("? help  q quit")
    assert len(line) <= width
