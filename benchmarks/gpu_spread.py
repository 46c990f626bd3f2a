"""One card against several on the whole prove call: the same proofs bit for bit, and what the other cards buy.

Usage: python benchmarks/gpu_spread.py --out FOLDER 20x10 22x10 24x10   (log2 of the domain x circuits)
       python benchmarks/gpu_spread.py --backend cpu --out FOLDER poseidon-merkle:1x5   (its logic, without a GPU)
Inputs are those of `gpu_prove.py`: synthetic data of PoRep shape in pinned buffers, key loaded, policy recycle. Runs of
one card and of all are interleaved and share inputs and blinding, so that every pair is also a comparison of proofs;
the first pair warms up and is checked by the known logarithms of all points. What was measured is written after each
size.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from prover import wire
from prover.arena import Arena
from prover.backends import Backend, ResidentKey
from prover.backends.spread import Spread
from prover.files.zcash import encode_proof
from prover.keys import Proof
from prover.params import R
from prover.prove import Blinding, Instance, prove_batch
from prover.run import Run


@dataclass
class Case:
    """A job that can be run any number of times."""

    one: ResidentKey
    all: ResidentKey
    instances: Callable[[], list[Instance]]
    verified: Callable[[list[Proof], list[Blinding]], list[bool]]
    close: Callable[[], None]


class Gpus:
    """Synthetic jobs on the cards of this host."""

    def __init__(self, out: Path, seed: int, cards: int) -> None:
        from gpu_prove import Bench

        from prover.backends.cuda.backend import CudaBackend
        from prover.backends.cuda.device import device_count

        self.bench = Bench(out, seed)
        self.about = self.bench.results
        self.one: Backend = self.bench.backend
        others = [CudaBackend(index) for index in range(1, min(cards, device_count()))]
        self.spread = Spread([self.bench.backend, *others])
        self.spread.warm_up(self.bench.run)

    def case(self, size: str, circuits: int) -> Case:
        bench = self.bench
        bench.key(int(size))
        say(size, f"key loaded in {bench.load_s:.2f} s")
        every = self.spread.load_key(bench.resident.key, bench.run)
        arena = Arena(lambda _event: None, pool_budget_bytes=0, pinner=self.spread.pinner)
        scope = arena.scope("inputs", wire.Policy.SYNC_HUGE)
        dice = bench.scalars(bench.num_wires)
        made = [bench.instance(scope, dice, i) for i in range(circuits)]
        bench.device.synchronize()
        say(size, f"{scope.size_bytes / 1e9:.1f} GB of inputs in pinned buffers")

        def verified(proofs: list[Proof], blinding: list[Blinding]) -> list[bool]:
            told = []
            for x, proof, blind in zip(made[:2], proofs, blinding, strict=False):
                scalars = self.bench.backend.ntt_h(bench.resident, x.a, x.b, x.c, bench.run, 0)
                assert scalars.values is not None
                h = bench.device.download(scalars.values, (bench.n - 1, 4), "uint64")
                scalars.close()
                told.append(bench.check(proof, x.assignment, bench.dot(h, bench.logs["h"]), blind))
            return told

        def close() -> None:
            made.clear()
            every.close()
            bench.resident.close()
            scope.release()
            arena.close()

        return Case(
            bench.resident, every, lambda: [Instance(x.assignment, x.a, x.b, x.c) for x in made], verified, close
        )


class Cpus:
    """Built-in circuits over backends of one thread each."""

    def __init__(self, cards: int) -> None:
        from prover.backends.cpu.backend import CpuBackend

        self.one: Backend = CpuBackend(1)
        self.spread = Spread([CpuBackend(1) for _ in range(cards)])
        self.about: dict[str, object] = {"machine": {"cpus": os.cpu_count(), "backend": "cpu"}}

    def case(self, size: str, circuits: int) -> Case:
        import numpy as np

        from prover.builtin import BuiltinWorkload
        from prover.keycache import KeyCache
        from prover.run import silent
        from prover.verify import verify
        from prover.workload import public_inputs

        workload, run = BuiltinWorkload(size, circuits, KeyCache(threads=2)), silent()
        key = workload.proving_key(run)
        publics: list[list[int]] = []

        def instances() -> list[Instance]:
            made = []
            publics.clear()
            for i in range(circuits):
                assignment = np.empty((workload.num_wires, 4), np.uint64)
                a, b, c = (np.empty((workload.domain_size, 4), np.uint64) for _ in "abc")
                workload.witness(i, assignment, run)
                workload.eval_abc(i, assignment, a, b, c, run)
                publics.append(list(public_inputs(workload, assignment)))
                made.append(Instance(assignment, a, b, c))
            return made

        def verified(proofs: list[Proof], _blinding: list[Blinding]) -> list[bool]:
            return [verify(key.vk, proof, inputs) for proof, inputs in zip(proofs, publics, strict=True)]

        return Case(self.one.load_key(key, run), self.spread.load_key(key, run), instances, verified, lambda: None)


@dataclass
class Timed:
    proofs: list[Proof]
    wall_ms: float
    cpu_ms: float
    stages_ms: dict[str, float]
    busy_ms: dict[str, float]
    """Sum of the kernels by lane."""


def timed(key: ResidentKey, backend: Backend, case: Case, blinding: list[Blinding]) -> Timed:
    """One prove call, release of what it took itself included."""
    events: list[wire.Event] = []
    run = Run(events.append, "bench")
    arena = Arena(events.append, pool_budget_bytes=1 << 30)
    instances = case.instances()
    cpu_s, began_s = time.process_time(), time.perf_counter()
    proofs, _ = prove_batch(key, instances, backend, arena.scope("bench", wire.Policy.RECYCLE), run, blinding)
    wall_ms, cpu_ms = (time.perf_counter() - began_s) * 1e3, (time.process_time() - cpu_s) * 1e3
    arena.close()
    busy: dict[str, float] = {}
    for event in events:
        if isinstance(event, wire.Span) and event.lane.endswith(("s0", "short", "cpu")):
            busy[event.lane] = busy.get(event.lane, 0.0) + (event.t_ns - event.begin_ns) / 1e6
    return Timed(proofs, wall_ms, cpu_ms, covered_ms(events), busy)


def covered_ms(events: list[wire.Event]) -> dict[str, float]:
    """Wall time in which at least one run of each stage was open."""
    opened: dict[str, int] = {}
    since: dict[str, int] = {}
    total: dict[str, float] = {}
    for event in sorted(events, key=lambda e: e.t_ns):
        if isinstance(event, wire.StageBegan):
            if not opened.get(event.stage):
                since[event.stage] = event.t_ns
            opened[event.stage] = opened.get(event.stage, 0) + 1
        elif isinstance(event, wire.StageEnded):
            opened[event.stage] -= 1
            if not opened[event.stage]:
                total[event.stage] = total.get(event.stage, 0.0) + (event.t_ns - since[event.stage]) / 1e6
    return {str(stage): spent for stage, spent in total.items()}


def bytes_of(proofs: list[Proof]) -> bytes:
    return b"".join(encode_proof(proof) for proof in proofs)


def compare(site: Gpus | Cpus, size: str, circuits: int, repeats: int, dice: random.Random) -> dict[str, object]:
    """Interleaved runs of one job on one card and on all."""
    case = site.case(size, circuits)
    blinding = [Blinding(dice.randrange(R), dice.randrange(R)) for _ in range(circuits)]
    runs: dict[str, list[Timed]] = {"one": [], "all": []}
    backends: dict[str, tuple[ResidentKey, Backend]] = {
        "one": (case.one, site.one),
        "all": (case.all, site.spread),
    }
    equal, verified = [], []
    try:
        for repeat in range(repeats + 1):
            order = ["one", "all"] if repeat % 2 else ["all", "one"]
            pair = {name: timed(*backends[name], case, blinding) for name in order}
            equal.append(bytes_of(pair["one"].proofs) == bytes_of(pair["all"].proofs))
            say(f"{size}x{circuits}", *(f"{name} {pair[name].wall_ms:.1f} ms" for name in runs), "equal", equal[-1])
            if repeat == 0:
                verified = case.verified(pair["all"].proofs, blinding)
                continue
            for name, one in pair.items():
                runs[name].append(one)
    finally:
        case.close()
    ratios = [a.wall_ms / b.wall_ms for a, b in zip(runs["one"], runs["all"], strict=True)]
    return {
        "proofs_equal": equal, "verified": verified, "n": repeats,
        **{f"{name}_ms": spread_of([run.wall_ms for run in told]) for name, told in runs.items()},
        "speedup": spread_of(ratios, 3),
        **{f"{name}_cpu_ms": spread_of([run.cpu_ms for run in told]) for name, told in runs.items()},
        **{f"{name}_stages_ms": medians([run.stages_ms for run in told]) for name, told in runs.items()},
        **{f"{name}_busy_ms": medians([run.busy_ms for run in told]) for name, told in runs.items()},
    }  # fmt: skip


def medians(rows: list[dict[str, float]]) -> dict[str, float]:
    return {key: round(statistics.median(row.get(key, 0.0) for row in rows), 1) for key in rows[0]}


def spread_of(values: list[float], digits: int = 1) -> dict[str, float]:
    told = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {name: round(value, digits) for name, value in told.items()}


STARTED_S = time.monotonic()


def say(*words: object) -> None:
    print(f"[{time.monotonic() - STARTED_S:6.1f}]", *words, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="+")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "benchmarks/results")))
    parser.add_argument("--backend", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--cards", type=int, default=64, help="at most so many (cpu: exactly)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    site: Gpus | Cpus
    site = Gpus(options.out, options.seed, options.cards) if options.backend == "cuda" else Cpus(min(options.cards, 2))
    results = {**site.about, "seed": options.seed, "cards": list(site.spread.devices)}
    say("cards", results["cards"])
    dice = random.Random(options.seed)
    for job in options.jobs:
        size, _, circuits = job.rpartition("x")
        try:
            results[job] = compare(site, size, int(circuits), options.repeats, dice)
        except Exception as error:  # the sizes before it were measured, and the next may fit
            results[job] = {"failed": f"{type(error).__name__}: {error}"}
        say(job, json.dumps(results[job]))
        (options.out / "gpu_spread.json").write_text(json.dumps(results, indent=1) + "\n")
    site.spread.close()


if __name__ == "__main__":
    main()
