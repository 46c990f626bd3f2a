"""A live session: a prover and a collector, each replaced when it dies, and one stream of events to whoever asked.

The console and the headless verbs use the same session. Whatever ends, the other parts go on, and the stream says what
ended, when, in which stage, and what is missing because of it. No process is left behind: the collector ends with its
standard input, the prover with its owner's pid, whatever became of this process.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cuzktui.model.snapshot import EXPECTATION
from cuzktui.sources.base import Emit
from cuzktui.sources.children import Child, how, python_module
from cuzktui.sources.control import ControlClient
from cuzktui.sources.folder import make_folder
from prover import wire
from prover.errors import BadRequest, WireError
from prover.run import now

PROVER_PATIENCE_S = 1.5
COLLECTOR_PATIENCE_S = 2.0
START_PATIENCE_S = 2.0
"""How long a command waits for the collector."""
END_NEWS_S = 2.0
"""How long the collector may take to tell how the prover ended before its exit status is collected here."""
SHORT_LIFE_S = 2.0
CRASHES = (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGILL)
"""Ends that a driver's library brings about; the next collector goes without it."""
MAX_SHORT_LIVES = 3
"""A collector that dies young so often in a row is not started again."""


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """What a session is made of."""

    start_prover: bool = True
    """Own prover; otherwise `address` and `pids` say what is observed."""
    address: str = ""
    """Of a prover that somebody else started: socket path or host:port."""
    pids: tuple[int, ...] = ()
    """Foreign processes to observe."""
    logs: tuple[Path, ...] = ()
    """Log files to follow, such as an upstream daemon's."""
    command: tuple[str, ...] = ()
    """A foreign program to start and observe from its first moment; what it prints goes to a log."""
    expect: str = ""
    """What the operator expects a foreign process to hold; see `analysis.expectation`."""
    record: Path | None = None
    budget_bytes: int | None = None
    """Limit of the recording; None for the collector's default."""
    prover_arguments: tuple[str, ...] = ()
    """More arguments of `prover serve`, e.g. ("--backend", "cpu")."""
    keep_prover: bool = False
    """The prover goes on after the session."""
    client: str = "console"


class Session:
    """Source of live events; see `SessionSpec`."""

    def __init__(self, spec: SessionSpec | None = None) -> None:
        self.spec = spec = spec or SessionSpec()
        self.kind = "live" if spec.start_prover else "attached"
        self.segment = 0
        self.recording = spec.record
        self._dir = make_folder(keep=spec.keep_prover)
        self.address = str(self._dir / "prover.sock") if spec.start_prover else spec.address
        self.control = ControlClient(self.address, spec.client)
        self._emit: Emit = _nowhere
        self._prover: Child | None = None
        self._collector: Child | None = None
        self._command: Child | None = None
        self._lock = threading.RLock()
        self._stopping = False
        self._ended_pids: set[int] = set()
        self._news = threading.Condition()
        self._last_ns = 0
        self._short_lives = 0
        self._reads_gpu = True
        """Until a collector has crashed with the driver's library in it."""
        self._loss: tuple[str, int] | None = None
        """Why a collector was lost and the time of its last event."""
        self._threads: list[threading.Thread] = []

    @property
    def title(self) -> str:
        if self._prover:
            return f"prover {self._prover.pid}"
        if self.address:
            return self.address
        return ", ".join([*(f"pid {pid}" for pid in self.spec.pids), *self.spec.command[:1]])

    @property
    def owns_prover(self) -> bool:
        return self.spec.start_prover

    @property
    def can_submit(self) -> bool:
        """Whether there is a prover that takes jobs."""
        return bool(self.address)

    @property
    def prover_pid(self) -> int | None:
        return self._prover.pid if self._prover else None

    @property
    def prover_alive(self) -> bool:
        return self._prover is not None and self._prover.is_alive

    @property
    def collector_pid(self) -> int | None:
        return self._collector.pid if self._collector else None

    def start(self, emit: Emit) -> None:
        """Starts the prover and the collector and delivers their events.

        Raises:
            BadRequest: a process cannot be started.
        """
        self._emit = emit
        if self.spec.start_prover:
            self._start_prover()
        self._start_collector()
        if self.spec.expect:
            self._tell(wire.Marker(t_ns=now(), text=self.spec.expect, by=EXPECTATION))
        if self.spec.command:
            self._start_command()

    def stop(self) -> None:
        """Ends what was started, in the order that lets the recording show it."""
        with self._lock:
            if self._stopping:
                return
            self._stopping = True
            prover, collector = self._prover, self._collector
        if self._command:
            self._command.end(PROVER_PATIENCE_S)
        if prover and not self.spec.keep_prover:
            prover.end(PROVER_PATIENCE_S)
            self._await_end_news(prover.pid, 0.5)
        self._emit = _nowhere
        if collector:
            _hang_up(collector)
        self.control.close()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(timeout=1)
        self.forget_folder()

    def forget_folder(self) -> None:
        """Removes the session's folder of logs and socket, also when the process that used it was killed."""
        if not (self.spec.keep_prover and self.spec.start_prover):
            shutil.rmtree(self._dir, ignore_errors=True)

    def restart_prover(self, lost_pid: int = 0) -> None:
        if not self.spec.start_prover:
            raise BadRequest("this console did not start the prover it watches; start it again where it was started")
        with self._lock:
            if self._stopping or (self.prover_alive and self.prover_pid != lost_pid):
                return
            if self._prover:
                self._prover.end(PROVER_PATIENCE_S)
            self._start_prover()
            if self._collector and self._prover:
                self._collector.send(wire.encode(wire.ProcessSeen(t_ns=now(), pid=self._prover.pid, command="prover")))

    def mark(self, text: str) -> None:
        """Puts a marker of the user's into the stream and the recording."""
        self._tell(wire.Marker(t_ns=now(), text=text))

    def last_words(self) -> str:
        """The last line the prover wrote to its log; empty when it said nothing."""
        return self._prover.last_words() if self._prover else ""

    def _start_prover(self) -> None:
        arguments = ["serve", "--socket", self.address, *self.spec.prover_arguments]
        arguments += ["--keep-prover"] if self.spec.keep_prover else ["--owner-pid", str(os.getpid())]
        try:
            self._prover = Child(python_module("prover", *arguments), self._dir / "prover.log")
        except OSError as error:
            raise BadRequest(f"the prover cannot be started: {error.strerror or error}") from error
        self._spawn(self._follow_child, self._prover)

    def _start_collector(self) -> None:
        arguments = ["--owned", "--segment", str(self.segment)]
        if self.address:
            arguments += ["--prover-socket", self.address]
        children = [child.pid for child in (self._prover, self._command) if child and child.is_alive]
        for log in self.spec.logs:
            arguments += ["--log", str(log)]
        for pid in (*self.spec.pids, *children):
            if os.path.exists(f"/proc/{pid}"):
                arguments += ["--pid", str(pid)]
        if not self.spec.start_prover and not self.address:
            arguments += ["--role", "foreign"]
        if not self._reads_gpu:
            arguments += ["--no-gpu"]
        if self.spec.record:
            arguments += ["--record", str(self.spec.record)]
        if self.spec.budget_bytes is not None:
            arguments += ["--budget-bytes", str(self.spec.budget_bytes)]
        try:
            command = python_module("cuzktui.collector", *arguments)
            self._collector = Child(command, self._dir / "collector.log", piped=True)
        except OSError as error:
            raise BadRequest(f"the collector cannot be started: {error.strerror or error}") from error
        self._spawn(self._follow_collector, self._collector)

    def _start_command(self) -> None:
        # The collector listens first, so that not even the program's first second is missed.
        with self._news:
            self._news.wait_for(lambda: self._last_ns > 0, START_PATIENCE_S)
        try:
            self._command = Child(list(self.spec.command), self._dir / "command.log")
        except OSError as error:
            raise BadRequest(f"{self.spec.command[0]} cannot be started: {error.strerror or error}") from error
        self._tell(wire.ProcessSeen(t_ns=now(), pid=self._command.pid, command=self.spec.command[0], role="foreign"))
        self._spawn(self._follow_child, self._command)

    def _spawn(self, work: Callable[[Child], None], child: Child) -> None:
        thread = threading.Thread(target=work, args=(child,), name=work.__name__.strip("_"), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _follow_child(self, child: Child) -> None:
        """Leaves the exit status to be read by the collector, and tells of the end itself when that one does not."""
        child.wait_end()
        end_ns = now()
        self._await_end_news(child.pid, END_NEWS_S)
        status = child.collect()
        if self._stopping or child.pid in self._ended_pids:
            return
        self._tell(
            wire.ProcessEnded(
                t_ns=end_ns, pid=child.pid, exit_code=status if status >= 0 else None,
                signal=-status if status < 0 else None, reason=how(status),
            )
        )  # fmt: skip

    def _follow_collector(self, collector: Child) -> None:
        begin = time.monotonic()
        assert collector.popen.stdout
        for line in collector.popen.stdout:
            self._deliver(line)
        status = collector.collect()
        with self._lock:
            if self._stopping:
                return
            lived_s = time.monotonic() - begin
            self._short_lives = self._short_lives + 1 if lived_s < SHORT_LIFE_S else 0
            words = collector.last_words()
            self._reads_gpu = self._reads_gpu and status not in CRASHES
            reason = f"the collector (pid {collector.pid}) {how(status)}"
            if words and status > 0:
                reason += f": {words}"
            self._loss = (reason, self._last_ns or now())
            self._emit(wire.SourceChanged(t_ns=now(), source="collector", alive=False, detail=reason))
            if self._short_lives >= MAX_SHORT_LIVES:
                text = f"{reason}; it died {self._short_lives} times in a row and is not started again"
                self._emit(wire.Notice(t_ns=now(), text=text, level="error"))
                return
            self.segment += 1
            self._start_collector()

    def _say_what_is_missing(self, back_ns: int) -> None:
        if self._loss is None:
            return
        (reason, lost_ns), self._loss = self._loss, None
        text = (
            f"{reason}; readings and prover events from {_wall(lost_ns)} to {_wall(back_ns)} "
            f"({(back_ns - lost_ns) / 1e9:.2f} s) are missing; segment {self.segment} of the recording begins"
        )
        self._tell(wire.Notice(t_ns=back_ns, text=text, level="warning"))

    def _deliver(self, line: bytes) -> None:
        try:
            event = wire.decode(line)
        except WireError:
            # Only the last line of a killed collector is torn; what it cost is said when the next one starts.
            return
        if event is None:
            return
        self._last_ns = max(self._last_ns, event.t_ns)
        if isinstance(event, wire.Hello):
            with self._news:
                self._news.notify_all()
        if isinstance(event, wire.ProcessEnded):
            with self._news:
                self._ended_pids.add(event.pid)
                self._news.notify_all()
        elif isinstance(event, wire.Hello) and event.source == "collector" and event.segment:
            self._emit(event)
            detail = f"pid {event.pid}, segment {event.segment}"
            self._emit(wire.SourceChanged(t_ns=event.t_ns, source="collector", alive=True, detail=detail))
            self._say_what_is_missing(event.t_ns)
            return
        self._emit(event)

    def _tell(self, event: wire.Event) -> None:
        """Into the stream by way of the collector, so that it is recorded; directly when there is none."""
        collector = self._collector
        if collector is None or not collector.send(wire.encode(event)):
            self._emit(event)

    def _await_end_news(self, pid: int, timeout_s: float) -> None:
        with self._news:
            self._news.wait_for(lambda: pid in self._ended_pids, timeout_s)


def _hang_up(collector: Child) -> None:
    """Closes the collector's standard input, at which it writes what is left and ends."""
    try:
        if collector.popen.stdin:
            collector.popen.stdin.close()
        collector.popen.wait(COLLECTOR_PATIENCE_S)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        pass
    collector.end(0.5)


def _wall(t_ns: int) -> str:
    """Local time of a monotonic time."""
    unix_ns = time.time_ns() - now() + t_ns
    return datetime.fromtimestamp(unix_ns / 1e9).strftime("%H:%M:%S.%f")[:-3]


def _nowhere(event: wire.Event) -> None:
    """Where events go before `start` and after `stop`."""
