"""A Groth16 `.zkey` is a proving key with odd-Lagrange H and the rows of A and B; C is not in it, c is a*b.

Coordinates in the file are our own layout: little-endian Montgomery, G2 with c0 first, infinity all zeros. A stored
coefficient v is v R^2 mod r. The last num_public + 1 rows bind ONE and the public wires; they are checked and left
out of the relation, as in every R1cs here. Source: snarkjs, src/zkey_utils.js and src/zkey_new.js.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from prover.errors import BadFile, Mismatch
from prover.files.binfile import BinFile, SectionReader
from prover.files.canonical import require_points
from prover.files.checked import digest_of, is_checked, record_checked
from prover.files.primes import why_not_base, why_not_scalar
from prover.files.queries import compact
from prover.files.r1cs_file import require_same_shape
from prover.files.zkey_rows import first_difference, read_rows
from prover.keys import HBasis, ProvingKey, VerifyingKey
from prover.r1cs.matrices import R1cs

U64 = npt.NDArray[np.uint64]
MAGIC, VERSION = b"zkey", 1
PROTOCOL, HEADER, IC, COEFS, A, B1, B2, C, H, CONTRIBUTIONS = range(1, 11)
SECTIONS = {
    PROTOCOL: "protocol",
    HEADER: "header",
    IC: "IC",
    COEFS: "coefficients",
    A: "A",
    B1: "B1",
    B2: "B2",
    C: "C",
    H: "H",
    CONTRIBUTIONS: "contributions",
}
GROTH16 = 1
PROTOCOLS = {GROTH16: "groth16", 2: "plonk", 10: "fflonk"}
FP_BYTES, FR_BYTES, G1_BYTES, G2_BYTES = 48, 32, 96, 192
G1_SHAPE, G2_SHAPE = (2, 6), (2, 2, 6)
RECORD_FROM = 1 << 13
"""Points from which checking takes longer than hashing and looking it up is worth."""
HASH_BYTES = 64
"""Circuit hash of section 10; ours is R1cs.hash followed by 32 zero bytes, snarkjs's is a BLAKE2b-512."""


@dataclass(frozen=True, slots=True)
class Zkey:
    key: ProvingKey
    relation: R1cs
    """A and B of the circuit; its C is empty, and row values of c are those of a times b."""


@dataclass(frozen=True, slots=True)
class ZkeyHeader:
    num_wires: int
    num_public: int
    domain_size: int
    g1: U64
    """(3, 2, 6): alpha, beta, delta."""
    g2: U64
    """(3, 2, 2, 6): beta, gamma, delta."""


def read_zkey(path: str | os.PathLike[str]) -> Zkey:
    """The proving key and relation of a `.zkey`; the points of a large one are checked once on this host and recorded.

    Raises:
        BadFile: counts and sizes disagree, another curve or protocol, a point that is no member of its group, rows
            out of range, or public wires that are not bound.
    """
    with BinFile(path, MAGIC, (VERSION,), SECTIONS) as file:
        header = read_header(file)
        _require_sizes(file, header)
        relation = read_rows(file.section(COEFS), header.num_wires, header.num_public, header.domain_size)
        counts = {
            IC: header.num_public + 1, A: header.num_wires, B1: header.num_wires, B2: header.num_wires,
            C: header.num_wires - header.num_public - 1, H: header.domain_size,
        }  # fmt: skip
        points = {kind: _read_points(file.section(kind), kind, count) for kind, count in counts.items()}
        _check_points(file, points)
        claim = file.section(CONTRIBUTIONS).raw(HASH_BYTES, "the circuit hash") if file.has(CONTRIBUTIONS) else b""
    is_ours = claim[32:] == bytes(32) and any(claim[:32])
    vk = VerifyingKey(
        alpha_g1=header.g1[0], beta_g2=header.g2[0], gamma_g2=header.g2[1], delta_g2=header.g2[2], ic=points[IC],
        beta_g1=header.g1[1], delta_g1=header.g1[2],
    )  # fmt: skip
    key = ProvingKey(
        vk=vk,
        beta_g1=header.g1[1],
        delta_g1=header.g1[2],
        num_wires=header.num_wires,
        num_public=header.num_public,
        num_constraints=relation.num_constraints,
        domain_size=header.domain_size,
        a_query=compact(points[A]),
        b_g1_query=compact(points[B1]),
        b_g2_query=compact(points[B2]),
        l_query=compact(points[C], header.num_public + 1),
        h_query=points[H],
        h_basis=HBasis.LAGRANGE_ODD,
        circuit_hash=claim[:32] if is_ours else b"",
        is_test_setup=is_ours,
    )
    return Zkey(key, relation)


def read_header(file: BinFile) -> ZkeyHeader:
    """Sections 1 and 2, checked; the three points of each group are members other than infinity."""
    protocol = file.section(PROTOCOL)
    number = protocol.u32("the protocol")
    if number != GROTH16:
        name = PROTOCOLS.get(number, f"number {number}")
        raise protocol.bad(f"protocol is {name}, and only groth16 keys can be used here", 0)
    protocol.end("the protocol")
    header = file.section(HEADER)
    for size_bytes, why_not, what in ((FP_BYTES, why_not_base, "Fp"), (FR_BYTES, why_not_scalar, "Fr")):
        began = header.position
        size = header.u32(f"size of an {what} element")
        if not 0 < size <= 128 or size % 8:
            raise header.bad(f"an {what} element of {size} bytes is out of range", began)
        if fault := why_not(header.integer(size, f"the modulus of {what}")):
            raise header.bad(fault, began + 4)
        if size != size_bytes:
            raise header.bad(f"{what} elements of {size} bytes; bls12381 has {size_bytes}", began)
    began = header.position
    num_wires, num_public, domain_size = (header.u32(w) for w in ("wire count", "public count", "domain size"))
    if num_public + 1 > num_wires:
        raise header.bad(f"{num_public} public wires and ONE do not fit in {num_wires} wires", began)
    if domain_size & (domain_size - 1) or domain_size < max(2, num_public + 1):
        raise header.bad(f"domain size {domain_size} is no power of two that holds the circuit", began + 8)
    alpha_1, beta_1 = (header.limbs((2, 6), f"{w} in G1") for w in ("alpha", "beta"))
    beta_2, gamma_2 = (header.limbs((2, 2, 6), f"{w} in G2") for w in ("beta", "gamma"))
    delta_1, delta_2 = header.limbs((2, 6), "delta in G1"), header.limbs((2, 2, 6), "delta in G2")
    header.end("the header")
    g1, g2 = np.stack([alpha_1, beta_1, delta_1]), np.stack([beta_2, gamma_2, delta_2])
    names_1, names_2 = ("alpha", "beta", "delta"), ("beta", "gamma", "delta")
    require_points(g1, "the header", lambda why, i: header.bad(f"{names_1[i]} in G1: {why}"), allow_infinity=False)
    require_points(g2, "the header", lambda why, i: header.bad(f"{names_2[i]} in G2: {why}"), allow_infinity=False)
    return ZkeyHeader(num_wires, num_public, domain_size, g1, g2)


def require_zkey_of(zkey: Zkey, r1cs: R1cs) -> None:
    """Raises Mismatch unless the zkey's rows of A and B are the circuit's, entry for entry."""
    key = zkey.key
    require_same_shape(r1cs, key.num_wires, key.num_public, key.num_constraints, "the zkey")
    if difference := first_difference(zkey.relation, r1cs):
        raise Mismatch(f"the zkey is of another circuit than {r1cs.name or 'the r1cs'}: {difference}")


def _require_sizes(file: BinFile, header: ZkeyHeader) -> None:
    """All sections against the header's counts, before any of them is read."""
    wires, public = header.num_wires, header.num_public
    expected = {
        IC: (public + 1) * G1_BYTES,
        A: wires * G1_BYTES,
        B1: wires * G1_BYTES,
        B2: wires * G2_BYTES,
        C: (wires - public - 1) * G1_BYTES,
        H: header.domain_size * G1_BYTES,
    }
    for kind, size_bytes in expected.items():
        section = file.section(kind)
        if section.remaining_bytes != size_bytes:
            raise section.bad(
                f"holds {section.remaining_bytes} bytes and {wires} wires, {public} public, domain "
                f"{header.domain_size} need {size_bytes}: counts and sections disagree"
            )


def _read_points(section: SectionReader, kind: int, count: int) -> U64:
    return section.limbs((count, *(G2_SHAPE if kind == B2 else G1_SHAPE)), "the points")


def _check_points(file: BinFile, points: dict[int, U64]) -> None:
    """Membership of every point, unless exactly these arrays were found to be members before."""
    large = sum(map(len, points.values())) >= RECORD_FROM
    arrays = [memoryview(b"zkey points 1"), *(array.reshape(-1).view(np.uint8).data for array in points.values())]
    digest = digest_of(arrays) if large else b""
    if large and is_checked(digest):
        return
    for kind, array in points.items():
        section = file.section(kind)
        size_bytes = G2_BYTES if kind == B2 else G1_BYTES
        fault = partial(_point_fault, section, size_bytes)
        require_points(array, f"section {kind}", fault)
    if large:
        record_checked(digest)


def _point_fault(section: SectionReader, size_bytes: int, why: str, index: int) -> BadFile:
    return section.bad(why, index * size_bytes)
