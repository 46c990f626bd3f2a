"""What watching costs: price and lateness of memory readings and the collector's share of a core, idle and saturated.

The watched program holds 1 GiB. Saturated means two busy processes a core beside it. Prints one line a case and writes
results/sampling.json; the machine's own load while it ran stands beside the figures.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from prover import wire

RESULTS = Path(__file__).parent / "results" / "sampling.json"
HOLDER = (
    "import mmap, sys\nm = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
    "for at in range(0, len(m), 1 << 22): m[at:at + (1 << 22)] = b'x' * (1 << 22)\n"
    "print('ready', flush=True)\nsys.stdin.read()"
)
SPINNER = "while True: pass"


def measure(seconds: float, spinners: int) -> dict[str, float | int]:
    """One case: figures of the readings that fell between the second and the last second."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout
    holder.stdout.readline()
    busy = [subprocess.Popen([sys.executable, "-c", SPINNER]) for _ in range(spinners)]
    collector = subprocess.Popen(
        [sys.executable, "-m", "cuzktui.collector", "--pid", str(holder.pid)], stdout=subprocess.PIPE
    )
    try:
        samples, costs = _read(collector, seconds)
    finally:
        for process in (collector, *busy, holder):
            process.kill()
            process.wait()
    first, last = costs[0], costs[-1]
    return {
        "readings": len(samples),
        "rate_hz": round((len(samples) - 1) / (samples[-1].t_ns - samples[0].t_ns) * 1e9, 1),
        "cost_p50_us": round(_quantile([s.cost_ns for s in samples], 0.5) / 1e3, 1),
        "cost_p99_us": round(_quantile([s.cost_ns for s in samples], 0.99) / 1e3, 1),
        "late_p50_ms": round(_quantile([s.late_ns for s in samples], 0.5) / 1e6, 3),
        "late_p99_ms": round(_quantile([s.late_ns for s in samples], 0.99) / 1e6, 3),
        "late_max_ms": round(max(s.late_ns for s in samples) / 1e6, 3),
        "collector_core_percent": round(100 * (last.cpu_ns - first.cpu_ns) / (last.t_ns - first.t_ns), 2),
    }


def _read(collector: subprocess.Popen[bytes], seconds: float) -> tuple[list[wire.MemSample], list[wire.CollectorCost]]:
    """Readings and costs after the collector's own start, which is no part of watching."""
    assert collector.stdout
    samples, costs = [], []
    begin_ns = None
    for line in collector.stdout:
        event = wire.decode(line)
        if isinstance(event, wire.CollectorCost):
            begin_ns = begin_ns or event.t_ns
            costs.append(event)
            if event.t_ns - begin_ns >= seconds * 1e9:
                break
        elif isinstance(event, wire.MemSample) and begin_ns is not None:
            samples.append(event)
    return samples, costs


def _quantile(values: list[int], share: float) -> int:
    return sorted(values)[int(share * (len(values) - 1))]


def main() -> int:
    """Measures both cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    cores = os.cpu_count() or 1
    cases = {}
    for name, spinners in (("idle", 0), ("saturated", 2 * cores)):
        load = os.getloadavg()[0]
        cases[name] = measure(options.seconds, spinners) | {"load_before": round(load, 2), "spinners": spinners}
        print(name, json.dumps(cases[name]))
    machine = {"cores": cores, "kernel": platform.release(), "python": platform.python_version()}
    result = {"machine": machine, "page_bytes": mmap.PAGESIZE, "unix_s": int(time.time()), "cases": cases}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
