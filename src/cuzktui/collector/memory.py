"""Memory is read on a schedule of absolute deadlines by a thread that does nothing else.

50 Hz at rest, 250 Hz in the last stages before a release and while memory falls, 1000 Hz in the first half second of
a fall: 1 GB of 4K pages leaves the resident set in 20 ms, a long release needs no more than the slower step. A fall
that nobody announced speeds up the readings of its own process only, the fastest step only as long as it goes on. Every
reading keeps its own true time, how late it was and what it cost. A missed deadline is skipped, never caught up with.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress

from cuzktui.collector.proc import StatmReader
from prover import wire
from prover.run import now

REST_NS = 20_000_000
WARM_NS = 4_000_000
HOT_NS = 1_000_000
HOT_FIRST_NS = 500_000_000
FALL_BYTES, FALL_BYTES_PER_S = 1 << 20, 400e6
"""A drop between two readings that counts as falling memory: slower than this, readings at rest resolve it, and a heap
that is tidied up now and then keeps nobody busy."""
AFTER_FALL_NS, STILL_NS = 300_000_000, 40_000_000
"""A fall may go on for so long after a drop; without another one in the shorter time 1000 Hz would resolve nothing, nor
does it where an announced fall has not begun in that time: most buffers are recycled."""
MAX_HOT_NS = 600_000_000_000
"""A stage whose end was never reported stops heating the schedule after ten minutes."""


class MemorySampler(threading.Thread):
    """Reads `statm` of every watched process and hands each reading to `put`.

    Args:
        put: takes a `MemSample`; must not block.
    """

    def __init__(self, put: Callable[[wire.Event], None]) -> None:
        super().__init__(name="memory", daemon=True)
        self._put = put
        self._readers: tuple[StatmReader, ...] = ()
        self._last: dict[int, int] = {}
        self._read_ns: dict[int, int] = {}
        self._falls_until_ns: dict[int, int] = {}
        self._asked_until_ns = 0
        """All processes are read fast until then: somebody announced a release."""
        self._asked_ns = self._fell_ns = 0
        self._wake = threading.Lock()
        self._wake.acquire()
        self._stopping = False
        self._warm_until_ns = self._hot_until_ns = self._hot_since_ns = 0
        self.late_ns: list[int] = []
        self.cost_ns: list[int] = []

    def watch(self, pid: int) -> None:
        """Reads this process from now on.

        Raises:
            OSError: it does not exist.
        """
        if all(reader.pid != pid for reader in self._readers):
            self._readers = (*self._readers, StatmReader(pid))
            self._kick()

    def unwatch(self, pid: int) -> None:
        self._readers = tuple(reader for reader in self._readers if reader.pid != pid)
        for known in (self._last, self._read_ns, self._falls_until_ns):
            known.pop(pid, None)

    def warm(self, until_ns: int) -> None:
        """A release is near: read at 250 Hz until then."""
        self._warm_until_ns = max(self._warm_until_ns, min(until_ns, now() + MAX_HOT_NS))
        self._asked_until_ns = max(self._asked_until_ns, self._warm_until_ns)
        self._kick()

    def cool(self) -> None:
        """The stages that warmed the schedule are over."""
        self._warm_until_ns = 0

    def hot(self, until_ns: int) -> None:
        """A release is running or due: read fast until then."""
        self._asked_ns = now()
        self._extend_hot(min(until_ns, self._asked_ns + MAX_HOT_NS))
        self._asked_until_ns = max(self._asked_until_ns, self._hot_until_ns)
        self._kick()

    def settle(self, at_ns: int) -> None:
        """The release has ended: the fast schedule ends at `at_ns` unless memory still falls."""
        self._hot_until_ns = self._asked_until_ns = at_ns

    def take_costs(self) -> tuple[list[int], list[int]]:
        """(lateness, cost) in ns of the readings since the last call."""
        late, self.late_ns = self.late_ns, []
        cost, self.cost_ns = self.cost_ns, []
        return late, cost

    def stop(self) -> None:
        self._stopping = True
        self._kick()
        self.join(timeout=2)

    def run(self) -> None:
        _raise_priority()
        deadline = now()
        while not self._stopping:
            begin = now()
            late = max(0, begin - deadline)
            self._read_all(begin, late)
            t_ns = now()
            period = self._period_ns(t_ns)
            deadline += period
            if deadline <= t_ns:
                deadline = t_ns + period
            # A lock that only `_kick` releases is the cheapest wait with a precise timeout that can be cut short.
            if self._wake.acquire(timeout=(deadline - t_ns) / 1e9):
                deadline = min(deadline, now())

    def _period_ns(self, t_ns: int) -> int:
        if t_ns < self._hot_until_ns:
            is_moving = t_ns - max(self._asked_ns, self._fell_ns) < STILL_NS
            return HOT_NS if is_moving and t_ns - self._hot_since_ns < HOT_FIRST_NS else WARM_NS
        return WARM_NS if t_ns < self._warm_until_ns else REST_NS

    def _extend_hot(self, until_ns: int) -> None:
        t_ns = now()
        if t_ns >= self._hot_until_ns:
            self._hot_since_ns = t_ns
        self._hot_until_ns = max(self._hot_until_ns, until_ns)

    def _read_all(self, begin: int, late: int) -> None:
        for reader in self._readers:
            if not self._is_due(reader.pid, begin):
                continue
            since_ns = begin - self._read_ns.get(reader.pid, begin)
            self._read_ns[reader.pid] = begin
            reading = reader.read()
            end = now()
            if reading is not None:
                resident, shared = reading
                self._put(
                    wire.MemSample(
                        t_ns=begin, pid=reader.pid, resident_bytes=resident, shared_bytes=shared, late_ns=late,
                        cost_ns=end - begin,
                    )
                )  # fmt: skip
                self.late_ns.append(late)
                self.cost_ns.append(end - begin)
                if self._last.get(reader.pid, 0) - resident >= max(FALL_BYTES, FALL_BYTES_PER_S * since_ns / 1e9):
                    self._extend_hot(end + AFTER_FALL_NS)
                    self._fell_ns, self._falls_until_ns[reader.pid] = end, end + AFTER_FALL_NS
                self._last[reader.pid] = resident
            begin = now()

    def _is_due(self, pid: int, t_ns: int) -> bool:
        """Whether a process is read at this tick: at a fast one only if the speed is for it."""
        if t_ns >= self._hot_until_ns or t_ns < max(self._asked_until_ns, self._falls_until_ns.get(pid, 0)):
            return True
        return t_ns - self._read_ns.get(pid, 0) >= REST_NS - HOT_NS

    def _kick(self) -> None:
        with suppress(RuntimeError):
            self._wake.release()


def _raise_priority() -> None:
    """Puts this thread, which works for microseconds at a time, ahead of the load it measures, where that is permitted.

    The lowest real-time priority is the only one that counts across sessions: with automatic grouping the kernel shares
    a core between sessions first, and a thread's nice value counts within its session only.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except OSError:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -10)
