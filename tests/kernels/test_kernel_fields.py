"""The arithmetic headers agree with Python integers, edge values first."""

from __future__ import annotations

import random

import numpy as np
import pytest
from emulated import Emulated

from prover.backends.cuda.launch import Memory
from prover.params import FP_MONT, FR_MONT, P, R

RNG = random.Random(7)
FP_EDGE = [0, 1, 2, P - 1, P - 2, (P - 1) // 2, 1 << 380, FP_MONT, P - FP_MONT, (1 << 32) - 1]
FR_EDGE = [0, 1, 2, R - 1, R - 2, (R - 1) // 2, 1 << 254, FR_MONT, R - FR_MONT, (1 << 64) - 1]
LAWS = {
    "product": (0, lambda a, b, m: a * b % m),
    "sum": (1, lambda a, b, m: (a + b) % m),
    "difference": (2, lambda a, b, m: (a - b) % m),
    "square": (5, lambda a, _b, m: a * a % m),
    "negative": (6, lambda a, _b, m: -a % m),
}


def operands(edge: list[int], modulus: int) -> tuple[list[int], list[int]]:
    """Every pair of edge values, then random ones."""
    pairs = [(a, b) for a in edge for b in edge]
    pairs += [(RNG.randrange(modulus), RNG.randrange(modulus)) for _ in range(200)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def up(launcher: Emulated, values: list[int], modulus: int, mont: int, size: int) -> Memory:
    data = b"".join((v * mont % modulus).to_bytes(size, "little") for v in values)
    return launcher.upload(np.frombuffer(data, np.uint64))


def plain(values: list[int]) -> np.ndarray:
    """32-byte integers as they are."""
    return np.frombuffer(b"".join(v.to_bytes(32, "little") for v in values), np.uint64)


def words(launcher: Emulated, memory: Memory, count: int, size: int) -> list[int]:
    raw = launcher.download(memory, (count * size,), np.uint8).tobytes()
    return [int.from_bytes(raw[i : i + size], "little") for i in range(0, len(raw), size)]


def down(launcher: Emulated, memory: Memory, count: int, modulus: int, mont: int, size: int) -> list[int]:
    values, inverse = words(launcher, memory, count, size), pow(mont, -1, modulus)
    assert all(v < modulus for v in values), "a result is not canonical"
    return [v * inverse % modulus for v in values]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    ("kernel", "edge", "modulus", "mont", "size"),
    [("fp_ops", FP_EDGE, P, FP_MONT, 48), ("fr_ops", FR_EDGE, R, FR_MONT, 32)],
    ids=["Fp", "Fr"],
)
def test_prime_fields_agree_with_integers(launcher, kernel, edge, modulus, mont, size, law):
    op, expected = LAWS[law]
    a, b = operands(edge, modulus)
    out = launcher.empty(len(a) * size)
    left, right = (up(launcher, v, modulus, mont, size) for v in (a, b))
    launcher.launch(kernel, 1, 128, left, right, op, len(a), out)
    want = [expected(x, y, modulus) for x, y in zip(a, b, strict=True)]
    assert down(launcher, out, len(a), modulus, mont, size) == want


def test_the_inverse_of_every_edge_value_is_right_and_zero_has_none(launcher):
    values = FP_EDGE + [RNG.randrange(P) for _ in range(100)] + [1 << k for k in range(0, 381, 19)]
    out, source = launcher.empty(len(values) * 48), up(launcher, values, P, FP_MONT, 48)
    launcher.launch("fp_ops", 1, 128, source, source, 3, len(values), out)
    assert down(launcher, out, len(values), P, FP_MONT, 48) == [pow(v, -1, P) if v else 0 for v in values]


def test_canonical_form_is_the_integer_itself(launcher):
    values = FR_EDGE + [RNG.randrange(R) for _ in range(50)]
    out, source = launcher.empty(len(values) * 32), up(launcher, values, R, FR_MONT, 32)
    launcher.launch("fr_ops", 1, 128, source, source, 4, len(values), out)
    raw = launcher.download(out, (len(values) * 32,), np.uint8).tobytes()
    assert [int.from_bytes(raw[i : i + 32], "little") for i in range(0, len(raw), 32)] == values


@pytest.mark.parametrize("law", ["product", "square", "inverse"])
def test_fp2_agrees_with_complex_arithmetic_over_integers(launcher, law):
    pairs = [(a, b) for a in FP_EDGE[:6] for b in FP_EDGE[:6]]
    pairs += [(RNG.randrange(P), RNG.randrange(P)) for _ in range(60)]
    others = list(reversed(pairs))
    flat = lambda v: [c for pair in v for c in pair]  # noqa: E731
    out = launcher.empty(len(pairs) * 96)
    left, right = (up(launcher, flat(v), P, FP_MONT, 48) for v in (pairs, others))
    launcher.launch("fp2_ops", 1, 128, left, right, {"product": 0, "inverse": 3, "square": 5}[law], len(pairs), out)
    got = down(launcher, out, 2 * len(pairs), P, FP_MONT, 48)
    for i, ((a, b), (c, d)) in enumerate(zip(pairs, others, strict=True)):
        if law == "inverse":
            norm = pow(a * a + b * b, -1, P) if (a * a + b * b) % P else 0
            want = [a * norm % P, -b * norm % P]
        else:
            c, d = (c, d) if law == "product" else (a, b)
            want = [(a * c - b * d) % P, (a * d + b * c) % P]
        assert got[2 * i : 2 * i + 2] == want


def test_products_by_prepared_constants_agree_with_integers_for_every_256_bit_factor(launcher):
    constants, factors = operands(FR_EDGE, R)
    factors += [1 << 256 - 1, (1 << 256) - 1, 2 * R - 1, 2 * R, R, R + 1]
    constants += [R - 1] * 6
    factors += [RNG.randrange(1 << 256) for _ in range(200)]
    constants += [RNG.choice([RNG.randrange(R), R - 1 - RNG.randrange(1 << 40)]) for _ in range(200)]
    prepared = [half for w in constants for half in (w, (w << 256) // R)]
    count = len(factors)
    out = launcher.empty(count * 32)
    launcher.launch(
        "fr_constant_products", 1, 128, launcher.upload(plain(prepared)), launcher.upload(plain(factors)), count, out
    )
    want = [w * a % R for w, a in zip(constants, factors, strict=True)]
    assert down(launcher, out, count, R, 1, 32) == want


def test_butterflies_of_values_below_2r_stay_there_at_every_border(launcher):
    top = 2 * R >> 224 << 224  # sums with the top limb of 2r need a whole comparison
    sums = [top - 1, top, top + (1 << 224) - 1, top + (1 << 224), 2 * R - 1, 2 * R, 2 * R + 1, (1 << 256) - 1, 1 << 256]
    pairs = [(s // 2 + d, s - s // 2 - d) for s in sums for d in (0, 1, 12345) if s // 2 + d < 2 * R and s >= 2 * d]
    pairs += [(0, 2 * R - 1), (2 * R - 1, 0), (2 * R - 1, 2 * R - 1), (R, R), (R - 1, R), (5, 6)]
    pairs += [(RNG.randrange(2 * R), RNG.randrange(2 * R)) for _ in range(200)]
    a, b = (launcher.upload(plain([pair[side] for pair in pairs])) for side in (0, 1))
    launcher.launch("fr_butterflies", 1, 128, a, b, len(pairs))
    for memory, law in ((a, lambda x, y: (x + y) % R), (b, lambda x, y: (x - y) % R)):
        got = words(launcher, memory, len(pairs), 32)
        assert all(value < 2 * R for value in got)
        assert [value % R for value in got] == [law(x, y) for x, y in pairs]
