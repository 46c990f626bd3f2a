"""A prover that has lost its GPUs is shown as such; `r` ends it and starts another, and asks where others have jobs."""

from __future__ import annotations

from console import ScriptedProver, console, idle, settled, text_of, until
from msgspec.structs import replace
from scene import PID, one_proof

from cuzktui.app import ConsoleApp
from cuzktui.model import store
from cuzktui.screens.choice import ChoiceScreen
from cuzktui.widgets import finding, header
from cuzktui.widgets.view import View
from prover.wire import Event, Hello, JobSubmitted, Policy, ProcessEnded

LOST = "cuda:0 NVIDIA H200 was lost (cudaErrorIllegalAddress), and with one card CUDA gives up all of a process"


def lost_gpu(app: ConsoleApp) -> Hello:
    """The prover's hello, sent again by one that has lost its GPUs."""
    hello = app.feed.snapshot.hello
    assert hello is not None
    return replace(hello, t_ns=app.feed.snapshot.t_ns, backend="cuda", devices=[], gpu_lost=LOST)


async def test_a_lost_gpu_is_told_and_r_ends_its_prover_and_starts_it_again() -> None:
    prover = ScriptedProver(one_proof().events)
    app = console(prover)
    async with app.run_test(size=(160, 40)) as pilot:
        shown = await settled(pilot, app)
        assert "GPU lost" not in shown and "r restart" not in shown
        await pilot.press("r")
        await until(pilot, lambda: prover.restarts == 1, "asked")
        assert prover.ended_for_loss == [0], "a prover that works is left alone"
        prover.tell(lost_gpu(app))
        await until(pilot, lambda: "GPU lost; r starts the prover again: cuda:0" in text_of(app), "told")
        assert "r restart" in text_of(app) and " · GPU lost" in text_of(app)
        await pilot.press("r")
        await until(pilot, lambda: prover.ended_for_loss == [0, PID], "ended and started")
        prover.tell(replace(lost_gpu(app), pid=PID + 1, devices=["cuda:0 NVIDIA H200"], gpu_lost=""))
        await until(pilot, lambda: "GPU lost" not in text_of(app), "over")


async def test_a_prover_with_a_lost_gpu_is_not_ended_under_the_jobs_of_others_unasked() -> None:
    events = idle()
    job = JobSubmitted(
        t_ns=events[-1].t_ns, job_id="theirs", circuit="cubic", num_circuits=1, policy=Policy.RECYCLE, client="curio"
    )
    prover = ScriptedProver([*events, job])
    app = console(prover)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app)
        prover.tell(lost_gpu(app))
        await until(pilot, lambda: "GPU lost" in text_of(app), "told")
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen), "asked")
        assert "1 job of others" in text_of(app) and "end them and restart" in text_of(app)
        await pilot.press("enter")
        await pilot.pause()
        assert prover.restarts == 0 and not isinstance(app.screen, ChoiceScreen)
        await pilot.press("r", "up", "enter")
        await until(pilot, lambda: prover.ended_for_loss == [PID], "ended and started")


async def test_a_console_that_only_watches_ends_no_prover_for_its_lost_gpu() -> None:
    prover = ScriptedProver(idle())
    app = console(prover, watches_only=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app)
        prover.tell(lost_gpu(app))
        await until(pilot, lambda: "GPU lost: cuda:0" in text_of(app), "told")
        assert "r restart" not in text_of(app)
        await pilot.press("r")
        await pilot.pause(0.2)
        assert prover.restarts == 0


def view_of(events: list[Event], *, is_replay: bool = False, can_restart: bool = False) -> View:
    snapshot = store.apply_all(store.empty(is_replay=is_replay), events)
    return View(snapshot, end_ns=snapshot.t_ns, span_s=10, lens=snapshot.lens, can_restart=can_restart)


def test_a_lost_gpu_is_named_until_its_prover_ends_and_in_a_replay_in_the_header_alone() -> None:
    events = one_proof().events
    text = "cuda:1 NVIDIA H200 was lost (cudaErrorIllegalAddress)"
    lost = [
        replace(e, backend="cuda", devices=[], gpu_lost=text) if isinstance(e, Hello) and e.source == "prover" else e
        for e in events
    ]
    view = view_of(lost)
    assert f"GPU lost: {text}" in finding.finding_grid(view, 120).text()
    ours = view_of(lost, can_restart=True)
    assert f"GPU lost; r starts the prover again: {text}" in finding.finding_grid(ours, 120).text()
    for width in (60, 80):
        assert "r starts the prover again" in finding.finding_grid(ours, width, 2).text()
    assert "GPU lost" in header.header_grid(view, 120).text()
    replayed = view_of(lost, is_replay=True)
    assert "GPU lost" in header.header_grid(replayed, 120).text()
    assert "GPU lost" not in finding.finding_grid(replayed, 120).text()
    ended = ProcessEnded(t_ns=events[-1].t_ns, pid=PID, exit_code=0, reason="exited with code 0")
    assert "GPU lost" not in finding.finding_grid(view_of([*lost, ended]), 120).text()
