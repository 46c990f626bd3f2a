"""The slow readings: CPU at 5 Hz, host at 2 Hz, own cost every two seconds; and the end of a process at once.

A stranger tells nothing of what it does, so its CPU time and waits are read up to 50 times a second, as long as that
costs no more than a hundredth of a core; one that has not run for five seconds, or that waits for its children, is read
like any other.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from cuzktui.collector.exits import how_it_ended
from cuzktui.collector.family import Family
from cuzktui.collector.host import HostReader
from cuzktui.collector.kernel_log import kill_lines
from cuzktui.collector.memory import MemorySampler
from cuzktui.collector.proc import CpuReader, describe
from prover import wire
from prover.run import now

CPU_PERIOD_NS = 200_000_000
FINE_PERIOD_NS = 20_000_000
COST_FACTOR = 100
"""A reading of a stranger is followed by so many times its cost before the next one."""
IDLE_NS, PARENT_IDLE_NS = 5_000_000_000, 300_000_000
EARLY_NS = 4_000_000
"""What is due so soon is read with what is due now: being woken costs as much as a reading."""
HOST_PERIOD_NS = 500_000_000
FAMILY_PERIOD_NS, FAMILY_COST_FACTOR = 50_000_000, 400
COST_PERIOD_NS = 2_000_000_000


@dataclass(slots=True)
class Watched:
    """A process under observation."""

    pid: int
    pidfd: int
    cpu: CpuReader
    oom_kills: int
    is_foreign: bool
    cpu_due_ns: int = 0
    idle_ns: int = IDLE_NS
    run_ns: int | None = None
    ran_ns: int = 0
    """When its CPU time was last seen to have grown."""

    def read_cpu(self) -> wire.CpuSample | None:
        """The reading that is due, None where it is not yet or the process is gone."""
        began_ns = now()
        if began_ns < self.cpu_due_ns - EARLY_NS:
            return None
        sample = self.cpu.read()
        if sample is None or sample.run_ns is None or sample.run_ns != self.run_ns:
            self.run_ns, self.ran_ns = sample.run_ns if sample is not None else None, began_ns
        period_ns = CPU_PERIOD_NS
        if self.is_foreign and began_ns - self.ran_ns < self.idle_ns:
            period_ns = min(max(FINE_PERIOD_NS, COST_FACTOR * (now() - began_ns)), CPU_PERIOD_NS)
        self.cpu_due_ns = max(self.cpu_due_ns, began_ns - period_ns) + period_ns
        return sample


class SystemSampler(threading.Thread):
    """Reads CPU and host, and tells how processes end.

    Args:
        put: takes events; must not block.
        memory: the memory schedule, which watches the same processes.
        where: the stage that work is in, asked when a process has ended.
        written: bytes of the recording so far.
        ended: called after a process has ended and was reported.
    """

    def __init__(
        self,
        put: Callable[[wire.Event], None],
        memory: MemorySampler,
        *,
        where: Callable[[], str],
        written: Callable[[], int],
        ended: Callable[[int], None],
    ) -> None:
        super().__init__(name="system", daemon=True)
        self._put, self._memory = put, memory
        self._where, self._written, self._ended = where, written, ended
        self._watched: dict[int, Watched] = {}
        self._families: list[Family] = []
        self._host = HostReader()
        self._lock = threading.Lock()
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._family_due_ns = 0
        self._stopping = False

    def pids(self) -> frozenset[int]:
        return frozenset(self._watched)

    def watch(self, pid: int, role: str) -> None:
        """Observes a process from now on; once more is harmless.

        Raises:
            OSError: it does not exist.
        """
        with self._lock:
            if pid in self._watched:
                return
            seen = describe(pid, role)
            pidfd = os.pidfd_open(pid)
            host = HostReader(pid)
            self._watched[pid] = Watched(pid, pidfd, CpuReader(pid), host.oom_kills() or 0, role == "foreign")
            self._host = host
        self._put(seen)
        self._memory.watch(pid)
        self._kick()

    def follow(self, pid: int) -> None:
        """Observes a foreign process and whatever it starts.

        Raises:
            OSError: it does not exist.
        """
        self.watch(pid, "foreign")
        with self._lock:
            self._families.append(Family(pid))
        self._kick()

    def stop(self) -> None:
        self._stopping = True
        self._kick()
        self.join(timeout=2)

    def run(self) -> None:
        due = {self._read_cpu: now(), self._read_host: now(), self._read_cost: now() + COST_PERIOD_NS}
        periods = {
            self._read_cpu: CPU_PERIOD_NS, self._read_host: HOST_PERIOD_NS, self._read_cost: COST_PERIOD_NS,
        }  # fmt: skip
        while not self._stopping:
            for read, at_ns in due.items():
                if now() >= at_ns:
                    read()
                    due[read] = max(at_ns + periods[read], now())
            self._read_families()
            watched = tuple(self._watched.values())
            due[self._read_cpu] = min((w.cpu_due_ns for w in watched), default=now() + CPU_PERIOD_NS)
            family_ns = self._family_due_ns + FINE_PERIOD_NS if self._families else due[self._read_host]
            self._wait_for_ends(min(*due.values(), family_ns))
        self._read_cost()

    def _wait_for_ends(self, until_ns: int) -> None:
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        by_fd = {watched.pidfd: watched for watched in tuple(self._watched.values())}
        for fd in by_fd:
            poll.register(fd, select.POLLIN)
        for fd, _ in poll.poll(max(0.0, (until_ns - now()) / 1e6)):
            if fd == self._wake_read:
                with suppress(BlockingIOError):
                    os.read(self._wake_read, 4096)
            else:
                self._report_end(by_fd[fd])

    def _report_end(self, watched: Watched) -> None:
        t_ns = now()
        how = how_it_ended(watched.pid, watched.pidfd)
        oom_kills = max(0, (self._host.oom_kills() or 0) - watched.oom_kills)
        self._memory.unwatch(watched.pid)
        for family in self._families:
            # What it left behind is found before the tie to it is cut.
            self._watch_newcomers(family)
            family.left(watched.pid)
        with self._lock:
            self._watched.pop(watched.pid, None)
            self._families = [family for family in self._families if family.members]
        watched.cpu.close()
        os.close(watched.pidfd)
        lines = kill_lines(watched.pid) if how.signal == signal.SIGKILL else []
        self._put(self._host.read())
        for line in lines:
            self._put(wire.LogLine(t_ns=now(), source="kernel", text=line))
        self._put(
            wire.ProcessEnded(
                t_ns=t_ns, pid=watched.pid, exit_code=how.exit_code, signal=how.signal,
                reason=how.reason(oom_kills, bool(lines)), stage=self._where(),
            )
        )  # fmt: skip
        self._ended(watched.pid)

    def _read_cpu(self) -> None:
        for watched in tuple(self._watched.values()):
            sample = watched.read_cpu()
            if sample is not None:
                self._put(sample)

    def _read_families(self) -> None:
        began_ns = now()
        if began_ns >= self._family_due_ns:
            for family in self._families:
                self._watch_newcomers(family)
            self._family_due_ns = began_ns + max(FAMILY_PERIOD_NS, FAMILY_COST_FACTOR * (now() - began_ns))

    def _watch_newcomers(self, family: Family) -> None:
        for pid in family.newcomers():
            try:
                self.watch(pid, "foreign")
            except OSError:
                # It ended before it could be opened.
                family.left(pid)
        for pid in family.parents & self._watched.keys():
            self._watched[pid].idle_ns = PARENT_IDLE_NS

    def _read_host(self) -> None:
        self._put(self._host.read())

    def _read_cost(self) -> None:
        late, cost = self._memory.take_costs()
        self._put(
            wire.CollectorCost(
                t_ns=now(), cpu_ns=time.process_time_ns(), samples=len(late), late_p99_ns=_p99(late),
                cost_p99_ns=_p99(cost), written_bytes=self._written(),
            )
        )  # fmt: skip

    def _kick(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._wake_write, b"x")


def _p99(values: list[int]) -> int:
    return sorted(values)[int(0.99 * (len(values) - 1))] if values else 0
