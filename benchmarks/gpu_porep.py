"""PoRep C2 on a GPU: small sectors first, then one partition of the 32 GiB shape from a sparse sector, stage by stage.

Usage: python benchmarks/gpu_porep.py --out FOLDER [--small 2KiB 8MiB] [--large 32GiB] [--challenges N]
The test keys are made in device memory and exist nowhere else. Each step writes its figures as soon as it has them, so
a step that fails leaves those before it and its own error. A collector of its own process watches and records.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from prover import wire
from prover.arena import Arena
from prover.backends import Backend
from prover.jobs import Prover, describe
from prover.keys import ProvingKey
from prover.porep.circuit import StackedCircuit, build
from prover.porep.sector import SectorNames, sparse
from prover.porep.shapes import registered_of, shape_of
from prover.porep.workload import PorepWorkload, check_constraints
from prover.r1cs.matrices import R1cs
from prover.run import Run, now
from prover.wire import Owner, Place, Policy, Stage

STARTED_S = time.monotonic()
POOL_BYTES = 40 << 30


def say(*words: object) -> None:
    print(f"[{time.monotonic() - STARTED_S:6.1f}]", *words, flush=True)


def peak_rss_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class DeviceKeys:
    """Test keys by circuit, made where the backend keeps them."""

    def __init__(self, backend: Backend, threads: int) -> None:
        self.backend, self.threads = backend, threads
        self._made: dict[int, ProvingKey] = {}
        self.on_host = ""
        """Why a key had to be made in host memory."""

    def key_for(self, r1cs: R1cs, run: Run) -> ProvingKey:
        if id(r1cs) not in self._made:
            self._made[id(r1cs)] = self._make(r1cs, run)
        return self._made[id(r1cs)]

    def _make(self, r1cs: R1cs, run: Run) -> ProvingKey:
        from prover.setup import test_setup

        if hasattr(self.backend, "resident_setup"):
            try:
                return self.backend.resident_setup(r1cs, run)
            except Exception as error:  # the proof can still be made, from a key in host memory
                self.on_host = f"{type(error).__name__}: {error}"
                traceback.print_exc()
        return test_setup(r1cs, run, threads=self.threads, bases=self.backend.fixed_bases())


class Watcher:
    """The collector, watching this process; its events and ours become one recording."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._file = (out / "collector.jsonl").open("wb")
        command = [sys.executable, "-m", "cuzktui.collector", "--pid", str(os.getpid())]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=self._file, stderr=subprocess.DEVNULL)

    def finish(self, events: list[wire.Event], name: str) -> int:
        """Ends the collector; writes the recording; returns its bytes."""
        time.sleep(1.0)
        assert self._child.stdin is not None
        self._child.stdin.close()
        try:
            self._child.wait(5)
        except subprocess.TimeoutExpired:
            self._child.kill()
        self._file.close()
        source = self._out / "collector.jsonl"
        seen: list[wire.Event] = []
        for line in source.read_bytes().splitlines(keepends=True):
            event = wire.decode(line) if line.endswith(b"\n") else None
            if isinstance(event, wire.ProcessSeen):
                event = wire.ProcessSeen(t_ns=event.t_ns, pid=event.pid, command="prover", role="prover")
            if event is not None:
                seen.append(event)
        source.unlink()
        merged = sorted([*seen[1:], *events], key=lambda event: event.t_ns)
        data = gzip.compress(b"".join(wire.encode(event) for event in [*seen[:1], *merged]), 6)
        (self._out / name).write_bytes(data)
        return len(data)


class Bench:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.out: Path = arguments.out
        self.threads = arguments.threads or len(os.sched_getaffinity(0))
        self.events: list[wire.Event] = []
        self.results: dict[str, object] = {"machine": machine(), "threads": self.threads, "steps": {}}
        say(json.dumps(self.results["machine"]))
        self.save()
        self.step("warm up", lambda: self.warm_up(arguments.backend))
        self.events.append(
            wire.Hello(
                t_ns=now(), unix_ns=time.time_ns(), source="prover", pid=os.getpid(), backend=self.backend.name,
                devices=list(self.backend.devices),
            )
        )  # fmt: skip
        self.arena = Arena(self.events.append, POOL_BYTES, getattr(self.backend, "pinner", None))
        self.prover = Prover(self.backend, self.arena, key_budget_bytes=100 << 30)

    def save(self) -> None:
        (self.out / "gpu_porep.json").write_text(json.dumps(self.results, indent=1) + "\n")

    def step(self, name: str, work: Callable[[], dict[str, object]]) -> bool:
        """Runs one step; a failure is written down with its place and is not raised."""
        say(name)
        began = time.monotonic()
        steps = self.results["steps"]
        assert isinstance(steps, dict)
        try:
            row = work()
        except Exception as error:  # every failure is a result here
            traceback.print_exc()
            row = {"failed": f"{type(error).__name__}: {error}", "at": traceback.format_exc().splitlines()[-4:-1]}
        row = {"wall_s": round(time.monotonic() - began, 3), **row, "peak_rss_bytes": peak_rss_bytes(), **self.device()}
        steps[name] = row
        self.save()
        say(name, json.dumps(row))
        return "failed" not in row

    def device(self) -> dict[str, object]:
        pinner = getattr(getattr(self, "backend", None), "pinner", None)
        if not hasattr(pinner, "pool_bytes"):  # no GPU, or several
            return {}
        used, held = pinner.pool_bytes
        return {"device_used_bytes": used, "device_held_bytes": held, "device_free_bytes": pinner.memory_bytes[0]}

    def warm_up(self, name: str) -> dict[str, object]:
        """Other processes fill the cache of compiled synthesis and setup while this one compiles kernels."""
        from prover.backends.select import make_backend

        compile_part = [sys.executable, __file__, "--warm-only"]
        children = [subprocess.Popen([*compile_part, part]) for part in ("setup", "synthesis")]
        self.backend, _ = make_backend(name, self.threads)
        began = time.monotonic()
        self.backend.warm_up(self.run(""))
        backend_s = time.monotonic() - began
        codes = [child.wait() for child in children]
        return {"backend_s": round(backend_s, 2), "child_exit_codes": codes, "devices": list(self.backend.devices)}

    def run(self, job_id: str) -> Run:
        return Run(self.events.append, job_id)

    def workload(self, circuit: StackedCircuit, keys: DeviceKeys) -> tuple[PorepWorkload, float]:
        began = time.monotonic()
        proof = registered_of(shape_of(circuit.layout.shape.name))
        if proof.shape != circuit.layout.shape:
            proof = replace(proof, shape=circuit.layout.shape)
        output = sparse(proof, SectorNames(), threads=self.threads)
        sector_s = time.monotonic() - began
        return PorepWorkload(output, keys, circuit=circuit, threads=self.threads, partitions=[0]), sector_s

    def prove(self, job_id: str, workload: PorepWorkload, policy: Policy) -> dict[str, object]:
        """One job of the prover, told like a service tells it; verified by the library before it returns."""
        run, first = self.run(job_id), len(self.events)
        run.emit(describe(job_id, workload, policy, "benchmark"))
        result = self.prover.run_job(workload, policy, run)
        run.emit(
            wire.JobEnded(
                t_ns=now(), job_id=job_id, outcome=result.outcome, proof_hex=result.proof_bytes.hex(),
                verified=result.verified, metrics=result.metrics,
            )
        )  # fmt: skip
        return {
            "verified": result.verified, "proof_bytes": len(result.proof_bytes), "metrics": result.metrics,
            "stages_ms": stages_ms(self.events[first:]), "spans_ms": spans_ms(self.events[first:]),
        }  # fmt: skip

    def small(self, name: str) -> None:
        """Key, then two proofs: the first one also compiles what was not compiled yet."""
        keys = DeviceKeys(self.backend, self.threads)
        made: list[PorepWorkload] = []

        def key() -> dict[str, object]:
            circuit = build(shape_of(name))
            workload, sector_s = self.workload(circuit, keys)
            made.append(workload)
            began = time.monotonic()
            resident = keys.key_for(circuit.r1cs, self.run(""))
            setup_s = round(time.monotonic() - began, 3)
            return {"sector_s": round(sector_s, 3), "setup_s": setup_s, "key_bytes": resident.size_bytes,
                    "in_host_memory": keys.on_host, **sizes(circuit)}  # fmt: skip

        if self.step(f"{name}: key", key):
            self.step(f"{name}: first proof", lambda: self.prove(f"{name}-1", made[0], Policy.RECYCLE))
            self.step(f"{name}: second proof", lambda: self.prove(f"{name}-2", made[0], Policy.RECYCLE))
        self.prover.evict()

    def large(self, name: str, challenges: int | None, policies: list[Policy]) -> None:
        """Synthesis alone (cold buffers, then pooled ones), the key, a proof under each policy."""
        keys = DeviceKeys(self.backend, self.threads)
        made: list[PorepWorkload] = []

        def sector() -> dict[str, object]:
            shape = shape_of(name)
            began = time.monotonic()
            circuit = build(replace(shape, challenges=challenges) if challenges else shape)
            build_s = time.monotonic() - began
            workload, sector_s = self.workload(circuit, keys)
            made.append(workload)
            return {"build_s": round(build_s, 3), "sector_s": round(sector_s, 3), **sizes(circuit)}

        if not self.step(f"{name}: circuit and sector", sector):
            return
        workload = made[0]
        for which in ("new", "pooled"):
            self.step(f"{name}: synthesis into {which} buffers", lambda: self.synthesise(workload))
        if not self.step(f"{name}: key", lambda: self.key(keys, workload)):
            return
        for policy in policies:
            proof = partial(self.prove, f"{name}-{policy}", workload, policy)
            self.step(f"{name}: proof, {policy}", proof)

    def synthesise(self, workload: PorepWorkload) -> dict[str, object]:
        """Witness and a/b/c of one partition into buffers of the arena, as a job does it."""
        run, first = self.run("synthesis"), len(self.events)
        scope = self.arena.scope("synthesis", Policy.RECYCLE)
        began = time.monotonic()
        cpu = time.process_time()
        assignment = scope.array("assignment", Owner.ASSIGNMENT, (workload.num_wires, 4))
        workload.witness(0, assignment, run)
        witness_s = time.monotonic() - began
        mapped = time.monotonic()
        rows = (workload.domain_size, 4)
        a, b, c = (scope.array(side, Owner.ABC, rows, place=Place.PINNED) for side in "abc")
        map_s = time.monotonic() - mapped
        workload.eval_abc(0, assignment, a, b, c, run)
        wall_s = time.monotonic() - began
        row: dict[str, object] = {
            "synthesis_s": round(wall_s, 3), "witness_s": round(witness_s, 3), "map_and_pin_abc_s": round(map_s, 3),
            "evaluate_and_check_s": round(wall_s - witness_s - map_s, 3), "cpu_s": round(time.process_time() - cpu, 2),
            "arena_bytes": scope.size_bytes, "spans_ms": spans_ms(self.events[first:]),
        }  # fmt: skip
        del assignment, a, b, c
        scope.release()
        return row

    def key(self, keys: DeviceKeys, workload: PorepWorkload) -> dict[str, object]:
        first = len(self.events)
        key = keys.key_for(workload.circuit.r1cs, self.run(""))
        begins: dict[str, int] = {}
        for event in self.events[first:]:
            if isinstance(event, wire.Progress) and event.what:
                begins.setdefault(event.what, event.t_ns)
        marks = [*begins.items(), ("", now())]
        parts = {what: round((marks[i + 1][1] - t) / 1e9, 2) for i, (what, t) in enumerate(marks[:-1])}
        return {"key_bytes": key.size_bytes, "in_host_memory": keys.on_host, "parts_s": parts, "points": {
            "a": len(key.a_query.points), "b": len(key.b_g1_query.points), "l": len(key.l_query.points),
            "h": len(key.h_query)}}  # fmt: skip


def sizes(circuit: StackedCircuit) -> dict[str, object]:
    r1cs = circuit.r1cs
    return {
        "constraints": r1cs.num_constraints, "wires": r1cs.num_wires, "public_inputs": r1cs.num_public,
        "domain": r1cs.domain_size, "nnz": list(r1cs.nnz),
    }  # fmt: skip


def stages_ms(events: list[wire.Event]) -> dict[str, float]:
    began: dict[tuple[Stage, int | None], int] = {}
    total: dict[str, float] = {}
    for event in events:
        if isinstance(event, wire.StageBegan):
            began[(event.stage, event.circuit)] = event.t_ns
        elif isinstance(event, wire.StageEnded) and (event.stage, event.circuit) in began:
            taken_ms = (event.t_ns - began[(event.stage, event.circuit)]) / 1e6
            total[event.stage.value] = round(total.get(event.stage.value, 0.0) + taken_ms, 2)
    return total


def spans_ms(events: list[wire.Event], most: int = 24) -> dict[str, float]:
    total: dict[str, float] = {}
    for event in events:
        if isinstance(event, wire.Span):
            total[event.name] = total.get(event.name, 0.0) + (event.t_ns - event.begin_ns) / 1e6
    return {name: round(ms, 2) for name, ms in sorted(total.items(), key=lambda kv: -kv[1])[:most]}


def machine() -> dict[str, object]:
    import platform

    def ask(command: list[str]) -> str:
        try:
            return subprocess.run(command, check=False, capture_output=True, text=True, timeout=20).stdout.strip()
        except OSError:
            return ""

    query = "name,driver_version,clocks.sm,clocks.mem,power.draw,memory.total"
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    meminfo = Path("/proc/meminfo").read_text().split()
    huge = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return {
        "gpu": ask(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]), "cpu": (cpu or ["unknown"])[0],
        "cores": len(os.sched_getaffinity(0)), "mem_total_bytes": int(meminfo[1]) * 1024, "kernel": platform.release(),
        "huge_pages": huge.read_text().strip() if huge.exists() else "", "python": platform.python_version(),
        "load_1min": os.getloadavg()[0], "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }  # fmt: skip


def warm_only(part: str) -> None:
    """Compiles the scalar part of a setup, or synthesis and its checks, on the smallest circuits."""
    from prover.circuits.registry import build as build_circuit
    from prover.keys import HBasis
    from prover.run import silent
    from prover.setup import ToxicWaste, setup_scalars

    if part == "setup":
        setup_scalars(build_circuit("cubic").r1cs, ToxicWaste.draw(), silent(), 1, HBasis.LAGRANGE_ODD)
        return
    output = sparse(registered_of(shape_of("2KiB")), SectorNames(), threads=2)
    check_constraints(PorepWorkload(output, _NoKeys(), threads=2), silent())


class _NoKeys:
    def key_for(self, r1cs: R1cs, run: Run) -> ProvingKey:
        raise AssertionError("checking constraints needs no key")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "benchmarks/results")))
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--small", nargs="*", default=["2KiB", "8MiB"])
    parser.add_argument("--large", default="32GiB")
    parser.add_argument("--challenges", type=int, help="fewer than the shape has, for a trial on a small machine")
    parser.add_argument("--policies", default="recycle,sync-4k")
    parser.add_argument("--warm-only", choices=("setup", "synthesis"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.warm_only:
        warm_only(arguments.warm_only)
        return
    watcher = Watcher(arguments.out)
    bench = Bench(arguments)
    for name in arguments.small:
        bench.small(name)
    if arguments.large:
        bench.large(arguments.large, arguments.challenges, [Policy(p) for p in arguments.policies.split(",")])
    size_bytes = watcher.finish(bench.events, "gpu_porep_run.jsonl.gz")
    say("recording", size_bytes, "bytes; peak RSS", peak_rss_bytes())
    bench.prover.close()


if __name__ == "__main__":
    main()
