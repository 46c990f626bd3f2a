"""A test key made on the card and kept there: no point of its queries ever exists in host memory or on disk.

Its `ProvingKey` has arrays of the right shapes without bytes behind them, so that sizes and wire lists read as always;
only `CudaBackend.load_key` may be asked for its points, and answers with the resident key.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prover import wire
from prover.backends.cuda.device import Device
from prover.backends.cuda.fixed_base import FixedBase
from prover.backends.cuda.launch import FR_BYTES, Memory, Window
from prover.backends.cuda.msm import G1, G2, Curve
from prover.backends.cuda.resident import CudaKey, DeviceQuery
from prover.keys import U64, HBasis, ProvingKey, Query, QueryName
from prover.r1cs.matrices import R1cs
from prover.run import Run, now
from prover.setup import SetupScalars, ToxicWaste, setup_scalars, verifying_key
from prover.wire import Stage

CHUNK = 1 << 22
"""Points between two looks at cancellation: 128 MB of scalars on their way."""


@dataclass(frozen=True, slots=True)
class KeyRecipe:
    """A test key but for its points: every card multiplies the same scalars."""

    key: ProvingKey
    """Of the right shapes, without points."""
    scalars: SetupScalars


def key_recipe(r1cs: R1cs, device: Device, run: Run, *, threads: int, waste: ToxicWaste | None = None) -> KeyRecipe:
    """The scalars of a key for `r1cs`, H in the odd Lagrange basis, and its verifying key.

    Raises:
        Cancelled: between chunks.
    """
    waste = waste or ToxicWaste.draw()
    scalars = setup_scalars(r1cs, waste, run, threads, HBasis.LAGRANGE_ODD)
    bases = FixedBase(device)
    vk, beta_g1, delta_g1 = verifying_key(waste, bases.g1(scalars.ic), bases)
    bases.close()
    a, b, l, h = (len(part) for part in (scalars.a, scalars.b, scalars.l, scalars.h))
    key = ProvingKey(
        vk, beta_g1, delta_g1, r1cs.num_wires, r1cs.num_public, r1cs.num_constraints, r1cs.domain_size,
        Query(_shape_only(a, G1), scalars.a_wires), Query(_shape_only(b, G1), scalars.b_wires),
        Query(_shape_only(b, G2), scalars.b_wires), Query(_shape_only(l, G1), None, r1cs.num_public + 1),
        _shape_only(h, G1), HBasis.LAGRANGE_ODD, b"",
    )  # fmt: skip
    return KeyRecipe(key, scalars)


def resident_setup(recipe: KeyRecipe, device: Device, run: Run) -> CudaKey:
    """The key of a recipe in device memory.

    Raises:
        OutOfDeviceMemory: the card cannot hold the key.
        Cancelled: between chunks.
    """
    began_ns, key, scalars = now(), recipe.key, recipe.scalars
    bases = FixedBase(device)
    total = sum(len(part) for part in (scalars.h, scalars.a, scalars.l)) + 4 * len(scalars.b)
    done = 0

    def multiply(curve: Curve, values: U64) -> Memory:
        nonlocal done
        points = device.empty(max(16, len(values) * curve.affine_bytes))
        for low in range(0, len(values), CHUNK):
            run.check()
            part = values[low : low + CHUNK]
            into = Window(points, low * curve.affine_bytes, len(part) * curve.affine_bytes)
            bases.into(curve, device.upload(part), len(part), into)
            done += len(part) * (3 if curve is G2 else 1)
            run.progress(Stage.SETUP, done, total, "points", what="fixed-base multiplication on the GPU")
        return points

    h = multiply(G1, scalars.h)
    a_wires, b_wires = device.upload(scalars.a_wires), device.upload(scalars.b_wires)
    a, b, l, first_private = len(scalars.a), len(scalars.b), len(scalars.l), key.l_query.first_wire
    queries = {
        QueryName.A: DeviceQuery(multiply(G1, scalars.a), a, a_wires, 0, QueryName.A),
        QueryName.B_G1: DeviceQuery(multiply(G1, scalars.b), b, b_wires, 0, QueryName.B_G1),
        QueryName.B_G2: DeviceQuery(multiply(G2, scalars.b), b, b_wires, 0, QueryName.B_G1),
        QueryName.L: DeviceQuery(multiply(G1, scalars.l), l, None, first_private, QueryName.L),
    }
    bases.close()
    run.emit(
        wire.Span(
            t_ns=now(), job_id=run.job_id, name="setup on the GPU", begin_ns=began_ns, stage=Stage.SETUP,
            lane=f"cuda:{device.index} s0", ops=total, op="point", moved_bytes=key.size_bytes + total * FR_BYTES,
        )
    )  # fmt: skip
    return CudaKey.of(key, device, run, h, queries)


def _shape_only(count: int, curve: Curve) -> U64:
    """(count, ...) zeros that occupy one point."""
    return np.broadcast_to(np.zeros(curve.shape, np.uint64), (count, *curve.shape))
