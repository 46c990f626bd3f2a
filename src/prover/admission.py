"""A job starts only if its predicted peak fits what host and cgroup can still give; else it is refused with figures."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prover import wire
from prover.errors import WontFit
from prover.run import now

if TYPE_CHECKING:
    from prover.files.densities import Densities

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
FR_BYTES, G1_BYTES, G2_BYTES = 32, 96, 192
RESERVE_BYTES = 256 << 20
"""Left to the rest of the host."""
UNLIMITED_BYTES = 1 << 60
"""cgroup v1 writes 'no limit' as a number of about 2^63."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a job adds to the process, by owner; `peak_bytes` is what RSS should reach."""

    rss_now_bytes: int
    abc_bytes: int
    assignment_bytes: int
    split_bytes: int
    tail_bases_bytes: int
    scratch_bytes: int = 0
    reused_bytes: int = 0
    """Served by the idle pool, hence resident already."""

    @property
    def added_bytes(self) -> int:
        synthesis_bytes = self.abc_bytes + self.assignment_bytes
        prove_bytes = self.split_bytes + self.tail_bases_bytes + self.scratch_bytes
        return max(0, synthesis_bytes + prove_bytes - self.reused_bytes)

    @property
    def peak_bytes(self) -> int:
        return self.rss_now_bytes + self.added_bytes

    def event(self, job_id: str) -> wire.JobPredicted:
        """What the operator is told before the first buffer is touched."""
        return wire.JobPredicted(
            t_ns=now(), job_id=job_id, peak_bytes=self.peak_bytes, parts_bytes={
                "resident before": self.rss_now_bytes, "abc": self.abc_bytes, "assignment": self.assignment_bytes,
                "split_vectors": self.split_bytes, "tail_bases": self.tail_bases_bytes,
                "scratch": self.scratch_bytes, "reused": -self.reused_bytes,
            },
        )  # fmt: skip


def admit(need: Need, pending_release_bytes: int) -> None:
    """Refuses a job that cannot fit.

    Bytes that wait for an asynchronous release are still counted as used by the host, and will come back: a job may
    start on them only once they have, so they are not added to what is available.

    Raises:
        WontFit: with the figures.
    """
    for what, available_bytes in (("the host", host_available_bytes()), ("the cgroup", cgroup_available_bytes())):
        if available_bytes is not None and need.added_bytes + RESERVE_BYTES > available_bytes:
            waiting = f" ({pending_release_bytes / 1e9:.1f} GB still being released)" if pending_release_bytes else ""
            raise WontFit(need.added_bytes + RESERVE_BYTES, available_bytes, what + waiting)


def setup_bytes(densities: Densities) -> int:
    """What a test setup holds at its end: the scalars of all queries, and the points made of them."""
    in_g1 = densities.domain_size + densities.num_wires + len(densities.a_wires) + len(densities.b_wires)
    return (FR_BYTES + G1_BYTES) * in_g1 + G2_BYTES * len(densities.b_wires)


def admit_setup(densities: Densities) -> None:
    """Refuses to make a key that host or cgroup cannot hold.

    Raises:
        WontFit: with the figures.
    """
    needed_bytes = setup_bytes(densities) + RESERVE_BYTES
    for what, available_bytes in (("the host", host_available_bytes()), ("the cgroup", cgroup_available_bytes())):
        if available_bytes is not None and needed_bytes > available_bytes:
            raise WontFit(needed_bytes, available_bytes, what, "a test setup of this circuit", "name a key that exists")


def rss_bytes() -> int:
    """Resident set of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def host_available_bytes() -> int | None:
    """MemAvailable, or None where it cannot be read."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None


def cgroup_available_bytes() -> int | None:
    """Limit minus usage of this process's memory cgroup (v2, then v1); droppable page cache counts as free."""
    for limit, usage, stat, cache_key in _cgroup_files():
        try:
            limit_text = limit.read_text().strip()
            if limit_text == "max" or int(limit_text) >= UNLIMITED_BYTES:
                continue
            cache_bytes = 0
            for line in stat.read_text().splitlines():
                key, _, value = line.partition(" ")
                if key == cache_key:
                    cache_bytes = int(value)
            return max(0, int(limit_text) - int(usage.read_text()) + cache_bytes)
        except (OSError, ValueError):
            continue
    return None


def _cgroup_files() -> list[tuple[Path, Path, Path, str]]:
    found = []
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            folder = Path("/sys/fs/cgroup") / path.lstrip("/")
            found.append((folder / "memory.max", folder / "memory.current", folder / "memory.stat", "inactive_file"))
        elif "memory" in controllers.split(","):
            folder = Path("/sys/fs/cgroup/memory") / path.lstrip("/")
            found.append(
                (
                    folder / "memory.limit_in_bytes",
                    folder / "memory.usage_in_bytes",
                    folder / "memory.stat",
                    "total_inactive_file",
                )
            )
    return found
