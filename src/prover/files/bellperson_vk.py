"""A bellperson verifying key is eight fields in one order; its points are all compressed or all uncompressed.

alpha_g1, beta_g1, beta_g2, gamma_g2, delta_g1, delta_g2, u32 big-endian count, IC. bellperson writes uncompressed
points to `.vk` and `.params`. Every point is a member of its group, and but for IC none is infinity.
Source: bellperson, src/groth16/verifying_key.rs.
"""

from __future__ import annotations

import os

import numpy as np

from prover.errors import BadFile
from prover.files.atomic import write_bytes
from prover.files.binfile import open_regular
from prover.files.zcash import COMPRESSED, decode_g1, decode_g2, encode_g1, encode_g2
from prover.keys import VerifyingKey

FIELDS = (("alpha_g1", 1), ("beta_g1", 1), ("beta_g2", 2), ("gamma_g2", 2), ("delta_g1", 1), ("delta_g2", 2))
POINT_BYTES = 48
"""Of a compressed G1 point; G2 and uncompressed points are whole multiples."""
MAX_PUBLIC = 1 << 20


def fixed_bytes(compressed: bool) -> int:
    """Bytes before the IC points: 868, or 436 with compressed points."""
    return 9 * POINT_BYTES * (1 if compressed else 2) + 4


def read_vk(path: str | os.PathLike[str]) -> VerifyingKey:
    """The key of a `.vk` file.

    Raises:
        BadFile: a size that does not fit the IC count, a point that is no member of its group.
    """
    with open_regular(path) as file:
        data = file.read(fixed_bytes(False) + 2 * POINT_BYTES * (MAX_PUBLIC + 1) + 1)
    return decode_vk(data, path)


def decode_vk(data: bytes, source: object = "verifying key") -> VerifyingKey:
    """The key of these bytes, all of them; the first byte says whether points are compressed."""
    compressed = bool(data[:1]) and bool(data[0] & COMPRESSED)
    num_ic = ic_count(data, compressed, source)
    end = fixed_bytes(compressed) + num_ic * POINT_BYTES * (1 if compressed else 2)
    if len(data) != end:
        fault = f"file has {len(data)} bytes and {num_ic} IC points need {end}: truncated or not a .vk file"
        raise BadFile(source, f"offset {fixed_bytes(compressed) - 4} (IC count)", fault)
    return decode_fields(data, compressed, num_ic, source)


def ic_count(head: bytes, compressed: bool, source: object) -> int:
    """The number of IC points that the bytes before them announce."""
    size = fixed_bytes(compressed)
    if len(head) < size:
        raise BadFile(source, "", f"has {len(head)} bytes, and a verifying key has at least {size}: truncated")
    num_ic = int.from_bytes(head[size - 4 : size], "big")
    if not 1 <= num_ic <= MAX_PUBLIC + 1:
        raise BadFile(source, f"offset {size - 4} (IC count)", f"{num_ic} points are out of range: not a verifying key")
    return num_ic


def decode_fields(data: bytes, compressed: bool, num_ic: int, source: object) -> VerifyingKey:
    """The key at the start of `data`; the rest is left alone."""
    unit = POINT_BYTES * (1 if compressed else 2)
    points = {}
    offset = 0
    for name, degree in FIELDS:
        decode = decode_g1 if degree == 1 else decode_g2

        def fault(why: str, _: int, name: str = name, offset: int = offset) -> BadFile:
            return BadFile(source, f"{name}, offset {offset}", why)

        point = decode(data[offset : offset + unit * degree], fault, compressed=compressed)[0]
        if not point.any():
            raise fault("is the point at infinity, which no sound key has", 0)
        points[name] = point
        offset += unit * degree
    offset += 4

    def ic_fault(why: str, i: int) -> BadFile:
        return BadFile(source, f"IC[{i}], offset {offset + i * unit}", why)

    ic = decode_g1(data[offset : offset + num_ic * unit], ic_fault, compressed=compressed)
    return VerifyingKey(
        points["alpha_g1"], points["beta_g2"], points["gamma_g2"], points["delta_g2"], ic, points["beta_g1"],
        points["delta_g1"],
    )  # fmt: skip


def encode_vk(vk: VerifyingKey, *, compressed: bool = False) -> bytes:
    """The bytes of a `.vk` file.

    Raises:
        BadFile: the key lacks beta and delta in G1, which the format demands.
    """
    if vk.beta_g1 is None or vk.delta_g1 is None:
        raise BadFile("verifying key", "beta_g1, delta_g1", "are not in this key, and a .vk file needs them")
    parts = []
    for name, degree in FIELDS:
        point = np.asarray(getattr(vk, name))[None]
        encode = encode_g1 if degree == 1 else encode_g2
        parts.append(encode(point, compressed=compressed))
    return b"".join((*parts, len(vk.ic).to_bytes(4, "big"), encode_g1(vk.ic, compressed=compressed)))


def write_vk(path: str | os.PathLike[str], vk: VerifyingKey) -> None:
    """Writes a `.vk` file, points uncompressed as bellperson does."""
    write_bytes(path, encode_vk(vk))
