"""A log is followed by name: through rotation, truncation and absence, whole lines only, bounded in rate and length.

Upstream's lines carry no time that this host shares, so each is stamped when it is read, ten times a second.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from cuzktui.collector.timing_lines import LineParser
from prover import wire
from prover.run import now

PERIOD_S = 0.1
READ_BYTES = 1 << 18
"""Read at most so much a turn; what a log writes beyond 2.6 MB/s is skipped and said."""
LINE_BYTES = 4096


class LogTail(threading.Thread):
    """Follows one file from its present end; a file that appears or is replaced later, from its beginning.

    Args:
        put: takes `LogLine`, `SourceChanged` and `Dropped`; must not block.
    """

    def __init__(self, path: Path, put: Callable[[wire.Event], None]) -> None:
        super().__init__(name="log", daemon=True)
        self._path, self._put = path, put
        self._source = f"log {path}"
        self._halt = threading.Event()
        self._fd = -1
        self._identity: tuple[int, int] | None = None
        self._rest = b""
        self._parser = LineParser()
        self._told: bool | None = None

    def stop(self) -> None:
        self._halt.set()
        self.join(timeout=2)

    def run(self) -> None:
        self._open(at_end=True)
        while not self._halt.wait(PERIOD_S):
            self._read()
            self._look_for_another()
        self._read()
        if self._fd >= 0:
            os.close(self._fd)

    def _open(self, at_end: bool) -> None:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            status = os.fstat(fd)
        except OSError as error:
            self._tell(False, error.strerror or str(error))
            return
        self._fd, self._identity = fd, (status.st_dev, status.st_ino)
        self._rest, self._parser = b"", LineParser()
        if at_end:
            with suppress(OSError):
                os.lseek(fd, 0, os.SEEK_END)
        self._tell(True, str(self._path))

    def _look_for_another(self) -> None:
        """Opens the file that now has the name, after the old one was read to its end."""
        try:
            status = self._path.stat()
        except OSError as error:
            if self._fd < 0:
                self._tell(False, error.strerror or str(error))
            return
        if self._fd >= 0 and (status.st_dev, status.st_ino) == self._identity:
            with suppress(OSError):
                if status.st_size < os.lseek(self._fd, 0, os.SEEK_CUR):
                    os.lseek(self._fd, 0, os.SEEK_SET)
                    self._rest = b""
            return
        if self._fd >= 0:
            # Its writer may have added lines after it lost its name.
            while self._read():
                pass
            os.close(self._fd)
            self._fd = -1
        self._open(at_end=False)

    def _read(self) -> bool:
        """Passes on what the file has gained; whether it had."""
        if self._fd < 0:
            return False
        try:
            data = os.read(self._fd, READ_BYTES)
            skipped = self._skip_backlog() if len(data) == READ_BYTES else 0
        except OSError:
            return False
        if not data:
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_BYTES:
            lines.append(self._rest[:LINE_BYTES])
            self._rest = b""
        t_ns = now()
        for line in lines:
            for text, fields in self._parser.parse(line[:LINE_BYTES].decode("utf-8", "replace").rstrip("\r")):
                if text.strip():
                    self._put(wire.LogLine(t_ns=t_ns, source=str(self._path), text=text, fields=fields))
        if skipped:
            self._rest = b""
            self._put(wire.Dropped(t_ns=t_ns, count=skipped))
        return True

    def _skip_backlog(self) -> int:
        """Jumps near the end of a file that grows faster than it is read; the lines passed over, counted."""
        here, end = os.lseek(self._fd, 0, os.SEEK_CUR), os.fstat(self._fd).st_size
        if end - here <= 2 * READ_BYTES:
            return 0
        count = 0
        while here < end - READ_BYTES:
            data = os.read(self._fd, READ_BYTES)
            if not data:
                break
            count += data.count(b"\n")
            here += len(data)
        return max(1, count)

    def _tell(self, alive: bool, detail: str) -> None:
        if alive is not self._told:
            self._told = alive
            self._put(wire.SourceChanged(t_ns=now(), source=self._source, alive=alive, detail=detail))
