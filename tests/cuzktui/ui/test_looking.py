"""Keys and the mouse that look: they change the picture, never the prover."""

from __future__ import annotations

from console import ScriptedProver, console, idle, settled, text_of, until
from scene import one_proof

from cuzktui.keymap import FOOTER_ORDER, KEYS, by_action
from cuzktui.screens.help import HelpScreen, help_text

SIZES = [(40, 12), (80, 24), (120, 40), (160, 48), (200, 60)]


async def test_freeze_holds_the_picture_while_events_go_on() -> None:
    prover = ScriptedProver(one_proof().events)
    app = console(prover)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app)
        await pilot.press("space")
        before = app.snapshot
        prover.scene.wait(2000)
        prover.tell(*prover.scene.events)
        await until(pilot, lambda: app.feed.snapshot.t_ns > before.t_ns, "events folded behind")
        assert app.snapshot is before
        assert "FROZEN" in text_of(app)
        await pilot.press("space")
        assert app.snapshot.t_ns > before.t_ns
        assert "FROZEN" not in await settled(pilot, app)


async def test_scroll_and_zoom_by_key_and_by_wheel() -> None:
    app = console(ScriptedProver(one_proof().events))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app)
        span_s = app.view().span_s
        await pilot.press("minus")
        assert app.view().span_s > span_s
        await pilot.press("plus", "plus")
        assert app.view().span_s < span_s
        await pilot.press("left")
        assert "LOOKING BACK" in await settled(pilot, app)
        await pilot.press("0")
        assert app.view().is_live and app.view().span_s == span_s
        await pilot._post_mouse_events([_wheel_up()], widget="#memory", offset=(30, 5))  # type: ignore[list-item]
        await until(pilot, lambda: app.view().span_s < span_s, "wheel zooms")


def _wheel_up() -> type:
    from textual.events import MouseScrollUp

    return MouseScrollUp


async def test_a_click_on_the_graph_reads_that_moment() -> None:
    app = console(ScriptedProver(one_proof().events))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app)
        await pilot.press("l")
        await pilot.click("#memory", offset=(100, 5))
        await until(pilot, lambda: app.viewpoint.cursor_ns is not None, "cursor placed")
        assert " at " in (await settled(pilot, app)).splitlines()[1]
        await pilot.click("#memory", offset=(2, 5))
        await until(pilot, lambda: app.viewpoint.cursor_ns is None, "cursor taken away")


async def test_the_lens_closes_by_key_and_by_click_and_opens_again() -> None:
    app = console(ScriptedProver(one_proof().events))
    async with app.run_test(size=(120, 40)) as pilot:
        assert "gap lens" in await settled(pilot, app)
        await pilot.press("escape")
        assert "gap lens" not in await settled(pilot, app)
        await pilot.press("l")
        assert "gap lens" in await settled(pilot, app)
        await pilot.click("#lens", offset=(5, 5))
        await until(pilot, lambda: "gap lens" not in text_of(app), "closed by click")


async def test_a_click_on_a_key_does_what_the_key_does() -> None:
    app = console(ScriptedProver(idle()))
    async with app.run_test(size=(120, 40)) as pilot:
        line = (await settled(pilot, app)).splitlines()[-1]
        await pilot.click("#footer", offset=(line.index("? help"), 0))
        await until(pilot, lambda: isinstance(app.screen, HelpScreen), "help opened")


async def test_a_click_on_a_job_brings_it_into_the_picture() -> None:
    app = console(ScriptedProver(one_proof().events))
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot, app)
        await pilot.click("#jobs", offset=(10, 2))
        await until(pilot, lambda: app.viewpoint.job_id == "job-1", "picked")


async def test_help_shows_every_key_and_any_of_its_keys_closes_it() -> None:
    app = console(ScriptedProver(idle()))
    async with app.run_test(size=(120, 48)) as pilot:
        await pilot.press("question_mark")
        shown = text_of(app)
        assert all(key.long in shown for key in KEYS)
        assert app.screen.styles.background.a == 1, "nothing below is blended at each repaint"
        await pilot.press("escape")
        assert not isinstance(app.screen, HelpScreen)


async def test_help_is_cut_nowhere_on_a_small_terminal() -> None:
    app = console(ScriptedProver(idle()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("question_mark")
        first = text_of(app)
        await pilot.press("end")
        await until(pilot, lambda: "picks it" in text_of(app), "scrolled")
        shown = " ".join((first + text_of(app)).replace("│", " ").split())
    lines = help_text(68).splitlines()
    assert max(map(len, lines)) <= 68 and " ".join(" ".join(lines).split()) == " ".join(help_text(999).split())
    assert "side by side; in a replay its last two" in shown and "with medians" in shown


def test_the_footer_knows_only_keys_of_the_table() -> None:
    assert all(by_action(action).short for action in FOOTER_ORDER)
    names = [name for key in KEYS for name in key.keys.split(",")]
    assert len(names) == len(set(names))


async def test_glyphs_and_palettes_change_by_key() -> None:
    app = console(ScriptedProver(one_proof().events))
    async with app.run_test(size=(120, 40)) as pilot:
        assert "⣿" in await settled(pilot, app)
        await pilot.press("g", "g")
        assert "⣿" not in await settled(pilot, app)
        for _ in range(3):
            await pilot.press("t")
            await settled(pilot, app)
        assert app.palette == "dark"
