"""Many multiples of one generator on the card, for setups: same verbs as `prover.backends.cpu.fixed_base`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prover.backends.cuda.launch import FR_BYTES, U64, Launcher, Memory, ceil_div
from prover.backends.cuda.msm import G1, G2, Curve
from prover.params import FP_MONT, G1_GENERATOR, G2_GENERATOR, P

CHUNK = 1 << 20
"""Points made before progress is told."""
TABLE_POINTS = 32 * 255


class FixedBase:
    """Multiples of the generators of G1 and G2.

    Args:
        launcher: a device whose kernels are loaded.
    """

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._tables: dict[str, Memory] = {}

    def g1(self, scalars: U64, *, progress: Callable[[int], None] | None = None) -> U64:
        """(n, 2, 6): scalar times the generator of G1, affine Montgomery; scalar zero gives infinity.

        Args:
            scalars: (n, 4) Montgomery.
            progress: called with the points finished so far; may raise to stop.
        """
        return self._multiply(G1, scalars, progress)

    def g2(self, scalars: U64, *, progress: Callable[[int], None] | None = None) -> U64:
        """(n, 2, 2, 6): the same in G2."""
        return self._multiply(G2, scalars, progress)

    def on_device(self, curve: Curve, scalars: Memory, count: int) -> Memory:
        """The same with scalars and points on the device."""
        points = self._launcher.empty(max(1, count) * curve.affine_bytes)
        if count:
            self.into(curve, scalars, count, points)
        return points

    def into(self, curve: Curve, scalars: Memory, count: int, points: Memory) -> None:
        """The same into device memory that is there already."""
        self._launcher.launch(
            f"{curve.name}_multiply_table", min(ceil_div(count, 128), self._launcher.num_sms * 16), 128,
            self._table(curve), scalars, count, points, ops=32 * count, op=curve.complete_op,
            moved_bytes=count * (FR_BYTES + curve.affine_bytes),
        )  # fmt: skip

    def close(self) -> None:
        self._tables.clear()

    def _multiply(self, curve: Curve, scalars: U64, progress: Callable[[int], None] | None) -> U64:
        out = np.empty((len(scalars), *curve.shape), np.uint64)
        for low in range(0, len(scalars), CHUNK):
            part = scalars[low : low + CHUNK]
            points = self.on_device(curve, self._launcher.upload(part), len(part))
            out[low : low + CHUNK] = self._launcher.download(points, (len(part), *curve.shape), np.uint64)
            if progress:
                progress(low + len(part))
        return out

    def _table(self, curve: Curve) -> Memory:
        if curve.name not in self._tables:
            flat = G1_GENERATOR if curve is G1 else tuple(v for pair in G2_GENERATOR for v in pair)
            data = b"".join((v * FP_MONT % P).to_bytes(48, "little") for v in flat)
            generator = self._launcher.upload(np.frombuffer(data, np.uint64))
            table = self._launcher.empty(TABLE_POINTS * curve.affine_bytes)
            self._launcher.launch(f"{curve.name}_fill_table", ceil_div(TABLE_POINTS, 128), 128, generator, table)
            self._tables[curve.name] = table
        return self._tables[curve.name]
