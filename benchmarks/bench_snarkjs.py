"""One proof of a 64 001-constraint circuit here and in snarkjs, in turns on the same zkey, CPU time beside wall.

Both provers are warm processes. Ours has the key loaded and times synthesis (rows a, b, c) and the whole prove call;
snarkjs times `groth16.prove` inside its process, which reads the key's file each time: that part is a few per cent.
Usage: bench_snarkjs.py [--rounds N] [--runs K] [--threads T] [--out FILE.json]
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
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "interop"))

from install_snarkjs import install  # noqa: E402

from prover.arena import Arena  # noqa: E402
from prover.backends.cpu.backend import CpuBackend  # noqa: E402
from prover.backends.cpu.field import ints_to_fr  # noqa: E402
from prover.file_workload import FileWorkload  # noqa: E402
from prover.files.snarkjs_json import read_proof, read_public  # noqa: E402
from prover.files.wtns import write_wtns  # noqa: E402
from prover.files.zkey import read_zkey  # noqa: E402
from prover.files.zkey_write import write_zkey  # noqa: E402
from prover.jobs import Prover  # noqa: E402
from prover.params import R  # noqa: E402
from prover.r1cs.matrices import Csr, R1cs, Stamp, Template  # noqa: E402
from prover.run import Run  # noqa: E402
from prover.setup import test_setup  # noqa: E402
from prover.verify import verify  # noqa: E402
from prover.wire import Policy  # noqa: E402


def chain(rounds: int) -> R1cs:
    """s = t t; t' = s (t + k) + i, and out = t k at the end; wires ONE, out, k, t_0, then s_i and t_(i+1) in turns."""
    i = np.arange(rounds)
    s, after = 4 + 2 * i, 5 + 2 * i
    before = np.where(i == 0, 3, 3 + 2 * i)
    last = 3 + 2 * rounds
    # Coefficients 1, -1, then -i: C of the second row is t' - i, and i = 0 has no such term.
    table = ints_to_fr([1, R - 1, *(R - k for k in range(2, rounds))])
    constant = np.where(i < 2, 1, i)
    one = np.zeros(rounds, np.int64)

    def rows(first: list[np.ndarray], second: list[np.ndarray], ids: list[np.ndarray], end: int) -> Csr:
        """Rows 2i and 2i + 1 of each round from (wires) of both, then a last row of one wire."""
        wires = np.stack(first + second, axis=1)
        coefficients = np.stack([one] * len(first) + ids, axis=1)
        keep = np.ones_like(wires, np.bool_)
        if len(second) == 2 and ids[1] is constant:
            keep[0, -1] = False
        counts = np.empty(2 * rounds + 1, np.int64)
        counts[0:-1:2], counts[1::2] = len(first), keep[:, len(first) :].sum(axis=1)
        counts[-1] = 1
        return Csr(
            np.concatenate([[0], np.cumsum(counts)]),
            np.append(wires[keep], end).astype(np.uint32),
            np.append(coefficients[keep], 0).astype(np.uint32),
        )

    a = rows([before], [s], [one], last)
    b = rows([before], [before, np.full(rounds, 2)], [one, one], 2)
    c = rows([s], [after, np.zeros(rounds, np.int64)], [one, constant], 1)
    template = Template("chain", 1, 3 + 2 * rounds, a, b, c)
    stamp = Stamp(template, np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros((1, 1), np.uint32))
    return R1cs(2 * rounds + 1, 4 + 2 * rounds, 2, table, (stamp,), num_outputs=1, name="chain")


def chain_witness(rounds: int, a: int, k: int) -> np.ndarray:
    values, t = [], a
    for i in range(rounds):
        s = t * t % R
        t = (s * (t + k) + i) % R
        values += [s, t]
    return ints_to_fr([1, t * k % R, k, a, *values])


def spread(values: list[float]) -> dict[str, float]:
    return {"median": round(statistics.median(values), 1), "min": round(min(values), 1), "max": round(max(values), 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=32_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    run = Run(lambda event: None, "bench")
    home = install()
    if isinstance(home, str):
        sys.exit(home)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        zkey_path, wtns_path = folder / "chain.zkey", folder / "chain.wtns"
        proof_path, public_path = folder / "proof.json", folder / "public.json"
        r1cs = chain(args.rounds)
        began = time.perf_counter()
        write_zkey(zkey_path, test_setup(r1cs, run, threads=args.threads), r1cs)
        setup_s = time.perf_counter() - began
        write_wtns(wtns_path, chain_witness(args.rounds, 3, 7))
        began = time.perf_counter()
        zkey = read_zkey(zkey_path)
        load_s = time.perf_counter() - began

        prover = Prover(CpuBackend(threads=args.threads), Arena(lambda event: None, pool_budget_bytes=0))
        workload = FileWorkload("chain", zkey, wtns_path, threads=args.threads)
        prover.run_job(workload, Policy.SYNC_HUGE, run)
        script = ROOT / "benchmarks" / "bench_snarkjs.mjs"
        command = ["node", script, home, zkey_path, wtns_path, proof_path, public_path]
        ours: dict[str, list[float]] = {"wall_ms": [], "cpu_ms": []}
        theirs: dict[str, list[float]] = {"wall_ms": [], "cpu_ms": []}
        ratios: dict[str, list[float]] = {"wall": [], "cpu": []}
        with subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as node:
            assert node.stdin is not None and node.stdout is not None
            for turn in range(args.runs + 1):
                node.stdin.write("prove\n")
                node.stdin.flush()
                figures = json.loads(node.stdout.readline())
                cpu_0 = time.process_time()
                result = prover.run_job(workload, Policy.SYNC_HUGE, run)
                cpu_ms = (time.process_time() - cpu_0) * 1e3
                wall_ms = float(result.metrics["synth_ms"] or 0) + float(result.metrics["outer_ms"] or 0)
                print(f"{turn}: snarkjs {figures['wall_ms']:.0f} ms, ours {wall_ms:.0f} ms", file=sys.stderr)
                if turn:
                    for name_, value in figures.items():
                        theirs[name_].append(value)
                    ours["wall_ms"].append(wall_ms)
                    ours["cpu_ms"].append(cpu_ms)
                    ratios["wall"].append(figures["wall_ms"] / wall_ms)
                    ratios["cpu"].append(figures["cpu_ms"] / cpu_ms)
            node.stdin.close()
        agree = verify(zkey.key.vk, read_proof(proof_path), read_public(public_path))
        prover.close()
    report = {
        "machine": {
            "cpu": cpu_model(), "cores": len(os.sched_getaffinity(0)), "load_1min": os.getloadavg()[0],
            "python": platform.python_version(), "node": node_version(), "threads": args.threads, "runs": args.runs,
        },
        "circuit": {"constraints": r1cs.num_constraints, "wires": r1cs.num_wires, "domain": r1cs.domain_size},
        "setup_s": round(setup_s, 2),
        "load_and_check_zkey_s": round(load_s, 2),
        "ours": {name: spread(values) for name, values in ours.items()},
        "snarkjs": {name: spread(values) for name, values in theirs.items()},
        "snarkjs_over_ours": {name: spread(values) for name, values in ratios.items()},
        "snarkjs_proof_verifies_here": agree,
    }  # fmt: skip
    text = json.dumps(report, indent=1)
    print(text)
    if args.out:
        args.out.write_text(text + "\n")


def cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def node_version() -> str:
    return subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
