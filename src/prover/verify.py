"""A proof is accepted only if every point is in its subgroup, every input is below r, and the pairing equation holds.

The equation of Groth16 (eprint 2016/260, section 3.2), all on one side:
e(A, B) e(-alpha, beta) e(-IC(x), gamma) e(-C, delta) = 1, with IC(x) = ic_0 + sum x_i ic_{i+1}.
"""

from __future__ import annotations

from collections.abc import Sequence

import py_arkworks_bls12381 as ark

from prover.errors import InvalidPoint, Mismatch
from prover.keys import U64, Proof, VerifyingKey
from prover.params import FP_LIMBS, FP_MONT, P, R

_FROM_MONT = pow(FP_MONT, -1, P)


class PreparedKey:
    """A verifying key whose points were checked once.

    Raises:
        InvalidPoint: a point of the key is off its curve or outside its subgroup.
    """

    def __init__(self, vk: VerifyingKey) -> None:
        self.num_public = vk.num_public
        self._alpha = g1(vk.alpha_g1, "vk alpha_1")
        self._beta = g2(vk.beta_g2, "vk beta_2")
        self._gamma = g2(vk.gamma_g2, "vk gamma_2")
        self._delta = g2(vk.delta_g2, "vk delta_2")
        self._ic = [g1(point, f"vk IC[{i}]") for i, point in enumerate(vk.ic)]

    def verify(self, proof: Proof, public_inputs: Sequence[int]) -> bool:
        """Whether the proof convinces for these public inputs (without ONE).

        Raises:
            Mismatch: wrong number of inputs, or one that is not below r.
            InvalidPoint: a point of the proof is off its curve or outside its subgroup.
        """
        if len(public_inputs) != self.num_public:
            raise Mismatch(f"{len(public_inputs)} public inputs given, the verifying key takes {self.num_public}")
        for i, value in enumerate(public_inputs):
            if not 0 <= value < R:
                raise Mismatch(f"public input {i} is not in [0, r)")
        a, b, c = g1(proof.a, "proof A"), g2(proof.b, "proof B"), g1(proof.c, "proof C")
        if a == ark.G1Point.identity() or b == ark.G2Point.identity():
            return False
        x = self._ic[0]
        if public_inputs:
            scalars = [ark.Scalar.from_le_bytes(value.to_bytes(32, "little")) for value in public_inputs]
            x = x + ark.G1Point.multiexp_unchecked(self._ic[1:], scalars)
        return bool(ark.GT.pairing_check([a, -self._alpha, -x, -c], [b, self._beta, self._gamma, self._delta]))


def verify(vk: VerifyingKey, proof: Proof, public_inputs: Sequence[int]) -> bool:
    """One verification with an unprepared key; see `PreparedKey`."""
    return PreparedKey(vk).verify(proof, public_inputs)


def g1(point: U64, what: str) -> ark.G1Point:
    """The library's G1 point of a (2, 6) Montgomery point, checked."""
    try:
        return ark.G1Point.from_xy_bytes_le(canonical_bytes(point))
    except ValueError as error:
        raise InvalidPoint(f"{what} is not a point of G1: off the curve or outside the subgroup of order r") from error


def g2(point: U64, what: str) -> ark.G2Point:
    """The library's G2 point of a (2, 2, 6) Montgomery point, checked."""
    try:
        return ark.G2Point.from_xy_bytes_le(canonical_bytes(point))
    except ValueError as error:
        raise InvalidPoint(f"{what} is not a point of G2: off the curve or outside the subgroup of order r") from error


def canonical_bytes(point: U64) -> bytes:
    """Coordinates of one point out of Montgomery form, 48 little-endian bytes each."""
    return b"".join(
        (int.from_bytes(limbs.tobytes(), "little") * _FROM_MONT % P).to_bytes(48, "little")
        for limbs in point.reshape(-1, FP_LIMBS)
    )
