"""Compare, post-mortem and experiment: what each page shows, writes, and refuses."""

from __future__ import annotations

import json
from pathlib import Path

from console import ScriptedProver, console, idle, settled, text_of, until
from scene import PID, Scene, one_proof, opening, proof

from cuzktui.app import ConsoleApp
from cuzktui.screens.page import PageScreen
from cuzktui.trial import Laboratory, Trial
from prover.wire import Event, LogLine, Marker, MemSample, Policy, ProcessEnded, ProcessSeen


def two_proofs() -> list[Event]:
    scene = Scene()
    opening(scene)
    proof(scene, "job-1", Policy.SYNC_4K)
    scene.wait(1000, user=0.0)
    proof(scene, "job-2", Policy.ASYNC_4K, compile_first=False)
    scene.wait(1000, user=0.0)
    return scene.events


async def test_two_jobs_are_compared_with_stages_aligned_and_the_change_of_each_figure() -> None:
    app = console(ScriptedProver(two_proofs()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app)
        await pilot.press("k")
        await until(pilot, lambda: isinstance(app.screen, PageScreen), "page open")
        await pilot.pause(0.1)
        shown = text_of(app)
        assert "A job-1" in shown and "B job-2" in shown and "async-4k" in shown
        gap = next(line for line in shown.splitlines() if line.startswith("│ gap "))
        assert "100 ms" in gap and "2.00 ms" in gap and "-98.0 ms" in gap and "×0.02" in gap
        assert sum(line.startswith(("│ A ", "│ B ")) for line in shown.splitlines()) == 4
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, PageScreen), "page closed")


async def test_a_comparison_is_written_as_markdown_and_json(tmp_path: Path) -> None:
    app = console(ScriptedProver(two_proofs()), export_folder=tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app)
        await pilot.press("k", "e")
        await until(pilot, lambda: len(list(tmp_path.glob("cuzktui-compare-*"))) == 2, "both written")
        answer = json.loads(next(tmp_path.glob("*.json")).read_text())
        assert (answer["left"], answer["right"]) == ("job-1", "job-2")
        assert "| gap | 100 ms | 2.00 ms |" in next(tmp_path.glob("*.md")).read_text()


async def test_one_job_alone_is_not_compared_with_itself() -> None:
    app = console(ScriptedProver(one_proof().events))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app)
        await pilot.press("k")
        await until(pilot, lambda: "two jobs that have ended are needed" in text_of(app), "said")


async def test_the_post_mortem_says_why_and_shows_the_last_seconds() -> None:
    prover = ScriptedProver(one_proof().events)
    app = console(prover)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app)
        t_ns = app.snapshot.t_ns
        line = f"Out of memory: Killed process {PID} (python) total-vm:9kB"
        reason = "killed by the kernel for memory (its log names the process)"
        prover.tell(
            LogLine(t_ns=t_ns, source="kernel", text=line),
            ProcessEnded(t_ns=t_ns, pid=PID, signal=9, reason=reason, stage="prove/msm_h"),
        )
        await until(pilot, lambda: "w tells why" in text_of(app), "key offered")
        await pilot.press("w")
        await until(pilot, lambda: isinstance(app.screen, PageScreen), "page open")
        await pilot.pause(0.1)
        shown = text_of(app)
        assert "in stage prove/msm_h" in shown and line[:40] in shown and "r starts it again" in shown
        assert "memory · anon" in shown and "GAP 100 ms" in shown
        await pilot.press("r")
        await until(pilot, lambda: prover.restarts == 1, "restarted")
        await until(pilot, lambda: not isinstance(app.screen, PageScreen), "back on the main screen")


async def test_no_post_mortem_of_the_living() -> None:
    app = console(ScriptedProver(idle()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app)
        await pilot.press("w")
        await until(pilot, lambda: "no watched process has ended" in text_of(app), "said")


async def test_pages_fit_every_size() -> None:
    prover = ScriptedProver(two_proofs())
    app = console(prover)
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot, app)
        prover.tell(ProcessEnded(t_ns=app.snapshot.t_ns, pid=PID, exit_code=1, reason="exited with code 1"))
        for key in ("k", "w"):
            await pilot.press(key)
            for width, height in ((160, 48), (80, 24), (40, 12), (20, 5), (1, 1)):
                await pilot.resize_terminal(width, height)
                await pilot.pause(0.05)
                assert all(len(line) <= width for line in text_of(app).splitlines())
            await pilot.press("escape")


async def test_an_experiment_runs_every_policy_in_turn_and_is_written(tmp_path: Path) -> None:
    prover = ScriptedProver(idle())
    app = console(prover, export_folder=tmp_path)
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot, app)
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, PageScreen), "page open")
        for count in range(1, 17):
            # The job's own events are told from another thread: only when they are folded may the scene go on.
            await until(pilot, lambda count=count: is_done(app, f"job-{count}"), f"job {count} done")
            prover.scene.events = []
            prover.scene.wait(2000, user=0.0)
            prover.tell(*prover.scene.events)
        await until(pilot, lambda: len(list(tmp_path.glob("cuzktui-experiment-*"))) == 2, "written")
        await until(pilot, lambda: "done" in text_of(app), "end shown")
        shown = text_of(app)
        assert "median gap" in shown and shown.count("sync-4k") >= 2
        answer = json.loads(next(tmp_path.glob("*.json")).read_text())
        assert set(answer["policies"]) == {policy.value for policy in Policy} and len(answer["runs"]) == 15
        medians = {policy: figures["gap_ms"]["median"] for policy, figures in answer["policies"].items()}
        assert medians["sync-4k"] > 50 > medians["async-4k"]
        assert [asked[3] for asked in prover.asked].count("recycle") == 3


def is_done(app: ConsoleApp, job_id: str) -> bool:
    job = app.feed.snapshot.find_job(job_id)
    return job is not None and job.is_done


async def test_a_refused_experiment_ends_and_says_why() -> None:
    prover = ScriptedProver(idle())
    prover.refusal = "the queue is full"
    app = console(prover)
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot, app)
        await pilot.press("n")
        await until(pilot, lambda: "ended early: the queue is full" in text_of(app), "said")


def test_a_laboratory_counts_no_job_that_failed() -> None:
    asked: list[tuple[str, int, Policy]] = []
    over: list[Trial] = []
    lab = Laboratory(lambda circuit, count, policy, _: asked.append((circuit, count, policy)), over.append)
    lab.begin("cubic", 1, 0, repeat=2)
    assert len(asked) == 1 and lab.is_busy
    lab.refused("no memory")
    assert over and over[0].ended == "no memory" and not over[0].is_whole and not lab.is_busy


def stranger() -> list[Event]:
    """A foreign process on its plateau, with an expectation."""
    events: list[Event] = [ProcessSeen(t_ns=10**9, pid=7, command="upstream-daemon", role="foreign")]
    for k in range(400):
        resident_bytes = 200_000_000 + min(k, 200) * 5_000_000
        events.append(MemSample(t_ns=10**9 + k * 20_000_000, pid=7, resident_bytes=resident_bytes, shared_bytes=0))
    return [*events, Marker(t_ns=10**9, text="srs=1GB,partitions=2x0.5GB", by="expectation")]


async def test_an_expected_stack_is_drawn_beside_a_stranger_and_marked() -> None:
    app = console(ScriptedProver(stranger(), kind="attached"), watches_only=True)
    async with app.run_test(size=(160, 48)) as pilot:
        shown = await settled(pilot, app)
        assert "expected · named by you, not measured" in shown
        assert "2×500 MB 1.00 GB" in shown and "peak measured 1.20 GB · 60 % of it" in shown
        assert "expected: srs up to 1.00 GB" in shown and "expected: partitions up to 2.00 GB" in shown
