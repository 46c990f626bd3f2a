"""The app only wires: it drains a feed on a timer, hands one View to the panels, and turns keys into requests."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.binding import Binding

from cuzktui import messages
from cuzktui.desk import CHOICES, POLICY_LINES, Control, Desk
from cuzktui.exporting import export_trace
from cuzktui.feed import Feed
from cuzktui.keymap import bindings
from cuzktui.model.snapshot import Snapshot
from cuzktui.options import Options, resolved
from cuzktui.pages import page, write_page, write_trial
from cuzktui.screens.choice import ChoiceScreen
from cuzktui.screens.help import HelpScreen
from cuzktui.screens.main import MainScreen
from cuzktui.screens.page import PageScreen
from cuzktui.sources.base import Source
from cuzktui.theme import theme_of
from cuzktui.told import Told
from cuzktui.trial import Trial
from cuzktui.viewpoint import Viewpoint
from cuzktui.widgets.canvas import Look
from cuzktui.widgets.dots import GLYPHS
from cuzktui.widgets.palette import PALETTES, styles
from cuzktui.widgets.view import View
from prover.errors import ProverError
from prover.run import now
from prover.wire import Notice, Policy

TICKS_HZ = 12
TICKS_A_PICTURE = 3
"""A whole picture every third tick, 4 Hz; the lens on every tick while memory falls."""
DRAIN_S = 0.04
_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class ConsoleApp(App[int]):
    """The console. It owns no process: its source does."""

    CSS_PATH: ClassVar[str] = "console.tcss"
    TITLE = "cuzktui"
    ENABLE_COMMAND_PALETTE: ClassVar[bool] = False
    BINDINGS: ClassVar[list[Binding]] = bindings()  # type: ignore[assignment]

    def __init__(self, source: Source, *, control: Control | None = None, options: Options | None = None) -> None:
        self.options = resolved(options or Options(), os.environ)
        super().__init__(ansi_color=self.options.palette == "ansi")
        self.feed = Feed(source)
        self.demo_feed: Feed | None = None
        self.viewpoint = Viewpoint()
        choice = self.options.choice or CHOICES[0]
        self.desk = Desk(control, self._post, self.say, choice, trial_is_done=self._trial_done)
        self.graph, self.palette = self.options.graph, self.options.palette
        self.look = Look(styles(self.palette))
        self.main = MainScreen(self.look)
        self.with_mapped = False
        self.pair_shown: tuple[str, ...] = ()
        """Two jobs of a replay that are set side by side."""
        self._told, self._warned = Told(), frozenset[str]()
        self._ticks = 0
        self._cpu_mark = (time.monotonic(), time.process_time())
        self._ui_cpu_percent: float | None = None

    def on_mount(self) -> None:
        for name in PALETTES:
            self.register_theme(theme_of(name))
        self.theme = f"cuzk-{self.palette}"
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            with suppress(ValueError, RuntimeError):
                loop.add_signal_handler(number, self._stop_for, number)
        self.push_screen(self.main)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        try:
            self.feed.start()
        except ProverError as error:
            self.say(str(error), "error")
        self.set_interval(1 / TICKS_HZ, self._tick)
        self._show()

    def _stop_for(self, number: int) -> None:
        self.exit(return_code=128 + number)

    def _post(self, work: Callable[[], None]) -> None:
        with suppress(RuntimeError):
            self.call_from_thread(work)

    # -- the picture -------------------------------------------------------------------------------------------------

    @property
    def shown_feed(self) -> Feed:
        """The demo while one is replayed, else what is watched."""
        return self.demo_feed or self.feed

    @property
    def snapshot(self) -> Snapshot:
        """What the operator sees: the newest, or the one that is held."""
        return self.viewpoint.frozen or self.shown_feed.snapshot

    def _tick(self) -> None:
        self._ticks += 1
        is_behind = self.feed.drain(DRAIN_S)
        if self.demo_feed is not None:
            is_behind |= self.demo_feed.drain(DRAIN_S)
        self.desk.follow(self.feed.snapshot)
        if is_behind:
            self.set_timer(0.005, lambda: self.shown_feed.drain(DRAIN_S) and None)
        if self._ticks % TICKS_A_PICTURE == 0:
            self._measure()
            self._show()
            self._warn()
        elif (lens := self.shown_feed.snapshot.lens) is not None and lens.is_open:
            self._show(lens_only=True)

    def _measure(self) -> None:
        wall, cpu = time.monotonic(), time.process_time()
        if wall - self._cpu_mark[0] >= 2.0:
            self._ui_cpu_percent = 100 * (cpu - self._cpu_mark[1]) / (wall - self._cpu_mark[0])
            self._cpu_mark = (wall, cpu)

    def _show(self, *, lens_only: bool = False) -> None:
        if self.main.is_mounted:
            self.set_class(self.graph == "ascii", "-ascii")
            with self.batch_update():
                self.main.show(view := self.view(), lens_only=lens_only)
                if isinstance(self.screen, PageScreen):
                    self.screen.show(view)

    def view(self) -> View:
        """What the panels draw now."""
        snapshot, at = self.snapshot, self.viewpoint
        is_demo = self.demo_feed is not None
        pair = self._pair(snapshot)
        self._told = told = self._told.about(snapshot, at.job_id)
        return View(
            snapshot=snapshot,
            glyphs=GLYPHS[self.graph],
            end_ns=at.right_edge_ns(snapshot),
            span_s=at.window_s(snapshot, next(iter(pair), "")),
            is_live=at.end_ns is None,
            is_frozen=at.frozen is not None,
            cursor_ns=at.cursor_ns,
            lens=at.lens(snapshot),
            source=self.shown_feed.source.kind,
            recording=str(self.options.recording or "") if not is_demo else "",
            choice=self.desk.choice,
            policy=self.desk.policy,
            finding=told.words,
            attribution=told.attribution,
            gap_explained_percent=told.gap_explained_percent,
            forecast=told.forecast,
            can_restart=self.feed.source.owns_prover and not is_demo,
            with_mapped=self.with_mapped,
            pair=pair,
            offer=self.desk.offer(snapshot) if not is_demo else "",
            ui_cpu_percent=self._ui_cpu_percent,
            is_read_only=self.options.is_read_only or (self.desk.control is None and not snapshot.is_replay),
            job_id=at.job_id,
            alarms=told.alarms if not is_demo else (),
            trial=self.desk.lab.trial,
        )

    def _pair(self, snapshot: Snapshot) -> tuple[str, ...]:
        """The jobs to set side by side: those that were asked for together, in a replay the ones that `x` chose."""
        return self.pair_shown if snapshot.is_replay else self.desk.pair

    def _warn(self) -> None:
        """Keeps a new alarm among the notices, once."""
        for alarm in self._told.alarms if self.demo_feed is None else ():
            if alarm.key not in self._warned:
                self._warned |= {alarm.key}
                self.say(alarm.text, alarm.level)
        for notice in self.feed.fresh_warnings():
            self.notify(notice.text, severity="warning" if notice.level == "warning" else "error", markup=False)

    def say(self, text: str, level: str = "info") -> None:
        """Shows a sentence now, and keeps it among the notices unless it is but a hint."""
        if level != "hint":
            self.feed.add(Notice(t_ns=max(self.feed.snapshot.t_ns, 0) or now(), text=text, level=level))
        severity = {"warning": "warning", "error": "error"}.get(level, "information")
        self.notify(text, severity=severity, timeout=4, markup=False)  # type: ignore[arg-type]

    def _look_from(self, viewpoint: Viewpoint) -> None:
        self.viewpoint = viewpoint
        self._show()

    # -- keys that look ----------------------------------------------------------------------------------------------

    def action_freeze(self) -> None:
        self._look_from(self.viewpoint.held(self.shown_feed.snapshot))

    def action_scroll(self, steps: int) -> None:
        self._look_from(self.viewpoint.scrolled(self.snapshot, steps))

    def action_zoom(self, steps: int) -> None:
        self._look_from(self.viewpoint.zoomed(self.snapshot, steps))

    def action_live(self) -> None:
        self._look_from(self.viewpoint.live())

    def action_lens(self) -> None:
        if len(self._pair(self.snapshot)) == 2 and not self.snapshot.running:
            self.desk.pair = self.pair_shown = ()
        self._look_from(self.viewpoint.toggled_lens(self.snapshot))

    def action_glyphs(self) -> None:
        order = list(GLYPHS)
        self.graph = order[(order.index(self.graph) + 1) % len(order)]
        self._show()

    def action_mapped(self) -> None:
        self.with_mapped = not self.with_mapped
        self._show()

    def action_palette(self) -> None:
        order = list(PALETTES)
        self.palette = order[(order.index(self.palette) + 1) % len(order)]
        self.ansi_color = self.palette == "ansi"
        self.theme = f"cuzk-{self.palette}"
        self.look = Look(styles(self.palette))
        self.main.redress(self.look)

    def action_help(self) -> None:
        self.push_screen(HelpScreen())

    def action_page(self, name: str) -> None:
        self.push_screen(page(name, self.look, self.view()))

    def action_export_page(self) -> None:
        if isinstance(self.screen, PageScreen):
            name, view = self.screen.page, self.view()
            self.desk.in_background(lambda: write_page(name, view, self.export_folder))

    @property
    def export_folder(self) -> Path:
        return self.options.export_folder or Path.cwd()

    def on_chart_zoomed(self, message: messages.ChartZoomed) -> None:
        self.action_zoom(message.steps)

    def on_chart_pointed(self, message: messages.ChartPointed) -> None:
        self._look_from(self.viewpoint.pointed(message.t_ns))

    def on_job_picked(self, message: messages.JobPicked) -> None:
        self._look_from(self.viewpoint.picked(self.snapshot, message.job_id))

    def on_lens_dismissed(self, _message: messages.LensDismissed) -> None:
        self.action_lens()

    def on_panel_failed(self, message: messages.PanelFailed) -> None:
        self.say(
            f"panel {message.panel} cannot be drawn: {message.fault}; please report it with the recording", "error"
        )

    async def on_key_clicked(self, message: messages.KeyClicked) -> None:
        await self.run_action(message.action)

    # -- keys that ask -----------------------------------------------------------------------------------------------

    def _may_ask(self) -> bool:
        if self.demo_feed is not None or self.feed.snapshot.is_replay:
            self.say("a replay takes no requests", "hint")
            return False
        if self.options.is_read_only or self.desk.control is None:
            self.say("this console only watches", "hint")
            return False
        return True

    def action_prove(self) -> None:
        if self._may_ask():
            self.viewpoint = self.viewpoint.live()
            self.desk.prove()

    def action_pair(self) -> None:
        if self.snapshot.is_replay:
            proved = [job.job_id for job in self.snapshot.jobs if job.outer_end_ns is not None]
            self.pair_shown = tuple(proved[-2:]) if len(proved) > 1 and not self.pair_shown else ()
            self._show()
        elif self._may_ask():
            self.viewpoint = self.viewpoint.live()
            self.desk.prove_pair()

    def action_experiment(self) -> None:
        if self._may_ask():
            self.desk.experiment(self.feed.snapshot)
            if self.desk.lab.trial is not None:
                self.action_page("experiment")

    def _trial_done(self, trial: Trial) -> None:
        self.desk.in_background(lambda: write_trial(trial, self.export_folder) if trial.runs else trial.ended)

    def action_cancel(self) -> None:
        if self._may_ask():
            self.desk.cancel(self.feed.snapshot)

    def action_circuit(self, number: int) -> None:
        if self._may_ask() and 1 <= number <= len(CHOICES):
            self.desk.choice = CHOICES[number - 1]
            self.say(f"p proves {self.desk.choice}", "hint")
            self._show()

    def action_policy(self) -> None:
        if not self._may_ask():
            return
        names = [policy.value for policy in Policy]

        def chosen(name: str | None) -> None:
            if name is not None:
                self.desk.set_policy(Policy(name))

        self.push_screen(ChoiceScreen("memory of the next jobs", POLICY_LINES, names, self.desk.policy.value), chosen)

    def action_restart(self) -> None:
        pid, source = self.feed.snapshot.lost_pid, self.feed.source
        restart = partial(self.desk.in_background, partial(source.restart_prover, pid), "the prover is starting")
        if not pid:
            restart()
        elif self._may_ask():
            self._end_prover("end them and restart", restart)

    def action_export(self) -> None:
        recording = self.options.recording
        if recording is None:
            is_replay = self.feed.snapshot.is_replay
            why = "this replay has no file of its own" if is_replay else "this console does not record"
            self.say(f"nothing to export: {why}", "warning")
        else:
            self.desk.in_background(lambda: export_trace(recording, self.export_folder))

    def action_verify(self) -> None:
        self.desk.verify_again(self.snapshot)

    def action_demo(self) -> None:
        if self.demo_feed is not None:
            self.demo_feed.stop()
            self.demo_feed = None
        elif self.options.demo is None:
            self.say("no recording is shipped with this installation", "warning")
            return
        else:
            try:
                self.demo_feed = Feed(self.options.demo())
                self.demo_feed.start()
            except ProverError as error:
                self.demo_feed = None
                self.say(str(error), "error")
        self._look_from(Viewpoint())

    def action_leave(self) -> None:
        if isinstance(self.screen, ChoiceScreen | HelpScreen | PageScreen):
            self.pop_screen()
            return
        self._end_prover("end them and leave", lambda: self.exit(0))

    def _end_prover(self, what: str, end: Callable[[], None]) -> None:
        """Does what ends our prover; where others have jobs in it, once that has been agreed to."""
        question = self.desk.question_of_others(self.feed.snapshot) if self.feed.source.owns_prover else ""
        if not question:
            end()
            return
        screen = ChoiceScreen(question, {"end": what, "stay": "stay"}, ["end", "stay"], "stay")
        self.push_screen(screen, lambda answer: end() if answer == "end" else None)
