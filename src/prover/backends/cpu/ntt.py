"""Number-theoretic transforms over Fr without a bit reversal: DIF takes natural to bit-reversed order, DIT back.

A coset costs nothing: its shift sits in the twiddles. Two layers are fused in each pass over memory, and once a block
fits the L2 cache all of its remaining layers are done there. Twiddles of those layers are a table; the long layers
make theirs on the way, which is as fast as reading a table as large as the data. Neither transform divides by the size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import ints_to_fr, ld_fr, power_sequence, st_fr
from prover.backends.cpu.jit import jit
from prover.backends.cpu.ops import add, mul, mul_inline, sqr, sub
from prover.backends.cpu.workers import Tick, Workers, ranges
from prover.params import ROOT_SNARKJS, R, root_of_unity

U64 = npt.NDArray[np.uint64]
BLOCK = 1 << 13
"""Elements finished in cache: 256 kB and as many twiddles."""
STRIP = 256
"""Twiddles made at a time in a long layer."""


@dataclass(frozen=True, slots=True)
class Twiddles:
    """Factors of all layers of one transform: s^(n/2h) w_2h^k for the layer of half-size h, k < h."""

    log_size: int
    table: U64
    """(min(n, BLOCK), 4) Montgomery: row h + k for the short layers; row 0 is unused."""
    layers: tuple[tuple[int, int], ...]
    """(s^(n/2h), w_2h) of layer log2 h, as integers."""
    is_subgroup: bool
    """The shift is 1, so the smallest layers have factors 1."""

    @property
    def size(self) -> int:
        return 1 << self.log_size

    @property
    def products(self) -> int:
        """Fr products of one transform's butterflies."""
        return self.size // 2 * self.log_size

    @property
    def passes(self) -> int:
        """Times that one transform reads and writes all of the data."""
        return 1 + max(0, self.log_size - BLOCK.bit_length() + 2) // 2


def twiddles(log_size: int, *, root: int = ROOT_SNARKJS, shift: int = 1, inverse: bool = False) -> Twiddles:
    """The factors of a transform of 2^log_size elements.

    Args:
        root: a 2^32-th root of unity.
        shift: evaluates at shift * w^i instead of w^i.
        inverse: for the DIF that undoes the DIT of the same root and shift, up to the factor 2^log_size.

    Raises:
        DomainTooLarge: log_size exceeds 32.
    """
    size, sign = 1 << log_size, -1 if inverse else 1
    layers = tuple(
        (pow(shift, sign * (size >> layer + 1), R), pow(root_of_unity(layer + 1, root), sign, R))
        for layer in range(log_size)
    )
    table = np.zeros((min(size, BLOCK), 4), np.uint64)
    for layer, (start, omega) in enumerate(layers):
        if 2 << layer <= BLOCK:
            power_sequence(omega, start, table[1 << layer : 2 << layer])
    return Twiddles(log_size, table, layers, shift % R == 1)


def dif(data: U64, tw: Twiddles, workers: Workers, tick: Tick | None = None) -> None:
    """Decimation in frequency in place: natural order in, bit-reversed out.

    With an inverse table, evaluations become size times coefficients.
    """
    size = _checked(data, tw)
    half = size // 2
    while 2 * half > BLOCK:
        _pass(_dif_long, data, tw, half, workers, tick)
        half //= 4
    block = 2 * half
    if block > 1:
        tasks = [
            partial(_dif_blocks, data, tw.table, low, high, block, tw.is_subgroup)
            for low, high in ranges(size, 4 * workers.threads, block)
        ]
        workers.run(tasks, tick)


def dit(data: U64, tw: Twiddles, workers: Workers, tick: Tick | None = None) -> None:
    """Decimation in time in place: bit-reversed order in, natural out.

    With a forward table, coefficients become evaluations.
    """
    size = _checked(data, tw)
    block = size
    while block > BLOCK:
        block //= 4
    if block > 1:
        tasks = [
            partial(_dit_blocks, data, tw.table, low, high, block)
            for low, high in ranges(size, 4 * workers.threads, block)
        ]
        workers.run(tasks, tick)
    half = 2 * block
    while half < size:
        _pass(_dit_long, data, tw, half, workers, tick)
        half *= 4


def bit_reverse(data: U64) -> None:
    """Swaps every element with that of the reversed index, in place."""
    _bit_reverse(data, len(data).bit_length() - 1)


def ntt(values: U64, *, threads: int = 1, root: int = ROOT_SNARKJS, shift: int = 1) -> U64:
    """Coefficients to evaluations at shift * w^i, natural order both; a new array."""
    return _natural(values, threads, root, shift, inverse=False)


def intt(values: U64, *, threads: int = 1, root: int = ROOT_SNARKJS, shift: int = 1) -> U64:
    """Evaluations at shift * w^i to coefficients, natural order both; a new array."""
    return _natural(values, threads, root, shift, inverse=True)


def _natural(values: U64, threads: int, root: int, shift: int, *, inverse: bool) -> U64:
    data = np.array(values, order="C")
    workers = Workers(threads)
    try:
        tw = twiddles(len(data).bit_length() - 1, root=root, shift=shift, inverse=inverse)
        if inverse:
            dif(data, tw, workers)
            bit_reverse(data)
            scale_in_place(data, pow(len(data), -1, R), workers)
        else:
            bit_reverse(data)
            dit(data, tw, workers)
    finally:
        workers.close()
    return data


def scale_in_place(data: U64, factor: int, workers: Workers) -> None:
    """Every element times one integer."""
    k = ints_to_fr([factor])
    workers.run([partial(_scale, data, low, high, k) for low, high in ranges(len(data), 4 * workers.threads, 64)])


def quotient_in_place(a: U64, b: U64, c: U64, product_factor: int, c_factor: int, workers: Workers) -> None:
    """a = product_factor * a * b - c_factor * c, row by row."""
    k = ints_to_fr([product_factor, c_factor])
    workers.run([partial(_quotient, a, b, c, low, high, k) for low, high in ranges(len(a), 4 * workers.threads, 64)])


def _checked(data: U64, tw: Twiddles) -> int:
    if len(data) != tw.size or not data.flags.c_contiguous:
        raise ValueError(f"{len(data)} elements do not match twiddles of size {tw.size}, or are not contiguous")
    return tw.size


def _pass(kernel: Callable[..., None], data: U64, tw: Twiddles, half: int, workers: Workers, tick: Tick | None) -> None:
    """Layers `half` and half/2 over the whole array, cut across the blocks."""
    start, omega = tw.layers[half.bit_length() - 1]
    imaginary = pow(omega, half // 2, R)

    def task(low: int, high: int) -> None:
        first = ints_to_fr([start * pow(omega, low, R), omega, imaginary])
        kernel(data, half, low, high, first, np.empty((3 * STRIP, 4), np.uint64))

    workers.run([partial(task, low, high) for low, high in ranges(half // 2, 4 * workers.threads, STRIP)], tick)


@jit
def _strip_twiddles(first, count, strip):
    """Rows 3k.. of `strip` become t, t i, t^2 for t = first[0] first[1]^k; first[0] moves on to the next strip."""
    t, omega, imaginary = ld_fr(first, 0), ld_fr(first, 1), ld_fr(first, 2)
    for k in range(count):
        st_fr(strip, 3 * k, t)
        st_fr(strip, 3 * k + 1, mul(t, imaginary))
        st_fr(strip, 3 * k + 2, sqr(t))
        t = mul(t, omega)
    st_fr(first, 0, t)


@jit
def _dif_long(data, half, low, high, first, strip):
    """Two fused DIF layers over columns low..high of every block."""
    for at in range(low, high, STRIP):
        count = min(STRIP, high - at)
        _strip_twiddles(first, count, strip)
        for base in range(at, len(data), 2 * half):
            for k in range(count):
                t, ti, s = ld_fr(strip, 3 * k), ld_fr(strip, 3 * k + 1), ld_fr(strip, 3 * k + 2)
                _dif_quad(data, base + k, half // 2, t, ti, s)


@jit
def _dit_long(data, half, low, high, first, strip):
    """Two fused DIT layers over columns low..high of every block."""
    for at in range(low, high, STRIP):
        count = min(STRIP, high - at)
        _strip_twiddles(first, count, strip)
        for base in range(at, len(data), 2 * half):
            for k in range(count):
                t, ti, s = ld_fr(strip, 3 * k), ld_fr(strip, 3 * k + 1), ld_fr(strip, 3 * k + 2)
                _dit_quad(data, base + k, half // 2, t, ti, s)


@jit(inline="always")
def _dif_quad(data, i, quarter, t, ti, s):
    x0, x1 = ld_fr(data, i), ld_fr(data, i + quarter)
    x2, x3 = ld_fr(data, i + 2 * quarter), ld_fr(data, i + 3 * quarter)
    y0, y1 = add(x0, x2), add(x1, x3)
    y2 = mul_inline(sub(x0, x2), t)
    y3 = mul_inline(sub(x1, x3), ti)
    st_fr(data, i, add(y0, y1))
    st_fr(data, i + quarter, mul_inline(sub(y0, y1), s))
    st_fr(data, i + 2 * quarter, add(y2, y3))
    st_fr(data, i + 3 * quarter, mul_inline(sub(y2, y3), s))


@jit(inline="always")
def _dit_quad(data, i, quarter, t, ti, s):
    x0, x1 = ld_fr(data, i), mul_inline(ld_fr(data, i + quarter), s)
    x2, x3 = ld_fr(data, i + 2 * quarter), mul_inline(ld_fr(data, i + 3 * quarter), s)
    y0, y1 = add(x0, x1), sub(x0, x1)
    y2 = mul_inline(add(x2, x3), t)
    y3 = mul_inline(sub(x2, x3), ti)
    st_fr(data, i, add(y0, y2))
    st_fr(data, i + quarter, add(y1, y3))
    st_fr(data, i + 2 * quarter, sub(y0, y2))
    st_fr(data, i + 3 * quarter, sub(y1, y3))


@jit
def _dif_pair(data, tw, half, start, stop):
    """Layers `half` and half/2 of the blocks in start..stop."""
    quarter = half // 2
    for base in range(start, stop, 2 * half):
        for k in range(quarter):
            t, ti, s = ld_fr(tw, half + k), ld_fr(tw, half + quarter + k), ld_fr(tw, quarter + k)
            _dif_quad(data, base + k, quarter, t, ti, s)


@jit
def _dit_pair(data, tw, half, start, stop):
    """Layers half/2 and `half` of the blocks in start..stop."""
    quarter = half // 2
    for base in range(start, stop, 2 * half):
        for k in range(quarter):
            t, ti, s = ld_fr(tw, half + k), ld_fr(tw, half + quarter + k), ld_fr(tw, quarter + k)
            _dit_quad(data, base + k, quarter, t, ti, s)


@jit
def _dif_blocks(data, tw, start, stop, block, is_subgroup):
    """All layers from block/2 down to 1."""
    for base in range(start, stop, block):
        half = block // 2
        while half > 2 or (half == 2 and not is_subgroup):
            _dif_pair(data, tw, half, base, base + block)
            half //= 4
        if half == 2:
            _dif_last_pair(data, tw, base, base + block)
        elif half == 1:
            t = ld_fr(tw, 1)
            for i in range(base, base + block, 2):
                x, y = ld_fr(data, i), ld_fr(data, i + 1)
                st_fr(data, i, add(x, y))
                d = sub(x, y)
                st_fr(data, i + 1, d if is_subgroup else mul(d, t))


@jit
def _dif_last_pair(data, tw, start, stop):
    """Layers 2 and 1 of a subgroup: one factor, the square root of -1."""
    root = ld_fr(tw, 3)
    for i in range(start, stop, 4):
        x0, x1, x2, x3 = ld_fr(data, i), ld_fr(data, i + 1), ld_fr(data, i + 2), ld_fr(data, i + 3)
        y0, y1, y2 = add(x0, x2), add(x1, x3), sub(x0, x2)
        y3 = mul_inline(sub(x1, x3), root)
        st_fr(data, i, add(y0, y1))
        st_fr(data, i + 1, sub(y0, y1))
        st_fr(data, i + 2, add(y2, y3))
        st_fr(data, i + 3, sub(y2, y3))


@jit
def _dit_blocks(data, tw, start, stop, block):
    """All layers from 1 up to block/2; with an odd number of layers the first one stands alone."""
    for base in range(start, stop, block):
        half = 2
        layers = 0
        while (1 << layers) < block:
            layers += 1
        if layers % 2 == 1:
            t = ld_fr(tw, 1)
            for i in range(base, base + block, 2):
                x, y = ld_fr(data, i), mul(ld_fr(data, i + 1), t)
                st_fr(data, i, add(x, y))
                st_fr(data, i + 1, sub(x, y))
            half = 4
        while half < block:
            _dit_pair(data, tw, half, base, base + block)
            half *= 4


@jit
def _bit_reverse(data, bits):
    for i in range(len(data)):
        j, rest = 0, i
        for _ in range(bits):
            j = 2 * j + (rest & 1)
            rest >>= 1
        if i < j:
            x, y = ld_fr(data, i), ld_fr(data, j)
            st_fr(data, i, y)
            st_fr(data, j, x)


@jit
def _scale(data, low, high, factor):
    k = ld_fr(factor, 0)
    for i in range(low, high):
        st_fr(data, i, mul(ld_fr(data, i), k))


@jit
def _quotient(a, b, c, low, high, factors):
    p, q = ld_fr(factors, 0), ld_fr(factors, 1)
    for i in range(low, high):
        product = mul(mul(ld_fr(a, i), ld_fr(b, i)), p)
        st_fr(a, i, sub(product, mul(ld_fr(c, i), q)))
