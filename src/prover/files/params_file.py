"""A bellperson `.params` file is read and written in blocks: points go straight to their place, the file is never held.

verifying key, then h, l, a, b_g1 (G1), b_g2 (G2), each a u32 big-endian count and uncompressed points; h is monomial,
l has a point for every private wire, a and b have no infinite points and name no wires: those come from the circuit
(`prover.files.densities`). Source: bellperson, src/groth16/params.rs.
"""

from __future__ import annotations

import os
from functools import partial
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from prover.errors import BadFile, Mismatch, ProverError
from prover.files.atomic import atomic_writer
from prover.files.bellperson_vk import decode_fields, encode_vk, fixed_bytes, ic_count
from prover.files.binfile import open_regular
from prover.files.canonical import Fault, require_points
from prover.files.densities import Densities
from prover.files.queries import compact, in_place
from prover.files.zcash import decode_g1, decode_g2, encode_g1, encode_g2
from prover.keys import HBasis, ProvingKey, Query, VerifyingKey

U64 = npt.NDArray[np.uint64]
BLOCK_POINTS = 1 << 14
"""3 MB of G2 points: what a block holds beyond the result."""
G1_BYTES, G2_BYTES = 96, 192
ARRAYS = (("h", 1), ("l", 1), ("a", 1), ("b_g1", 1), ("b_g2", 2))


def read_params(
    path: str | os.PathLike[str], densities: Densities, *, check_points: bool = True, is_test_setup: bool = False
) -> ProvingKey:
    """The proving key of a `.params` file, for the circuit whose densities are given.

    Raises:
        BadFile: truncated, counts that do not fit the file, a point that is no member of its group.
        Mismatch: counts of another circuit.
    """
    with open_regular(path) as file:
        places, vk = scan_params(path, file)
        d = densities
        expected = {
            "h": d.domain_size - 1, "l": d.num_wires - d.num_public - 1, "a": len(d.a_wires),
            "b_g1": len(d.b_wires), "b_g2": len(d.b_wires),
        }  # fmt: skip
        found = {name: count for name, (_, count) in places.items()}
        if vk.num_public != d.num_public or found != expected:
            theirs, ours = ({"public": n, **counts} for n, counts in ((vk.num_public, found), (d.num_public, expected)))
            raise Mismatch(f"{path}: parameters are of another circuit: they hold {theirs}, the circuit needs {ours}")
        arrays = {
            name: read_points(path, file, name, degree, *places[name], check_points) for name, degree in ARRAYS
        }
    if vk.beta_g1 is None or vk.delta_g1 is None:
        raise BadFile(path, "verifying key", "lacks beta and delta in G1")
    return ProvingKey(
        vk=vk,
        beta_g1=vk.beta_g1,
        delta_g1=vk.delta_g1,
        num_wires=d.num_wires,
        num_public=d.num_public,
        num_constraints=d.num_constraints,
        domain_size=d.domain_size,
        a_query=_query(arrays["a"], d.a_wires, d.num_wires),
        b_g1_query=_query(arrays["b_g1"], d.b_wires, d.num_wires),
        b_g2_query=_query(arrays["b_g2"], d.b_wires, d.num_wires),
        l_query=compact(arrays["l"], d.num_public + 1),
        h_query=arrays["h"],
        h_basis=HBasis.MONOMIAL,
        circuit_hash=d.circuit_hash,
        is_test_setup=is_test_setup,
    )


def scan_params(path: object, file: BinaryIO) -> tuple[dict[str, tuple[int, int]], VerifyingKey]:
    """Offset of the points and count of each array, all inside the file, and the verifying key."""
    file_bytes = os.fstat(file.fileno()).st_size
    head = file.read(fixed_bytes(False))
    num_ic = ic_count(head, False, path)
    offset = fixed_bytes(False) + num_ic * G1_BYTES
    if offset > file_bytes:
        raise BadFile(path, "IC count, offset 864", f"{num_ic} points go beyond the end of the file: truncated")
    vk = decode_fields(head + file.read(offset - len(head)), False, num_ic, path)
    places = {}
    for name, degree in ARRAYS:
        size_bytes = G1_BYTES * degree
        file.seek(offset)
        count = int.from_bytes(file.read(4), "big")
        if offset + 4 + count * size_bytes > file_bytes:
            room = max(0, file_bytes - offset - 4) // size_bytes
            raise BadFile(path, f"{name}, offset {offset}", f"{count} points and room for only {room}: truncated")
        places[name] = (offset + 4, count)
        offset += 4 + count * size_bytes
    if offset != file_bytes:
        raise BadFile(path, f"offset {offset}", f"{file_bytes - offset} bytes follow the last point")
    return places, vk


def write_params(path: str | os.PathLike[str], key: ProvingKey) -> None:
    """Writes a key with monomial H as `.params`.

    Raises:
        Mismatch: H is in another basis, or the two b queries hold different wires.
    """
    if key.h_basis is not HBasis.MONOMIAL:
        raise Mismatch(f".params need H in the {HBasis.MONOMIAL} basis and this key has it in {key.h_basis}")
    if len(key.b_g1_query.points) != len(key.b_g2_query.points):
        raise Mismatch(".params need the same wires in both b queries")
    first_private = key.num_public + 1
    arrays = {
        "h": key.h_query,
        "l": in_place(key.l_query, first_private, key.num_wires - first_private),
        "a": key.a_query.points,
        "b_g1": key.b_g1_query.points,
        "b_g2": key.b_g2_query.points,
    }
    vk = key.vk
    whole = VerifyingKey(vk.alpha_g1, vk.beta_g2, vk.gamma_g2, vk.delta_g2, vk.ic, key.beta_g1, key.delta_g1)
    with atomic_writer(path) as out:
        out.write(encode_vk(whole))
        for name, degree in ARRAYS:
            points = arrays[name]
            encode = encode_g1 if degree == 1 else encode_g2
            out.write(len(points).to_bytes(4, "big"))
            for first in range(0, len(points), BLOCK_POINTS):
                out.write(encode(points[first : first + BLOCK_POINTS], compressed=False))


def read_points(
    path: object, file: BinaryIO, name: str, degree: int, offset: int, count: int, check: bool
) -> U64:
    """One array of a scanned file, decoded block by block, and checked where `check` says so."""
    size_bytes = G1_BYTES * degree
    decode = decode_g1 if degree == 1 else decode_g2
    points = np.empty((count, 2, 6) if degree == 1 else (count, 2, 2, 6), np.uint64)

    def fault(why: str, i: int) -> BadFile:
        return BadFile(path, f"{name}[{i}], offset {offset + i * size_bytes}", why)

    file.seek(offset)
    for first in range(0, count, BLOCK_POINTS):
        n = min(BLOCK_POINTS, count - first)
        block = file.read(n * size_bytes)
        if len(block) != n * size_bytes:
            raise fault("file shrank while it was read", first)
        decoded = decode(block, partial(_shifted, fault, first), compressed=False, check=False)
        points[first : first + n] = decoded
    if check:
        require_points(points, name, fault)
    return points


def _shifted(fault: Fault, first: int, why: str, i: int) -> ProverError:
    return fault(why, first + i)


def _query(points: U64, wires: npt.NDArray[np.uint32], num_wires: int) -> Query:
    return Query(points, None if len(wires) == num_wires else wires)
