"""The recording keeps order of arrival, one JSON line an event, whole lines only, under a disk budget.

A recording `run.jsonl` continues in `run.001.jsonl`, `run.002.jsonl` ...; every part begins with a `Hello`, so each can
be read alone. Quiet stretches (no job open, memory still) keep one reading a second; the second before something
happens, and everything while it happens, is kept whole, so a release is never thinned. When the parts exceed the
budget the oldest is deleted. A failing disk stops the recording and nothing else.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from pathlib import Path

from prover import wire

READINGS = (wire.MemSample, wire.CpuSample, wire.HostSample, wire.GpuSample, wire.CollectorCost)
PARTS_PER_BUDGET = 8
QUIET_AFTER_NS = 5_000_000_000
QUIET_STEP_NS = 1_000_000_000
HELD_NS = 1_000_000_000
STILL_BYTES = 1 << 20
"""Memory that moves by less than this between two kept readings stands still."""


class Recorder:
    """Appends events to a recording.

    Args:
        path: first part; an existing recording is continued (a new segment), its torn last line cut off first.
        hello: what each part begins with.
        budget_bytes: limit for all parts together; None for no limit.
        thin: whether quiet stretches are thinned.

    Raises:
        OSError: the file cannot be opened or written.
    """

    def __init__(self, path: Path, hello: wire.Hello, *, budget_bytes: int | None = None, thin: bool = True) -> None:
        self._first, self._hello, self._budget_bytes, self._thin = path, hello, budget_bytes, thin
        self._seen: dict[int, wire.ProcessSeen] = {}
        self._jobs: set[str] = set()
        self._held: deque[tuple[int, wire.Event, bytes]] = deque()
        self._kept_ns: dict[tuple[type, int], int] = {}
        self._level: dict[int, int] = {}
        self._busy_until_ns = 0
        self._buffer: list[bytes] = []
        self.written_bytes = 0
        self.deleted_parts = 0
        parts = parts_of(path)
        self._number = _number(path, parts[-1]) if parts else 0
        self._fd = -1
        self._open(parts[-1] if parts else path)

    @property
    def path(self) -> Path:
        return self._first

    def add(self, event: wire.Event, line: bytes) -> None:
        """Takes one event and its line; `flush` writes."""
        if not isinstance(event, READINGS):
            self._track(event)
            self._busy_until_ns = max(self._busy_until_ns, event.t_ns + QUIET_AFTER_NS)
        elif isinstance(event, wire.MemSample) and self._moved(event):
            self._busy_until_ns = max(self._busy_until_ns, event.t_ns + QUIET_AFTER_NS)
        if not self._thin or self._jobs or event.t_ns < self._busy_until_ns:
            while self._held:
                self._buffer.append(self._held.popleft()[2])
            self._buffer.append(line)
            self._mark_kept(event)
            return
        self._held.append((event.t_ns, event, line))
        while self._held and self._held[0][0] < event.t_ns - HELD_NS:
            self._let_go(*self._held.popleft())

    def flush(self) -> None:
        """Writes what was added, opening the next part when this one is full.

        Raises:
            OSError: the disk refused; the file was cut back to its last whole line.
        """
        if not self._buffer:
            return
        data = b"".join(self._buffer)
        self._buffer.clear()
        self._write(data)
        if self._budget_bytes is not None and self._part_bytes > self._budget_bytes // PARTS_PER_BUDGET:
            self._next_part()

    def close(self) -> None:
        """Writes the rest; the recording is complete up to here."""
        if self._fd < 0:
            return
        self._buffer.extend(line for _, _, line in self._held)
        self._held.clear()
        try:
            self.flush()
        finally:
            os.close(self._fd)
            self._fd = -1

    def _track(self, event: wire.Event) -> None:
        match event:
            case wire.ProcessSeen(pid=pid):
                self._seen[pid] = event
            case wire.ProcessEnded(pid=pid):
                self._seen.pop(pid, None)
                self._jobs.clear()
            case wire.JobSubmitted(job_id=job_id):
                self._jobs.add(job_id)
            case wire.JobEnded(job_id=job_id):
                self._jobs.discard(job_id)

    def _moved(self, event: wire.MemSample) -> bool:
        level = self._level.get(event.pid)
        if level is not None and abs(event.resident_bytes - level) < STILL_BYTES:
            return False
        self._level[event.pid] = event.resident_bytes
        return True

    def _let_go(self, t_ns: int, event: wire.Event, line: bytes) -> None:
        if t_ns - self._kept_ns.get(_series(event), 0) >= QUIET_STEP_NS:
            self._buffer.append(line)
            self._mark_kept(event)

    def _mark_kept(self, event: wire.Event) -> None:
        if isinstance(event, READINGS):
            self._kept_ns[_series(event)] = event.t_ns

    def _open(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o644)
        _cut_torn_line(self._fd)
        self._part_bytes = os.fstat(self._fd).st_size
        self._write(wire.encode(self._hello) + b"".join(wire.encode(seen) for seen in self._seen.values()))

    def _write(self, data: bytes) -> None:
        done = 0
        try:
            while done < len(data):
                done += os.write(self._fd, data[done:])
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._fd, self._part_bytes + data.rfind(b"\n", 0, done) + 1)
            raise
        self._part_bytes += done
        self.written_bytes += done

    def _next_part(self) -> None:
        os.close(self._fd)
        self._fd = -1
        self._number += 1
        self._open(_part(self._first, self._number))
        parts = parts_of(self._first)
        sizes = [part.stat().st_size for part in parts]
        assert self._budget_bytes is not None
        # A full part more must still fit, else the budget would be broken before the next look.
        allowed = self._budget_bytes - self._budget_bytes // PARTS_PER_BUDGET
        while len(parts) > 1 and sum(sizes) > allowed:
            parts.pop(0).unlink(missing_ok=True)
            sizes.pop(0)
            self.deleted_parts += 1


def parts_of(path: Path) -> list[Path]:
    """Existing parts of a recording in order; the first may have been deleted under the budget."""
    pattern = f"{_glob_escape(path.stem)}.[0-9]*{path.suffix}"
    later = sorted((p for p in path.parent.glob(pattern) if _number(path, p)), key=lambda p: _number(path, p))
    return [path, *later] if path.exists() else later


def _part(first: Path, number: int) -> Path:
    return first.with_name(f"{first.stem}.{number:03d}{first.suffix}") if number else first


def _number(first: Path, part: Path) -> int:
    text = part.name[len(first.stem) + 1 : len(part.name) - len(first.suffix)]
    return int(text) if text.isdigit() and len(text) < 10 else 0


def _glob_escape(text: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)


def _series(event: wire.Event) -> tuple[type, int]:
    return type(event), getattr(event, "pid", 0) or getattr(event, "device", 0)


def _cut_torn_line(fd: int) -> None:
    """Removes a last line without its end, which a crash may have left."""
    with suppress(OSError):
        size = os.fstat(fd).st_size
        tail = os.pread(fd, wire.MAX_LINE_BYTES, max(0, size - wire.MAX_LINE_BYTES))
        if tail and not tail.endswith(b"\n"):
            os.ftruncate(fd, size - len(tail) + tail.rfind(b"\n") + 1)
