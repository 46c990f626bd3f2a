"""Synthesis on the CPU: witness and a/b/c evaluation of sha256-chain:64, constraints a second, CPU time beside wall.

Usage: bench_synthesis.py [--circuit NAME] [--threads N] [--runs K] [--out FILE.json]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from prover.circuits import registry
from prover.r1cs.columns import columns_at
from prover.r1cs.evaluate import evaluate_abc, first_unsatisfied
from prover.r1cs.hash import circuit_hash


def measure(work: Callable[[], object], runs: int) -> dict[str, float]:
    """Median and extremes of wall time and median CPU time over `runs`, after one warm-up."""
    work()
    wall, cpu = [], []
    for _ in range(runs):
        wall_0, cpu_0 = time.perf_counter(), time.process_time()
        work()
        wall.append((time.perf_counter() - wall_0) * 1e3)
        cpu.append((time.process_time() - cpu_0) * 1e3)
    return {
        "wall_ms": round(statistics.median(wall), 3), "wall_min_ms": round(min(wall), 3),
        "wall_max_ms": round(max(wall), 3), "cpu_ms": round(statistics.median(cpu), 3),
    }  # fmt: skip


def cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--circuit", default="sha256-chain:64")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    began = time.perf_counter()
    circuit = registry.build(args.circuit)
    build_ms = (time.perf_counter() - began) * 1e3
    r1cs = circuit.r1cs
    witness = np.zeros((r1cs.num_wires, 4), np.uint64)
    sides = [np.zeros((r1cs.domain_size, 4), np.uint64) for _ in range(3)]
    inputs = circuit.sample(b"bench")

    def both() -> None:
        circuit.witness(inputs, witness, threads=args.threads)
        evaluate_abc(r1cs, witness, *sides, threads=args.threads)

    rows = {
        "witness": measure(lambda: circuit.witness(inputs, witness, threads=args.threads), args.runs),
        "evaluate_abc": measure(lambda: evaluate_abc(r1cs, witness, *sides, threads=args.threads), args.runs),
        "witness + evaluate_abc": measure(both, args.runs),
        "first_unsatisfied": measure(lambda: first_unsatisfied(r1cs, *sides, threads=args.threads), args.runs),
        "columns_at": measure(lambda: columns_at(r1cs, sides[0], threads=args.threads), 3),
        "circuit_hash": measure(lambda: circuit_hash(r1cs), 3),
    }
    report = {
        "machine": {
            "cpu": cpu_model(), "cores": len(os.sched_getaffinity(0)), "load_1min": os.getloadavg()[0],
            "python": platform.python_version(), "threads": args.threads, "runs": args.runs,
        },
        "circuit": {
            "name": circuit.name, "constraints": r1cs.num_constraints, "wires": r1cs.num_wires,
            "nnz": list(r1cs.nnz), "build_ms": round(build_ms, 1),
        },
        "passes": rows,
        "constraints_per_s": round(r1cs.num_constraints / rows["witness + evaluate_abc"]["wall_ms"] * 1e3),
    }  # fmt: skip
    print(json.dumps(report, indent=2))
    if args.out is not None:
        args.out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
