"""Twelve hours of a console, compressed: the disk budget holds, no release is thinned, and nobody's memory grows.

A synthetic day (50 readings a second, a job with its release every few minutes) goes through a collector, on the line
on which it takes orders, and through the console with its screen drawn, each in a process of its own whose resident
memory is read once an hour of that day. Then a real prover proves many jobs under a collector that watches it. Writes
results/all_day.json.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from builders import GB, MS, START, S, Story, mem  # noqa: E402
from cuzktui.app import ConsoleApp  # noqa: E402
from cuzktui.collector.reading import read_recording  # noqa: E402
from cuzktui.collector.recorder import parts_of  # noqa: E402
from cuzktui.collector.watch import is_listening  # noqa: E402
from cuzktui.options import Options  # noqa: E402
from cuzktui.sources.base import Emit  # noqa: E402
from cuzktui.sources.control import ControlClient  # noqa: E402
from prover import wire  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "all_day.json"
HOUR_NS = 3600 * S
HELLO = wire.Hello(t_ns=START, unix_ns=1_790_000_000 * S, pid=41, cpu_count=2, mem_total_bytes=24 * GB)
CHUNK, EVENTS_PER_S = 10_000, 30_000
"""No faster than the collector writes: what does not fit its inbox would be dropped, and counted."""
WARM_HOURS = 4
"""Bounded series fill up in the first hours; growth is judged from then on."""


def hour(number: int, job_every_s: int) -> list[wire.Event]:
    """One hour of events in order of time: jobs whose release is read every 4 ms, and quiet between them."""
    begin_ns = START + number * HOUR_NS
    events: list[wire.Event] = []
    jobs = [begin_ns + k * job_every_s * S for k in range(3600 // job_every_s)]
    busy: list[tuple[int, int]] = []
    for k, job_ns in enumerate(jobs):
        story = Story(job_id=f"job-{number}-{k}", begin_ns=job_ns + 10 * S)
        own = [e for e in story.build() if not isinstance(e, wire.Hello | wire.ProcessSeen)]
        fall = (story.inner_end_ns, story.outer_end_ns)
        events += [e for e in own if not (isinstance(e, wire.MemSample) and fall[0] <= e.t_ns < fall[1])]
        profile = story.profile()
        events += [mem(t_ns, profile.at(t_ns)) for t_ns in range(*fall, 4 * MS)]
        busy.append((story.begin_ns, own[-1].t_ns))
    edges = [(begin_ns, busy[0][0]), *((a[1], b[0]) for a, b in itertools.pairwise(busy))]
    for first_ns, last_ns in [*edges, (busy[-1][1], begin_ns + HOUR_NS)]:
        events += [mem(t_ns, 0.3 * GB) for t_ns in range(first_ns, last_ns, 20 * MS)]
    for t_ns in range(begin_ns, begin_ns + HOUR_NS, 500 * MS):
        events.append(wire.HostSample(t_ns=t_ns, mem_available_bytes=20 * GB, mem_total_bytes=24 * GB))
    return sorted(events, key=lambda event: event.t_ns)


def resident(pid: int) -> int:
    """Resident bytes of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def through_collector(folder: str, hours: int, job_every_s: int, budget_bytes: int) -> list[int]:
    """A day through a collector that records; its resident bytes after each hour."""
    told = []
    command = [sys.executable, "-m", "cuzktui.collector", "--owned", "--no-gpu", "--record", f"{folder}/day.jsonl"]
    with subprocess.Popen(
        [*command, "--budget-bytes", str(budget_bytes)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as child:
        assert child.stdin is not None
        for number in range(hours):
            events = hour(number, job_every_s)
            for k in range(0, len(events), CHUNK):
                child.stdin.write(b"".join(map(wire.encode, events[k : k + CHUNK])))
                child.stdin.flush()
                time.sleep(CHUNK / EVENTS_PER_S)
            told.append(resident(child.pid))
        child.stdin.close()
        child.wait()
    return told


class Day:
    """A source whose hours are delivered when they are asked for."""

    kind, owns_prover, title = "live", False, "a day"

    def __init__(self) -> None:
        self.emit: Emit | None = None

    def start(self, emit: Emit) -> None:
        self.emit = emit
        emit(HELLO)

    def stop(self) -> None:
        """Nothing was started."""

    def restart_prover(self) -> None:
        """There is none."""


def through_console(hours: int, job_every_s: int) -> list[int]:
    """A day through the console with its screen drawn; resident bytes after each hour."""
    told: list[int] = []

    async def live() -> None:
        source = Day()
        app = ConsoleApp(source, options=Options())
        async with app.run_test(size=(160, 48)) as pilot:
            while source.emit is None:
                await pilot.pause(0.05)
            for number in range(hours):
                for event in hour(number, job_every_s):
                    source.emit(event)
                while app.feed._inbox:
                    await pilot.pause(0.05)
                await pilot.pause(0.5)
                told.append(resident(os.getpid()))

    asyncio.run(live())
    return told


def releases_kept(path: Path, hours: int, job_every_s: int) -> tuple[int, int, int, int]:
    """(releases looked at, readings made in them, readings missing, events dropped) of what the budget kept."""
    kept: dict[int, None] = {}
    oldest, dropped = None, 0
    for event in read_recording(path):
        if isinstance(event, wire.MemSample):
            oldest = event.t_ns if oldest is None else oldest
            kept[event.t_ns] = None
        elif isinstance(event, wire.Dropped):
            dropped += event.count
    looked = made = missing = 0
    for number in range(hours):
        for job in range(3600 // job_every_s):
            story = Story(begin_ns=START + number * HOUR_NS + job * job_every_s * S + 10 * S)
            if oldest is None or story.begin_ns < oldest:
                continue
            looked += 1
            wanted = range(story.inner_end_ns, story.outer_end_ns, 4 * MS)
            made += len(wanted)
            missing += sum(t_ns not in kept for t_ns in wanted)
    return looked, made, missing, dropped


def real(jobs: int, circuit: str) -> dict[str, list[int]]:
    """A real prover and a real collector over many jobs; resident bytes after each."""
    told: dict[str, list[int]] = {"prover": [], "collector": []}
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/prover.sock"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        prover = subprocess.Popen(
            [sys.executable, "-m", "prover", "serve", "--socket", socket, "--backend", "cpu"], **quiet
        )
        while not is_listening(socket):
            time.sleep(0.05)
        command = [sys.executable, "-m", "cuzktui.collector", "--pid", str(prover.pid), "--prover-socket", socket]
        collector = subprocess.Popen([*command, "--no-gpu", "--record", f"{folder}/run.jsonl"], **quiet)
        control = ControlClient(socket, "benchmark")
        try:
            for number in range(jobs):
                policy = list(wire.Policy)[number % len(wire.Policy)]
                prove(control, socket, circuit, policy)
                told["prover"].append(resident(prover.pid))
                told["collector"].append(resident(collector.pid))
        finally:
            control.close()
            for process in (collector, prover):
                process.terminate()
                process.wait()
    return told


def prove(control: ControlClient, socket: str, circuit: str, policy: wire.Policy) -> None:
    """One job from request to reply."""
    from cuzktui.collector.watch import WatchStream

    ended: list[str] = []
    stream = WatchStream(socket, lambda event: ended.append(event.job_id) if isinstance(event, wire.JobEnded) else None)
    stream.start()
    try:
        job_id = control.submit(circuit, 1, policy)
        while job_id not in ended:
            time.sleep(0.005)
    finally:
        stream.stop()


def growth_percent(told: list[int], warm: int) -> float:
    """How far the mean of the last quarter lies above that of the first quarter after warm-up."""
    settled = told[warm:]
    quarter = max(1, len(settled) // 4)
    first, last = sum(settled[:quarter]) / quarter, sum(settled[-quarter:]) / quarter
    return round(100 * (last - first) / first, 2)


def main() -> int:
    """Runs the day."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=12)
    parser.add_argument("--job-every-s", type=int, default=180)
    parser.add_argument("--budget-bytes", type=int, default=16 << 20)
    parser.add_argument("--jobs", type=int, default=120, help="jobs of the real prover")
    parser.add_argument("--circuit", default="sha256-chain:1")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, spawn.Pool(1, maxtasksperchild=1) as pool:
        day = (options.hours, options.job_every_s)
        compressed = through_collector(folder, *day, options.budget_bytes)
        path = Path(folder) / "day.jsonl"
        disk_bytes = sum(part.stat().st_size for part in parts_of(path))
        looked, made, missing, dropped = releases_kept(path, *day)
        console = pool.apply(through_console, day)
    machine = real(options.jobs, options.circuit)
    answer = {
        "hours": options.hours, "jobs_of_the_day": options.hours * (3600 // options.job_every_s),
        "budget_bytes": options.budget_bytes, "disk_bytes": disk_bytes,
        "budget_holds": disk_bytes <= options.budget_bytes,
        "releases_in_what_was_kept": looked, "readings_in_them": made, "readings_thinned": missing,
        "events_dropped": dropped,
        "growth_percent": {
            "collector, compressed": growth_percent(compressed, WARM_HOURS),
            "console, compressed": growth_percent(console, WARM_HOURS),
            "collector, real": growth_percent(machine["collector"], options.jobs // 4),
            "prover, real": growth_percent(machine["prover"], options.jobs // 4),
        },
        "resident_mb": {
            "collector, compressed": [round(x / 1e6, 1) for x in compressed],
            "console": [round(x / 1e6, 1) for x in console],
            "collector": [round(x / 1e6, 1) for x in machine["collector"][::10]],
            "prover": [round(x / 1e6, 1) for x in machine["prover"][::10]],
        },
        "real_jobs": options.jobs, "unix_s": int(time.time()),
    }  # fmt: skip
    print(json.dumps(answer, indent=1))
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(answer, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
