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
    """Descriptors of one thread."""

    __slots__ = ("run_ns", "schedstat", "stat", "wchan")

    def __init__(self, root: str) -> None:
        self.run_ns = 0
        self.schedstat = _open(root + "/schedstat")
        self.stat = _open(root + "/stat")
        self.wchan = _open(root + "/wchan")

    def close(self) -> None:
        for fd in (self.schedstat, self.stat, self.wchan):
            if fd >= 0:
                os.close(fd)


class CpuReader:
    """CPU time, faults and thread states of a process; sums stay monotonic when threads end."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        self._tasks: dict[str, _Task] = {}
        self._ended_ns = 0

    def read(self) -> wire.CpuSample | None:
        """The present reading; None once the process is gone."""
        try:
            fields = _after_name(os.pread(self._stat, 1024, 0))
            names = os.listdir(f"/proc/{self.pid}/task")
        except OSError:
            return None
        if len(fields) < 20 or fields[0] in (b"Z", b"X"):
            return None
        run_ns, states, wchan = self._read_tasks(names)
        return wire.CpuSample(
            t_ns=now(), pid=self.pid, run_ns=run_ns, user_ns=int(fields[11]) * TICK_NS,
            system_ns=int(fields[12]) * TICK_NS, minor_faults=int(fields[7]), major_faults=int(fields[9]),
            threads=len(names), states=states, wchan=wchan,
        )  # fmt: skip

    def _read_tasks(self, names: list[str]) -> tuple[int | None, dict[str, int], dict[str, int]]:
        alive = set(names)
        for name in [name for name in self._tasks if name not in alive]:
            task = self._tasks.pop(name)
            self._ended_ns += task.run_ns
            task.close()
        run_ns, readable = self._ended_ns, False
        states: dict[str, int] = {}
        wchan: dict[str, int] = {}
        for name in names[:MAX_THREADS_READ]:
            task = self._tasks.get(name) or self._tasks.setdefault(name, _Task(f"/proc/{self.pid}/task/{name}"))
            schedstat = _pread(task.schedstat)
            if schedstat:
                task.run_ns, readable = int(schedstat.split(None, 1)[0]), True
            run_ns += task.run_ns
            state = _after_name(_pread(task.stat))[:1]
            if not state:
                continue
            letter = state[0].decode("ascii", "replace")
            states[letter] = states.get(letter, 0) + 1
            channel = _pread(task.wchan).decode("ascii", "replace") if letter in "SD" else ""
            if channel not in ("", "0"):
                wchan[channel] = wchan.get(channel, 0) + 1
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
