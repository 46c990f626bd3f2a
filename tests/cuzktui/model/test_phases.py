"""Ramps, plateaus, releases and cliffs of series with known corners, and noise that must not invent any."""

from __future__ import annotations

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from builders import GB, MS, START, Profile, S
from cuzktui.analysis.plateau import phases_of, refined, staircases
from cuzktui.model.phases import Phase, PhaseKind, Segmenter, step
from cuzktui.model.series import Series

RAMP, PLATEAU, RELEASE, CLIFF = PhaseKind.RAMP, PhaseKind.PLATEAU, PhaseKind.RELEASE, PhaseKind.CLIFF


def found(profile: Profile, every_ns: int = 20 * MS, noise: int = 0) -> tuple[Phase, ...]:
    rng = random.Random(7)
    return phases_of((s.t_ns, s.anon_bytes + rng.randint(-noise, noise)) for s in profile.samples(every_ns))


def at(*corners: tuple[float, float]) -> Profile:
    """Corners in seconds and GB."""
    return Profile([(START + int(t * S), value * GB) for t, value in corners])


def test_a_ramp_a_plateau_and_a_release_have_their_levels_lengths_and_slopes() -> None:
    phases = found(at((0, 0.3), (1, 0.3), (3, 8.3), (7, 8.3), (7.8, 0.3), (9, 0.3)))
    assert [p.kind for p in phases] == [PLATEAU, RAMP, PLATEAU, RELEASE, PLATEAU]
    ramp, top, fall = phases[1:4]
    assert abs(ramp.slope_bytes_per_s - 4 * GB) < 0.1 * GB
    assert abs(top.level_bytes - 8.3 * GB) < 0.01 * GB
    assert abs(top.length_ns - 4 * S) <= 40 * MS
    assert abs(fall.change_bytes + 8 * GB) < 0.01 * GB
    assert abs(fall.length_ns - 800 * MS) <= 40 * MS
    assert phases[-1].is_open and not any(p.is_open for p in phases[:-1])


def test_noise_of_a_few_megabytes_invents_no_phase() -> None:
    phases = found(at((0, 2), (60, 2)), noise=3 << 20)
    assert [p.kind for p in phases] == [PLATEAU]


def test_noise_does_not_hide_a_release() -> None:
    phases = found(at((0, 2), (2, 2), (2.5, 1), (4, 1)), noise=2 << 20)
    assert [p.kind for p in phases] == [PLATEAU, RELEASE, PLATEAU]


def test_a_fall_between_two_samples_is_a_cliff() -> None:
    phases = found(at((0, 4), (2, 4), (2.011, 0.1), (4, 0.1)))
    assert [p.kind for p in phases] == [PLATEAU, CLIFF, PLATEAU]
    assert phases[1].samples <= 1


def test_a_plateau_that_sags_is_no_part_of_the_fall_after_it() -> None:
    phases = found(at((0, 0.2), (1, 0.2), (1.2, 0.36), (2.5, 0.353), (2.54, 0.16), (4, 0.16)))
    assert [p.kind for p in phases][1:4] in ([RAMP, PLATEAU, CLIFF], [RAMP, PLATEAU, RELEASE])
    assert phases[3].length_ns <= 60 * MS and phases[2].length_ns >= 1.2 * S


def test_a_slow_creep_is_a_ramp_and_not_a_row_of_plateaus() -> None:
    phases = found(at((0, 1), (1, 1), (61, 4), (63, 4)))
    assert [p.kind for p in phases].count(RAMP) == 1
    ramp = next(p for p in phases if p.kind is RAMP)
    assert abs(ramp.change_bytes - 3 * GB) < 0.1 * GB


def test_a_turn_without_rest_ends_one_move_and_begins_another() -> None:
    phases = found(at((0, 1), (1, 1), (2, 5), (3, 1), (5, 1)))
    assert [p.kind for p in phases] == [PLATEAU, RAMP, RELEASE, PLATEAU]
    assert abs(phases[1].end_bytes - 5 * GB) < 0.1 * GB


def test_pauses_between_two_unmaps_do_not_split_a_release() -> None:
    corners = [(0.0, 4.0), (1.0, 4.0)]
    for k in range(8):
        corners += [(1.0 + k * 0.15 + 0.1, 4.0 - (k + 1) * 0.5), (1.0 + k * 0.15 + 0.15, 4.0 - (k + 1) * 0.5)]
    phases = found(at(*corners, (4.0, 0.0)), every_ns=5 * MS)
    assert [p.kind for p in phases] == [PLATEAU, RELEASE, PLATEAU]
    assert abs(phases[1].change_bytes + 4 * GB) < 0.01 * GB


def test_stairs_with_rests_are_one_staircase() -> None:
    corners = [(0.0, 0.0), (1.0, 0.0)]
    for k in range(5):
        corners += [(1.2 + k, k + 1.0), (2.0 + k, k + 1.0)]
    stairs = staircases(found(at(*corners, (9.0, 5.0))))
    assert [(s.steps, round(s.end_bytes / GB)) for s in stairs] == [(5, 5)]
    assert not staircases(found(at((0, 1), (1, 1), (2, 5), (6, 5), (7, 1), (9, 1))))


def test_edges_are_refined_between_samples() -> None:
    profile = at((0, 4), (2.013, 4), (2.427, 0), (4, 0))
    series = Series(("anon",))
    for sample in profile.samples(20 * MS):
        series = series.append(sample.t_ns, (sample.anon_bytes,))
    phase = next(p for p in found(profile) if p.kind is RELEASE)
    edges = refined(series, phase)
    assert abs(edges.begin_ns - (START + 2.013 * S)) < 1 * MS
    assert abs(edges.end_ns - (START + 2.427 * S)) < 1 * MS
    assert edges.slope_bytes_per_s is not None and abs(edges.slope_bytes_per_s + 4 * GB / 0.414) < 0.1 * GB


LEVELS = st.lists(st.tuples(st.integers(50, 3000), st.floats(0.0, 40.0)), min_size=1, max_size=12)


@given(LEVELS, st.integers(0, 400))
def test_what_was_found_while_it_happened_is_what_is_found_at_the_end(
    legs: list[tuple[int, float]], cut: int
) -> None:
    corners, t = [(0.0, 1.0)], 0.0
    for length_ms, level in legs:
        t += length_ms / 1000
        corners.append((t, level))
    samples = [(s.t_ns, float(s.anon_bytes)) for s in at(*corners).samples()]
    live, state = (), Segmenter()
    for k, sample in enumerate(samples):
        state = step(state, *sample)
        if k == cut:
            live = state.phases
    final = state.phases
    settled = live[:-1]
    assert final[: len(settled)] == settled
    assert state.all_phases == phases_of(samples)


@given(LEVELS)
def test_phases_are_in_order_and_do_not_overlap(legs: list[tuple[int, float]]) -> None:
    corners, t = [(0.0, 1.0)], 0.0
    for length_ms, level in legs:
        t += length_ms / 1000
        corners.append((t, level))
    phases = found(at(*corners))
    for before, after in itertools.pairwise(phases):
        assert before.begin_ns <= before.end_ns <= after.begin_ns + 1
        assert not (before.kind is PLATEAU and after.kind is PLATEAU)
