"""A `.zkey` written here is one that snarkjs proves with: same sections, same order, same bytes for the same key.

Section 10 carries our circuit hash where snarkjs keeps its own, and no contributions: the setup had none.
"""

from __future__ import annotations

import os

import numpy.typing as npt

from prover.backends.cpu.field import pack
from prover.errors import Mismatch
from prover.files.atomic import atomic_writer
from prover.files.binfile import write_binfile
from prover.files.queries import in_place
from prover.files.r1cs_file import require_same_shape
from prover.files.zkey import (
    B1,
    B2,
    COEFS,
    CONTRIBUTIONS,
    FP_BYTES,
    FR_BYTES,
    GROTH16,
    HASH_BYTES,
    HEADER,
    IC,
    MAGIC,
    PROTOCOL,
    VERSION,
    A,
    C,
    H,
)
from prover.files.zkey_rows import pack_entries
from prover.keys import HBasis, ProvingKey
from prover.params import P, R
from prover.r1cs.matrices import R1cs

MAX_COUNT = 1 << 32


def write_zkey(path: str | os.PathLike[str], key: ProvingKey, r1cs: R1cs) -> None:
    """Writes key and circuit as a `.zkey`.

    Raises:
        Mismatch: key and circuit are of different shapes, the key's H basis is not odd-Lagrange, or a count exceeds
            the format's 32 bits.
        BadFile: the file cannot be written.
    """
    if key.h_basis is not HBasis.LAGRANGE_ODD:
        raise Mismatch(f"a .zkey needs H in the {HBasis.LAGRANGE_ODD} basis and this key has it in {key.h_basis}")
    require_same_shape(r1cs, key.num_wires, key.num_public, key.num_constraints, "the key")
    entries = pack_entries(r1cs)
    if max(key.num_wires, key.domain_size, len(entries)) >= MAX_COUNT:
        raise Mismatch(f"the circuit has {len(entries)} entries and {key.num_wires} wires; a .zkey counts in 32 bits")
    vk, wires = key.vk, key.num_wires
    sections: list[tuple[int, list[bytes | npt.NDArray]]] = [
        (PROTOCOL, [_u32(GROTH16)]),
        (HEADER, [
            _u32(FP_BYTES), pack([P], 6), _u32(FR_BYTES), pack([R], 4),
            _u32(key.num_wires), _u32(key.num_public), _u32(key.domain_size),
            vk.alpha_g1, key.beta_g1, vk.beta_g2, vk.gamma_g2, key.delta_g1, vk.delta_g2,
        ]),
        (IC, [vk.ic]),
        (COEFS, [_u32(len(entries)), entries]),
        (A, [in_place(key.a_query, 0, wires)]),
        (B1, [in_place(key.b_g1_query, 0, wires)]),
        (B2, [in_place(key.b_g2_query, 0, wires)]),
        (C, [in_place(key.l_query, key.num_public + 1, wires - key.num_public - 1)]),
        (H, [key.h_query]),
        (CONTRIBUTIONS, [key.circuit_hash[:32].ljust(HASH_BYTES, b"\0"), _u32(0)]),
    ]  # fmt: skip
    with atomic_writer(path) as out:
        write_binfile(out, MAGIC, VERSION, sections)


def _u32(value: int) -> bytes:
    return value.to_bytes(4, "little")
