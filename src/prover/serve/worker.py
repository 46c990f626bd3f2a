"""The worker owns everything heavy: it alone imports backends, makes keys and proves, one thing at a time.

What others may ask of it (loaded keys, devices, circuits) is answered from what it has published, without waiting.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prover import wire
from prover.errors import BadFile, BadRequest, Cancelled, ProverError, UnknownCircuit
from prover.run import Run, now
from prover.serve.job import Job, Result, wire_kind
from prover.serve.queue import JobQueue
from prover.serve.report import Gpu
from prover.serve.shelf import Entry
from prover.wire import Policy, Stage

if TYPE_CHECKING:
    from prover.arena import Arena
    from prover.circuits.circuit import Circuit
    from prover.files.zkey import Zkey
    from prover.jobs import Prover
    from prover.key_file import KeyFile
    from prover.keycache import KeyCache
    from prover.keys import ProvingKey
    from prover.porep.circuit import StackedCircuit
    from prover.workload import Workload

KEPT_ZKEYS = 2
KEPT_CIRCUITS = 4
KEPT_KEY_FILES = 2
NO_SUCH_PROOF = "{kind} proofs cannot be made by this prover: only porep-c2, built-in circuits and zkey files can"


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    backend: str = "auto"
    threads: int = 0
    """0: as many as cores."""
    pool_bytes: int = 8 << 30
    """What the policy `recycle` may keep."""


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
        self._keys: KeyCache | None = None
        self._provers: dict[str, Prover] = {}
        self._circuits: OrderedDict[str, Circuit] = OrderedDict()
        self._zkeys: OrderedDict[tuple[str, int, int], Zkey] = OrderedDict()
        self._key_files: OrderedDict[tuple[str, int, int], KeyFile] = OrderedDict()
        self._stacked: dict[str, StackedCircuit] = {}
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
        """Devices of the backends in use; empty on a CPU."""
        return _visible_gpus() if "cuda" in self._provers else []

    def entries(self) -> list[Entry]:
        """See `Shelf`."""
        running = self._queue.running
        title = running.request.title if running else None
        with self._shelf_lock:
            entries = [entry for entry, _ in self._shelf]
        return [Entry(e.circuit_id, e.size_bytes, e.circuit_id == title, e.last_used_ns) for e in entries]

    def preload(self, circuit_id: str) -> int | None:
        """See `Shelf`."""
        if any(entry.circuit_id == circuit_id for entry in self.entries()):
            return None

        def load() -> int:
            began_ns = now()
            try:
                workload = self._builtin(circuit_id, 1)
            except UnknownCircuit as error:
                raise UnknownCircuit(f"unknown circuit ID: {circuit_id} ({error})") from None
            run = Run(self._queue.hub.emit)
            prover = self._prover(self._options.backend, run)
            with run.stage(Stage.SETUP):
                key = workload.proving_key(run)
            with run.stage(Stage.SRS):
                prover.load(key, run)
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
        if self._keys is not None:
            for key in gone:
                self._keys.forget(key)
        self._zkeys = OrderedDict((k, z) for k, z in self._zkeys.items() if all(z.key is not key for key in gone))
        self._key_files = OrderedDict(
            (k, file) for k, file in self._key_files.items() if all(file.key is not key for key in gone)
        )
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
        """The prover of a backend, warmed up under Stage.COMPILE when it is new."""
        if backend_name in self._provers:
            return self._provers[backend_name]
        with run.stage(Stage.COMPILE):
            run.progress(Stage.COMPILE, 0, 1, what="loading the prover")
            from prover.arena import Arena
            from prover.backends.select import make_backend
            from prover.jobs import Prover
            from prover.keycache import cache_dir
            from prover.warm import warm_up

            backend, why_not_gpu = make_backend(backend_name, self._threads)
            warm_up(backend, run, with_setup=not any((cache_dir() / "keys").glob("*.key")))
        hub = self._queue.hub
        if self._arena is None:
            self._arena = Arena(hub.emit, self._options.pool_bytes, getattr(backend, "pinner", None))
        prover = Prover(backend, self._arena)
        self._provers[backend_name] = self._provers[backend.name] = prover
        if backend_name == self._options.backend:
            devices = [] if backend.name == "reference" else [backend.device]
            hub.backend_loaded(backend.name, devices, why_not_gpu)
        return prover

    def _execute(self, job: Job) -> Result:
        request, run = job.request, job.run
        if request.kind not in ("circuit", "file", "porep-c2") and not request.circuit:
            raise BadRequest(NO_SUCH_PROOF.format(kind=request.kind))
        with run.stage(Stage.SETUP):
            prover = self._prover(request.backend or self._options.backend, run)
            workload = self._workload(job)
        prepared_ms = (now() - (job.started_ns or now())) / 1e6
        policy = job.policy or Policy.RECYCLE
        self._queue.hub.emit(sized(job, workload, policy))
        try:
            result = prover.run_job(workload, policy, run, queued_ns=job.queue_ns)
        finally:
            self._publish(workload.name if workload.kind == "porep" else request.title, prover)
        publics = [[str(value) for value in inputs] for inputs in result.public_inputs]
        metrics = result.metrics | {
            name: round(float(result.metrics[name] or 0) + prepared_ms, 3) for name in ("setup_ms", "total_ms")
        }
        metrics["key_file"] = self._key_file(job, workload)
        return Result(result.proof_bytes, publics, result.verified, metrics)

    def _key_file(self, job: Job, workload: Workload) -> str | None:
        """Where whoever wants to check a proof again finds its key."""
        from prover.builtin import BuiltinWorkload
        from prover.porep.workload import PorepWorkload
        from prover.r1cs.hash import circuit_hash

        given = job.request.zkey_path or job.request.key_path
        if not given and isinstance(workload, BuiltinWorkload | PorepWorkload) and self._keys is not None:
            return str(self._keys.path_of(circuit_hash(workload.circuit.r1cs)))
        return given or None

    def _workload(self, job: Job) -> Workload:
        request = job.request
        if request.circuit:
            return self._builtin(request.circuit, request.num_circuits)
        if request.kind == "porep-c2":
            return self._porep(job)
        from prover.file_workload import FileWorkload

        zkey = self._zkey(request.zkey_path)
        return FileWorkload(
            request.title, zkey, request.wtns_path, num_circuits=request.num_circuits, threads=self._threads
        )

    def _builtin(self, name: str, num_circuits: int) -> Workload:
        from prover.builtin import BuiltinWorkload
        from prover.circuits.registry import build

        if name not in self._circuits:
            self._circuits[name] = build(name)
        self._circuits.move_to_end(name)
        while len(self._circuits) > KEPT_CIRCUITS:
            self._circuits.popitem(last=False)
        return BuiltinWorkload(self._circuits[name], num_circuits, self._test_keys(), threads=self._threads)

    def _porep(self, job: Job) -> Workload:
        """A PoRep job; an upstream client that knows its sector says so, and 0 says nothing."""
        from prover.porep.job import open_job

        request = job.request
        return open_job(
            request.c1_path if request.c1 is None else request.c1,
            self._key_file_source(request.key_path) if request.key_path else self._test_keys(), job.run,
            miner_id=request.miner_id or None, sector_number=request.sector_number or None, threads=self._threads,
            circuits=self._stacked,
        )  # fmt: skip

    def _test_keys(self) -> KeyCache:
        from prover.keycache import KeyCache

        if self._keys is None:
            self._keys = KeyCache(threads=self._threads)
        return self._keys

    def _key_file_source(self, path: str) -> KeyFile:
        """A key file that is kept while it stays as it is."""
        from prover.key_file import KeyFile

        ident = _identity(path)
        if ident not in self._key_files:
            self._key_files[ident] = KeyFile(path)
        self._key_files.move_to_end(ident)
        while len(self._key_files) > KEPT_KEY_FILES:
            self._key_files.popitem(last=False)
        return self._key_files[ident]

    def _zkey(self, path: str) -> Zkey:
        """A zkey that is kept while the file stays as it is."""
        from prover.files.zkey import read_zkey

        ident = _identity(path)
        if ident not in self._zkeys:
            self._zkeys[ident] = read_zkey(path)
        self._zkeys.move_to_end(ident)
        while len(self._zkeys) > KEPT_ZKEYS:
            self._zkeys.popitem(last=False)
        return self._zkeys[ident]

    def _publish(self, title: str, prover: Prover) -> None:
        """Tells the shelf what is loaded, `title` being the name of the key used last."""
        loaded = [key for other in set(self._provers.values()) for key in other.resident_keys()]
        last = prover.resident_keys()[-1:]
        with self._shelf_lock:
            shelf = [(e, k) for e, k in self._shelf if any(k is x for x in loaded) and not any(k is x for x in last)]
            self._shelf = shelf + [(Entry(title, key.size_bytes, False, now()), key) for key in last]


def _identity(path: str) -> tuple[str, int, int]:
    """A file, as long as nobody writes to it.

    Raises:
        BadFile: it cannot be looked at.
    """
    try:
        about = os.stat(path)
    except OSError as error:
        raise BadFile(path, "", error.strerror or str(error)) from error
    return path, about.st_mtime_ns, about.st_size


def sized(job: Job, workload: Workload, policy: Policy) -> wire.JobSubmitted:
    """The job's first event again, with what was not known then."""
    return wire.JobSubmitted(
        t_ns=job.submitted_ns, job_id=job.job_id, circuit=workload.name, num_circuits=workload.num_circuits,
        policy=policy, kind=wire_kind(job.request.kind), num_constraints=workload.num_constraints,
        domain_size=workload.domain_size, client=job.request.client,
    )  # fmt: skip


def _visible_gpus() -> list[Gpu]:
    """What NVML says of the devices; empty where it cannot."""
    try:
        import pynvml

        pynvml.nvmlInit()
        found = []
        for ordinal in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(ordinal)
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
            found.append(Gpu(ordinal, str(pynvml.nvmlDeviceGetName(handle)), int(memory.total), int(memory.free)))
        return found
    except Exception:  # a driver may fail in any way, and a status must not
        return []
