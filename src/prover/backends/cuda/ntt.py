"""NTT plans: factors of the length, and tables that carry every twiddle, coset power and 1/n.

Natural order in and out. A plan is one direction of one domain and one coset; its tables are made on the device once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prover.backends.cuda.launch import FR_BYTES, Launcher, Memory, Window, ceil_div
from prover.params import FR_MONT, R

MAX_PASS_LOG = 9
"""Rows of one pass; a block's tile holds 4 columns of them."""
LOG_TILE = 11
"""Elements of a block, as in ntt.cu."""
BLOCK = 256
CONSTANT = np.dtype([("value", np.uint64, 4), ("quotient", np.uint64, 4)])
"""A canonical factor w with floor(w 2^256 / r): what lazy.cuh multiplies by."""


@dataclass(frozen=True, slots=True)
class Pass:
    log_rows: int
    log_columns: int
    log_stride: int
    log_first: int
    log_second: int
    is_last: bool
    roots: Memory
    """Powers of the pass's root, CONSTANT (as `row_factors`)."""
    quarter: np.void
    """Their primitive 4th root of unity."""
    row_factors: Memory | None
    factors_last: bool
    twiddles: Memory | None


def factor(log_n: int) -> list[int]:
    """Passes of at most 2^9 rows, as equal as they go, largest first."""
    passes = max(1, ceil_div(log_n, MAX_PASS_LOG))
    return [log_n // passes + (1 if i < log_n % passes else 0) for i in range(passes)]


class Ntt:
    """Transforms of length 2^log_n: X_k = sum_i x_i shift^i w^(ik), or the inverse of that.

    Args:
        root: w, a primitive 2^log_n-th root of unity, canonical integer.
        shift: coset shift, canonical integer; 1 for the plain domain.
        inverse: x_i = shift^-i / n sum_k X_k w^(-ik).
    """

    def __init__(self, launcher: Launcher, log_n: int, root: int, *, shift: int = 1, inverse: bool = False) -> None:
        self.launcher, self.log_n = launcher, log_n
        w = pow(root, -1, R) if inverse else root
        scale = pow(1 << log_n, -1, R) if inverse else 1
        g = pow(shift, -1, R) if inverse else shift
        logs = factor(log_n)
        self.passes: list[Pass] = []
        done = 0
        for index, log_rows in enumerate(logs):
            last, rest = index == len(logs) - 1, log_n - done - log_rows
            below = pow(w, 1 << done, R)  # primitive root of order 2^(log_n - done)
            pass_root = pow(below, 1 << rest, R)
            roots = constants(pass_root, 1 << log_rows)
            factors = None
            if not inverse and g != 1 and index == 0:
                factors = launcher.upload(constants(pow(g, 1 << rest, R), 1 << log_rows))
            if inverse and last and (g != 1 or len(logs) == 1):
                factors = launcher.upload(constants(pow(g, 1 << done, R), 1 << log_rows, scale))
            twiddles = None
            if not last:
                twiddles = self._table(
                    log_rows, rest, root=below,
                    column_base=g if index == 0 and not inverse else 1,
                    row_base=pow(g, 1 << done, R) if inverse else 1,
                    scale=scale if inverse and g == 1 and index == 0 else 1,
                )  # fmt: skip
            log_first = logs[0] if last and len(logs) > 1 else 0
            log_second = logs[1] if last and len(logs) > 2 else 0
            self.passes.append(
                Pass(
                    log_rows, log_n - log_rows, rest, log_first, log_second, last, launcher.upload(roots),
                    roots[len(roots) // 4], factors, inverse, twiddles,
                )
            )  # fmt: skip
            done += log_rows

    @property
    def table_bytes(self) -> int:
        return sum(p.twiddles.size_bytes for p in self.passes if p.twiddles is not None)

    def run(self, values: Memory, scratch: Memory, batch: int = 1) -> Memory:
        """Transforms `batch` vectors that lie one after another; returns whichever of the two holds the result."""
        source, n = values, 1 << self.log_n
        for p in self.passes:
            target = scratch if p.is_last and len(self.passes) > 1 else source
            log_wide = min(LOG_TILE - p.log_rows, p.log_columns)
            self.launcher.launch(
                "ntt_pass", (1 << (p.log_columns - log_wide), batch), BLOCK, source, target, np.uint64(n), p.log_rows,
                p.log_columns, p.log_stride, p.log_first, p.log_second, int(p.is_last), p.roots, p.quarter,
                p.row_factors, int(p.factors_last), p.twiddles, shared_bytes=FR_BYTES << LOG_TILE,
                ops=batch * (n * p.log_rows // 2 + (n if p.twiddles else 0) + (n if p.row_factors else 0)),
                op="fr_constant_mul",
                moved_bytes=n * FR_BYTES * (2 * batch + (1 if p.twiddles else 0)),
            )  # fmt: skip
            source = target
        return source

    def _table(
        self, log_rows: int, log_columns: int, *, root: int, column_base: int, row_base: int, scale: int
    ) -> Memory:
        """Montgomery forms of scale root^(k j) column_base^j row_base^k, k < 2^log_rows, j < 2^log_columns."""
        parameters = self.launcher.upload(field_array([root, column_base, row_base, scale]))
        size = 1 << (log_rows + log_columns)
        table = self.launcher.empty(size * FR_BYTES)
        warps = size // min(1 << log_columns, 1024)
        self.launcher.launch(
            "power_table", ceil_div(warps * 32, 256), 256, parameters, 1 << log_rows, log_columns, table
        )
        return table


def constants(base: int, count: int, scale: int = 1) -> np.ndarray:
    """scale base^k for k < count (a pass has at most 2^9), as (count,) CONSTANT."""
    data, value = bytearray(), scale
    for _ in range(count):
        data += value.to_bytes(FR_BYTES, "little") + ((value << 256) // R).to_bytes(FR_BYTES, "little")
        value = value * base % R
    return np.frombuffer(data, CONSTANT)


def field_array(values: list[int]) -> np.ndarray:
    """(n, 4) Montgomery Fr of canonical integers."""
    data = b"".join((v * FR_MONT % R).to_bytes(FR_BYTES, "little") for v in values)
    return np.frombuffer(data, np.uint64).reshape(-1, 4)


def batch_window(memory: Memory, index: int, log_n: int) -> Window:
    """Vector `index` of a batch."""
    size_bytes = FR_BYTES << log_n
    return Window(memory, index * size_bytes, size_bytes)
