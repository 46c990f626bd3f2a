"""Compiling is a stage with progress: each kernel of a proof is called once on the smallest input that reaches it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prover.arena import Arena
from prover.backends.cpu import field, points
from prover.backends.cpu.batch_sum import batch_sum
from prover.backends.cpu.check import first_bad_g1, first_bad_g2
from prover.backends.cpu.msm import msm
from prover.backends.cpu.ntt import bit_reverse, dif, dit, quotient_in_place, twiddles
from prover.backends.cpu.split import chosen, split, tail_rows
from prover.backends.cpu.workers import Workers
from prover.keys import HBasis, ProvingKey, Query, QueryName, VerifyingKey
from prover.run import Run, silent
from prover.wire import Policy, Stage


def compile_kernels(run: Run) -> None:
    """Compiles or loads all kernels; `run` hears of each step under Stage.COMPILE."""
    steps: list[tuple[str, Callable[[], object]]] = [
        ("Fr arithmetic", _field),
        ("NTT", _ntt),
        ("MSM in G1", lambda: _msm(points.g1_generator())),
        ("MSM in G2", lambda: _msm(points.g2_generator())),
        ("splitting assignments", _split),
        ("subgroup checks", _checks),
    ]
    for done, (what, step) in enumerate(steps):
        run.check()
        run.progress(Stage.COMPILE, done, len(steps), "kernels", what=what)
        with run.span(f"compile {what}", stage=Stage.COMPILE):
            step()
    run.progress(Stage.COMPILE, len(steps), len(steps), "kernels", what="ready")


def _field() -> None:
    ones = field.powers(1, 2)
    field.fr_from_mont(field.fr_to_mont(ones))
    field.fp_from_mont(field.fp_to_mont(points.g1_generator()))


def _ntt() -> None:
    workers, log_size = Workers(1), 14
    data = field.powers(3, 1 << log_size)
    dif(data, twiddles(log_size, inverse=True), workers)
    bit_reverse(data)
    dit(data, twiddles(log_size, shift=5), workers)
    quotient_in_place(data, data, data, 1, 1, workers)


def _msm(generator: field.U64) -> None:
    workers = Workers(1)
    several = np.repeat(generator[None], 4, axis=0)
    msm(several, field.powers(5, 4), workers=workers, window=4)
    batch_sum(several, np.arange(3, dtype=np.uint32), workers)
    points.multiply(generator, 3)
    points.negate(generator)
    points.add(generator, generator)


def _split() -> None:
    """A key of three wires, one in the tail; its points are all the generator."""
    g1, g2 = points.g1_generator(), points.g2_generator()
    wires = np.arange(3, dtype=np.uint32)
    in_g1, in_g2 = np.repeat(g1[None], 3, axis=0), np.repeat(g2[None], 3, axis=0)
    vk = VerifyingKey(g1, g2, g2, g2, in_g1[:1])
    key = ProvingKey(
        vk, g1, g1, 3, 0, 1, 2, Query(in_g1, wires), Query(in_g1, wires), Query(in_g2, wires),
        Query(in_g1[:2], None, 1), in_g1[:2], HBasis.LAGRANGE_ODD, b"",
    )  # fmt: skip
    arena = Arena(lambda _event: None)
    scope = arena.scope("", Policy.SYNC_4K)
    workers = Workers(1)
    try:
        parts = split(key, [field.powers(5, 3)], scope, silent(), workers)
        chosen(key.a_query, parts.ones[0])
        chosen(key.l_query, parts.ones[0])
        tail_rows(parts.scalars[0], parts.queries[QueryName.A].rows)
        parts.close()
    finally:
        scope.release()
        arena.close()


def _checks() -> None:
    first_bad_g1(points.g1_generator()[None], threads=1)
    first_bad_g2(points.g2_generator()[None], threads=1)
