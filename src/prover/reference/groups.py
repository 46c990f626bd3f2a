"""G1 and G2 on Python integers by the affine chord-and-tangent formulas; slow, short, and nobody's optimisation.

A field element is an integer (Fp) or a pair (Fp2, c0 first); a point is ``(x, y)`` or None for infinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from prover.params import B_G1, B_G2, FP_MONT, G1_GENERATOR, G2_GENERATOR, P, R

U64 = npt.NDArray[np.uint64]
Element = Any
Point = tuple[Element, Element] | None
_FROM_MONT = pow(FP_MONT, -1, P)


class FieldOps(Protocol):
    def add(self, x: Element, y: Element) -> Element: ...
    def sub(self, x: Element, y: Element) -> Element: ...
    def mul(self, x: Element, y: Element) -> Element: ...
    def inv(self, x: Element) -> Element: ...


class FpOps:
    """Integers modulo p."""

    def add(self, x: int, y: int) -> int:
        return (x + y) % P

    def sub(self, x: int, y: int) -> int:
        return (x - y) % P

    def mul(self, x: int, y: int) -> int:
        return x * y % P

    def inv(self, x: int) -> int:
        return pow(x, -1, P)


class Fp2Ops:
    """Pairs c0 + c1 u with u^2 = -1."""

    def add(self, x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
        return (x[0] + y[0]) % P, (x[1] + y[1]) % P

    def sub(self, x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
        return (x[0] - y[0]) % P, (x[1] - y[1]) % P

    def mul(self, x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
        return (x[0] * y[0] - x[1] * y[1]) % P, (x[0] * y[1] + x[1] * y[0]) % P

    def inv(self, x: tuple[int, int]) -> tuple[int, int]:
        scale = pow(x[0] * x[0] + x[1] * x[1], -1, P)
        return x[0] * scale % P, -x[1] * scale % P


@dataclass(frozen=True)
class Group:
    """One of the two groups: y^2 = x^3 + b over its field, with a generator of order r."""

    field: FieldOps
    b: Element
    generator: Point
    zero: Element
    coordinates: int
    """Fp coordinates of an element."""

    def is_on_curve(self, p: Point) -> bool:
        f = self.field
        return p is None or f.mul(p[1], p[1]) == f.add(f.mul(f.mul(p[0], p[0]), p[0]), self.b)

    def is_member(self, p: Point) -> bool:
        """On the curve and of order dividing r, by multiplying with r."""
        return self.is_on_curve(p) and self._times(p, R) is None

    def neg(self, p: Point) -> Point:
        return None if p is None else (p[0], self.field.sub(self.zero, p[1]))

    def add(self, p: Point, q: Point) -> Point:
        if p is None or q is None:
            return p or q
        f = self.field
        if p[0] == q[0]:
            if p[1] != q[1] or p[1] == self.zero:
                return None
            xx = f.mul(p[0], p[0])
            slope = f.mul(f.add(f.add(xx, xx), xx), f.inv(f.add(p[1], p[1])))
        else:
            slope = f.mul(f.sub(q[1], p[1]), f.inv(f.sub(q[0], p[0])))
        x = f.sub(f.sub(f.mul(slope, slope), p[0]), q[0])
        return x, f.sub(f.mul(slope, f.sub(p[0], x)), p[1])

    def mul(self, p: Point, scalar: int) -> Point:
        """scalar * p for a p of order r; the scalar is taken modulo r."""
        return self._times(p, scalar % R)

    def msm(self, points: Sequence[Point], scalars: Sequence[int]) -> Point:
        """Sum of scalar times point, term by term."""
        total: Point = None
        for p, k in zip(points, scalars, strict=True):
            total = self.add(total, self.mul(p, k))
        return total

    def from_array(self, array: U64) -> list[Point]:
        """Points of an (n, 2, 6) or (n, 2, 2, 6) Montgomery array."""
        data = np.ascontiguousarray(array).tobytes()
        c = [int.from_bytes(data[i : i + 48], "little") * _FROM_MONT % P for i in range(0, len(data), 48)]
        if self.coordinates == 1:
            pairs: list[tuple[Element, Element]] = list(zip(c[0::2], c[1::2], strict=True))
        else:
            pairs = [((c[i], c[i + 1]), (c[i + 2], c[i + 3])) for i in range(0, len(c), 4)]
        return [None if x == self.zero and y == self.zero else (x, y) for x, y in pairs]

    def to_array(self, points: Sequence[Point]) -> U64:
        """The (n, 2, 6) or (n, 2, 2, 6) Montgomery array; infinity all zeros."""
        values: list[int] = []
        for p in points:
            x, y = p or (self.zero, self.zero)
            values += [x, y] if self.coordinates == 1 else [*x, *y]
        data = b"".join((v * FP_MONT % P).to_bytes(48, "little") for v in values)
        shape = (len(points), 2, 6) if self.coordinates == 1 else (len(points), 2, 2, 6)
        return np.frombuffer(data, np.uint64).reshape(shape).copy()

    def _times(self, p: Point, scalar: int) -> Point:
        total: Point = None
        while scalar:
            if scalar & 1:
                total = self.add(total, p)
            p = self.add(p, p)
            scalar >>= 1
        return total


G1 = Group(FpOps(), B_G1, G1_GENERATOR, 0, 1)
G2 = Group(Fp2Ops(), B_G2, G2_GENERATOR, (0, 0), 2)
