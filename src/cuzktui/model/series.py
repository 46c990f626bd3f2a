"""A series or a log is append-only and immutable to its readers: appending gives a new view over the same storage.

Storage is shared between successive views, so an append costs O(1) and a snapshot taken earlier keeps seeing exactly
what it saw. Capacity is fixed: when a series is full its recent quarter stays raw and the rest is reduced to the
least and the greatest sample of equal time buckets, which keeps every peak and every floor of a long recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_FIRST_ROWS = 256


class Series:
    """Samples of named columns over CLOCK_MONOTONIC; a reading that could not be taken is NaN.

    Args:
        columns: names; the first is the one whose extremes survive reduction.
        capacity: most rows ever held.
    """

    __slots__ = ("_n", "_t", "_used", "_v", "capacity", "columns")

    def __init__(self, columns: tuple[str, ...], capacity: int = 65536) -> None:
        self.columns, self.capacity = columns, capacity
        rows = min(_FIRST_ROWS, capacity)
        self._t: Ints = np.empty(rows, np.int64)
        self._v: Floats = np.empty((rows, len(columns)), np.float64)
        self._n, self._used = 0, [0]

    def __len__(self) -> int:
        return self._n

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Series) or self.columns != other.columns or self._n != other._n:
            return False
        return np.array_equal(self.t_ns, other.t_ns) and np.array_equal(
            self._v[: self._n], other._v[: other._n], equal_nan=True
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def t_ns(self) -> Ints:
        """Times of the samples, ascending."""
        return self._t[: self._n]

    def column(self, name: str) -> Floats:
        """One column's values, beside `t_ns`."""
        return self._v[: self._n, self.columns.index(name)]

    def last(self, name: str) -> float | None:
        """The newest reading of a column; None where there is none."""
        if not self._n:
            return None
        return _reading(self._v[self._n - 1, self.columns.index(name)])

    def at(self, t_ns: int, name: str) -> float | None:
        """The reading in force at a time: that of the newest sample not after it."""
        row = int(np.searchsorted(self.t_ns, t_ns, side="right")) - 1
        if row < 0:
            return None
        return _reading(self._v[row, self.columns.index(name)])

    def window(self, begin_ns: int, end_ns: int) -> tuple[Ints, Floats]:
        """Times `(m,)` and values `(m, columns)` of the samples with begin <= t <= end."""
        lo = int(np.searchsorted(self.t_ns, begin_ns, side="left"))
        hi = int(np.searchsorted(self.t_ns, end_ns, side="right"))
        return self._t[lo:hi], self._v[lo:hi]

    def append(self, t_ns: int, values: tuple[float | None, ...]) -> Series:
        """This series with one sample more; a late sample is put in its place."""
        n = self._n
        if n and t_ns < self._t[n - 1]:
            return self._insert(t_ns, values)
        if self._used[0] == n and n < len(self._t):
            grown = self._view(self._t, self._v, n + 1, self._used)
        elif n < self.capacity:
            grown = self._copied(self._t[:n], self._v[:n], max(2 * n, _FIRST_ROWS))
        else:
            grown = self._copied(*_reduce(self.t_ns, self._v[:n], self.capacity), self.capacity)
        row = grown._n - 1
        grown._t[row] = t_ns
        grown._v[row] = values
        grown._used[0] = grown._n
        return grown

    def _view(self, t: Ints, v: Floats, n: int, used: list[int]) -> Series:
        view = Series.__new__(Series)
        view.columns, view.capacity = self.columns, self.capacity
        view._t, view._v, view._n, view._used = t, v, n, used
        return view

    def _copied(self, t: Ints, v: Floats, rows: int) -> Series:
        rows = min(max(rows, len(t) + 1), max(self.capacity, len(t) + 1))
        new_t = np.empty(rows, np.int64)
        new_v = np.empty((rows, len(self.columns)), np.float64)
        new_t[: len(t)], new_v[: len(t)] = t, v
        return self._view(new_t, new_v, len(t) + 1, [len(t) + 1])

    def _insert(self, t_ns: int, values: tuple[float | None, ...]) -> Series:
        n = self._n
        at = int(np.searchsorted(self.t_ns, t_ns, side="right"))
        row = np.array(values, np.float64)
        t = np.insert(self._t[:n], at, t_ns)
        v = np.insert(self._v[:n], at, row, axis=0)
        if n + 1 > self.capacity:
            t, v = _reduce(t, v, self.capacity)
        return self._view(t, v, len(t), [len(t)])


def _reading(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)


def _reduce(t: Ints, v: Floats, capacity: int) -> tuple[Ints, Floats]:
    """The newest quarter as it is, before it at most a quarter of `capacity` in extremes of equal time buckets."""
    cut = len(t) - capacity // 4
    buckets = max(1, capacity // 8)
    span_ns = max(1, int(t[cut - 1] - t[0]) + 1)
    bucket = ((t[:cut] - t[0]) * (buckets / span_ns)).astype(np.int64)
    key = np.nan_to_num(v[:cut, 0])
    order = np.lexsort((key, bucket))
    sorted_bucket = bucket[order]
    firsts = np.flatnonzero(np.r_[True, sorted_bucket[1:] != sorted_bucket[:-1]])
    lasts = np.r_[firsts[1:], len(order)] - 1
    kept = np.unique(np.concatenate((order[firsts], order[lasts], np.arange(cut, len(t)))))
    return t[kept], v[kept]


class Log(Generic[T]):
    """A bounded append-only list; beyond `capacity` the oldest half is forgotten and counted in `forgotten`."""

    __slots__ = ("_items", "_n", "capacity", "forgotten")

    def __init__(self, capacity: int) -> None:
        self.capacity, self.forgotten = capacity, 0
        self._items: list[T] = []
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[T]:
        return iter(self._items[: self._n])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Log) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        if isinstance(at, slice):
            return self._items[: self._n][at]
        if not -self._n <= at < self._n:
            raise IndexError(at)
        return self._items[at if at >= 0 else self._n + at]

    def append(self, item: T) -> Log[T]:
        """This log with one item more."""
        grown: Log[T] = Log.__new__(Log)
        grown.capacity, grown.forgotten = self.capacity, self.forgotten
        items = self._items
        if self._n >= self.capacity:
            half = self.capacity // 2
            items = items[self._n - half : self._n]
            grown.forgotten += self._n - half
        elif len(items) != self._n:
            items = items[: self._n]
        items.append(item)
        grown._items, grown._n = items, len(items)
        return grown
