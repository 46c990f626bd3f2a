"""What being watched costs the one that is watched: the same work with and without a collector, in interleaved pairs.

Two targets: a foreign program that fills, computes and gives 256 MiB back, and our prover proving one small job. Each
pair does the work once watched and once not, in random order: the foreign program's collector is stopped by signal in
between, which makes pairs cheap; the prover's is started and ended (`watched_pairs`), since its stream costs too.
CPU time of the process is compared, wall time stands beside it. Writes results/watch_cost.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from paired import orders, ratio
from watched_pairs import Job, line, measure, process_cpu_ns

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
            for told in process.stdout:
                readings += isinstance(wire.decode(told), wire.MemSample)
                if readings >= 5:
                    break
            drain = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
            yield process.pid
        finally:
            process.terminate()
            process.wait()
            drain.wait()


def pairs(count: int, watched: Callable[[], tuple[float, float]], alone: Callable[[], tuple[float, float]]):
    """Does both in random order, so many times; (watched, alone) as (cpu s, wall s) each."""
    for number, watched_first in enumerate(orders(count)):
        if watched_first:
            first = watched()
            found = first, alone()
        else:
            first = alone()
            found = watched(), first
        print(f"{number:3} watched {found[0][0]:.3f} s CPU, alone {found[1][0]:.3f} s CPU", file=sys.stderr)
        yield found


def summary(found: list[tuple[tuple[float, float], tuple[float, float]]]) -> dict[str, object]:
    """Watched over alone; medians in seconds."""
    return {name: ratio([w[i] for w, _ in found], [a[i] for _, a in found]) for i, name in enumerate(("cpu", "wall"))}


def foreign(count: int, rounds: int) -> dict[str, object]:
    """The foreign program."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:

        def work() -> tuple[float, float]:
            assert child.stdin is not None and child.stdout is not None
            cpu, wall = process_cpu_ns(child.pid), time.perf_counter()
            child.stdin.write(f"{rounds}\n")
            child.stdin.flush()
            child.stdout.readline()
            return (process_cpu_ns(child.pid) - cpu) / 1e9, time.perf_counter() - wall

        work()
        with collector(child.pid, "--role", "foreign") as observer:

            def alone() -> tuple[float, float]:
                os.kill(observer, signal.SIGSTOP)
                try:
                    return work()
                finally:
                    os.kill(observer, signal.SIGCONT)
                    time.sleep(RESUME_S)

            found = list(pairs(count, work, alone))
        assert child.stdin is not None
        child.stdin.close()
    return summary(found)


def ours(count: int, circuit: str) -> dict[str, object]:
    """Our prover, watched through its socket as well."""
    command = [sys.executable, "-m", "prover", "serve", "--backend", "cpu"]
    job = Job(circuit, 1, "sync-4k", pairs=count)
    return measure(command, job, ["--no-gpu"], lambda facts: print(line(facts), file=sys.stderr))


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
