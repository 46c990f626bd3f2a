"""Memory, pressure and load of the host and of the cgroup that binds a process, version 2 or 1; absent is None."""

from __future__ import annotations

import os
from dataclasses import dataclass

from prover import wire
from prover.run import now

NO_LIMIT_BYTES = 1 << 60
"""cgroup v1 writes a number near 2**63 where there is no limit."""


@dataclass(frozen=True, slots=True)
class CgroupMemory:
    """Where one cgroup says what it holds."""

    usage_path: str
    limit_bytes: int | None
    events_path: str


class HostReader:
    """Takes a `HostSample`.

    Args:
        pid: the process whose cgroup matters.
        root: where `/proc` and `/sys` are; another directory in tests.
    """

    def __init__(self, pid: int | None = None, root: str = "/") -> None:
        self._root = root.rstrip("/")
        self._cgroup = find_cgroup(pid or os.getpid(), root)
        self._busy: tuple[int, int] | None = None

    def read(self) -> wire.HostSample:
        memory = _keyed(self._text("/proc/meminfo"), ":")
        group = self._cgroup
        return wire.HostSample(
            t_ns=now(),
            mem_available_bytes=_kib(memory.get("MemAvailable")),
            mem_total_bytes=_kib(memory.get("MemTotal")),
            cgroup_bytes=_integer(_text(group.usage_path)) if group else None,
            cgroup_limit_bytes=group.limit_bytes if group else None,
            oom_kills=self.oom_kills(),
            cpu_pressure_percent=self._pressure("cpu"),
            mem_pressure_percent=self._pressure("memory"),
            cpu_busy_percent=self._cpu_busy(),
        )

    def oom_kills(self) -> int | None:
        """Processes that the kernel killed for memory: in the cgroup where it counts, else on the host."""
        if self._cgroup:
            count = _integer(_keyed(_text(self._cgroup.events_path)).get("oom_kill"))
            if count is not None:
                return count
        return _integer(_keyed(self._text("/proc/vmstat")).get("oom_kill"))

    def _pressure(self, what: str) -> float | None:
        for word in self._text(f"/proc/pressure/{what}").split("\n", 1)[0].split():
            if word.startswith("avg10="):
                try:
                    return float(word[6:])
                except ValueError:
                    return None
        return None

    def _cpu_busy(self) -> float | None:
        words = self._text("/proc/stat").split("\n", 1)[0].split()[1:9]
        if len(words) < 5 or not all(word.isdigit() for word in words):
            return None
        ticks = [int(word) for word in words]
        total, idle = sum(ticks), ticks[3] + ticks[4]
        before, self._busy = self._busy, (total, idle)
        if before is None or total <= before[0]:
            return None
        return round(100.0 * (1 - (idle - before[1]) / (total - before[0])), 1)

    def _text(self, path: str) -> str:
        return _text(self._root + path)


def find_cgroup(pid: int, root: str = "/") -> CgroupMemory | None:
    """The cgroup, of the process or above it, that leaves it the least room; None without cgroup accounting."""
    root = root.rstrip("/")
    levels: list[CgroupMemory] = []
    for line in _text(f"{root}/proc/{pid}/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            levels = _levels_v1(f"{root}/sys/fs/cgroup/memory", path) or levels
        elif number == "0" and not controllers and not levels:
            levels = _levels_v2(f"{root}/sys/fs/cgroup", path)
    if not levels:
        return None
    return min(levels, key=_room)


def _levels_v1(mount: str, path: str) -> list[CgroupMemory]:
    for base in (mount + path.rstrip("/"), mount):
        if _integer(_text(base + "/memory.usage_in_bytes")) is None:
            continue
        limit = _integer(_keyed(_text(base + "/memory.stat")).get("hierarchical_memory_limit"))
        if limit is None:
            limit = _integer(_text(base + "/memory.limit_in_bytes"))
        limit = limit if limit is not None and limit < NO_LIMIT_BYTES else None
        return [CgroupMemory(base + "/memory.usage_in_bytes", limit, base + "/memory.oom_control")]
    return []


def _levels_v2(mount: str, path: str) -> list[CgroupMemory]:
    levels = []
    base = mount + path.rstrip("/")
    while base.startswith(mount):
        if _integer(_text(base + "/memory.current")) is not None:
            limit = _integer(_text(base + "/memory.max"))
            levels.append(CgroupMemory(base + "/memory.current", limit, base + "/memory.events"))
        if base == mount:
            break
        base = base.rpartition("/")[0]
    return levels


def _room(group: CgroupMemory) -> int:
    if group.limit_bytes is None:
        return NO_LIMIT_BYTES
    return group.limit_bytes - (_integer(_text(group.usage_path)) or 0)


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(1 << 16)
    except OSError:
        return ""


def _keyed(text: str, separator: str | None = None) -> dict[str, str]:
    """`key value` lines as a dictionary."""
    pairs = (line.split(separator, 1) for line in text.splitlines())
    return {pair[0].strip(): pair[1].strip() for pair in pairs if len(pair) == 2}


def _integer(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isdigit() and len(text) < 20 else None


def _kib(text: str | None) -> int | None:
    number = _integer((text or "").removesuffix("kB"))
    return None if number is None else number * 1024
