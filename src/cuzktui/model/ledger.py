"""The ledger is what the prover says it holds: bytes by owner and place, from allocation to release.

`allocated` counts a buffer from its allocation, `resident` from when its pages are: at once when it came out of the
pool, else by the end of the stage that allocated it, corrected by BufferTouched, which the kernel says. Host and pinned
buffers are anonymous memory; key files and device memory are not. A leaked buffer stays counted.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from cuzktui.model.series import Series
from prover.wire import BufferAllocated, BufferLeaked, BufferReleased, BufferTouched, Owner, Place, StageEnded

Key = tuple[Owner, Place]
COLUMNS = ("host", *(owner.value for owner in Owner), "allocated", "pinned", "file", "device")
"""Of `Ledger.series`, bytes: resident anonymous bytes in all and by owner, what is allocated of them, and by place."""
ANONYMOUS = (Place.HOST, Place.PINNED)

_BUCKETS = 64
_OWNERS = tuple(Owner)
_PLACES = (Place.PINNED, Place.FILE, Place.DEVICE)


class Buffer(msgspec.Struct, frozen=True, kw_only=True):
    """A live buffer."""

    event: BufferAllocated
    resident_bytes: int
    is_read: bool = False
    """`resident_bytes` was read from the kernel."""
    huge_bytes: int | None = None
    fault_ns: int | None = None


class Buffers:
    """Live buffers by id: an immutable map whose update copies one of 64 buckets."""

    __slots__ = ("_buckets", "_count")

    def __init__(self, buckets: tuple[dict[int, Buffer], ...] = ({},) * _BUCKETS, count: int = 0) -> None:
        self._buckets, self._count = buckets, count

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Buffers) and self._buckets == other._buckets

    __hash__ = None  # type: ignore[assignment]

    def get(self, buffer_id: int) -> Buffer | None:
        return self._buckets[buffer_id % _BUCKETS].get(buffer_id)

    def values(self) -> list[Buffer]:
        """All live buffers, in no order."""
        return [buffer for bucket in self._buckets for buffer in bucket.values()]

    def put(self, buffer_id: int, buffer: Buffer | None) -> Buffers:
        """This map with a buffer set, or with None removed."""
        at = buffer_id % _BUCKETS
        bucket = dict(self._buckets[at])
        before = bucket.pop(buffer_id, None)
        if buffer is not None:
            bucket[buffer_id] = buffer
        count = self._count + (buffer is not None) - (before is not None)
        return Buffers((*self._buckets[:at], bucket, *self._buckets[at + 1 :]), count)


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes by owner and place now, their peak, and their history."""

    buffers: Buffers
    allocated: Mapping[Key, int] = {}
    resident: Mapping[Key, int] = {}
    peak_host_bytes: int = 0
    peak_ns: int = 0
    peak_by_owner: Mapping[Owner, int] = {}
    leaks: tuple[BufferLeaked, ...] = ()
    series: Series
    """Columns `COLUMNS`, one row a change."""

    @property
    def host_bytes(self) -> int:
        """What anonymous memory should hold of the prover's buffers, the idle pool included."""
        return sum(self.place_bytes(place) for place in ANONYMOUS)

    @property
    def pool_bytes(self) -> int:
        """Idle buffers kept for the next job."""
        return sum(self.resident.get((Owner.POOL, place), 0) for place in ANONYMOUS)

    def place_bytes(self, place: Place) -> int:
        """Resident bytes in one place."""
        return sum(size for key, size in self.resident.items() if key[1] is place)

    @property
    def host_by_owner(self) -> dict[Owner, int]:
        """Resident anonymous bytes of each owner that holds any, the pool included: the stack, in `Owner`'s order."""
        sizes = zip(_OWNERS, _by_owner(self.resident), strict=True)
        return {owner: size for owner, size in sizes if size}

    @property
    def leaked_bytes(self) -> int:
        return sum(leak.size_bytes for leak in self.leaks)


def empty() -> Ledger:
    """A ledger that holds nothing."""
    return Ledger(buffers=Buffers(), series=Series(COLUMNS, capacity=16384))


def allocated(ledger: Ledger, event: BufferAllocated) -> Ledger:
    """A buffer was allocated; a second allocation under one id replaces the first."""
    before = ledger.buffers.get(event.buffer_id)
    if before is not None:
        ledger = _dropped(ledger, before, event.t_ns)
    size = max(0, event.size_bytes)
    from_start = event.recycled or event.place not in ANONYMOUS
    buffer = Buffer(event=event, resident_bytes=size if from_start else 0)
    return _counted(
        ledger, (event.owner, event.place), size, buffer.resident_bytes, event.t_ns, (event.buffer_id, buffer)
    )


def touched(ledger: Ledger, event: BufferTouched) -> Ledger:
    """How much of a buffer the kernel holds in pages."""
    before = ledger.buffers.get(event.buffer_id)
    if before is None:
        return ledger
    after = replace(
        before, resident_bytes=max(0, event.resident_bytes), is_read=True, huge_bytes=event.huge_bytes,
        fault_ns=event.fault_ns,
    )  # fmt: skip
    return _resized(ledger, before, after, event.t_ns)


def stage_ended(ledger: Ledger, event: StageEnded) -> Ledger:
    """What a stage allocated it has filled by its end."""
    for buffer in ledger.buffers.values():
        made = buffer.event
        if buffer.resident_bytes or buffer.is_read or made.stage is not event.stage:
            continue
        if made.job_id == event.job_id and made.circuit == event.circuit:
            after = replace(buffer, resident_bytes=max(0, made.size_bytes))
            ledger = _resized(ledger, buffer, after, event.t_ns)
    return ledger


def released(ledger: Ledger, event: BufferReleased) -> Ledger:
    """A buffer's life ended: its memory went back, or on to the pool or out of it under another id."""
    before = ledger.buffers.get(event.buffer_id)
    if before is None:
        return ledger
    if any(leak.buffer_id == event.buffer_id for leak in ledger.leaks):
        leaks = tuple(leak for leak in ledger.leaks if leak.buffer_id != event.buffer_id)
        ledger = replace(ledger, leaks=leaks)
    return _dropped(ledger, before, event.t_ns)


def leaked(ledger: Ledger, event: BufferLeaked) -> Ledger:
    """A release was refused: the bytes stay, the owner is named."""
    return replace(ledger, leaks=(*ledger.leaks, event)[-256:])


def _dropped(ledger: Ledger, buffer: Buffer, t_ns: int) -> Ledger:
    event = buffer.event
    gone = (event.buffer_id, None)
    key = (event.owner, event.place)
    return _counted(ledger, key, -max(0, event.size_bytes), -buffer.resident_bytes, t_ns, gone)


def _resized(ledger: Ledger, before: Buffer, after: Buffer, t_ns: int) -> Ledger:
    event = before.event
    change = after.resident_bytes - before.resident_bytes
    return _counted(ledger, (event.owner, event.place), 0, change, t_ns, (event.buffer_id, after))


def _counted(
    ledger: Ledger, key: Key, size: int, resident: int, t_ns: int, change: tuple[int, Buffer | None]
) -> Ledger:
    """The ledger with one buffer changed, its history and its peak brought up to date."""
    buffers = ledger.buffers.put(*change)
    allocated_now, resident_now = _plus(ledger.allocated, key, size), _plus(ledger.resident, key, resident)
    by_owner = _by_owner(resident_now)
    host = sum(by_owner)
    reserved = sum(held for (_, place), held in allocated_now.items() if place in ANONYMOUS)
    places = [sum(held for (_, at), held in resident_now.items() if at is place) for place in _PLACES]
    ledger = replace(
        ledger, buffers=buffers, allocated=allocated_now, resident=resident_now,
        series=ledger.series.append(t_ns, (host, *by_owner, reserved, *places)),
    )  # fmt: skip
    if host <= ledger.peak_host_bytes:
        return ledger
    stack = {owner: held for owner, held in zip(_OWNERS, by_owner, strict=True) if held}
    return replace(ledger, peak_host_bytes=host, peak_ns=t_ns, peak_by_owner=stack)


def _plus(sizes: Mapping[Key, int], key: Key, change: int) -> Mapping[Key, int]:
    return {**sizes, key: sizes.get(key, 0) + change} if change else sizes


def _by_owner(resident: Mapping[Key, int]) -> list[int]:
    return [sum(resident.get((owner, place), 0) for place in ANONYMOUS) for owner in _OWNERS]
