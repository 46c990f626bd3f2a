"""Programs that are not ours, watched by `cuzktui record -- COMMAND`, against what `/usr/bin/time -v` says of them.

Two commands: `npx snarkjs groth16 prove` on a key of this tree's own making, and `xz -9`. Peak, user and system time
and length are compared; the phases of the process at work are printed for the eye. Writes results/foreign.json, keeps
the recordings in --keep, and draws the last picture of each console into --pictures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "interop"), str(ROOT / "benchmarks"), str(ROOT / "screenshots")]

from bench_snarkjs import chain, chain_witness  # noqa: E402
from install_snarkjs import install  # noqa: E402

from cuzktui.analysis import analyse  # noqa: E402
from cuzktui.analysis.stranger import StrangerReport, stranger_report  # noqa: E402
from cuzktui.collector.reading import read_recording  # noqa: E402
from prover import wire  # noqa: E402
from prover.files.wtns import write_wtns  # noqa: E402
from prover.files.zkey_write import write_zkey  # noqa: E402
from prover.run import Run  # noqa: E402
from prover.setup import test_setup  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "foreign.json"
TIME = "/usr/bin/time"
FIELDS = {
    "user_s": r"User time \(seconds\): ([\d.]+)",
    "system_s": r"System time \(seconds\): ([\d.]+)",
    "peak_kib": r"Maximum resident set size \(kbytes\): (\d+)",
    "exit_status": r"Exit status: (\d+)",
}


@dataclass(frozen=True)
class Case:
    """A program and what both said of it."""

    recording: Path
    truth: dict[str, float]
    reports: list[StrangerReport]
    collector_percent: float
    """What watching took of a core, starting up left out."""

    @property
    def worker(self) -> StrangerReport:
        """The process that held most."""
        return max(self.reports, key=lambda report: report.process.peak_resident_bytes)

    def figures(self) -> dict[str, object]:
        """Both answers and how far ours is off."""
        cpu = [report.process.cpu_before or (0, 0, 0, 0, 0) for report in self.reports]
        ended = self.reports[0].process.ended
        seen = {
            "user_s": sum(row[1] for row in cpu) / 1e9,
            "system_s": sum(row[2] for row in cpu) / 1e9,
            "peak_kib": self.worker.process.peak_resident_bytes / 1024,
            "length_s": (self.reports[0].end_ns - self.reports[0].begin_ns) / 1e9,
            "exit_status": ended.exit_code if ended is not None else None,
        }
        off = {
            "peak_percent": 100 * (seen["peak_kib"] - self.truth["peak_kib"]) / self.truth["peak_kib"],
            "cpu_percent": 100 * (seen["user_s"] + seen["system_s"]) / (self.truth["user_s"] + self.truth["system_s"])
            - 100,
            "user_s": seen["user_s"] - self.truth["user_s"],
            "system_s": seen["system_s"] - self.truth["system_s"],
            "length_s": seen["length_s"] - self.truth["length_s"],
        }
        phases = [line for line in self.worker.as_text().splitlines() if line.split(" ")[0] in PHASES]
        return {
            "time_v": self.truth, "seen": seen, "off": {name: round(value, 3) for name, value in off.items()},
            "processes_followed": len(self.reports), "collector_core_percent": self.collector_percent,
            "phases": phases,
        }  # fmt: skip


PHASES = ("ramp", "plateau", "release", "cliff", "inferred", "watched", "peak")


def watched(command: list[str], recording: Path) -> Case:
    """Records a command under `time -v`, in the recording's folder."""
    told = recording.with_suffix(".time")
    record = [sys.executable, "-m", "cuzktui", "record", "-o", str(recording), "--"]
    measured = [*record, TIME, "-v", "-o", str(told), *command]
    subprocess.run(measured, check=True, capture_output=True, cwd=recording.parent)
    text = told.read_text()
    truth = {name: float(re.search(pattern, text)[1]) for name, pattern in FIELDS.items()}  # type: ignore[index]
    clock = re.search(r"Elapsed .*: (?:(\d+):)?(\d+):([\d.]+)", text)
    assert clock is not None
    truth["length_s"] = 3600 * int(clock[1] or 0) + 60 * int(clock[2]) + float(clock[3])
    events = list(read_recording(recording))
    snapshot = analyse(events)
    reports = [stranger_report(snapshot, pid) for pid in snapshot.processes]
    costs = [event for event in events if isinstance(event, wire.CollectorCost)]
    percent = 100 * (costs[-1].cpu_ns - costs[0].cpu_ns) / max(1, costs[-1].t_ns - costs[0].t_ns)
    return Case(recording, truth, [report for report in reports if report is not None], round(percent, 2))


def snarkjs(folder: Path, rounds: int) -> list[str]:
    """The command that proves a chain of so many rounds."""
    home = install()
    if isinstance(home, str):
        raise SystemExit(home)
    (folder / "snarkjs").symlink_to(home)
    circuit = chain(rounds)
    write_zkey(folder / "chain.zkey", test_setup(circuit, Run(lambda event: None, "bench")), circuit)
    write_wtns(folder / "chain.wtns", chain_witness(rounds, 3, 7))
    names = ["chain.zkey", "chain.wtns", "proof.json", "public.json"]
    return ["npx", "--prefix", "snarkjs", "snarkjs", "groth16", "prove", *names]


def xz(folder: Path, size_bytes: int) -> list[str]:
    """The command that compresses noise with text in it."""
    path = folder / "noise.bin"
    path.write_bytes(np.random.default_rng(1).integers(0, 64, size_bytes, dtype=np.uint8).tobytes())
    return ["xz", "-9", "-T1", "-k", "-f", path.name]


def draw(recording: Path, name: str, folder: Path) -> None:
    """The console at the end of a recording, as SVG and where there is a Chromium as PNG."""
    from render import Recorded, offline, to_png

    from cuzktui.app import ConsoleApp
    from cuzktui.options import Options

    async def picture() -> str:
        events = list(read_recording(recording))
        app = ConsoleApp(Recorded(events, "recording"), options=Options(graph="braille", palette="dark"))  # type: ignore[arg-type]
        async with app.run_test(size=(160, 48)) as pilot:
            while app.feed.snapshot.events < len(events):
                await pilot.pause(0.05)
            process = app.feed.snapshot.process
            assert process is not None
            begin_ns, end_ns = int(process.memory.t_ns[0]), int(process.memory.t_ns[-1])
            while app.viewpoint.window_s(app.snapshot) * 1e9 < 1.1 * (end_ns - begin_ns):
                app.action_zoom(1)
            while app.viewpoint.window_s(app.snapshot) * 1e9 > 4 * (end_ns - begin_ns):
                app.action_zoom(-1)
            await pilot.pause(0.6)
            return offline(app.export_screenshot(title="cuzktui"))

    svg = folder / f"{name}.svg"
    svg.write_text(asyncio.run(picture()), encoding="utf-8")
    to_png(svg, folder / f"{name}.png")


def main() -> int:
    """Watches both programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=32_000)
    parser.add_argument("--xz-bytes", type=int, default=24 << 20)
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if shutil.which(TIME) is None:
        raise SystemExit(f"{TIME} is not installed")
    answer: dict[str, object] = {"unix_s": int(time.time())}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = {"snarkjs": snarkjs(folder, options.rounds), "xz": xz(folder, options.xz_bytes)}
        for what, command in commands.items():
            case = watched(command, folder / f"{what}.jsonl")
            answer[what] = case.figures()
            print(what, json.dumps(answer[what], indent=1))
            if options.pictures:
                draw(case.recording, f"foreign-{what}", options.pictures)
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(answer, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
