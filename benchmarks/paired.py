"""The same work done in two ways, in pairs: a ratio counts only together with its 95 % interval.

The interval is of the mean of the pairs' log ratios, by Student's t for exactly so many pairs; within a pair the order
is drawn from a fixed seed, so that a drift of the machine favours neither side.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator, Sequence


def orders(count: int, seed: int = 1) -> Iterator[bool]:
    """Whether the first way goes first, for each pair; every two pairs hold one of each."""
    draw = random.Random(seed)
    for number in range(count):
        if number % 2 == 0:
            first = draw.random() < 0.5
        yield first if number % 2 == 0 else not first


def student_t(freedom: int, two_sided: float = 0.95) -> float:
    """The quantile t with P(|T| < t) = two_sided: the density is integrated by Simpson's rule, t found by bisection."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    steps = 2000

    def within(t: float) -> float:
        values = [scale * (1 + (t * i / steps) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(steps + 1)]
        return 2 * t / (3 * steps) * (values[0] + values[-1] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2]))

    low, high = 0.0, 128.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) < two_sided else (low, middle)
    return (low + high) / 2


def ratio(first: Sequence[float], second: Sequence[float]) -> dict[str, object]:
    """first over second, pair by pair.

    Returns:
        pairs, medians of both, ratio (geometric mean), ratio_95 (None for fewer than two pairs) and the median ratio.
    """
    logs = [math.log(one / two) for one, two in zip(first, second, strict=True)]
    mean = statistics.fmean(logs)
    half = student_t(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else None
    return {
        "pairs": len(logs), "medians": [round(statistics.median(first), 3), round(statistics.median(second), 3)],
        "ratio": round(math.exp(mean), 5), "ratio_median": round(math.exp(statistics.median(logs)), 5),
        "ratio_95": None if half is None else [round(math.exp(mean + sign * half), 5) for sign in (-1, 1)],
    }  # fmt: skip
