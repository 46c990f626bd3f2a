"""Points with known discrete logarithms, made by the oracle."""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass

import numpy as np

from prover.backends.cpu.field import U64
from prover.params import R
from prover.reference.groups import G1, G2, Group


@dataclass(frozen=True)
class Known:
    """`points[i]` is `logs[i]` times the generator; logarithm 0 is infinity."""

    group: Group
    logs: list[int]
    points: U64

    def expect(self, scalars: list[int]) -> U64:
        """Their multi-scalar sum in closed form: one multiplication of the generator."""
        total = sum(a * b for a, b in zip(self.logs, scalars, strict=True)) % R
        return self.group.to_array([self.group.mul(self.group.generator, total)])[0]


class Source:
    """Draws from a small stock, so that equal and opposite points and infinity occur all the time."""

    def __init__(self, group: Group, seed: int, stock: int = 24) -> None:
        self.group, self.rng = group, random.Random(seed)
        logs = [self.rng.randrange(1, R) for _ in range(stock)]
        logs += [R - x for x in logs[: stock // 3]] + [0, 0]
        self._logs = logs
        self._points = group.to_array([group.mul(group.generator, x) for x in logs])

    def draw(self, count: int) -> Known:
        picks = [self.rng.randrange(len(self._logs)) for _ in range(count)]
        points = self._points[np.array(picks, np.int64)]
        return Known(self.group, [self._logs[i] for i in picks], points)

    def scalars(self, count: int) -> list[int]:
        """Random ones with the awkward ones among them."""
        awkward = [0, 1, 2, R - 1, R - 2, R // 2, R // 2 + 1, (1 << 32) - 1, 1 << 254]
        return [self.rng.choice(awkward) if self.rng.random() < 0.4 else self.rng.randrange(R) for _ in range(count)]


@functools.cache
def both_groups() -> list[Source]:
    return [Source(G1, 11), Source(G2, 12)]
