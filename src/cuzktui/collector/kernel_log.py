"""What the kernel's log says of a process that it killed for memory; nothing where the log may not be read.

`/dev/kmsg` needs `CAP_SYSLOG`, or `kernel.dmesg_restrict = 0`. One read gives one record: `prefix;text`, with
continuation lines that begin with a blank.
"""

from __future__ import annotations

import os
import re

MAX_RECORDS = 20_000
"""The default log of 256 kB holds fewer than 5 000 records."""
RECORD_BYTES = 8192


def kill_lines(pid: int, path: str = "/dev/kmsg") -> list[str]:
    """Records that tell of a kill of this process, oldest first, at most four.

    Source of the wording: linux mm/oom_kill.c, `oom-kill:...,pid=N,` and `Killed process N (comm)`.
    """
    wanted = re.compile(rf"(oom-kill:.*\bpid={pid}\b|Killed process {pid}\b)")
    return [text for text in _records(path) if wanted.search(text)][-4:]


def _records(path: str) -> list[str]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    found: list[str] = []
    try:
        for _ in range(MAX_RECORDS):
            try:
                record = os.read(fd, RECORD_BYTES)
            except BrokenPipeError:
                # The record was overwritten while we read: the next read goes on with the oldest one left.
                continue
            if not record:
                break
            for line in record.decode("utf-8", "replace").splitlines():
                head, separator, text = line.partition(";")
                if separator and not head.startswith(" "):
                    found.append(text)
    except OSError:
        # BlockingIOError is the end of the log.
        pass
    finally:
        os.close(fd)
    return found
