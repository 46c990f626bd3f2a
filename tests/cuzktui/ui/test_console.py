"""The console as a whole: every key, every size, a stream that breaks."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from console import ScriptedProver, assert_picture, console, idle, settled, text_of, until
from scene import PID, one_proof, proof

from cuzktui.desk import FIRST_POLICY, NEXT_POLICY
from cuzktui.screens.choice import ChoiceScreen
from cuzktui.widgets import kernels
from cuzktui.widgets.grid import Grid
from cuzktui.widgets.view import View
from prover.wire import Event, JobSubmitted, Notice, Policy, ProcessEnded, Stage, StageBegan

SIZES = [(40, 12), (80, 24), (120, 40), (160, 48), (200, 60)]


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
async def test_the_screen_after_a_proof_looks_as_kept(size: tuple[int, int]) -> None:
    app = console(ScriptedProver(one_proof(gpu=True).events))
    async with app.run_test(size=size) as pilot:
        assert_picture(f"proof-{size[0]}x{size[1]}", await settled(pilot, app))


async def test_the_screen_without_a_gpu_in_ascii_looks_as_kept() -> None:
    app = console(ScriptedProver(one_proof().events), graph="ascii")
    async with app.run_test(size=(120, 40)) as pilot:
        shown = await settled(pilot, app)
        assert shown.isascii()
        assert_picture("proof-ascii", shown)


@pytest.mark.parametrize("size", [(1, 1), (20, 5), (40, 12), (79, 23), (300, 90)])
async def test_no_size_crashes_or_overlaps(size: tuple[int, int]) -> None:
    app = console(ScriptedProver(one_proof().events))
    async with app.run_test(size=size) as pilot:
        await settled(pilot, app)
        for number in (120, 33, 8):
            await pilot.resize_terminal(number, max(1, number // 3))
            shown = await settled(pilot, app)
            assert len(shown.splitlines()) <= max(1, number // 3)


async def test_the_first_proof_is_the_exhibit_and_the_fix_is_offered() -> None:
    prover = ScriptedProver(idle())
    app = console(prover)
    async with app.run_test(size=(160, 48)) as pilot:
        assert "sha256-chain:8 ×4" in await settled(pilot, app)
        await pilot.press("p")
        await until(pilot, lambda: len(prover.asked) == 1, "submitted")
        assert prover.asked[0] == ("submit", "sha256-chain:8", "4", FIRST_POLICY.value)
        await until(pilot, lambda: "GAP" in text_of(app) and "verified" in text_of(app), "gap shown")
        await until(pilot, lambda: "x shows it without the gap" in text_of(app), "offer")
        assert app.desk.policy is NEXT_POLICY
        await pilot.press("p")
        await until(pilot, lambda: "x shows both side by side" in text_of(app), "what a job without a gap leads to")


async def test_the_pair_runs_both_and_compares_them() -> None:
    prover = ScriptedProver(idle())
    app = console(prover)
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press("x")
        await until(pilot, lambda: len(app.desk.pair) == 2, "both asked for")
        assert [asked[3] for asked in prover.asked] == ["sync-4k", "async-4k"]
        await until(pilot, lambda: "async-4k answers" in text_of(app), "comparison")
        await pilot.press("l")
        await until(pilot, lambda: "pair · same proof" not in text_of(app), "pair put away")


async def test_cancel_asks_for_the_running_job() -> None:
    events = idle()
    t_ns = events[-1].t_ns
    job = JobSubmitted(t_ns=t_ns, job_id="job-7", circuit="cubic", num_circuits=1, policy=Policy.RECYCLE)
    prover = ScriptedProver([*events, job, StageBegan(t_ns=t_ns, job_id="job-7", stage=Stage.SYNTH)])
    app = console(prover)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app)
        await pilot.press("c")
        await until(pilot, lambda: prover.asked == [("cancel", "job-7")], "cancelled")


async def test_cancel_without_a_job_says_so() -> None:
    prover = ScriptedProver(idle())
    app = console(prover)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await settled(pilot, app)
        await pilot.press("c")
        await until(pilot, lambda: "no job to cancel" in text_of(app), "said")
        assert prover.asked == []


async def test_the_policy_menu_sets_the_policy_of_the_next_job() -> None:
    prover = ScriptedProver(idle())
    app = console(prover)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("o")
        assert isinstance(app.screen, ChoiceScreen)
        assert all(policy.value in text_of(app) for policy in Policy)
        await pilot.press("down", "enter")
        await until(pilot, lambda: prover.asked == [("policy", "sync-huge")], "set")
        await pilot.press("p")
        await until(pilot, lambda: len(prover.asked) == 2, "submitted")
        assert prover.asked[1][3] == "sync-huge"
        assert app.desk.policy is Policy.SYNC_HUGE


async def test_escape_leaves_the_policy_as_it_was() -> None:
    prover = ScriptedProver(idle())
    app = console(prover)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("o", "down", "escape")
        assert prover.asked == []
        assert app.desk.policy is FIRST_POLICY


async def test_a_number_chooses_the_circuit() -> None:
    prover = ScriptedProver(idle())
    app = console(prover)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("3", "p")
        await until(pilot, lambda: bool(prover.asked), "submitted")
        assert prover.asked[0][1:3] == ("sha256-chain:64", "4")


async def test_a_refusal_is_shown_as_its_sentence() -> None:
    prover = ScriptedProver(idle())
    prover.refusal = "job needs 99.0 GB at its peak and this host has 12.0 GB"
    app = console(prover)
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press("p")
        await until(pilot, lambda: prover.refusal in text_of(app).replace("\n", " "), "refusal")


async def test_quit_leaves_at_once_when_nobody_else_has_jobs() -> None:
    app = console(ScriptedProver(one_proof().events))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app)
        await pilot.press("q")
        await pilot.pause()
        assert app.return_code == 0


async def test_quit_asks_when_others_have_jobs_in_the_prover() -> None:
    events = idle()
    job = JobSubmitted(
        t_ns=events[-1].t_ns, job_id="theirs", circuit="cubic", num_circuits=1, policy=Policy.RECYCLE, client="curio"
    )
    app = console(ScriptedProver([*events, job]))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app)
        await pilot.press("q")
        assert isinstance(app.screen, ChoiceScreen)
        assert "1 job of others" in text_of(app)
        await pilot.press("enter")
        assert app.return_code is None
        await pilot.press("q", "up", "enter")
        await pilot.pause()
        assert app.return_code == 0


async def test_a_dead_prover_is_told_and_r_starts_it_again() -> None:
    prover = ScriptedProver(one_proof().events)
    app = console(prover)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app)
        t_ns = app.feed.snapshot.t_ns
        prover.tell(ProcessEnded(t_ns=t_ns, pid=PID, signal=9, reason="killed by signal 9", stage="synth"))
        await until(pilot, lambda: "killed by signal 9" in text_of(app), "told")
        assert "LOST prover" in text_of(app)
        await pilot.press("r")
        await until(pilot, lambda: prover.restarts == 1, "restarted")


async def test_export_writes_a_trace_of_the_recording_so_far(tmp_path: Path) -> None:
    from prover.wire import encode

    events = one_proof().events
    recording = tmp_path / "run.jsonl"
    recording.write_bytes(b"".join(encode(event) for event in events) + b'{"type":"mem","t_n')
    app = console(ScriptedProver(events), recording=recording, export_folder=tmp_path)
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot, app)
        await pilot.press("e")
        await until(pilot, lambda: bool(list(tmp_path.glob("*.trace.json"))), "trace written")
        await until(pilot, lambda: "written to" in text_of(app), "path said")


async def test_a_replay_takes_no_requests() -> None:
    prover = ScriptedProver(one_proof().events, kind="replay")
    app = console(prover)
    async with app.run_test(size=(120, 40)) as pilot:
        assert "REPLAY" in await settled(pilot, app)
        await pilot.press("p", "x", "o", "c")
        await pilot.pause()
        assert prover.asked == []


async def test_a_replay_sets_its_last_two_jobs_side_by_side() -> None:
    scene = one_proof()
    proof(scene, "job-2", Policy.ASYNC_4K, compile_first=False)
    scene.wait(800)
    prover = ScriptedProver(scene.events, kind="replay")
    app = console(prover)
    async with app.run_test(size=(160, 48)) as pilot:
        assert "x pair" in await settled(pilot, app)
        await pilot.press("x")
        assert "async-4k answers 98.0 ms sooner" in await settled(pilot, app)
        await pilot.press("x")
        assert "pair · same proof" not in await settled(pilot, app)
        assert prover.asked == []


async def test_a_console_that_only_watches_asks_nothing() -> None:
    prover = ScriptedProver(one_proof().events, kind="attached")
    app = console(prover, watches_only=True)
    async with app.run_test(size=(120, 40)) as pilot:
        assert "READ ONLY" in await settled(pilot, app)
        await pilot.press("p", "x", "c", "o", "1")
        await pilot.pause()
        assert prover.asked == []


async def test_the_demo_is_a_replay_beside_the_live_feed() -> None:
    prover = ScriptedProver(idle())
    app = console(prover, demo=lambda: ScriptedProver(one_proof(gpu=True).events, kind="replay"))
    async with app.run_test(size=(120, 40)) as pilot:
        assert "REPLAY" not in await settled(pilot, app)
        await pilot.press("d")
        await until(pilot, lambda: "REPLAY" in text_of(app) and "NVIDIA H200" in text_of(app), "demo shown")
        await pilot.press("d")
        await until(pilot, lambda: "REPLAY" not in text_of(app), "live again")


async def test_without_colours_everything_can_still_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    prover = ScriptedProver(one_proof().events)
    app = console(prover)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await settled(pilot, app)
        await pilot.resize_terminal(150, 44)
        shown = await settled(pilot, app)
        assert "GAP 100 ms" in shown and "verified" in shown
        await pilot.press("question_mark")
        await pilot.press("escape", "o", "escape", "1")
        await until(pilot, lambda: "p proves" in text_of(app), "hint shown")
        strips = app.screen._compositor.render_strips()
        colours = {
            segment.style.color for strip in strips for segment in strip if segment.style and segment.style.color
        }
        assert all(len(set(colour.get_truecolor())) == 1 for colour in colours)


async def test_a_sentence_too_long_for_a_row_is_given_two() -> None:
    app = console(ScriptedProver(one_proof(gpu=True).events))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot, app)
        lines = (await settled(pilot, app)).splitlines()
        at = next(number for number, line in enumerate(lines) if line.startswith(" ▸"))
        assert "100 ms of 2.56 s after the last kernel" in lines[at] and "GPU idle" in lines[at + 1]
        await pilot.resize_terminal(160, 48)
        await settled(pilot, app)
        lines = (await settled(pilot, app)).splitlines()
        at = next(number for number, line in enumerate(lines) if line.startswith(" ▸"))
        assert "GPU idle" in lines[at] and lines[at + 1].startswith("╭")


async def test_a_warning_of_the_stream_is_shown_at_any_size_and_once() -> None:
    prover = ScriptedProver(idle())
    app = console(prover)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await settled(pilot, app)
        text = "the collector was killed by signal 9"
        prover.tell(Notice(t_ns=app.feed.snapshot.t_ns, text=text, level="warning"))
        await until(pilot, lambda: text in text_of(app), "warning shown")
        assert app.feed.fresh_warnings() == []
        app.say("a sentence of the console's own", "warning")
        assert app.feed.fresh_warnings() == []


async def test_a_panel_that_cannot_be_drawn_does_not_end_the_console(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(_view: View, _width: int, _height: int) -> Grid:
        raise ValueError("a figure that no panel expects")

    monkeypatch.setattr(kernels, "kernel_grid", cannot)
    app = console(ScriptedProver(one_proof().events))
    async with app.run_test(size=(160, 48)) as pilot:
        await until(pilot, lambda: "ValueError: a figure that no panel expects" in text_of(app), "said in the panel")
        await until(pilot, lambda: "panel kernels cannot be drawn" in text_of(app), "said among the notices")
        await until(pilot, lambda: "gap lens" in text_of(app), "the other panels drawn")


async def test_a_key_is_answered_within_a_tenth_of_a_second_during_a_release() -> None:
    events: list[Event] = one_proof().events
    prover = ScriptedProver(events[: len(events) // 2])
    app = console(prover)
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot, app)
        prover.tell(*events[len(events) // 2 :])
        begin = time.process_time()
        app.action_freeze()
        await asyncio.sleep(0)
        assert time.process_time() - begin < 0.1
        assert app.viewpoint.frozen is not None
