"""The arena gives memory back exactly when its policy says, and names whoever keeps a view."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from prover import wire
from prover.admission import rss_bytes
from prover.arena import HUGE_BYTES, Arena
from prover.wire import Owner, Place, Policy

SIZE_BYTES = 64 << 20


class Ledger:
    """Folds arena events into what is allocated now."""

    def __init__(self) -> None:
        self.events: list[wire.Event] = []
        self.changed = threading.Condition()

    def __call__(self, event: wire.Event) -> None:
        with self.changed:
            self.events.append(event)
            self.changed.notify_all()

    def of(self, kind: type) -> list:
        return [e for e in self.events if isinstance(e, kind)]

    @property
    def bytes_now(self) -> int:
        live = {e.buffer_id: e.size_bytes for e in self.of(wire.BufferAllocated)}
        for event in self.of(wire.BufferReleased):
            live.pop(event.buffer_id, None)
        return sum(live.values())

    def wait_for(self, condition, timeout_s: float = 10.0) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: condition(self), timeout_s)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def arena(ledger):
    arena = Arena(ledger, pool_budget_bytes=2 * SIZE_BYTES)
    yield arena
    arena.close()


def filled(arena: Arena, policy: Policy, count: int = 1):
    scope = arena.scope("job", policy)
    arrays = [scope.array("a", Owner.ABC, (SIZE_BYTES // 32, 4)) for _ in range(count)]
    for array in arrays:
        array[:] = 1
    return scope, arrays


@pytest.mark.parametrize("policy", [Policy.SYNC_4K, Policy.SYNC_HUGE])
def test_synchronous_release_is_over_when_it_returns(arena, ledger, policy):
    before_bytes = rss_bytes()
    scope, arrays = filled(arena, policy)
    assert rss_bytes() - before_bytes > 0.9 * SIZE_BYTES
    arrays.clear()
    assert scope.release() == SIZE_BYTES
    assert rss_bytes() - before_bytes < 0.1 * SIZE_BYTES
    (released,) = ledger.of(wire.BufferReleased)
    assert released.synchronous and released.how == "munmap" and released.begin_ns < released.t_ns
    assert ledger.bytes_now == 0


@pytest.mark.parametrize("policy", [Policy.ASYNC_4K, Policy.ASYNC_HUGE])
def test_asynchronous_release_counts_as_pending_until_it_is_done(arena, ledger, policy):
    scope, arrays = filled(arena, policy, 2)
    arrays.clear()
    scope.release()
    ledger.wait_for(lambda x: len(x.of(wire.BufferReleased)) == 2)
    assert all(not e.synchronous and e.thread == "prover/release" for e in ledger.of(wire.BufferReleased))
    deadline_s = time.monotonic() + 5
    while arena.pending_bytes and time.monotonic() < deadline_s:
        time.sleep(0.001)
    assert arena.pending_bytes == 0 and ledger.bytes_now == 0


def test_recycled_buffers_stay_resident_and_serve_the_next_job(arena, ledger):
    scope, arrays = filled(arena, Policy.RECYCLE)
    arrays.clear()
    scope.release()
    assert arena.pool_bytes == SIZE_BYTES == ledger.bytes_now
    scope, arrays = filled(arena, Policy.RECYCLE)
    assert arena.pool_bytes == 0
    assert [e.recycled for e in ledger.of(wire.BufferAllocated) if e.owner is Owner.ABC] == [False, True]
    arrays.clear()
    scope.release()


def test_the_pool_keeps_to_its_budget(arena, ledger):
    scope, arrays = filled(arena, Policy.RECYCLE, 3)
    arrays.clear()
    scope.release()
    assert arena.pool_bytes == 2 * SIZE_BYTES
    ledger.wait_for(lambda x: any(e.how == "munmap" for e in x.of(wire.BufferReleased)))


def test_trimming_gives_the_pool_back_in_the_background(arena, ledger):
    scope, arrays = filled(arena, Policy.RECYCLE)
    arrays.clear()
    scope.release()
    arena.trim()
    ledger.wait_for(lambda x: any(e.how == "trim" for e in x.of(wire.BufferReleased)))
    assert arena.pool_bytes == 0


def test_a_living_view_makes_a_leak_event_and_the_buffer_goes_back_when_the_view_dies(arena, ledger):
    scope, arrays = filled(arena, Policy.SYNC_4K)
    view = arrays[0][5:7]
    arrays.clear()
    scope.release()
    (leak,) = ledger.of(wire.BufferLeaked)
    assert leak.owner is Owner.ABC and leak.size_bytes == SIZE_BYTES and ledger.bytes_now == SIZE_BYTES
    assert np.all(view == 1)
    del view
    ledger.wait_for(lambda x: any(e.how == "late" for e in x.of(wire.BufferReleased)))
    assert ledger.bytes_now == 0


@pytest.mark.parametrize("policy", list(Policy))
def test_page_size_asked_for_is_the_policys(arena, ledger, policy):
    scope, arrays = filled(arena, policy)
    expected_bytes = 4096 if policy.value.endswith("4k") else HUGE_BYTES
    assert ledger.of(wire.BufferAllocated)[0].page_bytes == expected_bytes
    arrays.clear()
    scope.release()


def test_pinned_buffers_are_resident_before_they_are_pinned_and_unpinned_before_they_are_unmapped(ledger):
    calls, resident = [], []
    before_bytes = rss_bytes()

    class Pinner:
        def pin(self, address: int, size_bytes: int) -> None:
            calls.append(("pin", address, size_bytes))
            resident.append(rss_bytes() - before_bytes)

        def unpin(self, address: int) -> None:
            calls.append(("unpin", address))

    arena = Arena(ledger, pinner=Pinner())
    scope = arena.scope("job", Policy.SYNC_HUGE)
    array = scope.array("a", Owner.ABC, (SIZE_BYTES // 32, 4), place=Place.PINNED)
    address = array.ctypes.data
    del array
    scope.release()
    arena.close()
    assert calls == [("pin", address, SIZE_BYTES), ("unpin", address)]
    assert resident[0] > 0.9 * SIZE_BYTES
    assert [e.moved_bytes for e in ledger.of(wire.Span)] == [SIZE_BYTES]
    assert ledger.of(wire.BufferAllocated)[0].place is Place.PINNED


def test_buffers_meant_for_a_device_are_reused_on_a_host_without_one(arena, ledger) -> None:
    for _ in range(2):
        scope = arena.scope("job", Policy.RECYCLE)
        array = scope.array("a", Owner.ABC, (SIZE_BYTES // 32, 4), place=Place.PINNED)
        array[:] = 1
        del array
        scope.release()
    taken = [e for e in ledger.of(wire.BufferAllocated) if e.owner is Owner.ABC]
    assert [e.recycled for e in taken] == [False, True]
    assert all(e.begin_ns <= e.t_ns for e in ledger.of(wire.BufferReleased))
    assert arena.pool_bytes == SIZE_BYTES
