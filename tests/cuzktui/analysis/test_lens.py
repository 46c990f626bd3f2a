"""What the lens resolves: many levels of a slow release, honestly few of a cliff."""

from __future__ import annotations

from builders import GB, MS, START, Story, mem
from cuzktui.analysis import analyse, analyse_job
from cuzktui.analysis.lens import lens_report
from cuzktui.model.snapshot import Snapshot


def lens_of(story: Story) -> Snapshot:
    return analyse(story.build())


def test_a_release_sampled_at_200_hz_shows_its_levels_and_slope() -> None:
    found = analyse_job(Story(buffers=1, gap_ms=300, sample_ms=5).build()).lens
    assert found is not None
    assert 55 <= found.levels <= 61
    assert found.slope_bytes_per_s is not None
    assert abs(found.slope_bytes_per_s + GB / 0.3) < 0.05 * GB / 0.3
    assert abs(found.length_ns - 300 * MS) <= 20 * MS


def test_a_cliff_shows_two_levels_and_no_slope() -> None:
    found = analyse_job(Story(gap_ms=5).build()).lens
    assert found is not None
    assert found.levels == 2 and found.slope_bytes_per_s is None


def test_memory_that_does_not_fall_gives_no_report() -> None:
    snapshot = lens_of(Story(buffers=0, gap_ms=100))
    assert snapshot.lens is not None
    assert lens_report(snapshot.lens, snapshot.t_ns) is None


def test_a_pause_inside_a_release_is_part_of_it() -> None:
    levels = [4.0] * 50 + [3.5, 3.0] + [3.0] * 5 + [2.0, 1.0, 0.5] + [0.1] * 60
    events = [mem(START + k * 20 * MS, level * GB) for k, level in enumerate(levels)]
    snapshot = analyse(events)
    assert snapshot.lens is not None
    found = lens_report(snapshot.lens, snapshot.t_ns)
    assert found is not None and found.samples == 10 and found.levels == 7
