"""Every point has one zcash encoding, and decoding refuses each byte string that is not it.

Fp is 48 big-endian bytes; an Fp2 is c1 then c0. Uncompressed: x, y. Compressed: x with the sign of y. Of byte 0, 0x80
says compressed, 0x40 infinity (everything else zero), 0x20 (compressed) that y is the larger of y and -y as integers,
by c1 first and c0 where c1 is zero. Source: zkcrypto/bls12_381, src/notes/serialization.rs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import fp_from_mont, fp_to_mont, ints_to_fp, pack
from prover.errors import BadFile, ProverError
from prover.files.canonical import first_not_fp, require_points
from prover.files.square_root import negate_where, roots_g1, roots_g2
from prover.keys import Proof
from prover.params import B_G1, P

U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]
Fault = Callable[[str, int], ProverError]
"""Makes the error for (what is wrong, index of the point)."""

COMPRESSED, INFINITY, LARGER = 0x80, 0x40, 0x20
FP_BYTES = 48
PROOF_BYTES = 192
"""A (48), B (96), C (48), compressed."""


def encode_g1(points: U64, *, compressed: bool = True) -> bytes:
    """Encodings of (n, 2, 6) Montgomery points one after another, 48 bytes each, or 96 uncompressed."""
    return _encode(points.reshape(-1, 2, 1, 6), compressed)


def encode_g2(points: U64, *, compressed: bool = True) -> bytes:
    """Encodings of (n, 2, 2, 6) Montgomery points one after another, 96 bytes each, or 192 uncompressed."""
    return _encode(points.reshape(-1, 2, 2, 6), compressed)


def decode_g1(data: bytes | memoryview, fault: Fault, *, compressed: bool = True, check: bool = True) -> U64:
    """Points (n, 2, 6), Montgomery, of n encodings.

    Args:
        data: a multiple of 48 (96) bytes.
        fault: makes the error for (what is wrong, index of the point).
        check: also demand membership of G1; without it uncompressed points may even be off the curve.
    """
    points = _decode(data, 1, compressed, fault).reshape(-1, 2, 6)
    if check:
        require_points(points, "G1", fault)
    return points


def decode_g2(data: bytes | memoryview, fault: Fault, *, compressed: bool = True, check: bool = True) -> U64:
    """Points (n, 2, 2, 6), Montgomery, of n encodings of 96 (192) bytes; see `decode_g1`."""
    points = _decode(data, 2, compressed, fault)
    if check:
        require_points(points, "G2", fault)
    return points


def encode_proof(proof: Proof) -> bytes:
    """The 192 bytes that bellperson and Filecoin use."""
    return encode_g1(proof.a) + encode_g2(proof.b) + encode_g1(proof.c)


def decode_proof(data: bytes, source: object = "proof") -> Proof:
    """The proof of 192 bytes.

    Raises:
        BadFile: wrong length, not an encoding, infinity, off the curve or outside the subgroup; names `source`.
    """
    if len(data) != PROOF_BYTES:
        raise BadFile(source, "", f"has {len(data)} bytes and a proof has {PROOF_BYTES}")
    return decode_proofs(data, source)[0]


def decode_proofs(data: bytes, source: object = "proofs") -> list[Proof]:
    """The proofs of a multiple of 192 bytes, as Filecoin joins those of a sector's partitions.

    Raises:
        BadFile: as `decode_proof`; the offset names proof and part.
    """
    if not data or len(data) % PROOF_BYTES:
        raise BadFile(source, "", f"has {len(data)} bytes, no multiple of the {PROOF_BYTES} of a proof")
    raw = np.frombuffer(data, np.uint8).reshape(-1, PROOF_BYTES)
    points = {}
    for name, start, end, decode in (("A", 0, 48, decode_g1), ("B", 48, 144, decode_g2), ("C", 144, 192, decode_g1)):
        fault = partial(_proof_fault, source, name, start)
        points[name] = decode(raw[:, start:end].tobytes(), fault)
        finite = np.asarray(points[name].reshape(len(raw), -1).any(axis=1))
        _refuse(~finite, "is the point at infinity, which no honest proof has", fault)
    return [Proof(a, b, c) for a, b, c in zip(points["A"], points["B"], points["C"], strict=True)]


def _proof_fault(source: object, name: str, start: int, why: str, index: int) -> BadFile:
    return BadFile(source, f"offset {index * PROOF_BYTES + start} ({name} of proof {index})", why)


def _big_endian(coordinates: U64) -> U8:
    """(..., k, 6) canonical limbs to (..., k * 48) bytes, most significant first, last component first."""
    flipped = np.ascontiguousarray(coordinates[..., ::-1, ::-1]).astype(">u8", copy=False)
    return flipped.view(np.uint8).reshape(*coordinates.shape[:-2], -1)


def _encode(points: U64, compressed: bool) -> bytes:
    n, _, degree, _ = points.shape
    canonical = fp_from_mont(points)
    infinite = ~points.reshape(n, -1).any(axis=1)
    if compressed:
        out = _big_endian(canonical[:, 0]).copy()
        out[:, 0] |= COMPRESSED
        out[_is_larger(canonical[:, 1]), 0] |= LARGER
    else:
        out = _big_endian(canonical).reshape(n, 2 * degree * FP_BYTES).copy()
    out[infinite, 0] |= INFINITY
    return out.tobytes()


def _is_larger(y: U64) -> npt.NDArray[np.bool_]:
    """Which of the canonical (n, k, 6) exceed their negation, by the last nonzero component."""
    larger = _exceeds_half(y[:, -1])
    if y.shape[1] == 2:
        real = ~y[:, 1].any(axis=1)
        larger[real] = _exceeds_half(y[real, 0])
    return larger


def _exceeds_half(values: U64) -> npt.NDArray[np.bool_]:
    half = pack([(P - 1) // 2], 6)[0]
    larger = np.zeros(len(values), np.bool_)
    undecided = np.ones(len(values), np.bool_)
    for limb in range(5, -1, -1):
        larger |= undecided & (values[:, limb] > half[limb])
        undecided &= values[:, limb] == half[limb]
    return larger


def _decode(data: bytes | memoryview, degree: int, compressed: bool, fault: Fault) -> U64:
    """(n, 2, degree, 6) Montgomery points."""
    size_bytes = FP_BYTES * degree * (1 if compressed else 2)
    raw = np.frombuffer(data, np.uint8).reshape(-1, size_bytes)
    flags = raw[:, 0] & 0xE0
    body = raw.copy()
    body[:, 0] &= 0x1F
    infinite = (flags & INFINITY) != 0
    _refuse((flags & COMPRESSED != 0) != compressed, _form_fault(compressed), fault)
    _refuse(infinite & ((flags & LARGER != 0) | body.any(axis=1)), "infinity with other bits set", fault)
    if not compressed:
        _refuse(flags & LARGER != 0, "an uncompressed point has the sign bit set", fault)
    limbs = body.view(">u8").astype(np.uint64).reshape(len(raw), -1, degree, 6)[:, :, ::-1, ::-1]
    limbs = np.ascontiguousarray(limbs)
    bad = first_not_fp(limbs)
    if bad >= 0:
        raise fault("a coordinate is not below the modulus of Fp", bad // (limbs[0].size // 6))
    coordinates = fp_to_mont(limbs)
    if not compressed:
        return coordinates
    points = np.zeros((len(raw), 2, degree, 6), np.uint64)
    points[:, 0] = coordinates[:, 0]
    x = np.ascontiguousarray(points[:, 0])
    b = ints_to_fp([B_G1])[0]
    y = np.zeros_like(x)
    bad = int(roots_g1(x.reshape(-1, 6), y.reshape(-1, 6), infinite, b) if degree == 1 else roots_g2(x, y, infinite, b))
    if bad >= 0:
        raise fault("no point of the curve has this x", bad)
    wrong = (_is_larger(fp_from_mont(y)) != ((flags & LARGER) != 0)) & ~infinite
    negate_where(y, wrong)
    _refuse((flags & LARGER != 0) & ~y.reshape(len(raw), -1).any(axis=1), "sign bit on a point whose y is 0", fault)
    points[:, 1] = y
    return points


def _form_fault(compressed: bool) -> str:
    found, wanted = ("uncompressed", "compressed") if compressed else ("compressed", "uncompressed")
    return f"the flags say {found} where a {wanted} point belongs"


def _refuse(which: npt.NDArray[np.bool_], why: str, fault: Fault) -> None:
    found = np.flatnonzero(which)
    if len(found):
        raise fault(why, int(found[0]))
