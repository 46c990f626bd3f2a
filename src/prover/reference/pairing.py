"""The verification equation in a second, independent implementation: py_ecc's optimized_bls12_381."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py_ecc import optimized_bls12_381 as ecc

from prover.keys import U64, Proof, VerifyingKey
from prover.reference.groups import G1, G2


def verify(vk: VerifyingKey, proof: Proof, public_inputs: Sequence[int]) -> bool:
    """e(A, B) e(-alpha, beta) e(-IC(x), gamma) e(-C, delta) = 1; points of the proof must be members of their groups.

    Source: Groth16 (eprint 2016/260), section 3.2.
    """
    a, c = G1.from_array(proof.a[None])[0], G1.from_array(proof.c[None])[0]
    b = G2.from_array(proof.b[None])[0]
    if a is None or b is None or not (G1.is_member(a) and G1.is_member(c) and G2.is_member(b)):
        return False
    combined = G1.msm(G1.from_array(vk.ic), [1, *public_inputs])
    pairs = [
        (_g1(proof.a), _g2(proof.b)),
        (ecc.neg(_g1(vk.alpha_g1)), _g2(vk.beta_g2)),
        (ecc.neg(_g1(G1.to_array([combined])[0])), _g2(vk.gamma_g2)),
        (ecc.neg(_g1(proof.c)), _g2(vk.delta_g2)),
    ]
    product = ecc.FQ12.one()
    for p, q in pairs:
        product = product * ecc.pairing(q, p, final_exponentiate=False)
    return bool(ecc.final_exponentiate(product) == ecc.FQ12.one())


def _g1(point: U64) -> Any:
    p = G1.from_array(point[None])[0]
    return ecc.Z1 if p is None else (ecc.FQ(p[0]), ecc.FQ(p[1]), ecc.FQ.one())


def _g2(point: U64) -> Any:
    p = G2.from_array(point[None])[0]
    return ecc.Z2 if p is None else (ecc.FQ2(p[0]), ecc.FQ2(p[1]), ecc.FQ2.one())
