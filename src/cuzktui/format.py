"""Numbers become text here and nowhere else; a reading that could not be taken is `–`, never 0."""

from __future__ import annotations

ABSENT = "–"
"""What an unread value looks like."""

_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_COUNTS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def three_digits(value: float) -> str:
    """A number with three significant digits and no exponent: 61.2, 4.88, 488."""
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if magnitude >= 9.995 else f"{value:.2f}"


def size(size_bytes: float | None) -> str:
    """Decimal units, as release rates are quoted: 61.2 GB, 812 MB, 0 B."""
    if size_bytes is None:
        return ABSENT
    for unit, name in _SIZES:
        if abs(size_bytes) >= unit * 0.9995:
            return f"{three_digits(size_bytes / unit)} {name}"
    return f"{size_bytes:.0f} B"


def size_of(part_bytes: float | None, whole_bytes: float | None) -> str:
    """A part of a whole in the unit of the whole: `41.2/139.8 GB`."""
    if part_bytes is None or whole_bytes is None or whole_bytes <= 0:
        return f"{size(part_bytes)}/{size(whole_bytes)}"
    unit, name = next(((u, n) for u, n in _SIZES if whole_bytes >= u * 0.9995), (1.0, "B"))
    return f"{three_digits(part_bytes / unit)}/{three_digits(whole_bytes / unit)} {name}"


def rate(bytes_per_s: float | None) -> str:
    """19.3 GB/s."""
    return ABSENT if bytes_per_s is None else f"{size(bytes_per_s)}/s"


def duration(span_ns: float | None) -> str:
    """One unit, three digits: 1.92 s, 488 ms, 41.0 µs; minutes from 120 s on: `2 min 05 s`."""
    if span_ns is None:
        return ABSENT
    magnitude = abs(span_ns)
    if magnitude >= 119.95e9:
        minutes, seconds = divmod(round(span_ns / 1e9), 60)
        if minutes >= 120:
            return f"{minutes // 60} h {minutes % 60:02d} min"
        return f"{minutes} min {seconds:02d} s"
    if magnitude >= 0.9995e9:
        return f"{three_digits(span_ns / 1e9)} s"
    if magnitude >= 0.9995e6:
        return f"{three_digits(span_ns / 1e6)} ms"
    if magnitude >= 0.9995e3:
        return f"{three_digits(span_ns / 1e3)} µs"
    return f"{span_ns:.0f} ns"


def brief(span_ns: float | None) -> str:
    """A duration for a column of a table, at most seven cells: minutes are written in seconds up to 9999."""
    if span_ns is None or abs(span_ns) < 119.95e9:
        return duration(span_ns)
    seconds = span_ns / 1e9
    return f"{seconds:.0f} s" if abs(seconds) < 9999.5 else f"{seconds / 3600:.1f} h"


def milliseconds(value_ms: float | int | str | None) -> str:
    """A figure in milliseconds from a job's metrics, in the unit that reads best."""
    return duration(value_ms * 1e6) if isinstance(value_ms, (int, float)) else ABSENT


def clock(span_ns: float) -> str:
    """Elapsed time of a recording: 00:01:12."""
    seconds = max(0, int(span_ns // 1_000_000_000))
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def percent(value: float | None) -> str:
    """97 %; below ten with one digit."""
    if value is None:
        return ABSENT
    return f"{value:.1f} %" if 0 < abs(value) < 9.95 else f"{value:.0f} %"


def count(value: float | None) -> str:
    """130 M, 64.0 k, 512."""
    if value is None:
        return ABSENT
    for unit, name in _COUNTS:
        if abs(value) >= unit * 0.9995:
            return f"{three_digits(value / unit)} {name}"
    return f"{value:.0f}"


def quantity(value: float | None, unit: str) -> str:
    """An instrument's reading with its unit: 412 W, 61 °C, 1980 MHz."""
    return ABSENT if value is None else f"{value:.0f} {unit}"


def age(span_ns: float) -> str:
    """An offset on the time axis, short enough for a tick: 0, -5s, -2m, -1h30."""
    seconds = span_ns / 1e9
    if abs(seconds) < 0.5e-3:
        return "0"
    if abs(seconds) < 0.9995:
        return f"{seconds * 1000:.0f}ms"
    if abs(seconds) < 120:
        return f"{seconds:.0f}s" if abs(seconds - round(seconds)) < 0.05 else f"{seconds:.1f}s"
    minutes = seconds / 60
    if abs(minutes) < 120:
        return f"{minutes:.0f}m" if abs(minutes - round(minutes)) < 0.05 else f"{minutes:.1f}m"
    return f"{minutes / 60:.1f}h"
