"""Points of one group with known logarithms: an MSM over them has a closed form."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt

from prover.backends.cuda.launch import Launcher
from prover.backends.cuda.msm import Curve, Msm
from prover.backends.cuda.ntt import field_array
from prover.backends.cuda.sort import ScalarSource
from prover.params import R
from prover.reference.groups import Group

RNG = random.Random(5)
AWKWARD = [0, 1, R - 1, 2, R - 2, (R - 1) // 2, (R + 1) // 2, 1 << 254, (1 << 64) - 1]
COUNT = 96


class Points:
    """`count` points, infinity, equal and opposite ones among them."""

    def __init__(self, curve: Curve, oracle: Group, count: int = COUNT) -> None:
        self.curve, self.oracle = curve, oracle
        stock = [RNG.randrange(1, R) for _ in range(20)]
        stock += [R - x for x in stock[:6]] + [0, 0]
        points = oracle.to_array([oracle.mul(oracle.generator, x) for x in stock])
        picks = [RNG.randrange(len(stock)) for _ in range(count)]
        self.logs, self.points = [stock[i] for i in picks], points[np.array(picks)]

    def same(self) -> Points:
        """As many points, all one or its opposite."""
        made = Points.__new__(Points)
        made.curve, made.oracle = self.curve, self.oracle
        k = next(i for i, log in enumerate(self.logs) if log)
        made.points = np.repeat(self.points[k : k + 1], len(self.points), 0)
        made.points[::3] = self.oracle.to_array([self.oracle.mul(self.oracle.generator, R - self.logs[k])])[0]
        made.logs = [R - self.logs[k] if i % 3 == 0 else self.logs[k] for i in range(len(self.logs))]
        return made

    def expect(self, scalars: list[int], logs: list[int] | None = None) -> npt.NDArray[np.uint64]:
        total = sum(a * b for a, b in zip(logs or self.logs, scalars, strict=False)) % R
        return self.oracle.to_array([self.oracle.mul(self.oracle.generator, total)])[0]


def run(
    launcher: Launcher, known: Points, scalars: list[int], window: int | None = None, budget_bytes: int = 1 << 30
) -> npt.NDArray[np.uint64]:
    """The MSM of the first points with these scalars."""
    source = ScalarSource(launcher.upload(field_array(scalars)), len(scalars))
    return Msm(launcher, known.curve, budget_bytes).run(launcher.upload(known.points), source, window)


def mixed(count: int) -> list[int]:
    """Scalars of every kind."""
    return [RNG.choice(AWKWARD) if RNG.random() < 0.4 else RNG.randrange(R) for _ in range(count)]
