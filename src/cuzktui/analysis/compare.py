"""Two jobs are compared figure by figure; what one of them lacks is absent, never 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuzktui import format as text
from cuzktui.analysis.report import JobReport
from cuzktui.model.snapshot import JobView
from prover.wire import Stage

FIGURES = (
    ("total_ms", "total"), ("inner_ms", "inner clock"), ("outer_ms", "outer clock"), ("gap_ms", "gap"),
    ("munmap_bytes_per_s", "munmap rate"), ("released_bytes", "released in the gap"),
    ("background_bytes", "released in the background"), ("peak_rss_bytes", "peak resident"),
    ("explained_percent", "explained"), ("gap_explained_percent", "gap explained"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of both; its unit is the end of `key`: `_ms`, `_bytes`, `_bytes_per_s` or `_percent`."""

    key: str
    name: str
    left: float | None
    right: float | None

    @property
    def delta(self) -> float | None:
        """right - left."""
        return None if self.left is None or self.right is None else self.right - self.left

    @property
    def ratio(self) -> float | None:
        """right / left; None for a percentage."""
        if not self.left or self.right is None or self.key.endswith("_percent"):
            return None
        return self.right / self.left

    def said(self, value: float | None) -> str:
        """A value with its unit."""
        if value is None:
            return text.ABSENT
        if self.key.endswith("_ms"):
            return text.milliseconds(value)
        if self.key.endswith("_percent"):
            return text.percent(value)
        return text.rate(value) if self.key.endswith("_per_s") else text.size(value)


def compare(left: JobReport, right: JobReport) -> list[Row]:
    """The headline figures, then every stage that either has, in the order of the protocol."""
    one, two = left.as_dict(), right.as_dict()
    rows = [Row(key, name, _number(one.get(key)), _number(two.get(key))) for key, name in FIGURES]
    names = [stage.value for stage in Stage if stage.value in left.stages_ms or stage.value in right.stages_ms]
    rows += [Row(f"{name}_ms", name, left.stages_ms.get(name), right.stages_ms.get(name)) for name in names]
    return [row for row in rows if row.left is not None or row.right is not None]


def offset_ns(left: JobView, right: JobView, stage: Stage) -> int | None:
    """What to add to times of `right` so that a stage begins at the same instant as in `left`."""
    one, two = left.stage(stage), right.stage(stage)
    return None if one is None or two is None else one.begin_ns - two.begin_ns


def markdown(rows: Sequence[Row], left_name: str, right_name: str) -> str:
    """The comparison as a table."""
    lines = [f"| | {left_name} | {right_name} | change |", "|---|---:|---:|---:|"]
    for row in rows:
        change = text.ABSENT
        if row.delta is not None:
            sign = "+" if row.delta > 0 else ""
            ratio = f" (×{text.three_digits(row.ratio)})" if row.ratio is not None else ""
            change = f"{sign}{row.said(row.delta)}{ratio}"
        lines.append(f"| {row.name} | {row.said(row.left)} | {row.said(row.right)} | {change} |")
    return "\n".join(lines) + "\n"


def as_dict(rows: Sequence[Row], left_name: str, right_name: str) -> dict[str, object]:
    """The comparison as plain numbers, strings, lists and objects."""
    figures = [{"key": r.key, "left": r.left, "right": r.right, "delta": r.delta} for r in rows]
    return {"left": left_name, "right": right_name, "figures": figures}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
