"""PoRep synthesis on the CPU by sector size: circuit, checks, witness, a/b/c; wall and CPU time, medians.

Usage: bench_porep.py [--threads N] [--runs K] [--sizes 2KiB 8MiB] [--challenges-32gib C] [--out FILE.json]

A 32 GiB partition needs 17 GB, so its shape is measured with fewer challenges, of which the full one is copies.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import resource
import time
from pathlib import Path

import numpy as np
from bench_synthesis import cpu_model, measure

from prover.files.densities import densities_of
from prover.porep.checks import check_output
from prover.porep.circuit import build
from prover.porep.sector import SectorNames, sparse
from prover.porep.shapes import RegisteredProof, Rule, Shape, shape_of
from prover.porep.witness import fill_witness
from prover.r1cs.evaluate import evaluate_abc, first_unsatisfied


def synthesis(shape: Shape, threads: int, runs: int) -> dict[str, object]:
    """Figures of one partition of a sparse sector."""
    proof = RegisteredProof("bench", 8, shape, False, Rule.INTERACTIVE)
    began = time.process_time()
    circuit = build(shape)
    build_cpu_ms = (time.process_time() - began) * 1e3
    output = sparse(dataclasses.replace(proof, shape=dataclasses.replace(shape, partitions=1)), SectorNames())
    r1cs = circuit.r1cs
    witness = np.zeros((r1cs.num_wires, 4), np.uint64)
    sides = [np.zeros((r1cs.domain_size, 4), np.uint64) for _ in range(3)]
    return {
        "challenges": shape.challenges, "constraints": r1cs.num_constraints, "wires": r1cs.num_wires,
        "build_cpu_ms": round(build_cpu_ms, 1),
        "checks": measure(lambda: check_output(output, threads=threads), runs),
        "witness": measure(lambda: fill_witness(circuit, output, 0, witness, threads=threads), runs),
        "evaluate_abc": measure(lambda: evaluate_abc(r1cs, witness, *sides, threads=threads), runs),
        "first_unsatisfied": measure(lambda: first_unsatisfied(r1cs, *sides, threads=threads), runs),
    }  # fmt: skip


def full_circuit() -> dict[str, object]:
    """The 32 GiB circuit and its densities from templates."""
    began = time.process_time()
    circuit = build(shape_of("32GiB"))
    built = time.process_time()
    densities = densities_of(circuit.r1cs)
    return {
        "constraints": circuit.r1cs.num_constraints, "nnz": list(circuit.r1cs.nnz),
        "a_wires": len(densities.a_wires), "b_wires": len(densities.b_wires),
        "build_cpu_ms": round((built - began) * 1e3, 1),
        "densities_cpu_ms": round((time.process_time() - built) * 1e3, 1),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--sizes", nargs="*", default=["2KiB", "8MiB"])
    parser.add_argument("--challenges-32gib", type=int, default=2)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    report: dict[str, object] = {
        "machine": {
            "cpu": cpu_model(), "cores": len(os.sched_getaffinity(0)), "load_1min": os.getloadavg()[0],
            "python": platform.python_version(), "threads": args.threads, "runs": args.runs,
        },
        "32GiB circuit": full_circuit(),
    }  # fmt: skip
    for size in args.sizes:
        report[size] = synthesis(shape_of(size), args.threads, args.runs)
    few = dataclasses.replace(shape_of("32GiB"), challenges=args.challenges_32gib)
    report["32GiB shape"] = synthesis(few, args.threads, args.runs)
    text = json.dumps(report, indent=1)
    print(text)
    if args.out:
        args.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
