"""A test key made on the card and kept there: no point of its queries ever exists in host memory or on disk.

Its `ProvingKey` has arrays of the right shapes without bytes behind them, so that sizes and wire lists read as always;
only `CudaBackend.load_key` may be asked for its points, and answers with the resident key.
"""

from __future__ import annotations

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
from prover.setup import ToxicWaste, setup_scalars, verifying_key
from prover.wire import Stage

CHUNK = 1 << 22
"""Points between two looks at cancellation: 128 MB of scalars on their way."""


def resident_setup(r1cs: R1cs, device: Device, run: Run, *, threads: int, waste: ToxicWaste | None = None) -> CudaKey:
    """A key for `r1cs` in device memory, H in the odd Lagrange basis.

    Raises:
        OutOfDeviceMemory: the card cannot hold the key.
        Cancelled: between chunks.
    """
    waste = waste or ToxicWaste.draw()
    began_ns = now()
    scalars = setup_scalars(r1cs, waste, run, threads, HBasis.LAGRANGE_ODD)
    bases = FixedBase(device)
    counts = {"h": len(scalars.h), "a": len(scalars.a), "b": len(scalars.b), "l": len(scalars.l)}
    total = counts["h"] + counts["a"] + counts["l"] + 4 * counts["b"]
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

    vk, beta_g1, delta_g1 = verifying_key(waste, bases.g1(scalars.ic), bases)
    h = multiply(G1, scalars.h)
    a_wires, b_wires = device.upload(scalars.a_wires), device.upload(scalars.b_wires)
    first_private = r1cs.num_public + 1
    queries = {
        QueryName.A: DeviceQuery(multiply(G1, scalars.a), counts["a"], a_wires, 0, QueryName.A),
        QueryName.B_G1: DeviceQuery(multiply(G1, scalars.b), counts["b"], b_wires, 0, QueryName.B_G1),
        QueryName.B_G2: DeviceQuery(multiply(G2, scalars.b), counts["b"], b_wires, 0, QueryName.B_G1),
        QueryName.L: DeviceQuery(multiply(G1, scalars.l), counts["l"], None, first_private, QueryName.L),
    }
    bases.close()
    key = ProvingKey(
        vk, beta_g1, delta_g1, r1cs.num_wires, r1cs.num_public, r1cs.num_constraints, r1cs.domain_size,
        Query(_shape_only(counts["a"], G1), scalars.a_wires), Query(_shape_only(counts["b"], G1), scalars.b_wires),
        Query(_shape_only(counts["b"], G2), scalars.b_wires), Query(_shape_only(counts["l"], G1), None, first_private),
        _shape_only(counts["h"], G1), HBasis.LAGRANGE_ODD, b"",
    )  # fmt: skip
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
