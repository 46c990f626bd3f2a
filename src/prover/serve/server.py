"""The daemon: its socket answers before anything heavy is loaded, and however it is told to end, it drains and exits 0.

Threads: the main one waits for a reason to stop, one worker proves, gRPC's pool answers. Order of an end: no new jobs,
the running one is cancelled, waiters get their answers, watchers the last events, buffers and socket are given back.
"""

from __future__ import annotations

import os
import platform
import queue
import signal
import sys
import threading
import time
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import grpc

import prover
from prover import wire
from prover.errors import BadRequest
from prover.proto import console_pb2_grpc, proving_pb2_grpc
from prover.run import now
from prover.serve import engine, owner, socket_file
from prover.serve.console import WATCH_LIMIT, ConsoleService
from prover.serve.engine import EngineService
from prover.serve.http_status import HttpStatus, split_address
from prover.serve.hub import Hub
from prover.serve.queue import JobQueue
from prover.serve.report import Reporter
from prover.serve.timing_log import TimingLog
from prover.serve.worker import Worker, WorkerOptions
from prover.wire import Policy

MAX_MESSAGE_BYTES = 288 << 20
"""A PoRep C1 output of 256 MiB and its envelope."""
SHORT_CALLS = 16
"""Threads for calls that answer at once, beside those that wait."""
DRAIN_S = 20.0
"""How long the running job may take to notice that it was cancelled."""
SIGNAL_POLL_S = 0.5
"""A signal that the kernel gives to another thread is noticed by the main one when it wakes."""
COMPILE_S = 3.0
"""How long a compile is waited for: nothing is lost with it."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    socket: Path
    listen: tuple[str, ...] = ()
    """More addresses: `host:port` or `unix:///path`."""
    status_listen: str = ""
    """`host:port` of GET /status; empty: none."""
    policy: Policy = Policy.RECYCLE
    owner_pid: int | None = None
    """End with this process; None: with nobody."""
    outlives_terminal: bool = False
    """A hang-up of the terminal is not a reason to stop."""
    log_timing: bool = False
    """Write upstream's timing lines to stderr."""
    worker: WorkerOptions = field(default_factory=WorkerOptions)


class Server:
    """One prover service.

    Raises:
        BadRequest: an address cannot be listened on, or the owner does not exist.
    """

    def __init__(self, options: ServeOptions) -> None:
        self.options = options
        self.hub = Hub(_hello(), options.policy)
        self.queue = JobQueue(self.hub, options.policy)
        self.worker = Worker(self.queue, options.worker)
        self._timing = TimingLog(self.hub) if options.log_timing else None
        self._reason = ""
        self._extra_addresses: list[str] = []
        self._reasons: queue.SimpleQueue[str] = queue.SimpleQueue()
        """Why to stop. A signal may interrupt its own waiting thread anywhere: only this kind of queue allows that."""
        reporter = Reporter(self.queue, self.worker, self.worker.gpus)
        self._grpc = grpc.server(
            futures.ThreadPoolExecutor(WATCH_LIMIT + engine.MAX_WAITERS + SHORT_CALLS, "prover/grpc"),
            options=[
                ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
                ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
                ("grpc.so_reuseport", 0),
                ("grpc.keepalive_time_ms", 30_000),
                ("grpc.keepalive_timeout_ms", 10_000),
            ],
            maximum_concurrent_rpcs=2 * (WATCH_LIMIT + engine.MAX_WAITERS),
        )
        proving_pb2_grpc.add_ProvingEngineServicer_to_server(
            EngineService(self.queue, self.worker, reporter), self._grpc
        )
        console_pb2_grpc.add_ConsoleServicer_to_server(
            ConsoleService(self.queue, self.worker.list_circuits, self.stop), self._grpc
        )
        if options.owner_pid is not None:
            owner.call_when_gone(options.owner_pid, lambda: self.stop(f"its owner {options.owner_pid} has ended"))
        self._http = HttpStatus(options.status_listen, reporter.http_status) if options.status_listen else None
        for address in (*options.listen, f"unix://{options.socket}"):
            self._bind(address)

    @property
    def status_port(self) -> int | None:
        return self._http.port if self._http else None

    @property
    def is_stopping(self) -> bool:
        return bool(self._reason) or not self._reasons.empty()

    def run(self) -> int:
        """Serves until told to stop; the exit status."""
        self._grpc.start()
        thread = threading.Thread(target=self.worker.work, name="prover/worker", daemon=True)
        thread.start()
        _say(f"cuzk-prover ready, serving on unix://{self.options.socket}" + "".join(f" {x}" for x in self._extra()))
        while not self._reason:
            try:
                self._reason = self._reasons.get(timeout=SIGNAL_POLL_S)
            except queue.Empty:
                continue
        return self._drain(thread)

    def stop(self, reason: str) -> None:
        """Begins the end; from any thread, any number of times."""
        self._reasons.put(reason)

    def _extra(self) -> list[str]:
        host = self.options.status_listen.rpartition(":")[0]
        return [*self._extra_addresses, *([f"http://{host}:{self.status_port}/status"] if self._http else [])]

    def _drain(self, thread: threading.Thread) -> int:
        self.hub.emit(wire.Notice(t_ns=now(), text=f"prover is ending: {self._reason}"))
        self.worker.cancel()
        self.queue.stop(self._reason)
        if self._http:
            self._http.close()
        thread.join(DRAIN_S if self.queue.running else COMPILE_S)
        clean = self.queue.running is None
        if not clean:
            self.hub.emit(
                wire.Notice(t_ns=now(), text=f"the running job did not stop within {DRAIN_S:.0f} s", level="error")
            )
        self.hub.close()
        if self._timing:
            self._timing.close()
        self._grpc.stop(grace=1.0).wait(3.0)
        self.options.socket.unlink(missing_ok=True)
        _say(f"cuzk-prover ended: {self._reason}")
        return 0 if clean else 1

    def _bind(self, address: str) -> None:
        path = unix_path(address)
        try:
            if path is None:
                host, _ = split_address(address)
                port = self._grpc.add_insecure_port(address)
                self._extra_addresses.append(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
                return
            with socket_file.claimed(path):
                self._grpc.add_insecure_port(f"unix:{path}")
        except RuntimeError as error:
            raise BadRequest(f"cannot listen on {address}: in use, or not an address of this host") from error


def unix_path(address: str) -> Path | None:
    """The path of a `unix:` address; None for another."""
    if not address.startswith("unix:"):
        return None
    return Path(os.path.abspath(address.removeprefix("unix:").removeprefix("//")))


def serve(options: ServeOptions) -> NoReturn:
    """Runs the daemon in this process, signals included, and ends the process when everything was given back.

    Raises:
        BadRequest: see `Server`.
    """
    server = Server(options)

    def on_signal(number: int, _frame: object) -> None:
        if server.is_stopping:
            os._exit(128 + number)
        server.stop(f"received {signal.Signals(number).name}")

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    signal.signal(signal.SIGHUP, signal.SIG_IGN if options.outlives_terminal else on_signal)
    status = server.run()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # a compile or a kernel that outlives the drain must not hold the process


def _hello() -> wire.Hello:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return wire.Hello(
        t_ns=now(), unix_ns=time.time_ns(), host=platform.node(), pid=os.getpid(), version=prover.__version__,
        cpu_count=len(os.sched_getaffinity(0)), mem_total_bytes=memory, kernel=platform.release(),
    )  # fmt: skip


def _say(line: str) -> None:
    """One line for whoever started us; nobody may be listening any more."""
    try:
        print(line, flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
