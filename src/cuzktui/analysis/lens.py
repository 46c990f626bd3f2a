"""What the lens resolved of a release: how many distinct levels, over which time, at which rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuzktui.model.snapshot import Lens

LEVEL_BYTES = 1 << 20
"""Two readings closer than this are one level."""
EDGE_SHARE = 0.02
"""Readings within 2 % of the fall from its top or bottom lie on the plateau before or after."""


@dataclass(frozen=True, slots=True)
class LensReport:
    """A release as sampled."""

    levels: int
    """Distinct levels seen strictly between top and bottom, and the two."""
    samples: int
    """Readings strictly between top and bottom."""
    fall_bytes: float
    begin_ns: int
    """Last reading at the top."""
    end_ns: int
    """First reading at the bottom."""
    slope_bytes_per_s: float | None
    """Through the readings between, negative; None with fewer than two (a cliff)."""

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns


def lens_report(lens: Lens, now_ns: int) -> LensReport | None:
    """The largest fall inside a lens; None where memory did not fall."""
    times, anon = lens.samples.t_ns, lens.samples.column("anon")
    keep = times <= (lens.end_ns if lens.end_ns is not None else now_ns)
    times, anon = times[keep], anon[keep]
    if len(anon) < 2:
        return None
    top_at = int(np.argmax(anon))
    bottom_at = top_at + int(np.argmin(anon[top_at:]))
    top, bottom = float(anon[top_at]), float(anon[bottom_at])
    fall = top - bottom
    if fall < LEVEL_BYTES:
        return None
    high, low = top - EDGE_SHARE * fall, bottom + EDGE_SHARE * fall
    begin = top_at + int(np.flatnonzero(anon[top_at : bottom_at + 1] >= high)[-1])
    end = begin + int(np.flatnonzero(anon[begin : bottom_at + 1] <= low)[0])
    inner = anon[begin + 1 : end]
    distinct = len(np.unique(np.round(inner / LEVEL_BYTES)))
    slope = None
    if len(inner) >= 2:
        seconds = (times[begin + 1 : end] - times[begin + 1]) / 1e9
        slope = float(np.polyfit(seconds, inner, 1)[0])
    return LensReport(distinct + 2, len(inner), fall, int(times[begin]), int(times[end]), slope)
