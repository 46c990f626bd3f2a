"""The protocol, top to bottom: assignments and row values in, proofs out; where it runs is the backend's business.

Notation of Groth16 (eprint 2016/260, section 3.2), with w the assignment and r, s the blinding scalars:
A = alpha + sum w_i u_i + r delta, B = beta + sum w_i v_i + s delta,
C = sum w_i l_i + sum h_i H_i + s A + r B1 - r s delta.

Two clocks start together. The inner one ends after the last computation, the outer one when `prove_batch` returns,
release of the host buffers included; what lies between them is the gap this project exists for.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from prover import wire
from prover.arena import Scope
from prover.backends import Backend, ResidentKey, Split
from prover.backends.cpu import points
from prover.keys import U64, Proof, QueryName
from prover.params import R
from prover.run import Run, now
from prover.wire import Stage


@dataclass(slots=True)
class Instance:
    """One circuit of a job after synthesis; the arrays are views of arena buffers and die with the prove call."""

    assignment: U64
    """(num_wires, 4)"""
    a: U64
    b: U64
    c: U64
    """(domain_size, 4) row values, natural order, appended input rows included."""


@dataclass(frozen=True, slots=True)
class Blinding:
    """The zero-knowledge scalars. Fixed ones leak the witness: only tests make them otherwise than by `fresh`."""

    r: int
    s: int

    @staticmethod
    def fresh() -> Blinding:
        return Blinding(secrets.randbelow(R), secrets.randbelow(R))


@dataclass(frozen=True, slots=True)
class ProveTimes:
    inner_ns: int
    outer_ns: int
    release_ns: int
    released_bytes: int


def prove_batch(
    key: ResidentKey, instances: list[Instance], backend: Backend, scope: Scope, run: Run,
    blinding: list[Blinding] | None = None,
) -> tuple[list[Proof], ProveTimes]:  # fmt: skip
    """Proves every instance and gives the scope's buffers back.

    Args:
        instances: emptied; no view of their arrays may be held elsewhere.
        scope: what the arrays live in; released before this returns, at once or in the background by its policy.

    Raises:
        Cancelled: between two chunks of work; the scope is the caller's to release then.
    """
    began_ns = now()
    with run.stage(Stage.PROVE):
        blinding = blinding or [Blinding.fresh() for _ in instances]
        with run.stage(Stage.PREP_MSM):
            split = backend.prep_msm(key, [x.assignment for x in instances], scope, run)
        try:
            sums = _sums(key, instances, split, backend, run)
        finally:
            split.close()
        with run.stage(Stage.EPILOGUE):
            proofs = backend.each(key, len(sums), lambda i: _assemble(key, sums[i], blinding[i]))
        instances.clear()
        inner_ns = now() - began_ns
        run.emit(wire.InnerEnded(t_ns=began_ns + inner_ns, job_id=run.job_id, inner_ns=inner_ns))
        release_began_ns = now()
        with run.stage(Stage.RELEASE):
            released_bytes = scope.release()
        release_ns = now() - release_began_ns
    outer_ns = now() - began_ns
    run.emit(wire.OuterEnded(t_ns=began_ns + outer_ns, job_id=run.job_id, outer_ns=outer_ns))
    return proofs, ProveTimes(inner_ns, outer_ns, release_ns, released_bytes)


@dataclass(slots=True)
class _Sums:
    """What the multi-scalar multiplications of one instance gave, ones and tail already added."""

    a: U64
    b_g1: U64
    b_g2: U64
    l: U64
    h: U64


def _sums(key: ResidentKey, instances: list[Instance], split: Split, backend: Backend, run: Run) -> list[_Sums]:
    count = len(instances)

    def b_g2(i: int) -> U64:
        ones = backend.batch_add(key, split, QueryName.B_G2, run, i)
        return points.add_g2(ones, backend.tail_msm(key, split, QueryName.B_G2, run, i))

    def h(i: int) -> U64:
        instance = instances[i]
        with run.stage(Stage.NTT_H, i):
            scalars = backend.ntt_h(key, instance.a, instance.b, instance.c, run, i)
        with run.stage(Stage.MSM_H, i):
            total = backend.msm_h(key, scalars, run, i)
        scalars.close()
        return total

    queries = (QueryName.A, QueryName.B_G1, QueryName.L)
    with run.stage(Stage.B_G2_MSM):
        b_g2_sums = backend.each(key, count, b_g2)
    h_sums = backend.each(key, count, h)
    with run.stage(Stage.BATCH_ADD):
        ones = backend.each(key, count, lambda i: [backend.batch_add(key, split, q, run, i) for q in queries])
    with run.stage(Stage.TAIL_MSM):
        tail = backend.each(key, count, lambda i: [backend.tail_msm(key, split, q, run, i) for q in queries])
    sums = []
    for i in range(count):
        a, b_g1, l = (points.add_g1(x, y) for x, y in zip(ones[i], tail[i], strict=True))
        sums.append(_Sums(a, b_g1, b_g2_sums[i], l, h_sums[i]))
    return sums


def _assemble(key: ResidentKey, sums: _Sums, blind: Blinding) -> Proof:
    pk = key.key
    add, mul = points.add_g1, points.mul_g1
    a = add(add(pk.vk.alpha_g1, sums.a), mul(pk.delta_g1, blind.r))
    b_g1 = add(add(pk.beta_g1, sums.b_g1), mul(pk.delta_g1, blind.s))
    b_g2 = points.add_g2(points.add_g2(pk.vk.beta_g2, sums.b_g2), points.mul_g2(pk.vk.delta_g2, blind.s))
    blinded = add(add(mul(a, blind.s), mul(b_g1, blind.r)), mul(pk.delta_g1, (-blind.r * blind.s) % R))
    return Proof(a, b_g2, add(add(sums.l, sums.h), blinded))
