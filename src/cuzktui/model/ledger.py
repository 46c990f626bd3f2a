"""The ledger is what the prover says it holds: bytes by owner and place, from allocation to release.

`allocated` counts a buffer from its allocation, `resident` from when it was touched (at once, when it came out of the
pool), so that `resident` is what anonymous memory should show. A leaked buffer stays counted.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from cuzktui.model.series import Series
from prover.wire import BufferAllocated, BufferLeaked, BufferReleased, BufferTouched, Owner, Place

Key = tuple[Owner, Place]
COLUMNS = ("host", *(owner.value for owner in Owner), "allocated", "pinned", "file", "device")
"""Of `Ledger.series`, bytes: resident host bytes in all and by owner, allocated host bytes, and the other places."""

_BUCKETS = 64
_OWNERS = tuple(Owner)


class Buffer(msgspec.Struct, frozen=True, kw_only=True):
    """A live buffer."""

    event: BufferAllocated
    resident_bytes: int
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
    pool_bytes: int = 0
    """Host bytes kept by the pool: resident, owned by no job; counted under `Owner.POOL`."""
    peak_host_bytes: int = 0
    peak_ns: int = 0
    peak_by_owner: Mapping[Owner, int] = {}
    leaks: tuple[BufferLeaked, ...] = ()
    series: Series
    """Columns `COLUMNS`, one row a change."""

    @property
    def host_bytes(self) -> int:
        """What anonymous memory should hold of the prover's buffers."""
        return self.place_bytes(Place.HOST) + self.pool_bytes

    def place_bytes(self, place: Place) -> int:
        """Resident bytes in one place, the pool aside."""
        return sum(size for key, size in self.resident.items() if key[1] is place)

    @property
    def host_by_owner(self) -> dict[Owner, int]:
        """Resident host bytes of each owner that holds any, the pool included: the stack, in the order of `Owner`."""
        found = {owner: self.resident.get((owner, Place.HOST), 0) for owner in _OWNERS}
        found[Owner.POOL] += self.pool_bytes
        return {owner: size for owner, size in found.items() if size}

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
    key = (event.owner, event.place)
    from_start = event.recycled or event.place is not Place.HOST
    pool = max(0, ledger.pool_bytes - size) if event.recycled else ledger.pool_bytes
    buffer = Buffer(event=event, resident_bytes=size if from_start else 0)
    return _counted(ledger, key, size, buffer.resident_bytes, pool, event.t_ns, (event.buffer_id, buffer))


def touched(ledger: Ledger, event: BufferTouched) -> Ledger:
    """A buffer's pages are resident from here on."""
    before = ledger.buffers.get(event.buffer_id)
    if before is None:
        return ledger
    after = replace(
        before, resident_bytes=max(0, event.resident_bytes), huge_bytes=event.huge_bytes, fault_ns=event.fault_ns
    )
    key = (before.event.owner, before.event.place)
    change = after.resident_bytes - before.resident_bytes
    return _counted(ledger, key, 0, change, ledger.pool_bytes, event.t_ns, (event.buffer_id, after))


def released(ledger: Ledger, event: BufferReleased) -> Ledger:
    """A buffer went back to the kernel, the device or the pool; a trim takes from the pool."""
    before = ledger.buffers.get(event.buffer_id)
    if before is None:
        pool = ledger.pool_bytes
        if event.how == "trim":
            pool = max(0, pool - event.size_bytes)
        elif event.how == "pool":
            pool += max(0, event.size_bytes)
        return _recorded(replace(ledger, pool_bytes=pool), event.t_ns)
    ledger = _dropped(ledger, before, event.t_ns)
    if event.how == "pool" and before.event.place is Place.HOST:
        kept = before.resident_bytes or event.size_bytes
        return _recorded(replace(ledger, pool_bytes=ledger.pool_bytes + kept), event.t_ns)
    return ledger


def leaked(ledger: Ledger, event: BufferLeaked) -> Ledger:
    """A release was refused: the bytes stay, the owner is named."""
    return replace(ledger, leaks=(*ledger.leaks, event)[-256:])


def pooled(ledger: Ledger, pool_bytes: int, t_ns: int) -> Ledger:
    """The pool's size as its owner states it."""
    return _recorded(replace(ledger, pool_bytes=max(0, pool_bytes)), t_ns)


def _dropped(ledger: Ledger, buffer: Buffer, t_ns: int) -> Ledger:
    event = buffer.event
    key = (event.owner, event.place)
    gone = (event.buffer_id, None)
    return _counted(ledger, key, -max(0, event.size_bytes), -buffer.resident_bytes, ledger.pool_bytes, t_ns, gone)


def _counted(
    ledger: Ledger, key: Key, size: int, resident: int, pool: int, t_ns: int, change: tuple[int, Buffer | None]
) -> Ledger:
    return _recorded(
        replace(
            ledger,
            buffers=ledger.buffers.put(*change),
            allocated=_plus(ledger.allocated, key, size),
            resident=_plus(ledger.resident, key, resident),
            pool_bytes=pool,
        ),
        t_ns,
    )


def _plus(sizes: Mapping[Key, int], key: Key, change: int) -> Mapping[Key, int]:
    return {**sizes, key: sizes.get(key, 0) + change} if change else sizes


def _recorded(ledger: Ledger, t_ns: int) -> Ledger:
    """The ledger with its history and its peak brought up to date."""
    get = ledger.resident.get
    by_owner = [get((owner, Place.HOST), 0) for owner in _OWNERS]
    by_owner[_OWNERS.index(Owner.POOL)] += ledger.pool_bytes
    host = sum(by_owner)
    reserved = sum(size for key, size in ledger.allocated.items() if key[1] is Place.HOST) + ledger.pool_bytes
    places = (ledger.place_bytes(place) for place in (Place.PINNED, Place.FILE, Place.DEVICE))
    series = ledger.series.append(t_ns, (host, *by_owner, reserved, *places))
    if host <= ledger.peak_host_bytes:
        return replace(ledger, series=series)
    stack = {owner: size for owner, size in zip(_OWNERS, by_owner, strict=True) if size}
    return replace(ledger, series=series, peak_host_bytes=host, peak_ns=t_ns, peak_by_owner=stack)
