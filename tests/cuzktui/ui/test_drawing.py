"""Drawing is pure: numbers to text, shares to glyphs, samples to columns, cells to rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzktui import format as fmt
from cuzktui.widgets.axis import NICE_S, TimeAxis, axis_ending, binned, ticks, window_for
from cuzktui.widgets.dots import GLYPHS, area, bar, spark
from cuzktui.widgets.frame import framed
from cuzktui.widgets.grid import Grid, clip, plain, runs
from cuzktui.widgets.lanes import Block, draw_blocks
from cuzktui.widgets.palette import PALETTES, styles
from cuzktui.widgets.roles import Role
from cuzktui.widgets.scale import byte_scale

MS = 1_000_000


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (61_200_000_000, "61.2 GB"), (812e6, "812 MB"),
     (999_900_000, "1.00 GB"), (-37e9, "-37.0 GB")],
)  # fmt: skip
def test_sizes_are_decimal_with_three_digits(value: float | None, text: str) -> None:
    assert fmt.size(value) == text


@pytest.mark.parametrize(
    ("span_ns", "text"),
    [(None, "–"), (1_920_000_000, "1.92 s"), (488_000_000, "488 ms"), (41_000, "41.0 µs"), (12, "12 ns"),
     (125_000_000_000, "2 min 05 s"), (999_990_000, "1.00 s"), (8_040_000_000_000, "2 h 14 min")],
)  # fmt: skip
def test_durations_use_one_unit(span_ns: float | None, text: str) -> None:
    assert fmt.duration(span_ns) == text


def test_a_part_is_written_in_the_unit_of_its_whole() -> None:
    assert fmt.size_of(41.2e9, 139.8e9) == "41.2/140 GB"
    assert fmt.size_of(None, 139.8e9) == "–/140 GB"


def test_an_unread_value_is_never_zero() -> None:
    unread = [fmt.size(None), fmt.rate(None), fmt.duration(None), fmt.percent(None), fmt.count(None),
              fmt.quantity(None, "W"), fmt.milliseconds(None)]  # fmt: skip
    assert unread == [fmt.ABSENT] * 7


@given(st.floats(min_value=1, max_value=1e15))
def test_no_size_is_longer_than_eight_cells(size_bytes: float) -> None:
    assert len(fmt.size(size_bytes)) <= 8


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=2, max_size=64), st.integers(1, 12))
def test_every_glyph_set_draws_an_area_of_the_asked_size(shares: list[float], rows: int) -> None:
    for glyphs in GLYPHS.values():
        heights = np.array(shares[: len(shares) // glyphs.dots_wide * glyphs.dots_wide])
        drawn = area(heights, rows, glyphs)
        assert len(drawn) == rows
        assert all(len(row) == len(heights) // glyphs.dots_wide for row in drawn)
        full = "".join(area(np.ones_like(heights), rows, glyphs))
        assert " " not in full
        assert set("".join(area(np.full_like(heights, np.nan), rows, glyphs))) <= {" "}


def test_braille_dots_fill_from_below() -> None:
    assert area(np.array([0.5, 1.0]), 1, GLYPHS["braille"]) == ["⣼"]
    assert area(np.array([0.001, 0.0]), 2, GLYPHS["braille"]) == [" ", "⡀"]
    assert area(np.array([0.5, 1.0]), 2, GLYPHS["ascii"]) == [" #", "##"]


def test_a_bar_and_a_spark_have_their_width() -> None:
    assert bar(0.5, 10, GLYPHS["braille"]) == ("━━━━━", "─────")
    assert bar(None, 4, GLYPHS["ascii"]) == ("", "....")
    assert spark([1, 2, 4], 5, GLYPHS["braille"]) == "  ▂▄█"
    assert spark([], 3, GLYPHS["braille"]) == "   "


@given(st.integers(0, 10**15), st.sampled_from(NICE_S), st.integers(1, 200), st.sampled_from([1, 2]))
def test_the_newest_time_is_always_in_the_last_dot(end_ns: int, span_s: int, cells: int, dots_wide: int) -> None:
    axis = axis_ending(end_ns, span_s, cells, dots_wide)
    assert axis.end_ns - axis.dot_ns <= end_ns < axis.end_ns
    assert axis.cell(end_ns) == cells - 1
    marks = [cell for cell, _ in ticks(axis, end_ns)]
    assert all(0 <= cell < cells for cell in marks)
    assert all(b - a >= 13 for a, b in pairwise(marks))


def test_a_window_holds_the_span_it_was_asked_for() -> None:
    assert window_for(19 * 10**9) == 20
    assert window_for(10**18) == NICE_S[-1]


def test_a_column_keeps_its_peak_and_an_empty_one_the_value_before() -> None:
    axis = axis_ending(99, 100e-9, 10, 1)
    times = np.array([15, 17, 42, 71], dtype=np.int64)
    values = np.array([3.0, 9.0, 5.0, 1.0])
    columns = binned(times, values, axis)
    assert np.array_equal(columns, [np.nan, 9, 9, 9, 5, 5, 5, 1, np.nan, np.nan], equal_nan=True)


def test_a_value_held_too_long_is_not_drawn() -> None:
    axis = axis_ending(99, 100e-9, 10, 1)
    columns = binned(np.array([5, 95], dtype=np.int64), np.array([1.0, 2.0]), axis, hold_ns=30)
    assert np.array_equal(columns[:4], [1, 1, 1, np.nan], equal_nan=True)


@given(st.lists(st.integers(0, 1000), max_size=60), st.integers(0, 1000), st.integers(1, 400))
def test_binning_never_invents_a_value(times: list[int], end_ns: int, span_ns: int) -> None:
    axis = axis_ending(end_ns, span_ns * 1e-9, 20, 2)
    stamps = np.array(sorted(times), dtype=np.int64)
    values = np.arange(len(times), dtype=np.float64)
    columns = binned(stamps, values, axis)
    assert set(columns[~np.isnan(columns)]) <= set(values)


def test_a_text_cannot_move_the_cursor_or_leave_the_grid() -> None:
    grid = Grid(6, 2)
    grid.put(-2, 0, "abcdefghijk", Role.BAD)
    grid.put(0, 1, "x\x1b[2Jy")
    grid.put(0, 5, "nowhere")
    assert grid.text() == "cdefgh\nx?[2Jy"
    assert grid.role_at(5, 0) is Role.BAD


@given(st.text(max_size=40))
def test_one_character_is_one_cell(text: str) -> None:
    shown = plain(text)
    assert len(shown) == len(text)
    assert all(c.isprintable() for c in shown)


def test_runs_cut_a_row_where_the_role_changes() -> None:
    grid = Grid(5, 1)
    grid.put(1, 0, "ab", Role.GOOD)
    assert list(runs(grid.row_key(0))) == [(" ", Role.TEXT), ("ab", Role.GOOD), ("  ", Role.TEXT)]


def test_a_frame_never_writes_outside_itself() -> None:
    for width in range(40):
        for height in (0, 1, 2, 5):
            title = [("a long title here", Role.TITLE)]
            grid = framed(width, height, GLYPHS["braille"], title, right=[("rate", Role.TEXT)])
            assert (grid.width, grid.height) == (width, height)
    assert "a long t…" in framed(15, 3, GLYPHS["braille"], [("a long title here", Role.TITLE)]).text()


def test_clipping_says_that_it_cut() -> None:
    assert clip("abcdef", 4) == "abc…"
    assert clip("abc", 3) == "abc"
    assert clip("abc", 0) == ""


@pytest.mark.parametrize("name", sorted(PALETTES))
def test_every_role_has_a_style_in_every_palette(name: str) -> None:
    assert len(styles(name)) == len(Role)


@given(st.floats(1e3, 1e13), st.integers(1, 60))
def test_no_mark_stands_above_the_scale_and_every_value_fits(high: float, rows: int) -> None:
    scale = byte_scale(0.0, high, rows)
    assert scale.high >= high
    marks = scale.marks()
    assert marks[0] == (rows - 1, "0")
    assert all(float(text) * scale.unit_bytes <= scale.high * 1.01 for _, text in marks)
    assert len({row for row, _ in marks}) == len(marks) or rows < 3


@pytest.mark.parametrize(
    ("span_ns", "text"), [(None, "–"), (127e9, "127 s"), (1.5e9, "1.50 s"), (12_000e9, "3.3 h"), (999e6, "999 ms")]
)
def test_a_column_of_durations_keeps_its_width(span_ns: float | None, text: str) -> None:
    assert fmt.brief(span_ns) == text
    assert len(text) <= 7


def lane_of(*releases_ms: tuple[int, int]) -> str:
    """The lane of ten busy seconds with releases in them, ten cells a second."""
    blocks = [Block(0, 10_000 * MS, "CPU busy", Role.USER)]
    blocks += [Block(begin * MS, end * MS, "releasing", Role.GAP) for begin, end in releases_ms]
    grid = Grid(100, 1)
    draw_blocks(grid, 0, 0, TimeAxis(0, 50 * MS, 100, 2), blocks, GLYPHS["braille"])
    return grid.text()


def test_small_releases_of_a_busy_process_do_not_hide_that_it_is_busy() -> None:
    lane = lane_of((3000, 3020), (5000, 5020), (7000, 7020))
    assert lane == "CPU busy" + "━" * 92


def test_a_name_begins_after_the_release_that_its_bar_shares_a_cell_with() -> None:
    blocks = [Block(0, 3020 * MS, "CPU busy", Role.USER), Block(3040 * MS, 9000 * MS, "CPU busy", Role.USER)]
    grid = Grid(100, 1)
    release = Block(3020 * MS, 3040 * MS, "releasing", Role.GAP)
    draw_blocks(grid, 0, 0, TimeAxis(0, 50 * MS, 100, 2), [*blocks, release], GLYPHS["braille"])
    assert grid.text().startswith("CPU busy" + "━" * 23 + "CPU busy━")


def test_the_longest_release_and_one_that_fits_are_named() -> None:
    lane = lane_of((2000, 2020), (4000, 4300), (6000, 6100))
    assert lane.count("releasing") == 1 and lane.index("releasing") == 44
    assert lane_of((2000, 4000), (6000, 9000)).count("releasing") == 2


def test_a_release_at_the_very_end_is_named_however_short() -> None:
    grid = Grid(100, 1)
    blocks = [Block(0, 5000 * MS, "CPU busy", Role.USER), Block(5000 * MS, 5020 * MS, "releasing", Role.GAP)]
    draw_blocks(grid, 0, 0, TimeAxis(0, 50 * MS, 100, 2), blocks, GLYPHS["braille"])
    assert grid.text().endswith("━ releasing")


def test_a_name_that_later_blocks_lie_over_is_left_out_whole() -> None:
    long = Block(0, 5000 * MS, "fault in and lock pages", Role.KERNEL)
    over = [Block(at * MS, (at + 100) * MS, "witness", Role.KERNEL) for at in (100, 500, 900)]
    grid = Grid(100, 1)
    draw_blocks(grid, 0, 0, TimeAxis(0, 50 * MS, 100, 2), [long, *over], GLYPHS["braille"])
    assert grid.text().strip() == "━" * 50
    alone = Grid(100, 1)
    draw_blocks(alone, 0, 0, TimeAxis(0, 50 * MS, 100, 2), [long], GLYPHS["braille"])
    assert alone.text().startswith("fault in and lock pages━")
