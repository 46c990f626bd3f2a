"""zcash encodings: multiples of the generators survive decoding and encoding; no other bytes decode."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from prover.backends.cpu.field import fp_to_ints, ints_to_fp
from prover.backends.cpu.points import add_g1, add_g2
from prover.errors import BadFile
from prover.files.zcash import (
    PROOF_BYTES,
    decode_g1,
    decode_g2,
    decode_proof,
    encode_g1,
    encode_g2,
    encode_proof,
)
from prover.keys import Proof
from prover.params import G1_GENERATOR, G2_GENERATOR, P

GROUPS = pytest.mark.parametrize(
    "name, decode, encode, add, size",
    [("g1", decode_g1, encode_g1, add_g1, 48), ("g2", decode_g2, encode_g2, add_g2, 96)],
)


def fault(why: str, index: int) -> BadFile:
    return BadFile("points", f"point {index}", why)


@GROUPS
@pytest.mark.parametrize("compressed", [True, False])
def test_zkcryptos_multiples_decode_and_encode_to_the_same_bytes(
    name, decode, encode, add, size, compressed, points: Path
) -> None:  # type: ignore[no-untyped-def]
    data = (points / f"{name}_{'' if compressed else 'un'}compressed.dat").read_bytes()
    decoded = decode(data, fault, compressed=compressed)
    assert len(decoded) == 128
    assert encode(decoded, compressed=compressed) == data
    assert not decoded[0].any()
    for i in range(1, 127):
        assert np.array_equal(add(decoded[i], decoded[1]), decoded[i + 1])


def test_first_multiples_are_the_generators(points: Path) -> None:
    g1 = decode_g1((points / "g1_compressed.dat").read_bytes(), fault)[1]
    g2 = decode_g2((points / "g2_compressed.dat").read_bytes(), fault)[1]
    assert tuple(fp_to_ints(g1)) == G1_GENERATOR
    assert tuple(fp_to_ints(g2)) == (*G2_GENERATOR[0], *G2_GENERATOR[1])


@GROUPS
def test_flags_that_contradict_the_bytes_are_refused(name, decode, encode, add, size, points: Path) -> None:  # type: ignore[no-untyped-def]
    good = (points / f"{name}_compressed.dat").read_bytes()[size : 2 * size]
    infinity = bytes([0xC0]) + bytes(size - 1)
    assert not decode(infinity, fault).any()
    bad = {
        "no compression bit": bytes([good[0] & 0x7F]) + good[1:],
        "infinity with coordinates": bytes([good[0] | 0x40]) + good[1:],
        "infinity with a sign": bytes([0xE0]) + bytes(size - 1),
        "infinity with a last bit": infinity[:-1] + b"\1",
        "x = p": bytes([0x80]) + P.to_bytes(48, "big")[1:] + bytes(size - 48),
    }
    bad["x = p"] = (P | 0x80 << 376).to_bytes(48, "big") + bytes(size - 48)
    for what, data in bad.items():
        with pytest.raises(BadFile, match="point 0"):
            decode(data, fault)
        assert what
    plain = (points / f"{name}_uncompressed.dat").read_bytes()[2 * size : 4 * size]
    for data in (bytes([plain[0] | 0x80]) + plain[1:], bytes([plain[0] | 0x20]) + plain[1:]):
        with pytest.raises(BadFile):
            decode(data, fault, compressed=False)


@GROUPS
def test_sign_bit_chooses_between_a_point_and_its_negative(name, decode, encode, add, size, points: Path) -> None:  # type: ignore[no-untyped-def]
    data = (points / f"{name}_compressed.dat").read_bytes()
    for i in (1, 2, 77):
        one = data[i * size : (i + 1) * size]
        other = bytes([one[0] ^ 0x20]) + one[1:]
        assert not add(decode(one, fault)[0], decode(other, fault)[0]).any()
        assert encode(decode(other, fault)) == other


def test_x_without_a_point_and_points_outside_the_subgroup_are_refused() -> None:
    rng = random.Random(5)
    outcomes = set()
    for _ in range(24):
        x = rng.randrange(P)
        for decode, data in (
            (decode_g1, (x | 0x80 << 376).to_bytes(48, "big")),
            (decode_g2, (x | 0x80 << 376).to_bytes(48, "big") + rng.randrange(P).to_bytes(48, "big")),
        ):
            with pytest.raises(BadFile) as caught:
                decode(data, fault)
            outcomes.add((decode, "subgroup" in str(caught.value)))
    assert len(outcomes) == 4


def test_uncompressed_point_off_the_curve_is_refused() -> None:
    with pytest.raises(BadFile, match="not on the curve"):
        decode_g1((5).to_bytes(48, "big") + (7).to_bytes(48, "big"), fault, compressed=False)


def test_fault_gives_the_index_of_the_point(points: Path) -> None:
    data = bytearray((points / "g1_compressed.dat").read_bytes())
    data[48 * 37] &= 0x7F
    with pytest.raises(BadFile, match="point 37"):
        decode_g1(bytes(data), fault)


def a_proof(points: Path) -> Proof:
    g1 = decode_g1((points / "g1_compressed.dat").read_bytes(), fault)
    g2 = decode_g2((points / "g2_compressed.dat").read_bytes(), fault)
    return Proof(g1[3], g2[5], g1[9])


def test_proof_is_192_bytes_and_survives_them(points: Path) -> None:
    proof = a_proof(points)
    data = encode_proof(proof)
    assert len(data) == PROOF_BYTES
    again = decode_proof(data)
    for part in "abc":
        assert np.array_equal(getattr(again, part), getattr(proof, part))


def test_proof_of_another_length_or_with_infinity_or_with_any_flag_changed_is_refused(points: Path) -> None:
    data = encode_proof(a_proof(points))
    for bad in (b"", data[:-1], data + b"\0", bytes(192), bytes([0xC0]) + bytes(47) + data[48:]):
        with pytest.raises(BadFile):
            decode_proof(bad)
    for offset in (0, 48, 144):
        with pytest.raises(BadFile, match=f"offset {offset}"):
            decode_proof(data[:offset] + bytes([data[offset] ^ 0x80]) + data[offset + 1 :])


def test_encoding_of_limbs_is_independent_of_our_field_code() -> None:
    x, y = G1_GENERATOR
    point = ints_to_fp([x, y]).reshape(1, 2, 6)
    assert encode_g1(point, compressed=False) == x.to_bytes(48, "big") + y.to_bytes(48, "big")
    (x0, x1), (y0, y1) = G2_GENERATOR
    twist = ints_to_fp([x0, x1, y0, y1]).reshape(1, 2, 2, 6)
    assert encode_g2(twist, compressed=False) == b"".join(v.to_bytes(48, "big") for v in (x1, x0, y1, y0))
