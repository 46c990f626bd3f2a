"""Equal coefficients of a file get one index: a hash table over raw 32-byte values, entry 0 is 1 and entry 1 is -1.

The hash is keyed by a random seed of the process, so a file cannot be written to make it degenerate.
"""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import pack
from prover.backends.cpu.jit import jit

U64 = npt.NDArray[np.uint64]
VALUE_WORDS = 8
"""32-bit words of a stored Fr."""


@jit
def intern(data, position, values, slots, count, seed):  # type: ignore[no-untyped-def]
    """Index of the value at words `position .. position + 8` of the uint32 array `data`, and the new count.

    The caller keeps at least half of `slots` free.
    """
    h = seed
    limbs = np.empty(4, np.uint64)
    for i in range(4):
        limb = np.uint64(data[position + 2 * i]) | (np.uint64(data[position + 2 * i + 1]) << np.uint64(32))
        limbs[i] = limb
        h = (h ^ limb) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    mask = np.uint64(len(slots) - 1)
    slot = (h * seed >> np.uint64(7)) & mask
    while True:
        entry = slots[slot]
        if entry < 0:
            for i in range(4):
                values[count, i] = limbs[i]
            slots[slot] = count
            return count, count + 1
        if (
            values[entry, 0] == limbs[0]
            and values[entry, 1] == limbs[1]
            and values[entry, 2] == limbs[2]
            and values[entry, 3] == limbs[3]
        ):
            return np.int64(entry), count
        slot = (slot + np.uint64(1)) & mask


@jit
def is_below(data, position, modulus):  # type: ignore[no-untyped-def]
    """Whether the 8-word value at `position` of the uint32 array `data` is below the 8-word `modulus`."""
    for i in range(7, -1, -1):
        if data[position + i] != modulus[i]:
            return data[position + i] < modulus[i]
    return False


@jit
def _intern_all(data, values, slots, seed):  # type: ignore[no-untyped-def]
    count = 0
    for i in range(len(data) // 8):
        _, count = intern(data, 8 * i, values, slots, count, seed)
    return count


class CoefficientTable:
    """Distinct raw values seen so far.

    Args:
        one, minus_one: how the file stores 1 and -1.
    """

    def __init__(self, one: int, minus_one: int) -> None:
        self.seed = np.uint64(secrets.randbits(64) | 1)
        self.count = 0
        self._allocate(1 << 10)
        self._reinsert(pack([one, minus_one], 4))

    def reserve(self, more: int) -> None:
        """Makes room for `more` further values with half of the slots left free."""
        need = 2 * (self.count + more)
        if need > len(self.slots):
            old = self.values[: self.count]
            self._allocate(1 << (need - 1).bit_length())
            self._reinsert(old)

    @property
    def room(self) -> int:
        """Values that can be added before `reserve` is needed."""
        return len(self.slots) // 2 - self.count

    def distinct(self) -> U64:
        """(count, 4) raw values in order of their index."""
        return self.values[: self.count].copy()

    def _allocate(self, size: int) -> None:
        self.slots = np.full(size, -1, np.int32)
        self.values = np.empty((size // 2, 4), np.uint64)

    def _reinsert(self, raw: U64) -> None:
        self.count = int(_intern_all(raw.view(np.uint32).ravel(), self.values, self.slots, self.seed))
