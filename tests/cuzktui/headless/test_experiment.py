"""An experiment compares policies fairly and says its spread."""

from __future__ import annotations

import json

import pytest
from cli_support import cuzktui
from hypothesis import given
from hypothesis import strategies as st

from cuzktui.analysis.trials import Spread, markdown, tabulate, turns

NAMES = ["sync-4k", "sync-huge", "async-4k", "async-huge", "recycle"]


@given(count=st.integers(1, 5), repeat=st.integers(1, 12))
def test_every_policy_runs_as_often_and_once_a_round(count, repeat):
    policies = NAMES[:count]
    order = turns(policies, repeat)
    assert len(order) == count * repeat
    for begin in range(0, len(order), count):
        assert sorted(order[begin : begin + count]) == sorted(policies)


def test_no_policy_always_comes_first():
    order = turns(NAMES, 5)
    assert sorted(order[::5]) == sorted(NAMES)


RUNS = [
    ("sync-4k", {"gap_ms": 90.0, "outer_ms": 1000.0, "peak_rss_bytes": 2e9}),
    ("async-4k", {"gap_ms": 1.0, "outer_ms": 900.0, "gap_explained_percent": None}),
    ("sync-4k", {"gap_ms": 110.0, "outer_ms": 1400.0, "peak_rss_bytes": 3e9}),
    ("sync-4k", {"gap_ms": 100.0, "outer_ms": 1100.0, "peak_rss_bytes": 2e9}),
]


def test_medians_and_spreads_are_those_of_the_runs():
    table = tabulate(RUNS)
    assert list(table) == ["sync-4k", "async-4k"]
    assert table["sync-4k"]["gap_ms"] == Spread(100.0, 90.0, 110.0)
    assert table["sync-4k"]["outer_ms"] == Spread(1100.0, 1000.0, 1400.0)
    assert table["async-4k"]["gap_ms"] == Spread(1.0, 1.0, 1.0)


def test_a_figure_that_no_run_has_is_a_dash_and_not_a_zero():
    text = markdown("cubic", 1, 3, tabulate(RUNS))
    row = next(line for line in text.splitlines() if line.startswith("| async-4k"))
    assert row.count("–") >= 2 and " 0" not in row
    assert "100.0 (90.0–110.0)" in text and "2.00 (2.00–3.00)" in text


def test_the_widest_bar_is_the_longest_gap():
    bars = [line for line in markdown("cubic", 1, 1, tabulate(RUNS)).splitlines() if line.endswith(" ms")]
    assert bars[0].count("█") == 30 and bars[1].count("█") == 0


@pytest.mark.parametrize(("arguments", "words"), [
    (["cubic", "--policies", "sync-4k,sideways"], "sideways"),
    (["cubic", "--policies", "sync-4k,sync-4k"], "at most once"),
    (["cubic", "--policies", ","], "at most once"),
    (["cubic", "--repeat", "0"], "--repeat 0"),
    (["cubic", "--circuits", "-3"], "--circuits -3"),
])  # fmt: skip
def test_a_bad_experiment_is_refused(arguments, words):
    done = cuzktui("experiment", *arguments, timeout=30)
    assert done.returncode == 2 and words in done.stderr


def test_a_real_experiment_prints_its_table_and_writes_it(tmp_path):
    done = cuzktui(
        "experiment", "cubic", "--policies", "sync-4k,async-huge", "--repeat", 2, "--json", "--backend", "cpu",
        "-o", tmp_path / "table.md", timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert set(answer["policies"]) == {"sync-4k", "async-huge"} and len(answer["runs"]) == 4
    assert all(run["verified"] for run in answer["runs"])
    assert "| async-huge |" in (tmp_path / "table.md").read_text()
    assert done.stderr.count("gap") == 5
