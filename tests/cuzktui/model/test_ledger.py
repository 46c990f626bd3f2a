"""The ledger's bytes by owner follow the arena's events: fill, pool, reuse, trim, leak."""

from __future__ import annotations

from builders import GB, START, S, Story
from cuzktui.model import ledger, store
from prover import wire
from prover.wire import Owner, Place, Stage


def made(buffer_id: int, owner: Owner, *, recycled: bool = False, **kw: object) -> wire.BufferAllocated:
    values: dict = {"job_id": "j", "label": "a", "place": Place.HOST, "size_bytes": GB, "stage": Stage.EVAL_ABC} | kw
    return wire.BufferAllocated(t_ns=START, buffer_id=buffer_id, owner=owner, recycled=recycled, **values)


def gone(buffer_id: int, how: str, t_ns: int = START + S) -> wire.BufferReleased:
    return wire.BufferReleased(t_ns=t_ns, buffer_id=buffer_id, begin_ns=t_ns - 1, size_bytes=GB, how=how)


def test_a_buffer_counts_as_resident_only_once_it_is_filled() -> None:
    held = ledger.allocated(ledger.empty(), made(1, Owner.ABC))
    assert held.host_bytes == 0 and held.allocated[(Owner.ABC, Place.HOST)] == GB
    filled = ledger.stage_ended(held, wire.StageEnded(t_ns=START + 1, job_id="j", stage=Stage.EVAL_ABC))
    assert filled.host_bytes == GB
    other = ledger.stage_ended(held, wire.StageEnded(t_ns=START + 1, job_id="k", stage=Stage.EVAL_ABC))
    assert other.host_bytes == 0


def test_what_the_kernel_says_corrects_what_was_assumed() -> None:
    held = ledger.stage_ended(
        ledger.allocated(ledger.empty(), made(1, Owner.ABC)),
        wire.StageEnded(t_ns=START + 1, job_id="j", stage=Stage.EVAL_ABC),
    )
    read = ledger.touched(held, wire.BufferTouched(t_ns=START + 2, buffer_id=1, resident_bytes=GB // 2, huge_bytes=0))
    assert read.host_bytes == GB // 2
    assert read.peak_host_bytes == GB


def test_a_recycled_buffer_moves_to_the_pool_and_back_and_memory_stays() -> None:
    held = ledger.allocated(ledger.empty(), made(1, Owner.ABC, recycled=True))
    held = ledger.released(held, gone(1, "pool"))
    held = ledger.allocated(held, made(2, Owner.POOL, recycled=True, job_id="", stage=None))
    assert held.pool_bytes == held.host_bytes == GB
    assert held.host_by_owner == {Owner.POOL: GB}
    held = ledger.allocated(ledger.released(held, gone(2, "reused")), made(3, Owner.ASSIGNMENT, recycled=True))
    assert held.pool_bytes == 0 and held.host_by_owner == {Owner.ASSIGNMENT: GB}
    assert ledger.released(held, gone(3, "munmap")).host_bytes == 0


def test_a_refused_release_stays_counted_until_it_goes_late() -> None:
    held = ledger.allocated(ledger.empty(), made(1, Owner.SCRATCH, recycled=True))
    leak = wire.BufferLeaked(t_ns=START + 1, buffer_id=1, label="a", owner=Owner.SCRATCH, size_bytes=GB)
    held = ledger.leaked(held, leak)
    assert held.leaked_bytes == GB and held.host_bytes == GB
    late = ledger.released(held, gone(1, "late"))
    assert late.leaked_bytes == 0 and late.host_bytes == 0


def test_pinned_buffers_are_anonymous_memory_and_files_and_devices_are_not() -> None:
    held = ledger.empty()
    for buffer_id, place in enumerate((Place.PINNED, Place.FILE, Place.DEVICE), 1):
        held = ledger.allocated(held, made(buffer_id, Owner.SRS, place=place, recycled=True))
    assert held.host_bytes == GB
    assert held.place_bytes(Place.FILE) == held.place_bytes(Place.DEVICE) == GB
    assert held.series.last("pinned") == held.series.last("device") == GB


def test_the_peak_keeps_its_stack_after_everything_is_gone() -> None:
    story = Story()
    held = store.apply_all(store.empty(), story.build()).ledger
    assert held.host_bytes == 0
    assert held.peak_host_bytes == story.total_bytes
    assert sum(held.peak_by_owner.values()) == story.total_bytes
    assert set(held.peak_by_owner) == {Owner.ABC, Owner.ASSIGNMENT}


def test_a_release_of_an_unknown_buffer_changes_nothing() -> None:
    held = ledger.allocated(ledger.empty(), made(1, Owner.ABC, recycled=True))
    assert ledger.released(held, gone(9, "munmap")).host_bytes == GB
