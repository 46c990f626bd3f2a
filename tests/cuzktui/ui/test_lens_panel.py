"""The gap lens: counting while memory falls, whole and fine afterwards, and silent where nothing fell."""

from __future__ import annotations

import pytest
from msgspec.structs import replace as replaced
from scene import MS, Scene, one_proof, opening, proof
from test_panels import DONE, fold, until_inner_ended, view_of

from cuzktui.widgets import lens
from prover.wire import MemSample, Policy


def test_the_lens_counts_while_the_gap_is_open_and_tells_it_when_it_is_over() -> None:
    during = view_of(fold(until_inner_ended()))
    assert during.lens is not None and during.lens.is_open
    text = lens.lens_grid(during, 40, 20).text()
    assert "counting" in text and "following" in text
    text = lens.lens_grid(view_of(fold(DONE)), 40, 20).text()
    assert "1.20 GB released at 12.0 GB/s" in text
    assert "100 ms to fall" in text and "sync-4k" in text
    assert "counting" not in text


@pytest.mark.parametrize("release_ms", [10, 100, 1000, 10_000])
def test_a_lens_never_spends_more_than_twenty_milliseconds_on_a_dot(release_ms: int) -> None:
    scene = Scene()
    opening(scene)
    proof(scene, buffer_bytes=int(12e9 * release_ms / 4000), compile_first=False)
    scene.wait(800)
    found = fold(scene.events).lens
    assert found is not None
    axis = lens.lens_axis(found, lens.fall_of(found), scene.t_ns, 40, 2)
    assert axis.dot_ns <= 20 * MS
    if release_ms <= 1000:
        assert axis.begin_ns <= found.begin_ns
        assert found.gap_end_ns is not None and axis.end_ns >= found.gap_end_ns


def test_the_lens_sees_at_least_ten_levels_of_a_gigabyte() -> None:
    found = fold(DONE).lens
    assert found is not None
    assert lens.fall_of(found).levels >= 10


def test_a_gap_longer_than_the_lens_is_followed_and_said_so() -> None:
    scene = Scene()
    opening(scene)
    proof(scene, buffer_bytes=30_000_000_000, compile_first=False)
    scene.wait(800)
    text = lens.lens_grid(view_of(fold(scene.events)), 46, 20).text()
    assert "20 ms a dot · last 1.68 s" in text and "9.80 s to fall" in text


def test_a_job_that_keeps_its_memory_shows_no_release() -> None:
    scene = one_proof(policy=Policy.RECYCLE)
    scene.wait(1000)
    top = max((e for e in scene.events if isinstance(e, MemSample)), key=lambda e: e.resident_bytes)
    kept = [
        replaced(e, resident_bytes=top.resident_bytes) if isinstance(e, MemSample) and e.t_ns > top.t_ns else e
        for e in scene.events
    ]
    view = view_of(fold(kept))
    assert view.lens is not None and not view.lens.is_open
    text = lens.lens_grid(view, 40, 20).text()
    assert "no memory was given back" in text and "released" not in text
