"""A `.wtns` file is one assignment: every wire's value below r, wire 0 equal to 1.

Source: snarkjs, src/wtns_utils.js. Values are plain little-endian integers in the file and Montgomery in memory.
"""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import fr_from_mont, fr_to_mont
from prover.errors import Mismatch
from prover.files.atomic import atomic_writer
from prover.files.binfile import BinFile, write_binfile
from prover.files.canonical import first_not_fr
from prover.files.primes import why_not_scalar
from prover.params import R

MAGIC, VERSION = b"wtns", 2
HEADER, VALUES = 1, 2
SECTIONS = {HEADER: "header", VALUES: "values"}
FR_BYTES = 32


def read_wtns(path: str | os.PathLike[str]) -> npt.NDArray[np.uint64]:
    """The assignment of a `.wtns` file: (num_wires, 4), Montgomery.

    Raises:
        BadFile: counts and sizes disagree, another curve, a value not below r, wire 0 not 1.
    """
    with BinFile(path, MAGIC, (VERSION,), SECTIONS) as file:
        header = file.section(HEADER)
        size = header.u32("size of a field element")
        if not 0 < size <= 128 or size % 8:
            raise header.bad(f"a field element of {size} bytes is out of range", 0)
        if fault := why_not_scalar(header.integer(size, "the prime")):
            raise header.bad(fault, 4)
        if size != FR_BYTES:
            raise header.bad(f"field elements of {size} bytes; bls12381 has {FR_BYTES}", 0)
        count = header.u32("value count")
        header.end("the header")
        section = file.section(VALUES)
        if section.remaining_bytes != count * FR_BYTES:
            raise section.bad(f"holds {section.remaining_bytes} bytes and {count} values need {count * FR_BYTES}")
        if not count:
            raise section.bad("holds no value, not even wire 0 (ONE)")
        values = section.limbs((count, 4), "the values")
        bad = first_not_fr(values)
        if bad >= 0:
            raise section.bad(f"value of wire {bad} is not below the modulus of Fr", bad * FR_BYTES)
        if values[0].tolist() != [1, 0, 0, 0]:
            raise section.bad("value of wire 0 (ONE) is not 1; the witness was not made by circom's calculator", 0)
    return fr_to_mont(values)


def write_wtns(path: str | os.PathLike[str], witness: npt.NDArray[np.uint64]) -> None:
    """Writes a Montgomery (num_wires, 4) assignment."""
    header = FR_BYTES.to_bytes(4, "little") + R.to_bytes(FR_BYTES, "little") + len(witness).to_bytes(4, "little")
    with atomic_writer(path) as out:
        write_binfile(out, MAGIC, VERSION, [(HEADER, [header]), (VALUES, [fr_from_mont(witness)])])


def require_length(witness: npt.NDArray[np.uint64], num_wires: int, what: str) -> None:
    """Raises Mismatch unless the witness has a value for each of `num_wires` wires of `what`."""
    if len(witness) != num_wires:
        raise Mismatch(f"witness has {len(witness)} values and {what} has {num_wires} wires: they are of two circuits")
