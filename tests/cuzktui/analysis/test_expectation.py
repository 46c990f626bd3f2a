"""An expectation reads as an operator writes it, refuses what it cannot read, and travels with the recording."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzktui.analysis import analyse
from cuzktui.analysis.expectation import Expected, expected_of, levels, parsed
from cuzktui.model.snapshot import EXPECTATION
from prover import wire
from prover.errors import BadRequest


def test_known_sizes_become_a_stack() -> None:
    parts = parsed("srs=47GB, partitions=10x16.7GB")
    assert parts == (Expected("srs", 1, 47_000_000_000), Expected("partitions", 10, 16_700_000_000))
    assert levels(parts) == [("srs", 47_000_000_000), ("partitions", 214_000_000_000)]


@pytest.mark.parametrize(("text", "size"), [
    ("a=1", 1), ("a=3k", 3000), ("a=2MiB", 2 << 20), ("a=1.5GiB", 3 << 29), ("a=2×512Mi", 1 << 30), ("a=1TB", 10**12),
])  # fmt: skip
def test_units_are_decimal_unless_written_binary(text: str, size: int) -> None:
    assert parsed(text)[0].size_bytes == size


@pytest.mark.parametrize("text", [
    "", "srs", "srs=", "=3GB", "srs=GB", "srs=-1GB", "srs=1GB,srs=2GB", "srs=0x1GB", "srs=9999999999TB", "srs=1iB",
    "srs=1GB,,b=2", "x" * 2000, ",".join(f"a{k}=1" for k in range(17)), "s\x1b[2J=1GB", "srs=1e9", "srs=nan",
])  # fmt: skip
def test_what_cannot_be_read_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(BadRequest, match="--expect"):
        parsed(text)


@given(st.text(max_size=60))
def test_no_text_does_anything_but_parse_or_be_refused(text: str) -> None:
    try:
        parts = parsed(text)
    except BadRequest:
        return
    assert all(part.size_bytes >= 0 and part.name for part in parts)


def test_the_newest_expectation_of_the_stream_counts_and_other_markers_do_not() -> None:
    def marker(t_ns: int, text: str, by: str = EXPECTATION) -> wire.Event:
        return wire.Marker(t_ns=t_ns, text=text, by=by)

    assert expected_of(analyse([marker(1, "a=1GB", "user")])) == ()
    told = analyse([marker(1, "a=1GB"), marker(2, "b=2GB"), marker(3, "lunch", "user")])
    assert expected_of(told) == (Expected("b", 1, 2_000_000_000),)
    assert expected_of(analyse([marker(1, "not a size")])) == ()
