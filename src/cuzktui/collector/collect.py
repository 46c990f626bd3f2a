"""A collector is its samplers, its streams and one outlet, started in an order that makes `Hello` the first line."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cuzktui.collector.logs import LogTail
from cuzktui.collector.memory import MemorySampler
from cuzktui.collector.nvml import GpuSampler
from cuzktui.collector.outlet import Outlet
from cuzktui.collector.recorder import Recorder
from cuzktui.collector.stages import OpenStages, heat
from cuzktui.collector.system import SystemSampler
from cuzktui.collector.watch import WatchStream
from prover import __version__, wire
from prover.errors import BadRequest
from prover.run import now

DEFAULT_BUDGET_BYTES = 1 << 30
NVML_PATIENCE_S = 0.3
SWITCH_INTERVAL_S = 0.0005
"""Interpreter switch interval: how long another thread here may keep the memory schedule waiting."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to observe and where to write."""

    pids: tuple[int, ...] = ()
    prover_address: str | None = None
    """Socket path or host:port of a prover to follow."""
    logs: tuple[Path, ...] = ()
    """Log files to follow."""
    record: Path | None = None
    segment: int = 0
    budget_bytes: int | None = DEFAULT_BUDGET_BYTES
    thin: bool = True
    command: tuple[str, ...] = ()
    """A program to start and observe."""
    role: str = "prover"
    stream: bool = True
    """Whether the stream is written to standard output."""
    gpu: bool = True
    """Whether NVML is loaded."""
    until_ended: bool = False
    """Ends when every observed process has ended."""


class Collector:
    """Observes until `stop` is asked for.

    Raises:
        BadRequest: a process to observe does not exist, or the command cannot be started.
    """

    def __init__(self, options: Options, listen: Callable[[wire.Event], None] | None = None) -> None:
        self._options = options
        self._done = threading.Event()
        self._stages = OpenStages()
        self._child: subprocess.Popen[bytes] | None = None
        self._outlet = Outlet(sys.stdout.fileno() if options.stream else None, self.stop, listen)
        self.put = self._outlet.put
        self._memory = MemorySampler(self.put)
        self._system = SystemSampler(
            self.put, self._memory, where=self._where, written=lambda: self._outlet.written_bytes, ended=self._on_end
        )
        self._gpu = GpuSampler(self.put, self._system.pids)
        self._logs = [LogTail(path, self.put) for path in options.logs]
        self._stream = WatchStream(options.prover_address, self._from_prover) if options.prover_address else None

    def stop(self) -> None:
        """Asks `run` to end; from any thread or signal handler."""
        self._done.set()

    def watch(self, pid: int, role: str) -> None:
        """Observes one more process; a foreign one that the owner started is followed into its children.

        Raises:
            OSError: it does not exist.
        """
        if role == "foreign":
            self._system.follow(pid)
        else:
            self._system.watch(pid, role)

    def run(self) -> None:
        """Observes until stopped; on return the recording is whole."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._watch_pids()
        if self._options.gpu:
            self._gpu.start()
            self._gpu.wait_verdict(NVML_PATIENCE_S)
        else:
            self._gpu.note = "GPU readings are switched off"
        hello = self._hello()
        try:
            self._outlet.begin(hello, self._recorder(hello))
            self._memory.start()
            self._system.start()
            if self._stream:
                self._stream.start()
            for log in self._logs:
                log.start()
            self._start_command()
            self._done.wait()
        finally:
            self._end()

    @property
    def recording_failed(self) -> bool:
        """Whether a recording was asked for and is not whole."""
        return self._outlet.recording_failed

    def _start_command(self) -> None:
        """Started last, so that not even its first moment is missed."""
        if self._options.command:
            try:
                self._child = subprocess.Popen(self._options.command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
            except OSError as error:
                raise BadRequest(f"{self._options.command[0]} cannot be started: {error.strerror}") from error
            with suppress(OSError):
                self._system.follow(self._child.pid)

    def _watch_pids(self) -> None:
        for pid in self._options.pids:
            try:
                self._system.watch(pid, self._options.role)
            except OSError as error:
                raise BadRequest(f"process {pid} cannot be watched: {error.strerror or error}") from error

    def _hello(self) -> wire.Hello:
        return wire.Hello(
            t_ns=now(), unix_ns=time.time_ns(), source="collector", host=platform.node(), pid=os.getpid(),
            version=__version__, devices=self._gpu.devices, cpu_count=os.cpu_count() or 0,
            mem_total_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), kernel=platform.release(),
            segment=self._options.segment, gpu_note=self._gpu.note,
        )  # fmt: skip

    def _recorder(self, hello: wire.Hello) -> Recorder | None:
        path = self._options.record
        if path is None:
            return None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return Recorder(path, hello, budget_bytes=self._options.budget_bytes, thin=self._options.thin)
        except OSError as error:
            text = f"no recording: {path}: {error.strerror or error}. The stream goes on"
            self.put(wire.Notice(t_ns=now(), text=text, level="error"))
            self._outlet.recording_failed = True
            if not self._options.stream:
                self.stop()
            return None

    def _from_prover(self, event: wire.Event) -> None:
        self.put(event)
        self._stages.apply(event)
        heat(event, self._memory)
        if isinstance(event, wire.Hello) and event.pid:
            with suppress(OSError):
                self._system.watch(event.pid, "prover")

    def _where(self) -> str:
        if self._stream:
            # The last events may still be on their way when the process is already gone.
            self._stream.wait_idle(0.5)
        where = self._stages.where()
        self._stages.clear()
        return where

    def _on_end(self, pid: int) -> None:
        if self._child and pid == self._child.pid:
            self._child.wait()
        if self._options.until_ended and not self._system.pids():
            self.stop()

    def _end(self) -> None:
        if self._stream and self._stream.is_alive():
            self._stream.stop()
        if self._child and self._child.poll() is None:
            self._child.terminate()
        samplers: list[LogTail | MemorySampler | SystemSampler | GpuSampler] = [*self._logs]
        for sampler in [*samplers, self._memory, self._system, self._gpu]:
            if sampler.is_alive():
                sampler.stop()
        if self._outlet.is_alive():
            self._outlet.finish()


