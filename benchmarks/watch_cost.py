"""What being watched costs the one that is watched: the same work with and without a collector, in interleaved pairs.

Two targets: a foreign program that fills, computes and gives 256 MiB back, and our prover proving one small job. Each
pair does the work once watched and once not, in random order: the foreign program's collector is stopped by signal in
between, which makes pairs cheap; the prover's is started and ended, since its stream costs the prover something too.
CPU time (schedstat) is compared, wall time stands beside it. The interval is of the mean of the pairs' log ratios
(Student's t, 95 %). Writes results/watch_cost.json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cuzktui.collector.watch import is_listening
from cuzktui.sources.control import ControlClient
from prover import wire

RESULTS = Path(__file__).parent / "results" / "watch_cost.json"
WORKER = """
import mmap, sys
import numpy as np
values = np.arange(1 << 15, dtype=np.uint64)
for line in sys.stdin:
    held = mmap.mmap(-1, 256 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    held.madvise(mmap.MADV_NOHUGEPAGE)
    view = np.frombuffer(held, np.uint8)
    view[::4096] = 1
    for _ in range(int(line)):
        values *= np.uint64(3)
    del view
    held.close()
    print("done", flush=True)
"""
RESUME_S = 0.1
"""A collector that goes on has caught up with its schedule by then."""
T_95 = {20: 2.093, 25: 2.064, 30: 2.045, 40: 2.023, 60: 2.001, 100: 1.984, 200: 1.972, 400: 1.966}
"""Two-sided 95 % quantiles of Student's t for so many pairs."""


def cpu_ns(pid: int) -> int:
    """CPU time of all threads of a process that live."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            total += int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
        except (OSError, IndexError):
            continue
    return total


@contextmanager
def collector(pid: int, *arguments: str) -> Iterator[int]:
    """A collector that watches the process and has begun to deliver."""
    command = [sys.executable, "-m", "cuzktui.collector", "--pid", str(pid), "--no-gpu", "--record", "/dev/null"]
    with tempfile.TemporaryDirectory() as folder:
        command[-1] = f"{folder}/run.jsonl"
        process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            readings = 0
            for line in process.stdout:
                readings += isinstance(wire.decode(line), wire.MemSample)
                if readings >= 5:
                    break
            drain = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
            yield process.pid
        finally:
            process.terminate()
            process.wait()
            drain.wait()


def pairs(count: int, watched: Callable[[], tuple[float, float]], alone: Callable[[], tuple[float, float]], seed: int):
    """Does both in random order, so many times; (watched, alone) as (cpu s, wall s) each."""
    order = random.Random(seed)
    for number in range(count):
        if order.random() < 0.5:
            first = watched()
            found = first, alone()
        else:
            first = alone()
            found = watched(), first
        print(f"{number:3} watched {found[0][0]:.3f} s CPU, alone {found[1][0]:.3f} s CPU", file=sys.stderr)
        yield found


def summary(found: list[tuple[tuple[float, float], tuple[float, float]]]) -> dict[str, object]:
    """Ratios with their intervals, in percent over 1."""
    answer: dict[str, object] = {"pairs": len(found)}
    for index, name in enumerate(("cpu", "wall")):
        logs = [math.log(one[index] / two[index]) for one, two in found]
        mean, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
        half = T_95[min(T_95, key=lambda n: abs(n - len(logs)))] * error
        low, high = (100 * (math.exp(mean + sign * half) - 1) for sign in (-1, 1))
        answer[name] = {
            "median_s_alone": round(statistics.median(two[index] for _, two in found), 4),
            "mean_percent": round(100 * (math.exp(mean) - 1), 3),
            "median_percent": round(100 * (math.exp(statistics.median(logs)) - 1), 3),
            "interval_95_percent": [round(low, 3), round(high, 3)],
        }
    return answer


def foreign(count: int, rounds: int) -> dict[str, object]:
    """The foreign program."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:

        def work() -> tuple[float, float]:
            assert child.stdin is not None and child.stdout is not None
            cpu, wall = cpu_ns(child.pid), time.perf_counter()
            child.stdin.write(f"{rounds}\n")
            child.stdin.flush()
            child.stdout.readline()
            return (cpu_ns(child.pid) - cpu) / 1e9, time.perf_counter() - wall

        work()
        with collector(child.pid, "--role", "foreign") as observer:

            def alone() -> tuple[float, float]:
                os.kill(observer, signal.SIGSTOP)
                try:
                    return work()
                finally:
                    os.kill(observer, signal.SIGCONT)
                    time.sleep(RESUME_S)

            found = list(pairs(count, work, alone, 1))
        assert child.stdin is not None
        child.stdin.close()
    return summary(found)


def ours(count: int, circuit: str) -> dict[str, object]:
    """Our prover, watched through its socket as well."""
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/prover.sock"
        command = [sys.executable, "-m", "prover", "serve", "--socket", socket, "--backend", "cpu"]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        control = ControlClient(socket, "benchmark")
        try:
            while not is_listening(socket):
                time.sleep(0.05)

            def work() -> tuple[float, float]:
                cpu, wall = cpu_ns(server.pid), time.perf_counter()
                prove(socket, control, circuit)
                return (cpu_ns(server.pid) - cpu) / 1e9, time.perf_counter() - wall

            def watched() -> tuple[float, float]:
                with collector(server.pid, "--prover-socket", socket):
                    return work()

            work()
            work()
            return summary(list(pairs(count, watched, work, 2)))
        finally:
            control.close()
            server.terminate()
            server.wait()


def prove(socket: str, control: ControlClient, circuit: str) -> None:
    """One job from request to reply, heard over a stream of its own in both cases alike."""
    from cuzktui.collector.watch import WatchStream

    ended: list[str] = []
    stream = WatchStream(socket, lambda event: ended.append(event.job_id) if isinstance(event, wire.JobEnded) else None)
    stream.start()
    try:
        job_id = control.submit(circuit, 1, "sync-4k")
        while job_id not in ended:
            time.sleep(0.005)
    finally:
        stream.stop()


def main() -> int:
    """Measures both targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=200, help="of the foreign program")
    parser.add_argument("--prover-pairs", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=60_000, help="work of the foreign program")
    parser.add_argument("--circuit", default="sha256-chain:8")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    machine = {
        "cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
    }  # fmt: skip
    cases = {"foreign": foreign(options.pairs, options.rounds), "prover": ours(options.prover_pairs, options.circuit)}
    answer = {"machine": machine | {"load_after": os.getloadavg()[0]}, "circuit": options.circuit, "cases": cases}
    text = json.dumps(answer | {"unix_s": int(time.time())}, indent=1)
    print(text)
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
