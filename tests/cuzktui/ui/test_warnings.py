"""Alarms and unexplained memory reach the operator: once among the notices, for as long as they last on the screen."""

from __future__ import annotations

from console import ScriptedProver, console, settled, text_of, until

from builders import GB, MS, START, S, Story, mem
from cuzktui.model import store
from cuzktui.widgets.dots import GLYPHS
from cuzktui.widgets.ledger import ledger_grid
from cuzktui.widgets.memory import memory_grid
from cuzktui.widgets.view import View
from prover.wire import Event, HostSample, MemSample, ProcessSeen, SourceChanged

LEAK_BYTES = 500_000_000


def ramp(available_bytes: int) -> list[Event]:
    """A stranger that takes a gigabyte a second, and what its host has left."""
    events: list[Event] = [ProcessSeen(t_ns=START, pid=41, command="daemon", role="foreign")]
    events += [mem(START + k * 20 * MS, 2e9 + k * 2e7) for k in range(500)]
    return [*events, HostSample(t_ns=START + 10 * S, mem_available_bytes=available_bytes, mem_total_bytes=24 * GB)]


async def test_memory_that_runs_out_is_told_on_the_line_and_kept_once_among_the_notices() -> None:
    prover = ScriptedProver(ramp(5 * GB), kind="attached")
    app = console(prover, watches_only=True)
    async with app.run_test(size=(160, 48)) as pilot:
        await until(pilot, lambda: "▸ out of memory in" in text_of(app), "on the line")
        for k in range(1, 20):
            prover.tell(mem(START + 10 * S + k * 20 * MS, 1.2e10 + k * 2e7))
            await pilot.pause(0.02)
        await pilot.pause(0.4)
        told = [notice.text for notice in app.feed.snapshot.notices if "out of memory" in notice.text]
        assert len(told) == 1 and "that the host has left" in told[0]


async def test_memory_with_room_left_raises_nothing() -> None:
    app = console(ScriptedProver(ramp(200 * GB), kind="attached"), watches_only=True)
    async with app.run_test(size=(160, 48)) as pilot:
        assert "out of memory" not in await settled(pilot, app)


async def test_a_recording_that_is_shown_again_raises_no_alarm() -> None:
    events = [SourceChanged(t_ns=START, source="replay", alive=True), *ramp(5 * GB)]
    app = console(ScriptedProver(events, kind="replay"), watches_only=True)
    async with app.run_test(size=(160, 48)) as pilot:
        assert "out of memory" not in await settled(pilot, app)
        assert not list(app.feed.snapshot.notices)


def view(leak_bytes: int) -> View:
    """A job of ours on its plateau, with so much held beside the ledger."""
    story = Story()
    until_ns = story.inner_end_ns - 300 * MS
    events = [
        MemSample(
            t_ns=e.t_ns, pid=e.pid, resident_bytes=e.resident_bytes + leak_bytes, shared_bytes=e.shared_bytes
        )
        if isinstance(e, MemSample) and e.t_ns > story.synth_begin_ns else e
        for e in story.build() if e.t_ns <= until_ns
    ]  # fmt: skip
    snapshot = store.apply_all(store.empty(), events)
    return View(snapshot=snapshot, glyphs=GLYPHS["ascii"], end_ns=snapshot.t_ns, span_s=10.0)


def test_memory_that_nobody_explains_is_a_band_of_its_own_and_named_with_its_size() -> None:
    leaking = view(LEAK_BYTES)
    assert "UNEXPLAINED 500 MB" in ledger_grid(leaking, 44, 10).text()
    assert "?" in memory_grid(leaking, 120, 40).text()


def test_memory_that_the_ledger_explains_has_no_such_band() -> None:
    healthy = view(0)
    assert "UNEXPLAINED" not in ledger_grid(healthy, 44, 10).text()
    assert "not in the ledger 300 MB" in ledger_grid(healthy, 44, 10).text()
    assert "?" not in memory_grid(healthy, 120, 40).text()
