"""A ByteScale maps bytes to rows with round marks; it rises in steps, so that growth does not shake the picture."""

from __future__ import annotations

from dataclasses import dataclass

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


@dataclass(frozen=True, slots=True)
class ByteScale:
    """Vertical axis of `rows` cells from `low` to `high` bytes."""

    low: float
    high: float
    step: float
    unit_bytes: float
    unit: str
    rows: int

    def share(self, value: float) -> float:
        """Height of a value, 0 to 1; outside that it is outside the axis."""
        return (value - self.low) / (self.high - self.low)

    def row(self, value: float) -> int:
        """The row a value falls into, 0 the upper one."""
        return self.rows - 1 - min(self.rows - 1, max(0, int(self.share(value) * self.rows - 1e-9)))

    def marks(self) -> list[tuple[int, str]]:
        """Rows and their figures in `unit`."""
        found = []
        count = int((self.high - self.low) / self.step + 1e-9)
        for number in range(count + 1):
            value = self.low + number * self.step
            found.append((self.row(value), f"{value / self.unit_bytes:.4g}"))
        return found


def byte_scale(low: float, high: float, rows: int) -> ByteScale:
    """The axis that holds `low` to `high` with marks at least three rows apart."""
    high = max(high, low + 1e6)
    wanted = max(1, min(5, rows // 3))
    step = _round_step((high - low) / wanted)
    first = low // step * step
    count = -(-(high - first) // step)
    top = first + count * step
    if rows >= 6 and top - step / 2 >= high:
        top -= step / 2
    unit_bytes, unit = next((u, n) for u, n in _UNITS if top >= u or u == 1.0)
    return ByteScale(first, top, step, unit_bytes, unit, max(1, rows))


def _round_step(span: float) -> float:
    power = 1.0
    while power * 10 <= span:
        power *= 10
    return next((power * f for f in (1, 2, 2.5, 5) if power * f >= span), power * 10)
