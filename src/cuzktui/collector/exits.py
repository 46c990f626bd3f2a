"""How a process ended is read from the kernel, not guessed: code, signal, and whether memory was the reason.

The exit code comes from the pidfd (Linux 6.15 and later, also after the parent has collected it), else from
`/proc/PID/stat` while the process is still a zombie; without either it is None.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
from dataclasses import dataclass

PIDFD_GET_INFO = (3 << 30) | (64 << 16) | (0xFF << 8) | 11
"""_IOWR(PIDFS_IOCTL_MAGIC, 11, struct pidfd_info), first published size of 64 bytes; linux/pidfd.h."""
PIDFD_INFO_EXIT = 1 << 3


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended; both None where the kernel would not say."""

    exit_code: int | None = None
    signal: int | None = None

    def reason(self, oom_kills: int, in_kernel_log: bool = False) -> str:
        """One sentence.

        Args:
            oom_kills: how many kills for memory the cgroup counted since the process was seen.
            in_kernel_log: the kernel's log says that it killed this process for memory.
        """
        if self.signal == signal.SIGKILL and in_kernel_log:
            return "killed by the kernel for memory (its log names the process)"
        if self.signal == signal.SIGKILL and oom_kills > 0:
            return "killed by the kernel for memory (the cgroup's oom_kill count rose)"
        if self.signal is not None:
            return f"killed by signal {self.signal} ({_signal_name(self.signal)})"
        if self.exit_code is not None:
            return f"exited with code {self.exit_code}"
        return "ended; how is not readable"


def from_wait_status(status: int) -> Exit:
    """Splits a wait status as the kernel encodes it."""
    if status & 0x7F:
        return Exit(signal=status & 0x7F)
    return Exit(exit_code=(status >> 8) & 0xFF)


def how_it_ended(pid: int, pidfd: int) -> Exit:
    """Exit of a process whose pidfd has become readable."""
    buffer = bytearray(64)
    struct.pack_into("<Q", buffer, 0, PIDFD_INFO_EXIT)
    try:
        fcntl.ioctl(pidfd, PIDFD_GET_INFO, buffer)
        if struct.unpack_from("<Q", buffer, 0)[0] & PIDFD_INFO_EXIT:
            return from_wait_status(struct.unpack_from("<i", buffer, 60)[0])
    except OSError:
        pass
    return _from_zombie(pid)


def _from_zombie(pid: int) -> Exit:
    try:
        owner = os.stat(f"/proc/{pid}").st_uid
        with open(f"/proc/{pid}/stat", "rb") as file:
            line = file.read(2048)
    except OSError:
        return Exit()  # its parent has collected it
    fields = line[line.rfind(b")") + 2 :].split()
    # Field 52 reads 0 without the right to trace the process, so 0 proves nothing unless the process is our own.
    if len(fields) < 50 or fields[0] != b"Z" or owner != os.geteuid():
        return Exit()
    return from_wait_status(int(fields[49]))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
