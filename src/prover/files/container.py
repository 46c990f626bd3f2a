"""Our own proving-key file is its own memory: page-aligned arrays in device-ready form, mapped, never parsed.

Layout: magic, u32 version, u32 size of the description, its BLAKE2b-256; the description (JSON: curve, H basis, counts,
circuit hash, and for each section name, offset, shape and type); then the sections, each at a multiple of 4096. The
description carries one digest over all sections (`prover.files.checked.digest_of`). Pages are mapped copy-on-write, so
the arrays are writable for compiled code and the file never changes.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prover.errors import BadFile
from prover.files.atomic import atomic_writer
from prover.files.binfile import open_regular
from prover.files.canonical import require_points
from prover.files.checked import digest_of, is_checked, record_checked
from prover.files.json_text import JsonFile
from prover.keys import HBasis, ProvingKey, Query, VerifyingKey

MAGIC = b"cuzkkey\n"
VERSION = 1
HEAD = struct.Struct("<8sII32s")
PAGE_BYTES = 4096
MAX_DESCRIPTION_BYTES = 1 << 16
G1, G2 = (2, 6), (2, 2, 6)
SECTIONS: dict[str, tuple[str, tuple[int, ...]]] = {
    "g1": ("<u8", G1),
    "g2": ("<u8", G2),
    "ic": ("<u8", G1),
    "a": ("<u8", G1),
    "a_wires": ("<u4", ()),
    "b_g1": ("<u8", G1),
    "b_g1_wires": ("<u4", ()),
    "b_g2": ("<u8", G2),
    "b_g2_wires": ("<u4", ()),
    "l": ("<u8", G1),
    "l_wires": ("<u4", ()),
    "h": ("<u8", G1),
}
"""Name, type and shape of an element; g1 is alpha, beta, delta and g2 is beta, gamma, delta."""
QUERIES = ("a", "b_g1", "b_g2", "l")


@dataclass(frozen=True, slots=True)
class Description:
    """What a key file says of itself."""

    h_basis: HBasis
    num_wires: int
    num_public: int
    num_constraints: int
    domain_size: int
    circuit_hash: bytes
    is_test_setup: bool
    points_checked: bool
    """The writer had checked every point, or made it."""
    digest: bytes
    first_wires: dict[str, int]
    sections: dict[str, tuple[int, int]]
    """Offset in the file, and number of elements."""


def write_key(path: str | os.PathLike[str], key: ProvingKey, *, points_checked: bool = True, threads: int = 2) -> None:
    """Writes a key; nothing of it is seen at `path` before all of it is on disk.

    Raises:
        BadFile: the place cannot be written.
    """
    arrays = _arrays_of(key)
    digest = digest_of([_bytes_of(array) for array in arrays.values()], threads)
    counts = {name: (0, len(array)) for name, array in arrays.items()}
    description = Description(
        key.h_basis, key.num_wires, key.num_public, key.num_constraints, key.domain_size, key.circuit_hash,
        key.is_test_setup, points_checked, digest, {name: _query(key, name).first_wire for name in QUERIES}, counts,
    )  # fmt: skip
    offset = PAGE_BYTES * -(-(HEAD.size + len(_print(description)) + 64 * len(arrays)) // PAGE_BYTES)
    for name, array in arrays.items():
        counts[name] = (offset, len(array))
        offset += PAGE_BYTES * -(-array.nbytes // PAGE_BYTES)
    text = _print(description)
    with atomic_writer(path) as out:
        out.write(HEAD.pack(MAGIC, VERSION, len(text), _identity(text)) + text)
        for name, array in arrays.items():
            out.seek(counts[name][0])
            out.write(_bytes_of(array))
        out.truncate(offset)
    if points_checked:
        record_checked(_identity(text))


def open_key(path: str | os.PathLike[str], *, verify: bool = True, threads: int = 2) -> ProvingKey:
    """Maps a key; its arrays are pages of the file and live as long as one of them is held.

    Args:
        verify: compare the checksum, which reads the whole file once (about 1 GB/s a thread).

    Raises:
        BadFile: damaged, truncated, another version, counts that disagree; or, for a file that this host has not
            checked before, a point that is no member of its group.
    """
    with open_regular(path) as file:
        head, file_bytes = file.read(HEAD.size + MAX_DESCRIPTION_BYTES), os.fstat(file.fileno()).st_size
        description = read_description(path, head, file_bytes)
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    arrays = {name: _view(pages, name, *where) for name, where in description.sections.items()}
    if verify and digest_of([_bytes_of(array) for array in arrays.values()], threads) != description.digest:
        raise BadFile(path, "sections", "checksum differs from the content: the file is damaged, make the key again")
    _require_wires(path, description, arrays)
    identity = identity_of(head)
    if not (verify and description.points_checked and is_checked(identity)):
        for name, (_, element) in SECTIONS.items():
            if name in arrays and element:
                offset = description.sections[name][0]
                place = f"section {name}, offset"
                size_bytes = 8 * int(np.prod(element))
                fault = _fault_at(path, place, offset, size_bytes)
                require_points(arrays[name], name, fault, allow_infinity=name not in ("g1", "g2"))
        if verify:
            record_checked(identity)
    return _key_of(description, arrays)


def read_description(path: str | os.PathLike[str], head: bytes, file_bytes: int) -> Description:
    """The description of a key file, every field and every section's place checked against the file's size.

    Args:
        head: the first bytes of the file.
    """
    if head[: len(MAGIC)] != MAGIC:
        raise BadFile(path, "offset 0", "is not a proving key of this program (magic differs)")
    if len(head) < HEAD.size:
        raise BadFile(path, "offset 8", "file ends inside its header: truncated, make the key again")
    _, version, size, digest = HEAD.unpack_from(head)
    if version != VERSION:
        raise BadFile(path, "offset 8", f"version {version} is not {VERSION}; make the key again")
    if size > MAX_DESCRIPTION_BYTES or HEAD.size + size > len(head):
        raise BadFile(path, "offset 12", f"description of {size} bytes does not fit: damaged, make the key again")
    text = head[HEAD.size : HEAD.size + size]
    if _identity(text) != digest:
        raise BadFile(path, f"offset {HEAD.size}", "description and its checksum differ: damaged, make the key again")
    return _parse(JsonFile(path, text), file_bytes)


def identity_of(head: bytes) -> bytes:
    """What the record of checked files knows a key file by: the checksum in its header."""
    return bytes(HEAD.unpack_from(head)[3])


def _identity(text: bytes) -> bytes:
    """Checksum of the description, and so of the sections whose digest it holds."""
    return hashlib.blake2b(text, digest_size=32).digest()


def _parse(text: JsonFile, file_bytes: int) -> Description:
    if text.field("curve") != "bls12381":
        raise text.bad("curve", f"is {str(text.field('curve'))[:24]!r}, only 'bls12381' can be used here")
    basis = text.field("h_basis")
    if basis not in [b.value for b in HBasis]:
        raise text.bad("h_basis", f"{str(basis)[:24]!r} is not known here")
    limit = 1 << 33
    numbers = {
        name: text.integer(text.field(name), name, limit, str(limit))
        for name in ("num_wires", "num_public", "num_constraints", "domain_size")
    }
    flags = {name: text.field(name) for name in ("is_test_setup", "points_checked")}
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise text.bad(name, "is not true or false")
    listed = text.field("sections")
    if not isinstance(listed, dict) or set(listed) - set(SECTIONS):
        raise text.bad("sections", "is not a table of known sections")
    sections: dict[str, tuple[int, int]] = {}
    for name, where in listed.items():
        offset, count = (text.integer(v, name, 1 << 62, "2^62") for v in text.array(where, name, 2))
        size_bytes = count * _element_bytes(name)
        if offset % PAGE_BYTES or offset + size_bytes > file_bytes:
            raise text.bad(f"section {name}, offset {offset}", f"{size_bytes} bytes are not all in the file: truncated")
        sections[name] = (offset, count)
    firsts = text.field("first_wires")
    if not isinstance(firsts, dict) or set(firsts) != set(QUERIES):
        raise text.bad("first_wires", "does not name the four queries")
    return Description(
        h_basis=HBasis(str(basis)),
        **numbers,
        circuit_hash=_hex(text, "circuit_hash"),
        is_test_setup=bool(flags["is_test_setup"]),
        points_checked=bool(flags["points_checked"]),
        digest=_hex(text, "digest"),
        first_wires={name: text.integer(v, f"first_wires.{name}", limit, str(limit)) for name, v in firsts.items()},
        sections=sections,
    )


def _require_wires(path: object, d: Description, arrays: dict[str, npt.NDArray]) -> None:
    """Counts that must agree, and wires that must exist, before anything is indexed by them."""
    expected = {"g1": 3, "g2": 3, "ic": d.num_public + 1}
    expected["h"] = d.domain_size if d.h_basis is HBasis.LAGRANGE_ODD else d.domain_size - 1
    for name, count in expected.items():
        if name not in arrays or len(arrays[name]) != count:
            raise BadFile(path, f"section {name}", f"does not hold {count} points; counts disagree, make the key again")
    rows = d.num_constraints + d.num_public + 1
    if d.domain_size & (d.domain_size - 1) or d.domain_size < rows or d.num_public >= d.num_wires:
        raise BadFile(path, "description", f"domain {d.domain_size} and {d.num_wires} wires do not fit {rows} rows")
    for name in QUERIES:
        if name not in arrays:
            raise BadFile(path, f"section {name}", "section is missing")
        wires, points = arrays.get(f"{name}_wires"), arrays[name]
        if wires is None:
            first, last = d.first_wires[name], d.first_wires[name] + len(points)
        else:
            if len(wires) != len(points) or not bool((wires[1:] > wires[:-1]).all()):
                raise BadFile(path, f"section {name}_wires", f"is not {len(points)} rising wires")
            first, last = (int(wires[0]), int(wires[-1]) + 1) if len(wires) else (d.num_public + 1, 0)
        if last > d.num_wires or (name == "l" and first <= d.num_public):
            raise BadFile(path, f"section {name}", f"has wires {first} to {last - 1} of only {d.num_wires}")


def _key_of(d: Description, arrays: dict[str, npt.NDArray]) -> ProvingKey:
    alpha_g1, beta_g1, delta_g1 = arrays["g1"]
    beta_g2, gamma_g2, delta_g2 = arrays["g2"]
    vk = VerifyingKey(alpha_g1, beta_g2, gamma_g2, delta_g2, arrays["ic"], beta_g1, delta_g1)
    a, b_g1, b_g2, l = (
        Query(arrays[name], arrays.get(f"{name}_wires"), d.first_wires[name]) for name in QUERIES
    )  # fmt: skip
    return ProvingKey(
        vk, beta_g1, delta_g1, d.num_wires, d.num_public, d.num_constraints, d.domain_size, a, b_g1, b_g2, l,
        arrays["h"], d.h_basis, d.circuit_hash, d.is_test_setup,
    )  # fmt: skip


def _arrays_of(key: ProvingKey) -> dict[str, npt.NDArray]:
    vk = key.vk
    found: dict[str, npt.NDArray | None] = {
        "g1": np.stack([vk.alpha_g1, key.beta_g1, key.delta_g1]),
        "g2": np.stack([vk.beta_g2, vk.gamma_g2, vk.delta_g2]),
        "ic": vk.ic,
        "h": key.h_query,
    }
    for name in QUERIES:
        found[name] = _query(key, name).points
        found[f"{name}_wires"] = _query(key, name).wires
    return {
        name: np.ascontiguousarray(array, dtype)
        for name, (dtype, _) in SECTIONS.items()
        if (array := found[name]) is not None
    }


def _query(key: ProvingKey, name: str) -> Query:
    return {"a": key.a_query, "b_g1": key.b_g1_query, "b_g2": key.b_g2_query, "l": key.l_query}[name]


def _print(d: Description) -> bytes:
    return json.dumps(
        {
            "curve": "bls12381",
            "h_basis": d.h_basis.value,
            "num_wires": d.num_wires,
            "num_public": d.num_public,
            "num_constraints": d.num_constraints,
            "domain_size": d.domain_size,
            "circuit_hash": d.circuit_hash.hex(),
            "is_test_setup": d.is_test_setup,
            "points_checked": d.points_checked,
            "digest": d.digest.hex(),
            "first_wires": d.first_wires,
            "sections": d.sections,
        }
    ).encode()


def _hex(text: JsonFile, name: str) -> bytes:
    value = text.field(name)
    if not isinstance(value, str) or len(value) not in (0, 64) or set(value) - set("0123456789abcdef"):
        raise text.bad(name, "is not a hash in hexadecimal")
    return bytes.fromhex(value)


def _view(pages: mmap.mmap, name: str, offset: int, count: int) -> npt.NDArray:
    dtype, element = SECTIONS[name]
    if not count:
        return np.empty((0, *element), dtype)
    return np.frombuffer(pages, dtype, count * int(np.prod(element, dtype=np.int64)), offset).reshape(count, *element)


def _element_bytes(name: str) -> int:
    dtype, element = SECTIONS[name]
    return np.dtype(dtype).itemsize * int(np.prod(element, dtype=np.int64))


def _bytes_of(array: npt.NDArray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _fault_at(path: object, place: str, offset: int, size_bytes: int) -> Callable[[str, int], BadFile]:
    return lambda why, i: BadFile(path, f"{place} {offset + i * size_bytes}", why)
