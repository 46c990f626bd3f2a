"""Every large buffer is allocated here with a label, a stage and an owner, and given back here; both are events.

Host buffers are anonymous mappings viewed through numpy. They are given back by closing the mapping, which unmaps
outside the GIL and refuses while a view is alive: a refusal is a leak event that names the owner, never a segfault.
"""

from __future__ import annotations

import mmap
import os
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from prover import wire
from prover.run import Emit, now
from prover.wire import Owner, Place, Policy

HUGE_BYTES = 2 << 20
SMALL_BYTES = 4096
RETRY_S = 2.0
"""How often refused releases are tried again."""
FAULT_BYTES = 16 << 20
"""Touched by one thread at a time."""
IDLE_TRIM_S = 30.0
"""A pool that nobody drew on for so long is given back, off the critical path."""


class Pinner(Protocol):
    """Page-locks host memory for a device."""

    def pin(self, address: int, size_bytes: int) -> None: ...
    def unpin(self, address: int) -> None: ...


def wants_huge(policy: Policy) -> bool:
    return policy in (Policy.SYNC_HUGE, Policy.ASYNC_HUGE, Policy.RECYCLE)


@dataclass(slots=True)
class Buffer:
    """One mapping. `job_id` is the job it serves now; empty while it waits in the pool."""

    buffer_id: int
    mapping: mmap.mmap
    address: int
    size_bytes: int
    huge: bool
    place: Place
    label: str
    owner: Owner


@dataclass(slots=True)
class _Pool:
    """Idle huge-page buffers by size, most recently used last."""

    buffers: list[Buffer] = field(default_factory=list)
    used_at_s: float = 0.0

    @property
    def size_bytes(self) -> int:
        return sum(b.size_bytes for b in self.buffers)

    def take(self, size_bytes: int, place: Place) -> Buffer | None:
        self.used_at_s = time.monotonic()
        for i, buffer in enumerate(self.buffers):
            if buffer.size_bytes == size_bytes and buffer.place == place:
                return self.buffers.pop(i)
        return None


class Arena:
    """The one owner of large host memory.

    Args:
        emit: takes ledger events.
        pool_budget_bytes: what `recycle` may keep; the excess is given back in the background.
        pinner: page-locks buffers of Place.PINNED; None where there is no device.
    """

    def __init__(self, emit: Emit, pool_budget_bytes: int = 8 << 30, pinner: Pinner | None = None) -> None:
        self.emit, self.pool_budget_bytes, self.pinner = emit, pool_budget_bytes, pinner
        self._lock = threading.Lock()
        self._next_id = 1
        self._pool = _Pool()
        self._live: dict[int, Buffer] = {}
        self._leaked: list[Buffer] = []
        self._pending_bytes = 0
        self._queue: queue.SimpleQueue[list[Buffer] | None] = queue.SimpleQueue()
        self._releaser = threading.Thread(target=self._release_in_background, name="prover/release", daemon=True)
        self._releaser.start()

    @property
    def pending_bytes(self) -> int:
        """Bytes that wait for an asynchronous release: still resident, so they count against admission."""
        return self._pending_bytes

    @property
    def pool_bytes(self) -> int:
        with self._lock:
            return self._pool.size_bytes

    def live_buffers(self) -> list[Buffer]:
        with self._lock:
            return list(self._live.values())

    def scope(self, job_id: str, policy: Policy) -> Scope:
        return Scope(self, job_id, policy)

    def allocate(
        self, job_id: str, label: str, owner: Owner, size_bytes: int, *, huge: bool, place: Place = Place.HOST,
        stage: wire.Stage | None = None, circuit: int | None = None,
    ) -> Buffer:  # fmt: skip
        """A buffer of at least `size_bytes`; its contents are undefined when it came from the pool.

        Raises:
            MemoryError: the kernel refuses the mapping.
        """
        size_bytes = _round_up(max(size_bytes, 1), HUGE_BYTES if huge and size_bytes >= HUGE_BYTES else SMALL_BYTES)
        if place is Place.PINNED and self.pinner is None:
            place = Place.HOST
        with self._lock:
            buffer = self._pool.take(size_bytes, place) if huge else None
        recycled = buffer is not None
        if buffer is None:
            begin_ns = now()
            buffer = self._map(size_bytes, huge, place, label, owner)
            if place is Place.PINNED:
                self.emit(
                    wire.Span(
                        t_ns=now(), job_id=job_id, name="fault in and lock pages", begin_ns=begin_ns, stage=stage,
                        circuit=circuit, moved_bytes=size_bytes,
                    )
                )  # fmt: skip
        else:
            self._rename(buffer, label, owner, "reused")
        with self._lock:
            self._live[buffer.buffer_id] = buffer
        self.emit(self._allocated(buffer, job_id, stage, circuit, recycled))
        return buffer

    def give_back(self, buffers: list[Buffer], policy: Policy) -> None:
        """Releases under `policy`; synchronous policies have unmapped everything when this returns."""
        if policy is Policy.RECYCLE:
            self._recycle(buffers)
        elif policy in (Policy.ASYNC_4K, Policy.ASYNC_HUGE):
            self._defer(buffers)
        else:
            for buffer in buffers:
                self._unmap(buffer, "munmap", synchronous=True)

    def trim(self) -> None:
        """Gives the idle pool back in the background."""
        with self._lock:
            idle, self._pool.buffers = self._pool.buffers, []
        self._defer(idle)

    def close(self) -> None:
        """Waits for pending releases and ends the background thread."""
        self.trim()
        self._queue.put(None)
        self._releaser.join()

    def _allocated(
        self, buffer: Buffer, job_id: str, stage: wire.Stage | None, circuit: int | None, recycled: bool
    ) -> wire.BufferAllocated:
        return wire.BufferAllocated(
            t_ns=now(), buffer_id=buffer.buffer_id, job_id=job_id, label=buffer.label, owner=buffer.owner,
            place=buffer.place, size_bytes=buffer.size_bytes, stage=stage, circuit=circuit,
            page_bytes=HUGE_BYTES if buffer.huge else SMALL_BYTES, recycled=recycled,
        )  # fmt: skip

    def _take_id(self) -> int:
        with self._lock:
            self._next_id += 1
            return self._next_id - 1

    def _rename(self, buffer: Buffer, label: str, owner: Owner, how: str) -> None:
        """Ends the buffer's present life in the ledger; its memory stays mapped for the next one."""
        at_ns = now()
        self.emit(
            wire.BufferReleased(
                t_ns=at_ns, buffer_id=buffer.buffer_id, begin_ns=at_ns, size_bytes=buffer.size_bytes, how=how
            )
        )
        with self._lock:
            self._live.pop(buffer.buffer_id, None)
        buffer.buffer_id, buffer.label, buffer.owner = self._take_id(), label, owner

    def _map(self, size_bytes: int, huge: bool, place: Place, label: str, owner: Owner) -> Buffer:
        mapping = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        mapping.madvise(mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
        address = np.frombuffer(mapping, np.uint8, 1).ctypes.data
        if place is Place.PINNED and self.pinner is not None:
            _fault_in(mapping, size_bytes)
            self.pinner.pin(address, size_bytes)
        return Buffer(self._take_id(), mapping, address, size_bytes, huge, place, label, owner)

    def _recycle(self, buffers: list[Buffer]) -> None:
        excess = []
        with self._lock:
            room = self.pool_budget_bytes - self._pool.size_bytes
        for buffer in buffers:
            if not buffer.huge or buffer.size_bytes > room:
                excess.append(buffer)
                continue
            room -= buffer.size_bytes
            self._rename(buffer, "idle pool", Owner.POOL, "pool")
            with self._lock:
                self._pool.buffers.append(buffer)
                self._pool.used_at_s = time.monotonic()
                self._live[buffer.buffer_id] = buffer
            self.emit(self._allocated(buffer, "", None, None, True))
        self._defer(excess)

    def _defer(self, buffers: list[Buffer]) -> None:
        if buffers:
            with self._lock:
                self._pending_bytes += sum(b.size_bytes for b in buffers)
            self._queue.put(buffers)

    def _release_in_background(self) -> None:
        while True:
            try:
                batch = self._queue.get(timeout=RETRY_S)
            except queue.Empty:
                self._retry_leaked()
                if self._pool.buffers and time.monotonic() - self._pool.used_at_s > IDLE_TRIM_S:
                    self.trim()
                continue
            if batch is None:
                return
            for buffer in batch:
                self._unmap(buffer, "trim" if buffer.owner is Owner.POOL else "munmap", synchronous=False)
                with self._lock:
                    self._pending_bytes -= buffer.size_bytes

    def _retry_leaked(self) -> None:
        """A refused buffer goes back once its last view has died."""
        with self._lock:
            leaked, self._leaked = self._leaked, []
        for buffer in leaked:
            self._unmap(buffer, "late", synchronous=False, known_leak=True)

    def _unmap(self, buffer: Buffer, how: str, *, synchronous: bool, known_leak: bool = False) -> None:
        begin_ns = now()
        try:
            if buffer.place is Place.PINNED and self.pinner is not None:
                self.pinner.unpin(buffer.address)
            buffer.mapping.close()
        except BufferError:
            with self._lock:
                self._leaked.append(buffer)
            if known_leak:
                return
            self.emit(
                wire.BufferLeaked(
                    t_ns=now(), buffer_id=buffer.buffer_id, label=buffer.label, owner=buffer.owner,
                    size_bytes=buffer.size_bytes,
                )
            )  # fmt: skip
            return
        with self._lock:
            self._live.pop(buffer.buffer_id, None)
        self.emit(
            wire.BufferReleased(
                t_ns=now(), buffer_id=buffer.buffer_id, begin_ns=begin_ns, size_bytes=buffer.size_bytes, how=how,
                synchronous=synchronous, thread=threading.current_thread().name,
            )
        )  # fmt: skip


class Scope:
    """The buffers of one job, released together."""

    def __init__(self, arena: Arena, job_id: str, policy: Policy) -> None:
        self.arena, self.job_id, self.policy = arena, job_id, policy
        self._buffers: list[Buffer] = []

    @property
    def size_bytes(self) -> int:
        return sum(b.size_bytes for b in self._buffers)

    def array(
        self, label: str, owner: Owner, shape: tuple[int, ...], dtype: npt.DTypeLike = np.uint64, *,
        place: Place = Place.HOST, stage: wire.Stage | None = None, circuit: int | None = None,
    ) -> npt.NDArray:  # fmt: skip
        """A C-contiguous array over a new buffer; contents undefined. Drop every view before `release`."""
        kind = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        buffer = self.arena.allocate(
            self.job_id, label, owner, count * kind.itemsize, huge=wants_huge(self.policy), place=place, stage=stage,
            circuit=circuit,
        )  # fmt: skip
        self._buffers.append(buffer)
        return np.frombuffer(buffer.mapping, kind, count).reshape(shape)

    def release(self) -> int:
        """Gives every buffer back under the scope's policy; returns the bytes handed over."""
        buffers, self._buffers = self._buffers, []
        size_bytes = sum(b.size_bytes for b in buffers)
        self.arena.give_back(buffers, self.policy)
        return size_bytes


def _fault_in(mapping: mmap.mmap, size_bytes: int) -> None:
    """Touches every page, on all cores.

    Page-locking faults pages in too, but on one core: 3 GB/s on the H200 host, where 16 cores touch 22 (4K pages) to 39
    GB/s and locking what is there runs at 32.
    """
    pages = np.frombuffer(mapping, np.uint8, size_bytes)

    def touch(first: int) -> None:
        pages[first : first + FAULT_BYTES : SMALL_BYTES] = 0

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(touch, range(0, size_bytes, FAULT_BYTES)))


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
