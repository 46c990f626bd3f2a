"""Looking around never leaves the recording, and always finds back to the live edge."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scene import Scene, one_proof, opening, proof

from cuzktui.model import store
from cuzktui.model.snapshot import Snapshot
from cuzktui.viewpoint import SHORTEST_AUTO_S, Viewpoint
from prover.wire import Policy


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return store.apply_all(store.empty(), one_proof().events)


def two_jobs() -> Snapshot:
    scene = Scene()
    opening(scene)
    proof(scene, "job-1")
    scene.wait(1000)
    proof(scene, "job-2", Policy.ASYNC_4K, compile_first=False)
    scene.wait(1000)
    return store.apply_all(store.empty(), scene.events)


def test_the_automatic_window_holds_the_whole_job(snapshot: Snapshot) -> None:
    job = snapshot.job
    assert job is not None
    span_ns = Viewpoint().window_s(snapshot) * 10**9
    assert span_ns >= snapshot.t_ns - job.first_ns


def test_before_any_event_there_is_a_window() -> None:
    assert Viewpoint().window_s(store.empty()) == SHORTEST_AUTO_S
    assert Viewpoint().lens(store.empty()) is None


@given(st.lists(st.sampled_from(["left", "right", "in", "out", "point", "hold"]), max_size=30))
def test_no_sequence_of_keys_leaves_the_recording(keys: list[str]) -> None:
    snapshot = store.apply_all(store.empty(), one_proof().events[:200])
    middle_ns = (snapshot.first_ns + snapshot.t_ns) // 2
    acts: dict[str, Callable[[Viewpoint], Viewpoint]] = {
        "left": lambda at: at.scrolled(snapshot, -1),
        "right": lambda at: at.scrolled(snapshot, 1),
        "in": lambda at: at.zoomed(snapshot, -1),
        "out": lambda at: at.zoomed(snapshot, 1),
        "point": lambda at: at.pointed(middle_ns),
        "hold": lambda at: at.held(snapshot),
    }
    at = Viewpoint()
    for key in keys:
        at = acts[key](at)
        assert snapshot.first_ns < at.right_edge_ns(snapshot) <= snapshot.t_ns
        assert at.window_s(snapshot) > 0
    assert at.live().right_edge_ns(snapshot) == snapshot.t_ns


def test_scrolling_back_and_forth_ends_live(snapshot: Snapshot) -> None:
    back = Viewpoint().scrolled(snapshot, -1)
    assert back.end_ns is not None and back.end_ns < snapshot.t_ns
    assert back.scrolled(snapshot, 1).end_ns is None


def test_zooming_changes_the_length_and_stops_at_both_ends(snapshot: Snapshot) -> None:
    at = Viewpoint()
    assert (
        at.zoomed(snapshot, -1).window_s(snapshot) < at.window_s(snapshot) < at.zoomed(snapshot, 1).window_s(snapshot)
    )
    for _ in range(40):
        at = at.zoomed(snapshot, -1)
    assert at.zoomed(snapshot, -1).window_s(snapshot) == at.window_s(snapshot)


def test_a_held_picture_does_not_change_with_new_events(snapshot: Snapshot) -> None:
    held = Viewpoint().held(snapshot)
    assert held.frozen is snapshot
    assert held.held(snapshot).frozen is None


def test_a_closed_lens_stays_closed_until_the_next_gap_or_its_key(snapshot: Snapshot) -> None:
    at = Viewpoint()
    assert at.lens(snapshot) is snapshot.lens
    closed = at.toggled_lens(snapshot)
    assert closed.lens(snapshot) is None
    assert closed.toggled_lens(snapshot).lens(snapshot) is snapshot.lens
    later = two_jobs()
    assert closed.lens(later) is later.lens


def test_a_picked_job_brings_its_window_and_its_lens() -> None:
    snapshot = two_jobs()
    first, second = snapshot.jobs
    at = Viewpoint().picked(snapshot, first.job_id)
    lens = at.lens(snapshot)
    assert lens is not None and lens.job_id == first.job_id
    assert first.ended_ns is not None and at.end_ns is not None
    assert at.end_ns >= first.ended_ns
    assert at.end_ns - at.window_s(snapshot) * 10**9 <= first.first_ns
    assert at.picked(snapshot, first.job_id).job_id == ""
    assert at.picked(snapshot, "unknown").job_id == ""
    assert at.picked(snapshot, second.job_id).job_id == second.job_id
