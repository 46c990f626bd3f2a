"""Pictures of the console come from recordings of real runs, drawn by the console itself; nothing is painted by hand.

    python screenshots/render.py [RUN.jsonl] [--out screenshots] [--only gap]

writes NAME.svg (which asks no server for a font) for each picture and, where a Chromium is installed, NAME.png.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cuzktui.app import ConsoleApp, Options
from cuzktui.collector.reading import read_recording
from cuzktui.messages import JobPicked
from cuzktui.sources.base import Emit
from prover import wire

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
FONTS = '"DejaVu Sans Mono", "Noto Sans Mono", "Menlo", monospace'


DEMO = Path(__file__).parents[1] / "src" / "cuzktui" / "demo" / "run.jsonl"


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: a moment of a run, on a terminal of some size.

    Args:
        moment: synth (in the middle of it), plateau (just before the inner clock ends), gap (shortly after the call has
            returned) or end.
        job: which job of the recording, in order.
        is_pair: the first two jobs are set side by side.
    """

    name: str
    size: tuple[int, int]
    moment: str
    job: int = 0
    is_pair: bool = False
    graph: str = "braille"
    palette: str = "dark"


PICTURES = (
    Picture("gap", (160, 48), "gap"),
    Picture("pair", (160, 48), "gap", job=1, is_pair=True),
    Picture("synthesis", (120, 40), "synth"),
    Picture("plateau", (120, 40), "plateau"),
    Picture("small", (80, 24), "gap"),
    Picture("ascii", (120, 40), "gap", graph="ascii"),
    Picture("light", (120, 40), "gap", palette="light"),
)
AFTER_GAP_NS = 700_000_000
"""Long enough for memory to have settled, so that the lens is whole."""


class Recorded:
    """A source that delivers a part of a recording at once."""

    kind = "replay"
    owns_prover = False

    def __init__(self, events: list[wire.Event], title: str) -> None:
        self.title, self._events = title, events

    def start(self, emit: Emit) -> None:
        for event in self._events:
            emit(event)

    def stop(self) -> None:
        """Nothing was started."""

    def restart_prover(self) -> None:
        """A recording has none."""


def until(events: list[wire.Event], picture: Picture) -> list[wire.Event]:
    """The events up to the moment of a picture.

    Raises:
        SystemExit: the recording has no such moment.
    """
    jobs = list(dict.fromkeys(e.job_id for e in events if isinstance(e, wire.InnerEnded)))
    if picture.job >= len(jobs):
        raise SystemExit(f"{picture.name}: the recording has {len(jobs)} proofs, not {picture.job + 1}")
    if picture.moment == "end":
        return events
    own = [e for e in events if getattr(e, "job_id", "") == jobs[picture.job]]
    steps = (wire.Stage.WITNESS, wire.Stage.EVAL_ABC, wire.Stage.SYNTH)
    marks = {
        "gap": [e.t_ns + AFTER_GAP_NS for e in own if isinstance(e, wire.OuterEnded)],
        "plateau": [e.t_ns - 1 for e in own if isinstance(e, wire.InnerEnded)],
        "synth": [e.t_ns for e in own if isinstance(e, wire.Progress) and e.stage in steps],
    }[picture.moment]
    if not marks:
        raise SystemExit(f"{picture.name}: the recording has no moment {picture.moment!r}")
    last_ns = marks[len(marks) * 2 // 3] if picture.moment == "synth" else marks[-1]
    return [event for event in events if event.t_ns <= last_ns]


async def draw(events: list[wire.Event], picture: Picture) -> str:
    """The console after these events, as SVG."""
    options = Options(graph=picture.graph, palette=picture.palette)
    app = ConsoleApp(Recorded(events, "recording"), options=options)
    async with app.run_test(size=picture.size) as pilot:
        for _ in range(400):
            await pilot.pause(0.05)
            if app.feed.snapshot.events >= len(events):
                break
        if picture.moment == "gap":
            app.on_job_picked(JobPicked(app.feed.snapshot.jobs[picture.job].job_id))
        if picture.is_pair:
            app.action_live()
            app.pair_shown = tuple(job.job_id for job in app.feed.snapshot.jobs[:2])
        await pilot.pause(0.6)
        return offline(app.export_screenshot(title="cuzktui"))


def offline(svg: str) -> str:
    """The picture without fonts from elsewhere."""
    svg = re.sub(r"@font-face\s*\{[^}]*\}", "", svg)
    return re.sub(r"font-family:\s*Fira Code[^;]*;", f"font-family: {FONTS};", svg)


def to_png(svg: Path, png: Path) -> bool:
    """Draws an SVG with a headless Chromium; False when there is none."""
    program = next((found for name in CHROMIUMS if (found := shutil.which(name))), None)
    if program is None:
        return False
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg.read_text(encoding="utf-8"))
    width, height = (round(float(v)) for v in box.groups()) if box else (1600, 1000)
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}",
             f"--window-size={width},{height}", f"--screenshot={png}", svg.absolute().as_uri()],
            check=True, capture_output=True, timeout=60,
        )  # fmt: skip
    return True


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording", type=Path, nargs="?", default=DEMO)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--only", choices=[picture.name for picture in PICTURES])
    arguments = parser.parse_args()
    events = list(read_recording(arguments.recording))
    for picture in PICTURES:
        if arguments.only not in (None, picture.name):
            continue
        svg = arguments.out / f"{picture.name}.svg"
        svg.write_text(asyncio.run(draw(until(events, picture), picture)), encoding="utf-8")
        made = to_png(svg, svg.with_suffix(".png"))
        print(svg, svg.with_suffix(".png") if made else "(no Chromium: no PNG)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
