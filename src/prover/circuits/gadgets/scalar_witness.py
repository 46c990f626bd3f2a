"""The wires of the gadgets that take a field element to bits and back, for many instances in one compiled pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import fr_add, fr_from_mont, fr_is_zero, fr_one, fr_zero, ld_fr, st_fr
from prover.backends.cpu.jit import jit
from prover.circuits.gadgets.scalar import NUM_BITS
from prover.r1cs.matrices import U64

I64 = npt.NDArray[np.int64]


def fill_to_bits(nodes: I64, wire0: I64, out: U64) -> None:
    """Writes the 255 bits of wires already in a witness.

    Args:
        nodes: (instances,), wires decomposed.
        wire0: (instances,), first bit of each.
        out: (num_wires, 4) Fr, Montgomery.
    """
    _fill_to_bits(fr_from_mont(out[nodes]), wire0, out, NUM_BITS)


def fill_pack(bits: I64, wire0: I64, out: U64) -> None:
    """Writes the number whose bits, least significant first, are wires already in a witness.

    Args:
        bits: (instances, m), wires.
        wire0: (instances,), where each number goes.
    """
    _fill_pack(np.ascontiguousarray(bits), wire0, out)


@jit
def _fill_to_bits(values, wire0, out, num_bits):  # type: ignore[no-untyped-def]
    one, zero = fr_one(), fr_zero()
    for i in range(len(wire0)):
        for bit in range(num_bits):
            if values[i, bit >> 6] >> np.uint64(bit & 63) & np.uint64(1):
                st_fr(out, wire0[i] + bit, one)
            else:
                st_fr(out, wire0[i] + bit, zero)


@jit
def _fill_pack(bits, wire0, out):  # type: ignore[no-untyped-def]
    for i in range(len(wire0)):
        total = fr_zero()
        for j in range(bits.shape[1] - 1, -1, -1):
            total = fr_add(total, total)
            bit = ld_fr(out, bits[i, j])
            if not fr_is_zero(bit):
                total = fr_add(total, bit)
        st_fr(out, wire0[i], total)
