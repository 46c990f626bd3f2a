"""A server whose worker does what the GPU path's thread does: thousands of short C calls outside the interpreter lock.

Usage: python benchmarks/launcher.py pairs [--pairs N] [--launches N] [--out FILE]     compares watched and alone
       python benchmarks/launcher.py serve --socket PATH --owner-pid N               what is compared
Whatever takes the interpreter in that process delays the next launch, so the cost of being watched shows here on a
machine without a GPU. Server, queue, hub, gRPC and collector are the real ones; stages, spans and progress come at the
rate of a recorded GPU job (a verb of some 10 ms tells a dozen spans), and the waits of such a job, which nobody can
disturb, are calls here too. Synthesis and prove time leave out what the thread waited for a core.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from prover import wire
from prover.run import Run, now
from prover.serve.job import Job, Result
from prover.serve.server import ServeOptions, Server
from prover.serve.worker import Worker
from prover.wire import Policy, Stage

SPANS = 12
"""Told of one verb of one circuit."""
KERNEL_BYTES = 24_576
"""Filled by one call: about 1 µs outside the interpreter lock."""
IDLE_THREADS = 40
"""A GPU host's prover has as many that sleep: pools, the driver's, gRPC's."""
SYNTH_STEPS = 40
"""Chunks of one circuit's evaluation, each told as progress."""


class Launcher(Worker):
    """A worker without a backend."""

    launches = 2000
    """Calls of a verb."""

    def work(self) -> None:
        self._queue.work(self._execute)

    def _execute(self, job: Job) -> Result:
        run, memory = job.run, ctypes.create_string_buffer(KERNEL_BYTES)
        began_ns = _undisturbed_ns()
        with run.stage(Stage.SYNTH):
            for circuit in range(job.request.num_circuits):
                self._synthesize(run, circuit, memory)
        synth_ns = _undisturbed_ns() - began_ns
        with run.stage(Stage.PROVE):
            self._verbs(run, Stage.B_G2_MSM, job.request.num_circuits, memory)
            for circuit in range(job.request.num_circuits):
                for stage in (Stage.NTT_H, Stage.MSM_H):
                    with run.stage(stage, circuit):
                        self._verb(run, stage, circuit, memory)
            for stage in (Stage.BATCH_ADD, Stage.TAIL_MSM):
                self._verbs(run, stage, job.request.num_circuits, memory)
            inner_ns = _undisturbed_ns() - began_ns - synth_ns
            run.emit(wire.InnerEnded(t_ns=now(), job_id=run.job_id, inner_ns=inner_ns))
        outer_ns = _undisturbed_ns() - began_ns - synth_ns
        run.emit(wire.OuterEnded(t_ns=now(), job_id=run.job_id, outer_ns=outer_ns))
        metrics: dict[str, float | int | str | None] = {
            "synth_ms": synth_ns / 1e6, "inner_ms": inner_ns / 1e6, "outer_ms": outer_ns / 1e6,
            "total_ms": (_undisturbed_ns() - began_ns) / 1e6,
        }  # fmt: skip
        return Result(b"", [], True, metrics)

    def _synthesize(self, run: Run, circuit: int, memory: ctypes.Array[ctypes.c_char]) -> None:
        with run.stage(Stage.EVAL_ABC, circuit):
            for step in range(SYNTH_STEPS):
                for _ in range(self.launches // 4):
                    _launch(memory)
                run.progress(Stage.EVAL_ABC, step + 1, SYNTH_STEPS, "rows", circuit=circuit)

    def _verbs(self, run: Run, stage: Stage, circuits: int, memory: ctypes.Array[ctypes.c_char]) -> None:
        with run.stage(stage):
            for circuit in range(circuits):
                self._verb(run, stage, circuit, memory)

    def _verb(self, run: Run, stage: Stage, circuit: int, memory: ctypes.Array[ctypes.c_char]) -> None:
        begin_ns = now()
        for _ in range(self.launches):
            _launch(memory)
        for _ in range(SPANS):
            run.emit(
                wire.Span(
                    t_ns=now(), job_id=run.job_id, name="g1_sums", begin_ns=begin_ns, stage=stage, circuit=circuit,
                    lane="cuda:0 s0", ops=1, op="g1_add", moved_bytes=1, roof_percent=50.0, error_ns=10_000,
                )
            )  # fmt: skip


def _undisturbed_ns() -> int:
    """A clock that stands still while this thread waits for a core, which on the GPU host it never does."""
    with open("/proc/thread-self/schedstat", "rb") as file:
        return now() - int(file.read().split()[1])


def _launch(memory: ctypes.Array[ctypes.c_char]) -> None:
    """Four calls into C, as a timed launch makes them (device, event, kernel, event), and the Python between them."""
    for value in range(4):
        ctypes.memset(memory, value, KERNEL_BYTES)


def serve(options: argparse.Namespace) -> None:
    Launcher.launches = options.launches
    for _ in range(IDLE_THREADS):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    server = Server(ServeOptions(options.socket, policy=Policy.RECYCLE, owner_pid=options.owner_pid))
    server.worker = Launcher(server.queue, server.options.worker)
    sys.exit(server.run())


def pairs(options: argparse.Namespace) -> None:
    from watched_pairs import Job as Pairs
    from watched_pairs import line, measure, write

    machine: dict[str, object] = {
        "cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version(),
        "load_before": os.getloadavg()[0], "unix_s": int(time.time()),
    }  # fmt: skip

    def told(facts: dict[str, object]) -> None:
        print(line(facts), flush=True)
        write(options.out, machine, facts)

    command = [sys.executable, __file__, "serve", "--launches", str(options.launches)]
    measure(command, Pairs("launches", options.circuits, pairs=options.pairs), ["--no-gpu"], told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(required=True)
    server = verbs.add_parser("serve")
    server.add_argument("--socket", type=Path, required=True)
    server.add_argument("--owner-pid", type=int, required=True)
    server.add_argument("--launches", type=int, default=2000)
    server.set_defaults(run=serve)
    compared = verbs.add_parser("pairs")
    compared.add_argument("--pairs", type=int, default=40)
    compared.add_argument("--circuits", type=int, default=10)
    compared.add_argument("--launches", type=int, default=2000)
    compared.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "launcher.json")
    compared.set_defaults(run=pairs)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
