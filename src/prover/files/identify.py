"""What a file is, told from its content and never from its name; saying so includes every check its reader makes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from prover.errors import BadFile
from prover.files import bellperson_vk, container, params_file, r1cs_file, snarkjs_json, wtns, zcash, zkey
from prover.files.binfile import open_regular
from prover.files.checked import is_checked
from prover.files.json_text import JsonFile
from prover.keys import ProvingKey, VerifyingKey

HEAD_BYTES = container.HEAD.size + container.MAX_DESCRIPTION_BYTES
MAX_RAW_PROOF_BYTES = 1 << 20
C1_MEMBERS = (b'"Phase1Out"', b'"registered_proof"')
"""What only a PoRep C1 output has, near its beginning."""
POINTS = "every point is on its curve and in its prime-order subgroup"
SUBGROUPS = f"{POINTS}; coordinates below p"


@dataclass(frozen=True, slots=True)
class FileReport:
    path: str
    kind: str
    """What it is, e.g. ``circom constraint system (.r1cs)``."""
    size_bytes: int
    facts: tuple[tuple[str, str], ...]
    """Names and values, in the order to show them."""
    checks: tuple[str, ...]
    """What was checked and holds."""

    def lines(self) -> list[str]:
        """The report as text, one fact a line."""
        width = max(len(name) for name, _ in (*self.facts, ("checked", "")))
        rows = [*self.facts, ("size", f"{self.size_bytes:,} bytes"), *(("checked", check) for check in self.checks)]
        return [f"{self.path}: {self.kind}", *(f"  {name:<{width}}  {value}" for name, value in rows)]


def identify(path: str | os.PathLike[str]) -> FileReport:
    """Reads and checks a file of any kind this program knows.

    Raises:
        BadFile: of no known kind, or not what its kind demands.
    """
    with open_regular(path) as file:
        head, size_bytes = file.read(HEAD_BYTES), os.fstat(file.fileno()).st_size
    reader = _reader_for(head, size_bytes)
    if reader is None:
        known = ".r1cs, .wtns, .zkey, .params, .vk, proof, public, verification key and C1 JSON, raw proofs, own keys"
        raise BadFile(path, "", f"is no kind of file known here ({known})")
    kind, facts, checks = reader(path)
    return FileReport(str(path), kind, size_bytes, tuple(facts), tuple(checks))


Facts = list[tuple[str, str]]
Reader = Callable[[str | os.PathLike[str]], tuple[str, Facts, list[str]]]


def _reader_for(head: bytes, size_bytes: int) -> Reader | None:
    magics: dict[bytes, Reader] = {b"r1cs": _r1cs, b"wtns": _wtns, b"zkey": _zkey, container.MAGIC[:4]: _container}
    if head[:4] in magics:
        return magics[head[:4]]
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] == b"{" and any(name in head for name in C1_MEMBERS):
        return _c1
    if text[:1] in (b"{", b"["):
        return _json
    if size_bytes and size_bytes % zcash.PROOF_BYTES == 0 and size_bytes <= MAX_RAW_PROOF_BYTES and head[0] & 0x80:
        return _raw_proofs
    for compressed in (False, True):
        fixed = bellperson_vk.fixed_bytes(compressed)
        if len(head) >= fixed and _begins_with_a_point(head, compressed):
            num_ic = int.from_bytes(head[fixed - 4 : fixed], "big")
            end = fixed + num_ic * bellperson_vk.POINT_BYTES * (1 if compressed else 2)
            if size_bytes == end:
                return _vk
            if not compressed and 1 <= num_ic <= bellperson_vk.MAX_PUBLIC and size_bytes > end:
                return _params
    return None


def _begins_with_a_point(head: bytes, compressed: bool) -> bool:
    """Whether alpha of a verifying key may stand there: what has no magic is told by its first point."""
    unit = bellperson_vk.POINT_BYTES * (1 if compressed else 2)
    try:
        zcash.decode_g1(head[:unit], lambda why, _: BadFile("", "", why), compressed=compressed)
    except BadFile:
        return False
    return True


def _r1cs(path: str | os.PathLike[str]) -> tuple[str, Facts, list[str]]:
    r1cs = r1cs_file.read_r1cs(path)
    facts = [
        *_curve(),
        ("constraints", f"{r1cs.num_constraints:,}"),
        ("wires", f"{r1cs.num_wires:,}"),
        ("public", f"{r1cs.num_public:,} ({r1cs.num_outputs:,} outputs)"),
        ("domain", _domain(r1cs.domain_size)),
        ("entries of A, B, C", ", ".join(f"{n:,}" for n in r1cs.nnz)),
        ("coefficients", f"{len(r1cs.table):,} distinct"),
    ]
    return "circom constraint system (.r1cs)", facts, ["every wire exists and every coefficient is below r"]


def _wtns(path: str | os.PathLike[str]) -> tuple[str, Facts, list[str]]:
    witness = wtns.read_wtns(path)
    facts = [*_curve(), ("wires", f"{len(witness):,}")]
    return "circom witness (.wtns)", facts, ["every value is below r; wire 0 is 1"]


def _zkey(path: str | os.PathLike[str]) -> tuple[str, Facts, list[str]]:
    found = zkey.read_zkey(path)
    facts = _key_facts(found.key)
    facts.append(("entries of A, B", ", ".join(f"{n:,}" for n in found.relation.nnz[:2])))
    checks = [SUBGROUPS, "the public wires are bound", "every row is in range"]
    return "snarkjs Groth16 proving key (.zkey)", facts, checks


def _container(path: str | os.PathLike[str]) -> tuple[str, Facts, list[str]]:
    with open_regular(path) as file:
        head, size_bytes = file.read(HEAD_BYTES), os.fstat(file.fileno()).st_size
    description = container.read_description(path, head, size_bytes)
    known = is_checked(container.identity_of(head))
    key = container.open_key(path)
    facts = [*_key_facts(key), ("format", f"version {container.VERSION}"), ("checksum", description.digest.hex())]
    points = f"{POINTS} (on this host, recorded with the checksum)" if known else SUBGROUPS
    return "proving key of this program", facts, ["checksum agrees", points]


def _vk(path: str | os.PathLike[str]) -> tuple[str, Facts, list[str]]:
    return "bellperson verifying key (.vk)", _vk_facts(bellperson_vk.read_vk(path)), [SUBGROUPS]


def _params(path: str | os.PathLike[str]) -> tuple[str, Facts, list[str]]:
    with open_regular(path) as file:
        places, vk = params_file.scan_params(path, file)
        for name, degree in params_file.ARRAYS:
            params_file.read_points(path, file, name, degree, *places[name], True)
    facts = _vk_facts(vk)
    facts += [("h basis", "monomial"), *((f"{name} points", f"{count:,}") for name, (_, count) in places.items())]
    return "bellperson proving key (.params)", facts, [SUBGROUPS, "which wires the points belong to is not in the file"]


def _raw_proofs(path: str | os.PathLike[str]) -> tuple[str, Facts, list[str]]:
    count = len(zcash.decode_proofs(Path(path).read_bytes(), path))
    return "raw Groth16 proofs", [*_curve(), ("proofs", f"{count} of {zcash.PROOF_BYTES} bytes")], [POINTS]


def _c1(path: str | os.PathLike[str]) -> tuple[str, Facts, list[str]]:
    from prover.porep.c1_read import read_c1

    output = read_c1(path)
    shape = output.proof.shape
    number = "" if output.sector_number is None else f", number {output.sector_number}"
    facts = [
        ("proof", output.proof.name),
        ("sector", f"{shape.sector_bytes:,} bytes{number}"),
        ("partitions", f"{len(output.partitions)} of {shape.challenges} challenges"),
        ("comm_d", output.comm_d.hex()),
        ("comm_r", output.comm_r.hex()),
        ("replica id", output.replica_id.hex()),
    ]
    return "PoRep C1 output (c1.json)", facts, ["every value is below r", "members that repeat others agree with them"]


def _json(path: str | os.PathLike[str]) -> tuple[str, Facts, list[str]]:
    file = JsonFile(path)
    if isinstance(file.root, list):
        values = snarkjs_json.read_public(path)
        return "public inputs (public.json)", [*_curve(), ("inputs", f"{len(values):,}")], ["every value is below r"]
    fields = file.members()
    if "pi_a" in fields:
        snarkjs_json.read_proof(path)
        return "snarkjs Groth16 proof (proof.json)", [*_curve(), ("protocol", "groth16")], [SUBGROUPS]
    if "vk_alpha_1" in fields:
        vk = snarkjs_json.read_verification_key(path)
        return "snarkjs verification key (verification_key.json)", _vk_facts(vk), [SUBGROUPS]
    raise file.bad("", "is JSON, but neither a proof, nor public inputs, nor a verification key")


def _curve() -> Facts:
    return [("curve", "bls12381")]


def _domain(size: int) -> str:
    return f"{size:,} (2^{size.bit_length() - 1})"


def _vk_facts(vk: VerifyingKey) -> Facts:
    return [*_curve(), ("protocol", "groth16"), ("public", f"{vk.num_public:,}")]


def _key_facts(key: ProvingKey) -> Facts:
    queries = (("A", key.a_query), ("B1", key.b_g1_query), ("B2", key.b_g2_query), ("L", key.l_query))
    return [
        *_vk_facts(key.vk),
        ("constraints", f"{key.num_constraints:,}"),
        ("wires", f"{key.num_wires:,}"),
        ("domain", _domain(key.domain_size)),
        ("h basis", key.h_basis.value),
        ("finite points", ", ".join(f"{name} {len(query.points):,}" for name, query in queries)),
        ("circuit hash", key.circuit_hash.hex() or "not in the file"),
        ("setup", "test setup of this program: proves nothing to others" if key.is_test_setup else "not made here"),
    ]
