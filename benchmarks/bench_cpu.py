"""CPU kernels beside their peers, in turns in one run: G1 and G2 MSM against py-arkworks, NTT against ffjavascript.

py-arkworks-bls12381 sums on one thread, so G1 is compared on one. ffjavascript's transform returns natural order; ours
is timed as the prover uses it (DIF, bit-reversed out) and, in a row of its own, with the reordering.
Usage: bench_cpu.py [--runs K] [--threads T] [--out FILE.json]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import py_arkworks_bls12381 as ark

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "interop"))

from install_snarkjs import install  # noqa: E402

from prover.backends.cpu.field import U64, fp_from_mont, fr_from_mont, powers  # noqa: E402
from prover.backends.cpu.fixed_base import FixedBase  # noqa: E402
from prover.backends.cpu.msm import msm  # noqa: E402
from prover.backends.cpu.ntt import bit_reverse, dif, ntt, twiddles  # noqa: E402
from prover.backends.cpu.workers import Workers  # noqa: E402
from prover.verify import g1, g2  # noqa: E402

Sample = tuple[float, float]
"""Wall and CPU milliseconds of one run."""


def timed(work: Callable[[], object]) -> Sample:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3


def in_turns(runs: int, **sides: Callable[[], Sample]) -> dict[str, list[Sample]]:
    """Every side once to warm up, then `runs` rounds of all sides one after the other."""
    for side in sides.values():
        side()
    samples: dict[str, list[Sample]] = {name: [] for name in sides}
    for _ in range(runs):
        for name, side in sides.items():
            samples[name].append(side())
    return samples


def row(samples: dict[str, list[Sample]], ours: str, theirs: str | None = None) -> dict[str, Any]:
    """Medians and spread of both sides, and the median of the ratios of each round."""
    out: dict[str, Any] = {}
    for name, values in samples.items():
        wall = [w for w, _ in values]
        out[name] = {
            "wall_ms": round(statistics.median(wall), 2), "wall_min_ms": round(min(wall), 2),
            "wall_max_ms": round(max(wall), 2), "cpu_ms": round(statistics.median(c for _, c in values), 2),
        }  # fmt: skip
    if theirs:
        pairs = list(zip(samples[theirs], samples[ours], strict=True))
        out["times_faster_wall"] = round(statistics.median(t[0] / o[0] for t, o in pairs), 2)
        out["times_faster_cpu"] = round(statistics.median(t[1] / o[1] for t, o in pairs), 2)
    return out


def multiples(log_count: int, group: str, threads: int) -> U64:
    bases = FixedBase(threads)
    points = (bases.g1 if group == "G1" else bases.g2)(powers(5, 1 << log_count, first=3))
    bases.close()
    return points


def bench_msm(group: str, log_count: int, threads: int, runs: int) -> dict[str, Any]:
    points, scalars = multiples(log_count, group, 2), powers(11, 1 << log_count, first=7)
    kind, size = (ark.G1Point, 96) if group == "G1" else (ark.G2Point, 192)
    raw, words = fp_from_mont(points).tobytes(), fr_from_mont(scalars).tobytes()
    their_points = [kind.from_xy_bytes_unchecked_le(raw[i : i + size]) for i in range(0, len(raw), size)]
    their_scalars = [ark.Scalar.from_le_bytes(words[i : i + 32]) for i in range(0, len(words), 32)]
    workers = Workers(threads)
    checked = g1 if group == "G1" else g2
    assert checked(msm(points, scalars, workers=workers), group) == kind.multiexp_unchecked(their_points, their_scalars)
    samples = in_turns(
        runs,
        ours=lambda: timed(lambda: msm(points, scalars, workers=workers)),
        arkworks=lambda: timed(lambda: kind.multiexp_unchecked(their_points, their_scalars)),
    )
    workers.close()
    return {"threads": threads, "their_threads": 1} | row(samples, "ours", "arkworks")


def bench_ntt(log_size: int, threads: int, runs: int, home: Path | str) -> dict[str, Any]:
    data = powers(3, 1 << log_size, first=5)
    workers, work = Workers(threads), data.copy()
    tw = twiddles(log_size)

    def natural() -> None:
        dif(work, tw, workers)
        bit_reverse(work)

    sides: dict[str, Callable[[], Sample]] = {
        "ours": lambda: timed(lambda: dif(work, tw, workers)),
        "ours_natural_order": lambda: timed(natural),
    }
    if isinstance(home, str):
        return {"threads": threads, "ffjavascript": home} | row(in_turns(runs, **sides), "ours")
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "in", Path(folder) / "out"
        source.write_bytes(data.tobytes())
        script = str(Path(__file__).with_name("bench_ffjavascript.mjs"))
        command = ["node", script, str(home), str(source), str(result)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as node:
            assert node.stdin and node.stdout

            def theirs() -> Sample:
                node.stdin.write("\n")  # type: ignore[union-attr]
                node.stdin.flush()  # type: ignore[union-attr]
                figures = json.loads(node.stdout.readline())  # type: ignore[union-attr]
                return figures["wall_ms"], figures["cpu_ms"]

            samples = in_turns(runs, **sides, ffjavascript=theirs)
            node.stdin.close()
        same = result.read_bytes() == ntt(data).tobytes()
    workers.close()
    return {"threads": threads, "same_result": same} | row(samples, "ours", "ffjavascript")


def machine(threads: int, runs: int, home: Path | str) -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    pressure = Path("/proc/pressure/cpu")
    return {
        "cpu": next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown"),
        "cores": len(os.sched_getaffinity(0)), "load_1min": os.getloadavg()[0],
        "cpu_pressure": pressure.read_text().splitlines()[0] if pressure.exists() else None,
        "python": platform.python_version(), "threads": threads, "runs": runs,
        "node_modules": home if isinstance(home, str) else "pinned by tests/interop",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    home = install()
    report: dict[str, Any] = {"machine": machine(args.threads, args.runs, home)}
    print(json.dumps(report["machine"], indent=1), flush=True)
    steps: dict[str, Callable[[], dict[str, Any]]] = {
        "G1 MSM 2^16, 1 thread": lambda: bench_msm("G1", 16, 1, args.runs),
        f"G1 MSM 2^16, {args.threads} threads": lambda: bench_msm("G1", 16, args.threads, args.runs),
        f"G2 MSM 2^14, {args.threads} threads": lambda: bench_msm("G2", 14, args.threads, args.runs),
        f"NTT 2^16, {args.threads} threads": lambda: bench_ntt(16, args.threads, args.runs, home),
        f"NTT 2^18, {args.threads} threads": lambda: bench_ntt(18, args.threads, args.runs, home),
    }
    for name, step in steps.items():
        report[name] = step()
        print(name, json.dumps(report[name]), flush=True)
    if args.out:
        args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
