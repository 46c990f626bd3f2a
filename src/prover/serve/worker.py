"""The worker owns everything heavy: it alone imports backends, makes keys and proves, one thing at a time.

What others may ask of it (loaded keys, devices, circuits) is answered from what it has published, without waiting.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prover import wire
from prover.errors import BadRequest, Cancelled, ProverError, UnknownCircuit
from prover.run import Run, now
from prover.serve.job import Job, Result, wire_kind
from prover.serve.queue import JobQueue
from prover.serve.report import Gpu
from prover.serve.shelf import Entry
from prover.wire import Policy, Stage

if TYPE_CHECKING:
    from prover.arena import Arena
    from prover.jobs import Prover
    from prover.keys import ProvingKey
    from prover.serve.workloads import Workloads
    from prover.workload import Workload

NO_SUCH_PROOF = "{kind} proofs cannot be made by this prover: only porep-c2, built-in circuits and zkey files can"


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    backend: str = "auto"
    threads: int = 0
    """0: as many as cores."""
    pool_bytes: int = 8 << 30
    """What the policy `recycle` may keep."""
    placement: str = "auto"
    """Where a GPU's keys live between proofs."""
    gpus: tuple[int, ...] = ()
    """CUDA numbers of the cards to use; empty: every one."""


class Worker:
    """Runs the queue's jobs.

    Args:
        queue: whose jobs to run.
        options: how.
    """

    def __init__(self, queue: JobQueue, options: WorkerOptions) -> None:
        self._queue, self._options = queue, options
        self._threads = options.threads or len(os.sched_getaffinity(0))
        self._start = Run(queue.hub.emit)
        self._arena: Arena | None = None
        self._workloads: Workloads | None = None
        self._provers: dict[str, Prover] = {}
        self._in_use = ""
        """Name of the workload that is being proved."""
        self._why_not_gpu = ""
        self._shelf: list[tuple[Entry, ProvingKey]] = []
        self._shelf_lock = threading.Lock()

    def work(self) -> None:
        """The worker thread: warm up, then jobs until the queue is stopped, then give everything back."""
        try:
            self._warm_up()
            self._queue.work(self._execute)
        finally:
            provers = set(self._provers.values())
            for prover in provers:
                prover.evict()
            if self._arena is not None:
                self._arena.close()  # unpins, so before the device goes
            for prover in provers:
                prover.backend.close()

    def cancel(self) -> None:
        """Stops the warm-up, if that is what the worker is at."""
        self._start.cancel()

    def list_circuits(self) -> list[str]:
        """Usage lines of the built-in circuits."""
        from prover.circuits.registry import ENTRIES

        return [f"{entry.usage}: {entry.about}" for entry in ENTRIES]

    def gpus(self) -> list[Gpu]:
        """Cards that jobs go to; empty on a CPU."""
        prover = self._provers.get("cuda")
        return _read_gpus(getattr(prover.backend, "cards", ())) if prover is not None else []

    def entries(self) -> list[Entry]:
        """See `Shelf`."""
        with self._shelf_lock:
            entries = [entry for entry, _ in self._shelf]
        return [Entry(e.circuit_id, e.size_bytes, e.circuit_id == self._in_use, e.last_used_ns) for e in entries]

    def preload(self, circuit_id: str) -> int | None:
        """See `Shelf`."""
        if any(entry.circuit_id == circuit_id for entry in self.entries()):
            return None

        def load() -> int:
            began_ns = now()
            try:
                workload = self._made().builtin(circuit_id, 1)
            except UnknownCircuit as error:
                raise UnknownCircuit(f"unknown circuit ID: {circuit_id} ({error})") from None
            run = Run(self._queue.hub.emit)
            prover = self._prover(self._options.backend, run)
            try:
                with run.stage(Stage.SETUP):
                    key = workload.proving_key(run)
                with run.stage(Stage.SRS):
                    prover.load(key, run)
            finally:
                self._announce()
            self._publish(workload.name, prover)
            return now() - began_ns

        return self._queue.call(load)

    def evict(self, circuit_id: str) -> int | None:
        """See `Shelf`."""
        if not any(entry.circuit_id == circuit_id for entry in self.entries()):
            return None
        return self._queue.call(lambda: self._evict(circuit_id))

    def _evict(self, circuit_id: str) -> int:
        with self._shelf_lock:
            gone = [key for entry, key in self._shelf if entry.circuit_id == circuit_id]
            self._shelf = [(entry, key) for entry, key in self._shelf if entry.circuit_id != circuit_id]
        freed_bytes = sum(prover.evict(key) for prover in set(self._provers.values()) for key in gone)
        for key in gone:
            self._made().forget(key)
        return freed_bytes

    def _warm_up(self) -> None:
        """Compiles what a proof needs before a job asks for it; a failure is told, and tried again by the job."""
        try:
            self._prover(self._options.backend, self._start)
        except Cancelled:
            return
        except ProverError as error:
            self._start.notice(str(error), "error")
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            self._start.notice(f"the backend could not be loaded: {type(error).__name__}: {error}", "error")

    def _prover(self, backend_name: str, run: Run) -> Prover:
        """The prover of a backend, warmed up under Stage.COMPILE when it is new.

        Raises:
            BackendError: it cannot run here, or is lost.
        """
        if backend_name in self._provers:
            self._provers[backend_name].require_backend()
            return self._provers[backend_name]
        with run.stage(Stage.COMPILE):
            run.progress(Stage.COMPILE, 0, 1, what="loading the prover")
            from prover.arena import Arena
            from prover.backends.select import make_backend
            from prover.jobs import Prover
            from prover.keycache import cache_dir
            from prover.warm import warm_up

            self._made()
            backend, why_not_gpu = make_backend(
                backend_name, self._threads, self._options.placement, self._options.gpus
            )
            warm_up(backend, run, with_setup=not any((cache_dir() / "keys").glob("*.key")))
        hub = self._queue.hub
        if self._arena is None:
            self._arena = Arena(hub.emit, self._options.pool_bytes, getattr(backend, "pinner", None))
        prover = Prover(backend, self._arena)
        self._provers[backend_name] = self._provers[backend.name] = prover
        if backend_name == self._options.backend:
            self._why_not_gpu = why_not_gpu
            self._announce()
        return prover

    def _announce(self) -> None:
        """Says on what jobs run that name no backend, and again when the GPUs are lost."""
        usual, hub = self._provers.get(self._options.backend), self._queue.hub
        if usual is None:
            return
        backend = usual.backend
        devices = [] if backend.name == "reference" else list(backend.devices)
        lost = next((prover.backend.lost for prover in self._provers.values() if prover.backend.lost), "")
        if (backend.name, devices, lost) != (hub.hello.backend, hub.hello.devices, hub.hello.gpu_lost):
            hub.backend_loaded(backend.name, devices, self._why_not_gpu, lost)

    def _made(self) -> Workloads:
        from prover.serve.workloads import Workloads

        if self._workloads is None:
            self._workloads = Workloads(self._threads)
        return self._workloads

    def _execute(self, job: Job) -> Result:
        try:
            return self._prove(job)
        finally:
            self._announce()

    def _prove(self, job: Job) -> Result:
        request, run = job.request, job.run
        if request.kind not in ("circuit", "file", "porep-c2") and not request.circuit:
            raise BadRequest(NO_SUCH_PROOF.format(kind=request.kind))
        with run.stage(Stage.SETUP):
            prover = self._prover(request.backend or self._options.backend, run)
            made = self._made()
            made.use(prover.backend)
            workload = made.of(request, run)
        job.num_circuits = workload.num_circuits
        prepared_ms = (now() - (job.started_ns or now())) / 1e6
        policy = job.policy or Policy.RECYCLE
        self._queue.hub.emit(sized(job, workload, policy))
        self._in_use = workload.name
        try:
            result = prover.run_job(workload, policy, run, queued_ns=job.queue_ns)
        finally:
            self._in_use = ""
            if run.stage_name in (Stage.SYNTH, Stage.PROVE, Stage.VERIFY):
                self._publish(workload.name, prover)
        publics = [[str(value) for value in inputs] for inputs in result.public_inputs]
        metrics = result.metrics | {
            name: round(float(result.metrics[name] or 0) + prepared_ms, 3) for name in ("setup_ms", "total_ms")
        }
        metrics["key_file"] = self._made().key_file(request, prover.resident_keys()[-1])
        return Result(result.proof_bytes, publics, result.verified, metrics)

    def _publish(self, title: str, prover: Prover) -> None:
        """Tells the shelf what is loaded, `title` being the name of the key used last."""
        loaded = [key for other in set(self._provers.values()) for key in other.resident_keys()]
        last = prover.resident_keys()[-1:]
        with self._shelf_lock:
            shelf = [(e, k) for e, k in self._shelf if any(k is x for x in loaded) and not any(k is x for x in last)]
            self._shelf = shelf + [(Entry(title, key.size_bytes, False, now()), key) for key in last]


def sized(job: Job, workload: Workload, policy: Policy) -> wire.JobSubmitted:
    """The job's first event again, with what was not known then."""
    return wire.JobSubmitted(
        t_ns=job.submitted_ns, job_id=job.job_id, circuit=workload.name, num_circuits=workload.num_circuits,
        policy=policy, kind=wire_kind(job.request.kind), num_constraints=workload.num_constraints,
        domain_size=workload.domain_size, client=job.request.client,
    )  # fmt: skip


def _read_gpus(cards: Sequence[tuple[int, str]]) -> list[Gpu]:
    """What NVML says of cards given by CUDA number and PCI address; empty where it cannot."""
    try:
        import pynvml

        pynvml.nvmlInit()
        found = []
        for ordinal, address in cards:
            handle = pynvml.nvmlDeviceGetHandleByPciBusId(address)
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
            found.append(Gpu(ordinal, str(pynvml.nvmlDeviceGetName(handle)), int(memory.total), int(memory.free)))
        return found
    except Exception:  # a driver may fail in any way, and a status must not
        return []
