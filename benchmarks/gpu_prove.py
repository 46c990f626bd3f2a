"""The whole prove call on a GPU, on synthetic data of PoRep shape: host buffers in, proofs out, key resident.

Usage: python benchmarks/gpu_prove.py --out FOLDER 20x1 22x10 ...   (log2 of the domain x circuits)
Ratios, witness classes and distinct points are those of the public supraseal-c2 measurements this is held against: rows
0.97067 n, private wires 0.96985 n, 328 inputs, A on 99.68 % and B on 50 % of the private wires; 45 % of the wires zero,
35 % one, 8 % a byte, 2 % minus one, 10 % uniform, at the same positions in every circuit. Each proof's A, B and C are
checked by the known logarithms of all points.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from gpu_session import integers, machine, say

from prover import wire
from prover.arena import Arena, Scope
from prover.backends.cuda.backend import CudaBackend
from prover.backends.cuda.compile import PROBE_UNITS, compile_units
from prover.backends.cuda.fixed_base import FixedBase
from prover.backends.cuda.launch import FR_BYTES, Memory
from prover.backends.cuda.msm import G1, G2, Curve
from prover.backends.cuda.ntt import field_array
from prover.keys import HBasis, Proof, ProvingKey, Query, VerifyingKey
from prover.params import R
from prover.prove import Blinding, Instance, prove_batch
from prover.run import Run

NUM_INPUTS = 328


class Bench:
    def __init__(self, out: Path, seed: int) -> None:
        self.out, self.random = out, random.Random(seed)
        self.backend = CudaBackend()
        self.device = self.backend.pinner
        self.events: list[wire.Event] = []
        self.run = Run(self.events.append, "bench")
        began = time.monotonic()
        self.backend.warm_up(self.run)
        self.device.load(compile_units(PROBE_UNITS, self.device.architecture))
        say("warm", round(time.monotonic() - began, 1))
        self.fixed = FixedBase(self.device)
        self.results: dict[str, object] = {"machine": machine(), "seed": seed}

    def scalars(self, n: int) -> Memory:
        memory = self.device.empty(n * FR_BYTES)
        self.device.launch("fr_random", 2048, 256, np.uint64(self.random.getrandbits(63)), n, memory)
        return memory

    def points(self, curve: Curve, n: int) -> tuple[np.ndarray, np.ndarray]:
        """n random points and their logarithms."""
        logs = self.scalars(n)
        points = self.fixed.on_device(curve, logs, n)
        return (
            self.device.download(points, (n, *curve.shape), np.uint64),
            self.device.download(logs, (n, 4), np.uint64),
        )

    def key(self, log_n: int) -> None:
        """A key of random points, loaded; every logarithm is kept."""
        n = 1 << log_n
        self.n, self.rows, aux = n, int(0.97067 * n), int(0.96985 * n)
        self.num_wires = NUM_INPUTS + aux
        rng = np.random.default_rng(self.random.getrandbits(60))

        def some(count: int) -> np.ndarray:
            chosen = np.sort(rng.choice(aux, count, replace=False)) + NUM_INPUTS
            return chosen.astype(np.uint32)

        a_wires = np.concatenate([np.arange(NUM_INPUTS, dtype=np.uint32), some(int(0.9968 * aux))])
        b_wires = np.concatenate([np.zeros(1, np.uint32), some(aux // 2)])
        logs = {}
        a, logs["a"] = self.points(G1, len(a_wires))
        b1, logs["b1"] = self.points(G1, len(b_wires))
        b2, logs["b2"] = self.points(G2, len(b_wires))
        l, logs["l"] = self.points(G1, aux)
        h, logs["h"] = self.points(G1, n - 1)
        singles, single_logs = self.points(G1, 4)
        singles2, single_logs2 = self.points(G2, 3)
        self.logs, self.wires = logs, {"a": a_wires, "b": b_wires}
        self.single, self.single2 = integers(single_logs), integers(single_logs2)
        vk = VerifyingKey(singles[0], singles2[0], singles2[1], singles2[2], singles[:1])
        key = ProvingKey(
            vk, singles[1], singles[2], self.num_wires, NUM_INPUTS - 1, self.rows, n, Query(a, a_wires),
            Query(b1, b_wires), Query(b2, b_wires), Query(l, None, NUM_INPUTS), h, HBasis.MONOMIAL, b"",
        )  # fmt: skip
        self.device.trim()
        began = time.monotonic()
        self.resident = self.backend.load_key(key, self.run)
        self.load_s = time.monotonic() - began

    def instance(self, scope: Scope, dice: Memory, circuit: int) -> Instance:
        def fill(label: str, owner: wire.Owner, memory: Memory, count: int, used: int) -> np.ndarray:
            array = scope.array(label, owner, (count, 4), place=wire.Place.PINNED, circuit=circuit)
            array[:used] = self.device.download(memory, (used, 4), np.uint64)
            array[used:] = 0
            return array

        values = self.scalars(self.num_wires)
        self.device.launch("fr_witness", 2048, 256, dice, self.num_wires, values)
        assignment = fill("assignment", wire.Owner.ASSIGNMENT, values, self.num_wires, self.num_wires)
        assignment[0] = field_array([1])[0]
        columns = [fill(name, wire.Owner.ABC, self.scalars(self.rows), self.n, self.rows) for name in "abc"]
        return Instance(assignment, *columns)

    def dot(self, scalars: np.ndarray, logs: np.ndarray) -> int:
        partial = self.device.empty(65536 * FR_BYTES)
        a, b = self.device.upload(scalars), self.device.upload(logs)
        self.device.launch("fr_dot", 256, 256, a, b, len(logs), partial)
        return sum(integers(self.device.download(partial, (65536, 4), np.uint64))) % R

    def check(self, proof: Proof, w: np.ndarray, h_dot: int, blind: Blinding) -> bool:
        alpha, beta_g1, delta_g1, _ = self.single
        beta, _, delta = self.single2
        a = (alpha + self.dot(w[self.wires["a"]], self.logs["a"]) + blind.r * delta_g1) % R
        b1 = (beta_g1 + self.dot(w[self.wires["b"]], self.logs["b1"]) + blind.s * delta_g1) % R
        b2 = (beta + self.dot(w[self.wires["b"]], self.logs["b2"]) + blind.s * delta) % R
        c = self.dot(w[NUM_INPUTS:], self.logs["l"]) + h_dot
        c = (c + blind.s * a + blind.r * b1 - blind.r * blind.s * delta_g1) % R
        g1 = self.fixed.g1(field_array([a, c]))
        g2 = self.fixed.g2(field_array([b2]))
        return bool((proof.a == g1[0]).all() and (proof.c == g1[1]).all() and (proof.b == g2[0]).all())

    def measure(self, circuits: int, repeats: int) -> dict[str, object]:
        arena = Arena(self.events.append, pool_budget_bytes=100 << 30, pinner=self.device)
        dice = self.scalars(self.num_wires)
        outer, inner, stages, ok = [], [], [], []
        for repeat in range(repeats + 1):
            scope = arena.scope("bench", wire.Policy.RECYCLE)
            instances = [self.instance(scope, dice, i) for i in range(circuits)]
            self.device.synchronize()
            checked = []
            if repeat == repeats:
                for x in instances[:2]:
                    scalars = self.backend.ntt_h(self.resident, x.a, x.b, x.c, self.run, 0)
                    assert scalars.values is not None
                    h = self.device.download(scalars.values, (self.n - 1, 4), np.uint64)
                    checked.append((x.assignment.copy(), self.dot(h, self.logs["h"])))
                    scalars.close()
            blinding = [Blinding.fresh() for _ in instances]
            self.events.clear()
            began = time.perf_counter()
            proofs, times = prove_batch(self.resident, instances, self.backend, scope, self.run, blinding)
            wall = (time.perf_counter() - began) * 1e3
            if repeat > 0 or repeats == 0:
                outer.append(wall)
                inner.append(times.inner_ns / 1e6)
                stages.append(stage_times(self.events))
            ok += [self.check(p, *c, b) for p, c, b in zip(proofs, checked, blinding, strict=False)]
        spans: dict[str, float] = {}
        for event in self.events:
            if isinstance(event, wire.Span):
                spans[event.name] = spans.get(event.name, 0.0) + (event.t_ns - event.begin_ns) / 1e6
        arena.close()
        return {
            "checked_ok": ok, "n": len(outer), "outer_ms": spread(outer), "inner_ms": spread(inner),
            "stages_ms": {k: round(statistics.median(s.get(k, 0.0) for s in stages), 1) for k in stages[0]},
            "spans_ms": {k: round(v, 2) for k, v in sorted(spans.items(), key=lambda kv: -kv[1])[:14]},
            "device_pool_GB": round(self.device.pool_bytes[1] / 1e9, 2), "key_load_s": round(self.load_s, 2),
        }  # fmt: skip


def spread(values: Sequence[float]) -> dict[str, float]:
    return {"median": round(statistics.median(values), 1), "min": round(min(values), 1), "max": round(max(values), 1)}


def stage_times(events: Sequence[wire.Event]) -> dict[str, float]:
    began: dict[tuple[str, int | None], int] = {}
    total: dict[str, float] = {}
    for event in events:
        if isinstance(event, wire.StageBegan):
            began[(event.stage, event.circuit)] = event.t_ns
        elif isinstance(event, wire.StageEnded):
            taken = (event.t_ns - began[(event.stage, event.circuit)]) / 1e6
            total[str(event.stage)] = total.get(str(event.stage), 0.0) + taken
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="+")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "benchmarks/results")))
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    bench = Bench(arguments.out, arguments.seed)
    loaded = 0
    for job in arguments.jobs:
        log_n, circuits = (int(v) for v in job.split("x"))
        if log_n != loaded:
            if loaded:
                bench.resident.close()
            bench.key(log_n)
            loaded = log_n
        row = bench.measure(circuits, 5 if circuits << log_n < 1 << 24 else 3)
        bench.results[job] = row
        say(job, json.dumps(row))
        (arguments.out / "gpu_prove.json").write_text(json.dumps(bench.results, indent=1))


if __name__ == "__main__":
    main()
