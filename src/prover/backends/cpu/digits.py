"""Scalars become signed digits of the window size that costs least; small and small-negative scalars stay short.

A scalar above r/2 is taken as its negative with the sign moved to its digits, so magnitudes are below 2^254 and
c * windows >= 255 bits hold every carry. Digits lie in [-2^(c-1), 2^(c-1)), zero ones cost nothing later.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import ld_fr, st_fr
from prover.backends.cpu.jit import jit
from prover.backends.cpu.ops import halve_raw, less_raw, modulus_like, mul, neg, raw_one_like
from prover.backends.cpu.workers import Workers, ranges
from prover.params import R

U64 = npt.NDArray[np.uint64]
MAX_WINDOW = 16
"""Digits are int16."""
REDUCTION_COST = 1.3
"""Cost of one bucket in the reduction, in additions of the bucket phase (measured: 2 additions, better cached)."""


@dataclass(frozen=True, slots=True)
class Digits:
    """Signed digits of n scalars, one row a window, least significant window first."""

    window: int
    """Bits a digit, c."""
    rows: npt.NDArray[np.int16]
    """(windows, n)"""
    nonzero: npt.NDArray[np.int64]
    """(windows,), digits of a row that are not zero."""

    @property
    def additions(self) -> int:
        """Point additions of the bucket method: one a digit, two a bucket of every window in use."""
        used = int(np.count_nonzero(self.nonzero))
        return int(self.nonzero.sum()) + used * (2 << (self.window - 1))


@dataclass(frozen=True, slots=True)
class Room:
    """Working memory of `recode` that outlives a call, so that a job's ledger can hold it."""

    magnitudes: U64
    """(n, 4)"""
    rows: npt.NDArray[np.int16]
    """(n * windows_of(n),)"""

    def hold(self, windows: int, count: int) -> npt.NDArray[np.int16] | None:
        """(windows, count) of the room's rows; None where they do not fit."""
        size = windows * count
        return self.rows[:size].reshape(windows, count) if size <= len(self.rows) else None


def windows_of(count: int) -> int:
    """Windows that `recode` chooses for so many scalars of full length."""
    longest = R.bit_length() - 1
    histogram = np.zeros(257, np.int64)
    histogram[longest] = count
    return _window_count(longest, best_window(histogram))


def recode(scalars: U64, workers: Workers, window: int | None = None, room: Room | None = None) -> Digits:
    """Digits of Montgomery scalars.

    Args:
        scalars: (n, 4).
        window: bits a digit, 2 to 16; by default the cheapest for these scalars.
        room: overwritten, and part of the result; memory is allocated where it is None or too small.
    """
    count = len(scalars)
    fits = room is not None and count <= len(room.magnitudes)
    magnitudes = room.magnitudes[:count] if room is not None and fits else np.empty((count, 4), np.uint64)
    pieces = ranges(count, 4 * workers.threads, 256)
    lengths = np.zeros((max(1, len(pieces)), 257), np.int64)
    workers.run(
        [
            partial(_magnitudes, scalars[low:high], magnitudes[low:high], lengths[i])
            for i, (low, high) in enumerate(pieces)
        ]
    )
    histogram = lengths.sum(axis=0)
    window = window or best_window(histogram)
    longest = int(np.flatnonzero(histogram).max(initial=0))
    windows = _window_count(longest, window)
    held = room.hold(windows, count) if room is not None else None
    rows = np.empty((windows, count), np.int16) if held is None else held
    nonzero = np.zeros((max(1, len(pieces)), windows), np.int64)
    workers.run(
        [
            partial(_signed_digits, magnitudes[low:high], window, rows, low, nonzero[i])
            for i, (low, high) in enumerate(pieces)
        ]
    )
    return Digits(window, rows, nonzero.sum(axis=0))


def _window_count(longest: int, window: int) -> int:
    """Windows that hold magnitudes of `longest` bits with no carry out of the last one."""
    largest = min((1 << longest) - 1, R >> 1)
    windows = max(1, -(-(longest + 1) // window))
    top = (largest >> window * (windows - 1)) + (windows > 1)
    return windows + (top >= 1 << (window - 1))


def best_window(histogram: npt.NDArray[np.int64]) -> int:
    """The window with the least estimated work.

    Args:
        histogram: (257,), how many scalars have a magnitude of so many bits.
    """
    longer = np.cumsum(histogram[::-1])[::-1]

    def cost(c: int) -> float:
        lows = np.arange(0, 255, c)
        counts = longer[np.minimum(lows + 1, 256)]
        return float(counts.sum() + REDUCTION_COST * (1 << c) / 2 * np.count_nonzero(counts))

    return min(range(2, MAX_WINDOW + 1), key=cost)


@jit
def _magnitudes(scalars, out, lengths):
    """Canonical magnitudes with the sign in bit 255, and a histogram of their bit lengths."""
    for i in range(scalars.shape[0]):
        value = ld_fr(scalars, i)
        value = mul(value, raw_one_like(value))
        negative = less_raw(halve_raw(modulus_like(value)), value)
        if negative:
            value = neg(value)
        st_fr(out, i, value)
        length = 0
        for limb in range(3, -1, -1):
            word = out[i, limb]
            if word != 0:
                length = 64 * limb
                while word != 0:
                    word >>= np.uint64(1)
                    length += 1
                break
        lengths[length] += 1
        if negative:
            out[i, 3] |= np.uint64(1) << np.uint64(63)


@jit
def _signed_digits(magnitudes, window, rows, first, nonzero):
    mask = np.uint64((1 << window) - 1)
    half = 1 << (window - 1)
    windows = rows.shape[0]
    for i in range(magnitudes.shape[0]):
        negative = (magnitudes[i, 3] >> np.uint64(63)) != 0
        carry = 0
        for w in range(windows):
            bit = w * window
            limb, shift = bit >> 6, bit & 63
            word = np.uint64(0)
            if limb < 4:
                top = magnitudes[i, limb]
                if limb == 3:
                    top &= ~(np.uint64(1) << np.uint64(63))
                word = top >> np.uint64(shift)
                if shift + window > 64 and limb < 3:
                    above = magnitudes[i, limb + 1]
                    if limb == 2:
                        above &= ~(np.uint64(1) << np.uint64(63))
                    word |= above << np.uint64(64 - shift)
            digit = np.int64(word & mask) + carry
            carry = 0
            if digit > half or (digit == half and not negative):
                digit -= 2 * half
                carry = 1
            if digit != 0:
                nonzero[w] += 1
            if negative:
                digit = -digit
            rows[w, first + i] = digit
