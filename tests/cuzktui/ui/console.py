"""A console under test: fed from a scene, read as a grid of text; pictures are compared with kept files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from scene import Scene, opening, proof
from textual.pilot import Pilot

from cuzktui.app import ConsoleApp, Options
from cuzktui.sources.base import Emit
from cuzktui.widgets.canvas import Canvas
from prover.errors import BadRequest
from prover.wire import Event, Policy

PICTURES = Path(__file__).parent / "pictures"


class ScriptedProver:
    """A source and a control in one: what is asked of it becomes the events of a scene, as from a prover."""

    owns_prover = True
    title = "scripted"

    def __init__(self, events: list[Event], kind: str = "live") -> None:
        self.kind = kind
        self.scene = Scene()
        if events:
            self.scene.t_ns = max(e.t_ns for e in events)
        self.asked: list[tuple[str, ...]] = []
        self.refusal = ""
        self.is_stopped = False
        self.restarts = 0
        self.ended_for_loss: list[int] = []
        """Provers, 0 for none, that were to be ended before another was started."""
        self._events = events
        self._emit: Emit = self._events.append

    def start(self, emit: Emit) -> None:
        for event in self._events:
            emit(event)
        self._emit = emit

    def stop(self) -> None:
        self.is_stopped = True

    def restart_prover(self, lost_pid: int = 0) -> None:
        self.restarts += 1
        self.ended_for_loss.append(lost_pid)

    def tell(self, *events: Event) -> None:
        """Events that arrive now."""
        for event in events:
            self._emit(event)

    def submit(self, circuit: str = "", num_circuits: int = 1, policy: Policy | str | None = None) -> str:
        self._refuse()
        job_id = f"job-{len(self.asked) + 1}"
        self.asked.append(("submit", circuit, str(num_circuits), str(policy)))
        self.scene.events = []
        proof(self.scene, job_id, Policy(str(policy)), circuit, num_circuits, compile_first=False)
        self.scene.wait(600, user=0.0)
        self.tell(*self.scene.events)
        return job_id

    def cancel(self, job_id: str = "") -> bool:
        self._refuse()
        self.asked.append(("cancel", job_id))
        return True

    def set_policy(self, policy: Policy | str) -> Policy:
        self._refuse()
        self.asked.append(("policy", str(policy)))
        return Policy(str(policy))

    def _refuse(self) -> None:
        if self.refusal:
            raise BadRequest(self.refusal)


def idle() -> list[Event]:
    """Events of a prover that waits for its first job."""
    scene = Scene()
    opening(scene)
    return scene.events


def console(prover: ScriptedProver, *, watches_only: bool = False, **options: object) -> ConsoleApp:
    """The app on a scripted prover."""
    control = None if watches_only else prover
    return ConsoleApp(prover, control=control, options=Options(**options))  # type: ignore[arg-type]


def text_of(app: ConsoleApp) -> str:
    """The screen as lines. The one use of a private name of Textual in the tests."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)


async def until(pilot: Pilot[int], is_true: Callable[[], bool], what: str) -> None:
    """Lets the app work until something holds."""
    for _ in range(400):
        if is_true():
            return
        await pilot.pause(0.01)
    raise AssertionError(f"never came true: {what}\n{text_of(pilot.app)}")  # type: ignore[arg-type]


async def settled(pilot: Pilot[int], app: ConsoleApp) -> str:
    """The screen once every event has been folded and drawn, without what depends on this machine's speed."""
    await until(pilot, lambda: app.feed._received > 0 and not app.feed._inbox, "all events folded")
    app._ui_cpu_percent = None
    app._show()
    await pilot.pause()
    assert [panel.fault for panel in app.main.query(Canvas) if panel.fault] == []
    return text_of(app)


def assert_picture(name: str, shown: str) -> None:
    """Compares a screen with the kept one; CUZKTUI_NEW_PICTURES=1 writes it instead, to be looked at."""
    path = PICTURES / f"{name}.txt"
    if os.environ.get("CUZKTUI_NEW_PICTURES"):
        PICTURES.mkdir(exist_ok=True)
        path.write_text(shown + "\n", encoding="utf-8")
    kept = path.read_text(encoding="utf-8").rstrip("\n")
    assert shown == kept, f"{path.name} differs; now:\n{shown}"
