"""What being watched costs a prover: one job again and again on one prover, in pairs, with a collector and without.

Each watched job has a collector of its own, which was started and had loaded everything before the job begins. Wall
time counts; CPU time of the prover's process (ended threads included), synthesis and prove time stand beside it, so
that what the machine adds can be told from what watching adds. The figures are written after each pair.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from paired import orders, ratio

from cuzktui.sources.control import ControlClient
from prover import wire
from prover.proto import proving_pb2, proving_pb2_grpc

JOB_TIMEOUT_S = 300
SETTLE_S = 0.3
"""A collector whose stream has begun has loaded everything; its first looks at every thread are over in that time."""
LEFT_S = 0.1
"""Before a job that is alone a collector comes too, and leaves: what lies before a job is the same for both."""
FIGURES = ("wall_ms", "prover_cpu_ms", "synthesis_ms", "prove_ms")


@dataclass(frozen=True, slots=True)
class Job:
    """What is proved, and how often."""

    circuit: str
    circuits: int
    policy: str = "recycle"
    pairs: int = 40
    warm_ups: int = 2
    until_s: float = float("inf")
    """No pair begins after this moment of time.monotonic()."""


def process_cpu_ns(pid: int) -> int:
    """CPU time of a process, all threads it ever had: its CPU clock, whose number is made as glibc's
    clock_getcpuclockid makes it."""
    return time.clock_gettime_ns((~pid << 3) | 2)


class Prover:
    """A server of its own, and jobs on it one at a time.

    Args:
        command: what serves, given `--socket PATH` and `--owner-pid N` at its end.
    """

    def __init__(self, command: Sequence[str], job: Job) -> None:
        import grpc

        self.folder = Path(tempfile.mkdtemp(prefix="cz"))
        self.address = str(self.folder / "p.sock")
        self._job = job
        arguments = ["--socket", self.address, "--owner-pid", str(os.getpid())]
        self._process = subprocess.Popen([*command, *arguments], stdin=subprocess.DEVNULL)
        self.pid = self._process.pid
        self._control = ControlClient(self.address, "benchmark")
        self._control.wait_listening(30)
        self._engine = proving_pb2_grpc.ProvingEngineStub(grpc.insecure_channel(f"unix:{self.address}"))

    def prove(self) -> dict[str, float]:
        """One job from request to reply."""
        cpu_ns, began = process_cpu_ns(self.pid), time.perf_counter()
        job_id = self._control.submit(self._job.circuit, self._job.circuits, self._job.policy)
        request = proving_pb2.AwaitProofRequest(job_id=job_id, timeout_ms=JOB_TIMEOUT_S * 1000)
        reply = self._engine.AwaitProof(request, timeout=JOB_TIMEOUT_S + 10)
        wall_ms = (time.perf_counter() - began) * 1e3
        if reply.status != proving_pb2.AwaitProofResponse.COMPLETED:
            raise RuntimeError(f"the job failed: {reply.error_message}")
        return {
            "wall_ms": round(wall_ms, 3), "prover_cpu_ms": round((process_cpu_ns(self.pid) - cpu_ns) / 1e6, 3),
            "synthesis_ms": reply.synthesis_ms, "prove_ms": reply.gpu_compute_ms,
        }  # fmt: skip

    def close(self) -> None:
        self._control.close()
        self._process.terminate()
        self._process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def watched(self, *arguments: str) -> Iterator[int]:
        """A collector that follows this prover's events; its process id."""
        record = self.folder / "watched.jsonl"
        command = [sys.executable, "-m", "cuzktui.collector", "--owned", "--prover-socket", self.address, *arguments]
        command += ["--pid", str(self.pid), "--record", str(record)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as collector:
            assert collector.stdin and collector.stdout
            for line in collector.stdout:
                event = wire.decode(line)
                if isinstance(event, wire.SourceChanged) and event.source == "prover":
                    break
            drain = subprocess.Popen(["cat"], stdin=collector.stdout, stdout=subprocess.DEVNULL)
            try:
                time.sleep(SETTLE_S)
                yield collector.pid
            finally:
                collector.stdin.close()
                collector.wait(10)
                drain.wait(10)
                record.unlink(missing_ok=True)


def measure(
    command: Sequence[str], job: Job, collector_arguments: Sequence[str], told: Callable[[dict[str, object]], None]
) -> dict[str, object]:
    """All pairs.

    Args:
        command: see `Prover`.
        told: takes the figures so far, after each pair.
    """
    prover = Prover(command, job)
    facts: dict[str, object] = {"job": {k: v for k, v in asdict(job).items() if k != "until_s"}}
    watched: list[dict[str, float]] = []
    alone: list[dict[str, float]] = []
    try:
        for _ in range(job.warm_ups):
            prover.prove()
        for watched_first in orders(job.pairs):
            if time.monotonic() > job.until_s:
                break
            for is_watched in (watched_first, not watched_first):
                if is_watched:
                    watched.append(_while_watched(prover, collector_arguments))
                else:
                    with prover.watched(*collector_arguments):
                        pass
                    time.sleep(LEFT_S)
                    alone.append(prover.prove())
            facts |= summary(watched, alone)
            told(facts)
    finally:
        prover.close()
    return facts


def _while_watched(prover: Prover, arguments: Sequence[str]) -> dict[str, float]:
    with prover.watched(*arguments) as collector:
        cpu_ns, began = process_cpu_ns(collector), time.monotonic()
        figures = prover.prove()
        took_s = time.monotonic() - began
        figures["collector_core_percent"] = round((process_cpu_ns(collector) - cpu_ns) / took_s / 1e7, 3)
    return figures


def summary(watched: list[dict[str, float]], alone: list[dict[str, float]]) -> dict[str, object]:
    """Watched over alone, and the collector's share of a core over all watched jobs."""
    ratios = {
        name: ratio([w[name] for w in watched], [a[name] for a in alone])
        for name in FIGURES if all(run[name] > 0 for run in (*watched, *alone))
    }  # fmt: skip
    wall_ms = sum(w["wall_ms"] for w in watched)
    core = sum(w["collector_core_percent"] * w["wall_ms"] for w in watched) / wall_ms
    raw = [{"watched": w, "alone": a} for w, a in zip(watched, alone, strict=True)]
    return {"watched_over_alone": ratios, "collector_core_percent": round(core, 3), "raw": raw}


def line(facts: dict[str, object]) -> str:
    """The last pair and the ratios so far, for a terminal."""
    ratios, raw = facts["watched_over_alone"], facts["raw"]
    assert isinstance(ratios, dict) and isinstance(raw, list)
    told = "  ".join(f"{name} {r['ratio']:.4f} {r['ratio_95']}" for name, r in ratios.items())
    last = raw[-1]
    return (
        f"{len(raw):3} watched {last['watched']['wall_ms']:.1f} ms, alone {last['alone']['wall_ms']:.1f} ms; collector "
        f"{facts['collector_core_percent']} % | {told}"
    )


def write(path: Path, machine: dict[str, object], facts: dict[str, object]) -> None:
    """The machine first, then the figures."""
    path.write_text(json.dumps({"machine": machine} | facts, indent=1) + "\n")
