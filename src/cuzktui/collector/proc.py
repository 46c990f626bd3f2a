"""Readings of one process from `/proc`, through descriptors that stay open, so that a reading costs microseconds.

Only files that take no lock of the address space are read: `statm`, `stat`, `schedstat`, `wchan`; never `smaps`, which
walks page tables under the lock that a release needs.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from prover import wire
from prover.run import now

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
MAX_THREADS_READ = 256
"""Threads beyond this are counted but not read one by one: the reading must stay cheap."""
MAX_TRUSTED = 4
"""Looks at a sleeping thread that are answered by its CPU time alone: 80 ms at the finest pace."""
EXEC_TRIES, EXEC_PAUSE_S = 10, 0.005
"""A program that has just been started has no command line for a moment: its image is loaded before its arguments."""


class StatmReader:
    """Resident and shared memory of a process from a kept descriptor.

    Raises:
        OSError: the process does not exist (on opening).
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd = os.open(f"/proc/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> tuple[int, int] | None:
        """(resident, shared) in bytes; None once the process has no memory any more (ended or a zombie)."""
        try:
            fields = os.pread(self._fd, 128, 0).split(None, 3)
        except OSError:
            return None
        if len(fields) < 3 or fields[0] == b"0":
            return None
        return int(fields[1]) * PAGE_BYTES, int(fields[2]) * PAGE_BYTES

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._fd)


class _Task:
    """One thread: its descriptors and what it did when last looked at."""

    __slots__ = ("_schedstat", "_seen", "_stat", "_trusted", "_wchan", "channel", "run_ns", "state")

    def __init__(self, root: str) -> None:
        self._schedstat, self._stat, self._wchan = (_open(f"{root}/{name}") for name in ("schedstat", "stat", "wchan"))
        self._seen, self._trusted = b"", 0
        self.run_ns, self.state, self.channel = 0, "", ""

    def look(self) -> bool:
        """Brings the thread up to date; False where its CPU time is not readable, as that of an ended thread is not.

        A thread that was asleep and has not run since is asleep in the same place still, or at most woken and waiting
        for a core: it is asked for nothing but its CPU time, `MAX_TRUSTED` times.
        """
        schedstat = _pread(self._schedstat)
        if schedstat and schedstat == self._seen and self._trusted:
            self._trusted -= 1
            return True
        self._seen = schedstat
        if schedstat:
            self.run_ns = int(schedstat.split(None, 1)[0])
        fields = _after_name(_pread(self._stat))
        self.state = fields[0].decode("ascii", "replace") if fields else ""
        self.channel = _pread(self._wchan).decode("ascii", "replace") if self.state in ("S", "D") else ""
        self._trusted = MAX_TRUSTED if self.state == "S" else 0
        return bool(schedstat)

    def close(self) -> None:
        for fd in (self._schedstat, self._stat, self._wchan):
            if fd >= 0:
                os.close(fd)


class CpuReader:
    """CPU time, faults and thread states of a process; sums stay monotonic when threads end."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        self._tasks: dict[str, _Task] = {}
        self._ended_ns = 0
        self._listed = 0
        """Threads when they were last listed; 0 once one was not readable: as many as before need not be the same."""

    def read(self) -> wire.CpuSample | None:
        """The present reading; None once the process is gone."""
        try:
            fields = _after_name(os.pread(self._stat, 1024, 0))
            if len(fields) < 20 or fields[0] in (b"Z", b"X"):
                return None
            threads = int(fields[17])
            if threads != self._listed:
                self._list()
            run_ns, states, wchan = self._read_tasks()
        except OSError:
            return None
        return wire.CpuSample(
            t_ns=now(), pid=self.pid, run_ns=run_ns, user_ns=int(fields[11]) * TICK_NS,
            system_ns=int(fields[12]) * TICK_NS, minor_faults=int(fields[7]), major_faults=int(fields[9]),
            threads=threads, states=states, wchan=wchan,
        )  # fmt: skip

    def _list(self) -> None:
        names = os.listdir(f"/proc/{self.pid}/task")
        self._listed = len(names)
        for name in self._tasks.keys() - names:
            task = self._tasks.pop(name)
            self._ended_ns += task.run_ns
            task.close()
        for name in names[:MAX_THREADS_READ]:
            if name not in self._tasks:
                self._tasks[name] = _Task(f"/proc/{self.pid}/task/{name}")

    def _read_tasks(self) -> tuple[int | None, dict[str, int], dict[str, int]]:
        run_ns, readable = self._ended_ns, False
        states: dict[str, int] = {}
        wchan: dict[str, int] = {}
        for task in self._tasks.values():
            if task.look():
                readable = True
            else:
                self._listed = 0
            run_ns += task.run_ns
            if task.state:
                states[task.state] = states.get(task.state, 0) + 1
            if task.channel not in ("", "0"):
                wchan[task.channel] = wchan.get(task.channel, 0) + 1
        return (run_ns if readable else None), states, wchan

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._stat)
        for task in self._tasks.values():
            task.close()
        self._tasks.clear()


def describe(pid: int, role: str) -> wire.ProcessSeen:
    """The event that introduces a process: its command line and when it started.

    Raises:
        OSError: the process does not exist.
    """
    with open(f"/proc/{pid}/stat", "rb") as file:
        stat = file.read(1024)
    command = _command_line(pid)
    if not command:
        command = "[" + stat[stat.find(b"(") + 1 : stat.rfind(b")")].decode("utf-8", "replace") + "]"
    started = _after_name(stat)[19:20]
    start_unix_ns = _boot_unix_ns() + int(started[0]) * TICK_NS if started else None
    return wire.ProcessSeen(t_ns=now(), pid=pid, command=command, role=role, start_unix_ns=start_unix_ns)


def _command_line(pid: int) -> str:
    """Empty for kernel threads and zombies."""
    for _ in range(EXEC_TRIES):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = file.read(4096).replace(b"\0", b" ").decode("utf-8", "replace").strip()
        if command or not _has_program(pid):
            return command
        time.sleep(EXEC_PAUSE_S)
    return ""


def _has_program(pid: int) -> bool:
    try:
        return bool(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return False


def _after_name(stat: bytes) -> list[bytes]:
    """Fields of a `stat` line from the state letter on; the name may hold blanks and brackets."""
    return stat[stat.rfind(b")") + 2 :].split()


def _boot_unix_ns() -> int:
    with open("/proc/stat", "rb") as file:
        for line in file:
            if line.startswith(b"btime "):
                return int(line.split()[1]) * 1_000_000_000
    return 0


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _pread(fd: int) -> bytes:
    if fd < 0:
        return b""
    try:
        return os.pread(fd, 512, 0)
    except OSError:
        return b""
