"""A damaged or forged file ends in one BadFile line that names file and place, quickly and in little memory."""

from __future__ import annotations

import random
import struct
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from iden3_bytes import Parts, take_apart, u32

from prover.backends.cpu.field import ints_to_fp
from prover.errors import BadFile
from prover.files.r1cs_file import read_r1cs
from prover.files.wtns import read_wtns
from prover.files.zcash import decode_g2
from prover.files.zkey import read_zkey
from prover.params import P, R

DATA = Path(__file__).parents[2] / "data"
READERS: dict[str, tuple[Path, Callable[[Path], object]]] = {
    "r1cs": (DATA / "snarkjs_2p10" / "small.r1cs", read_r1cs),
    "wtns": (DATA / "snarkjs_2p10" / "small.wtns", read_wtns),
    "zkey": (DATA / "snarkjs_3fac" / "3_fac_final.zkey", read_zkey),
}
BN128_R = 21888242871839275222246405745257275088548364400416034343698204186575808495617
BN128_Q = 21888242871839275222246405745257275088696311157297823662689037894645226208583
MAX_SECONDS, MAX_BYTES = 2.0, 64 << 20
EVERY = pytest.mark.parametrize("kind", READERS)


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    """Kernels are compiled before the clock runs."""
    for path, read in READERS.values():
        read(path)


def attempt(tmp_path: Path, kind: str, data: bytes) -> BadFile | None:
    """What the reader raises for these bytes; anything but BadFile is a failure of the test, and so is waste."""
    path = tmp_path / f"bad.{kind}"
    path.write_bytes(data)
    tracemalloc.start()
    began = time.process_time()
    try:
        READERS[kind][1](path)
    except BadFile as error:
        assert "\n" not in str(error) and str(path) in str(error) and len(error.fault) > 10
        return error
    finally:
        seconds, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert seconds < MAX_SECONDS and peak < MAX_BYTES
    return None


def refused(tmp_path: Path, kind: str, data: bytes, *words: str) -> None:
    error = attempt(tmp_path, kind, data)
    assert error is not None, "accepted"
    for word in words:
        assert word in str(error), str(error)


@EVERY
def test_file_cut_at_or_beside_any_border_is_truncated(kind: str, tmp_path: Path) -> None:
    data = READERS[kind][0].read_bytes()
    borders, offset = [0, 1, 4, 8, 12], 12
    for _, content in take_apart(READERS[kind][0]).sections:
        borders += [offset + 4, offset + 12, offset + 12 + len(content) // 2, offset + 12 + len(content)]
        offset += 12 + len(content)
    for cut in sorted({max(0, b + d) for b in borders for d in (-1, 0, 1)}):
        if cut < len(data):
            refused(tmp_path, kind, data[:cut])


@EVERY
def test_section_that_comes_twice_is_refused(kind: str, tmp_path: Path) -> None:
    parts = take_apart(READERS[kind][0])
    for section in parts.sections:
        twice = Parts(parts.magic, parts.version, (*parts.sections, section))
        refused(tmp_path, kind, twice.bytes(), f"section {section[0]} (", "twice")


@EVERY
def test_missing_section_is_named(kind: str, tmp_path: Path) -> None:
    parts = take_apart(READERS[kind][0])
    for number, _ in parts.sections:
        if (kind, number) not in (("r1cs", 3), ("zkey", 10)):
            refused(tmp_path, kind, parts.without(number).bytes(), f"section {number} (", "missing")


@EVERY
def test_oversized_section_is_refused_before_memory_is_taken(kind: str, tmp_path: Path) -> None:
    data = READERS[kind][0].read_bytes()
    offset = 12
    for _, content in take_apart(READERS[kind][0]).sections:
        for size in (len(content) + 1, len(data), 1 << 40, (1 << 63) - 1, (1 << 64) - 1):
            refused(tmp_path, kind, data[: offset + 4] + struct.pack("<Q", size) + data[offset + 12 :])
        offset += 12 + len(content)


@EVERY
def test_wrong_section_count_is_refused(kind: str, tmp_path: Path) -> None:
    parts = take_apart(READERS[kind][0])
    for count in (0, len(parts.sections) - 1, len(parts.sections) + 1, 1 << 20, (1 << 32) - 1):
        refused(tmp_path, kind, parts.bytes(count))
    refused(tmp_path, kind, parts.bytes() + b"\0", "follow")


@EVERY
def test_wrong_magic_and_version_are_refused(kind: str, tmp_path: Path) -> None:
    parts = take_apart(READERS[kind][0])
    for magic in (b"\0\0\0\0", b"zkeY", b"wtnz"):
        refused(tmp_path, kind, Parts(magic, parts.version, parts.sections).bytes(), "magic")
    for version in (0, parts.version + 1, (1 << 32) - 1):
        refused(tmp_path, kind, Parts(parts.magic, version, parts.sections).bytes(), "version")


@EVERY
def test_any_word_of_a_header_set_to_an_extreme_is_refused_or_harmless(kind: str, tmp_path: Path) -> None:
    parts = take_apart(READERS[kind][0])
    number = 2 if kind == "zkey" else 1
    size = min(len(parts.get(number)), 100)
    for offset in range(0, size, 4):
        for value in (0, 1, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1):
            attempt(tmp_path, kind, parts.patched(number, offset, u32(value)).bytes())


@EVERY
def test_flipped_bits_are_refused_or_harmless(kind: str, tmp_path: Path) -> None:
    data, rng = READERS[kind][0].read_bytes(), random.Random(kind)
    found = 0
    for _ in range(150):
        at = rng.randrange(min(len(data), 2048)) if rng.random() < 0.5 else rng.randrange(len(data))
        flipped = bytes([data[at] ^ (1 << rng.randrange(8))])
        found += attempt(tmp_path, kind, data[:at] + flipped + data[at + 1 :]) is not None
    assert found > 0


def le(value: int, size: int = 32) -> bytes:
    return value.to_bytes(size, "little")


R1CS_HEADER, ROWS = 1, 2
R1CS_FAULTS: dict[str, tuple[int, int, bytes, str]] = {
    "another curve": (1, 4, le(BN128_R), "bn128 is not supported"),
    "another prime": (1, 4, le(R - 2), "not supported"),
    "field size 0": (1, 0, u32(0), "out of range"),
    "field size 16": (1, 0, u32(16), "not supported"),
    "no wires": (1, 36, u32(0), "cannot hold ONE"),
    "too many wires for the labels": (1, 36, u32(1 << 31), "wires need"),
    "more outputs than wires": (1, 40, u32(4000), "cannot hold ONE"),
    "more constraints than bytes": (1, 60, u32((1 << 32) - 1), "need at least"),
    "one constraint more": (1, 60, u32(1002), "section holds"),
    "one constraint less": (1, 60, u32(1000), "follow the last of 1000"),
    "absurd entry count": (2, 0, u32((1 << 32) - 1), "more entries than the section holds"),
    "wire out of range": (2, 4, u32(1004), "wire 1004"),
    "coefficient not below r": (2, 8, le(R), "not below the modulus of Fr"),
}


@pytest.mark.parametrize("name", R1CS_FAULTS)
def test_r1cs_fault_is_named(name: str, tmp_path: Path) -> None:
    number, offset, new, words = R1CS_FAULTS[name]
    parts = take_apart(READERS["r1cs"][0]).patched(number, offset, new)
    refused(tmp_path, "r1cs", parts.bytes(), "section ", "offset", words)


def test_r1cs_with_custom_gates_is_refused_and_with_an_empty_list_of_them_is_not(tmp_path: Path) -> None:
    parts = take_apart(READERS["r1cs"][0])
    for content, accepted in ((u32(0), True), (u32(1) + b"gate\0" + u32(0), False)):
        more = Parts(parts.magic, parts.version, (*parts.sections, (4, content)))
        assert (attempt(tmp_path, "r1cs", more.bytes()) is None) is accepted


WTNS_FAULTS: dict[str, tuple[int, int, bytes, str]] = {
    "another curve": (1, 4, le(BN128_R), "bn128 is not supported"),
    "absurd count": (1, 36, u32((1 << 32) - 1), "values need"),
    "one value more": (1, 36, u32(1005), "values need"),
    "no value": (1, 36, u32(0), "values need"),
    "value not below r": (2, 64, le(R), "wire 2 is not below"),
    "largest value": (2, 96, le((1 << 256) - 1), "wire 3 is not below"),
    "ONE is not 1": (2, 0, le(2), "wire 0 (ONE) is not 1"),
}


@pytest.mark.parametrize("name", WTNS_FAULTS)
def test_witness_fault_is_named(name: str, tmp_path: Path) -> None:
    number, offset, new, words = WTNS_FAULTS[name]
    parts = take_apart(READERS["wtns"][0]).patched(number, offset, new)
    refused(tmp_path, "wtns", parts.bytes(), "section ", "offset", words)


def off_subgroup_g1() -> bytes:
    """(0, 2): on y^2 = x^3 + 4, of order 3."""
    return ints_to_fp([0, 2]).tobytes()


def off_subgroup_g2() -> bytes:
    """A point of the twist with the smallest x that has one; its order has a factor of the cofactor."""
    for x in range(1, 50):
        try:
            encoding = bytes([0x80]) + bytes(47) + x.to_bytes(48, "big")
            return decode_g2(encoding, lambda why, i: BadFile("", "", why), check=False).tobytes()
        except BadFile:
            continue
    raise AssertionError


ZKEY_FAULTS: dict[str, tuple[int, int, bytes, str]] = {
    "plonk": (1, 0, u32(2), "protocol is plonk"),
    "fflonk": (1, 0, u32(10), "protocol is fflonk"),
    "unknown protocol": (1, 0, u32(77), "protocol is number 77"),
    "another base field": (2, 4, le(P - 2, 48), "not supported"),
    "bn128 base field": (2, 0, u32(32) + le(BN128_Q), "bn128 is not supported"),
    "bn128 scalar field": (2, 56, le(BN128_R), "bn128 is not supported"),
    "one wire more": (2, 88, u32(7), "counts and sections disagree"),
    "absurd wires": (2, 88, u32((1 << 32) - 1), "counts and sections disagree"),
    "more public than wires": (2, 92, u32(6), "do not fit"),
    "one public more": (2, 92, u32(3), "counts and sections disagree"),
    "domain 0": (2, 96, u32(0), "no power of two"),
    "domain 7": (2, 96, u32(7), "no power of two"),
    "domain 16": (2, 96, u32(16), "counts and sections disagree"),
    "absurd domain": (2, 96, u32(1 << 31), "counts and sections disagree"),
    "alpha is infinity": (2, 100, bytes(96), "infinity"),
    "delta is infinity": (2, 772, bytes(192), "infinity"),
    "alpha outside the subgroup": (2, 100, off_subgroup_g1(), "outside the prime-order subgroup"),
    "beta outside the subgroup": (2, 292, off_subgroup_g2(), "outside the prime-order subgroup"),
    "absurd entry count": (4, 0, u32((1 << 32) - 1), "entries need"),
    "one entry less": (4, 0, u32(6), "entries need"),
    "matrix 2": (4, 4, u32(2), "entry 0: matrix"),
    "constraint out of range": (4, 8, u32(8), "entry 0: constraint"),
    "signal out of range": (4, 12, u32(6), "entry 0: signal"),
    "coefficient not below r": (4, 16, le(R), "entry 0: coefficient"),
}


@pytest.mark.parametrize("name", ZKEY_FAULTS)
def test_zkey_fault_is_named(name: str, tmp_path: Path) -> None:
    number, offset, new, words = ZKEY_FAULTS[name]
    parts = take_apart(READERS["zkey"][0]).patched(number, offset, new)
    refused(tmp_path, "zkey", parts.bytes(), "section ", "offset", words)


@pytest.mark.parametrize("number, degree", [(3, 1), (5, 1), (6, 1), (7, 2), (8, 1), (9, 1)])
def test_bad_point_of_any_zkey_section_is_refused(number: int, degree: int, tmp_path: Path) -> None:
    parts = take_apart(READERS["zkey"][0])
    size = 96 * degree
    outside = off_subgroup_g1() if degree == 1 else off_subgroup_g2()
    for index in (0, 2):
        refused(tmp_path, "zkey", parts.patched(number, index * size, outside).bytes(), f"point {index}", "subgroup")
    off_curve = ints_to_fp([3, 5, 7, 11][: 2 * degree]).tobytes()
    refused(tmp_path, "zkey", parts.patched(number, size, off_curve).bytes(), "point 1", "not on the curve")
    too_large = le(P, 48)
    refused(tmp_path, "zkey", parts.patched(number, size, too_large).bytes(), "point 1", "not below the modulus of Fp")


def test_zkey_whose_public_wires_are_not_bound_is_refused(tmp_path: Path) -> None:
    parts = take_apart(READERS["zkey"][0])
    coefficients = parts.get(4)
    unbound = u32(6) + coefficients[4 : 4 + 6 * 44]
    refused(tmp_path, "zkey", parts.having(4, unbound).bytes(), "section 4 (", "do not bind")
    refused(tmp_path, "zkey", parts.having(4, u32(0)).bytes(), "section 4 (", "do not bind")


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "absent", tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        for _, read in READERS.values():
            with pytest.raises(BadFile, match=str(path)):
                read(path)
