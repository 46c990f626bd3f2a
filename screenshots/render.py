"""Pictures of the console come from recordings of real runs, drawn by the console itself; nothing is painted by hand.

    python screenshots/render.py RUN.jsonl --out screenshots --name gap --size 160x48 --moment gap

writes NAME.svg (which asks no server for a font) and, where a Chromium is installed, NAME.png.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from cuzktui.app import ConsoleApp, Options
from cuzktui.collector.reading import read_recording
from cuzktui.sources.base import Emit
from prover import wire

MOMENTS = ("gap", "plateau", "synth", "end")
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
FONTS = '"DejaVu Sans Mono", "Noto Sans Mono", "Menlo", monospace'


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


def until(events: Iterable[wire.Event], moment: str) -> list[wire.Event]:
    """The events up to a telling moment of the last job.

    Args:
        moment: synth (in the middle of it), plateau (just before the inner clock ends), gap (400 ms after the call
            returned) or end.
    """
    kept = list(events)
    if moment == "end":
        return kept
    ends = [e.t_ns for e in kept if isinstance(e, wire.OuterEnded)]
    inner = [e.t_ns for e in kept if isinstance(e, wire.InnerEnded)]
    synth = [
        e.t_ns for e in kept if isinstance(e, wire.Progress) and e.stage in (wire.Stage.WITNESS, wire.Stage.EVAL_ABC)
    ]
    marks = {"gap": ends, "plateau": inner, "synth": synth[: max(1, len(synth) * 2 // 3)]}[moment]
    if not marks:
        raise SystemExit(f"the recording has no moment {moment!r}")
    last_ns = marks[-1] + (400_000_000 if moment == "gap" else -1)
    return [event for event in kept if event.t_ns <= last_ns]


async def draw(events: list[wire.Event], size: tuple[int, int], options: Options, pair: tuple[str, ...]) -> str:
    """The console after these events, as SVG."""
    app = ConsoleApp(Recorded(events, "recording"), options=options)
    app.desk.pair = pair
    async with app.run_test(size=size) as pilot:
        for _ in range(200):
            await pilot.pause(0.05)
            if app.feed.snapshot.events >= len(events):
                break
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
    parser.add_argument("recording", type=Path)
    parser.add_argument("--out", type=Path, default=Path("screenshots"))
    parser.add_argument("--name", required=True)
    parser.add_argument("--size", default="160x48")
    parser.add_argument("--moment", choices=MOMENTS, default="end")
    parser.add_argument("--graph", choices=("braille", "block", "ascii"), default="braille")
    parser.add_argument("--palette", choices=("dark", "light", "ansi"), default="dark")
    parser.add_argument("--pair", default="", help="two job ids, comma separated: shown side by side")
    arguments = parser.parse_args()
    width, height = (int(v) for v in arguments.size.split("x"))
    events = until(read_recording(arguments.recording), arguments.moment)
    pair = tuple(job for job in arguments.pair.split(",") if job)
    options = Options(graph=arguments.graph, palette=arguments.palette)
    svg = arguments.out / f"{arguments.name}.svg"
    svg.write_text(asyncio.run(draw(events, (width, height), options, pair)), encoding="utf-8")
    png = svg.with_suffix(".png")
    made = to_png(svg, png)
    print(svg, png if made else "(no Chromium: no PNG)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
