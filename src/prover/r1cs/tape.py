"""A tape computes every wire of a bit gadget, in allocation order, from the bits at its ports.

It is recorded with the rows, so whatever a gadget folds away (constants, padding) is folded away in its witness too,
and there is no second description of it that could disagree. A bit is referred to as 2 * column + negated; ONE makes
the constants: reference 0 is true, 1 is false. Each operation writes the next wire, or, ADD, the next run of wires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import fr_one, fr_zero, st_fr
from prover.backends.cpu.jit import jit
from prover.r1cs.chunks import Check, Progress, run_chunks
from prover.r1cs.matrices import U64, Template

U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

XOR, AND, CH, MAJ, ADD = range(5)


@dataclass(frozen=True, slots=True)
class BitTape:
    """The operations of one template."""

    operations: I32
    """(n, 4): kind, then references x, y, z; for ADD the number of 32-bit words, the number of result bits and
    where their references start in `words`."""
    words: I32
    """References of the operands of the additions, 32 a word, least significant first."""


class TapeWriter:
    """Takes the operations as a gadget is recorded."""

    def __init__(self) -> None:
        self._operations: list[tuple[int, int, int, int]] = []
        self._words: list[int] = []
        self.num_wires = 0
        """Wires that the operations so far compute."""

    def operation(self, kind: int, x: int, y: int = 0, z: int = 0) -> None:
        """One operation whose result is the next wire."""
        self._operations.append((kind, x, y, z))
        self.num_wires += 1

    def add(self, words: Sequence[Sequence[int]], num_bits: int) -> None:
        """The sum of 32-bit words as the next `num_bits` wires, least significant first."""
        self._operations.append((ADD, len(words), num_bits, len(self._words)))
        for word in words:
            self._words.extend(word)
        self.num_wires += num_bits

    def tape(self) -> BitTape:
        operations = np.array(self._operations, dtype=np.int32).reshape(-1, 4)
        return BitTape(operations, np.array(self._words, dtype=np.int32))


def fill_bits(
    template: Template, port_bits: U8, wire0: I64, out: U64, *, progress: Progress | None = None,
    check: Check | None = None, threads: int = 1,
) -> None:  # fmt: skip
    """Writes the wires of instances of a bit template into a witness.

    Args:
        template: one whose `tape` is recorded.
        port_bits: (instances, num_ports), 0 or 1; column 0 is 1.
        wire0: (instances,), first own wire of each.
        out: (num_wires, 4) Fr, Montgomery.
        progress: called with the number of instances done since the last call.
        check: called between chunks; raises to stop.
    """
    tape = template.tape
    if tape is None:
        raise ValueError(f"template {template.name} has no tape")
    count = len(wire0)
    step = max(1, min(-(-count // (4 * threads)), 65536 // max(1, template.num_wires) + 1))

    def chunk(first: int) -> int:
        last = min(first + step, count)
        values = np.empty(template.num_ports + template.num_wires, dtype=np.uint8)
        _run_tape(tape.operations, tape.words, port_bits[first:last], wire0[first:last], values, out)
        return last - first

    run_chunks(_bind(chunk, range(0, count, step)), threads, progress, check)


def write_bits(bits: U8, wire0: I64, out: U64) -> None:
    """Writes rows of bits, (k, m), as Fr to the wires wire0[k] .. wire0[k] + m - 1 of a witness."""
    _write_bits(np.ascontiguousarray(bits), wire0, out)


def gather_bits(witness: U64, ports: npt.NDArray[np.uint32]) -> U8:
    """Bits at the ports of instances, read from a witness: (instances, num_ports), for ports that hold 0 or 1."""
    return (witness[ports, 0] != 0).astype(np.uint8)


def _bind(function: Callable[[int], int], firsts: range) -> list[Callable[[], int]]:
    return [lambda first=first: function(first) for first in firsts]  # type: ignore[misc]


@jit
def _write_bits(bits, wire0, out):  # type: ignore[no-untyped-def]
    one, zero = fr_one(), fr_zero()
    for row in range(bits.shape[0]):
        for i in range(bits.shape[1]):
            if bits[row, i]:
                st_fr(out, wire0[row] + i, one)
            else:
                st_fr(out, wire0[row] + i, zero)


@jit
def _ref(values, reference):  # type: ignore[no-untyped-def]
    return values[reference >> 1] ^ np.uint8(reference & 1)


@jit
def _run_tape(operations, words, port_bits, wire0, values, out):  # type: ignore[no-untyped-def]
    one, zero = fr_one(), fr_zero()
    num_ports = port_bits.shape[1]
    for instance in range(port_bits.shape[0]):
        for i in range(num_ports):
            values[i] = port_bits[instance, i]
        top = num_ports
        for i in range(operations.shape[0]):
            kind, x, y, z = operations[i, 0], operations[i, 1], operations[i, 2], operations[i, 3]
            if kind == ADD:
                total = np.uint64(0)
                for word in range(x):
                    base = z + 32 * word
                    value = np.uint64(0)
                    for j in range(32):
                        value |= np.uint64(_ref(values, words[base + j])) << np.uint64(j)
                    total += value
                for j in range(y):
                    values[top + j] = np.uint8((total >> np.uint64(j)) & np.uint64(1))
                top += y
                continue
            p, q = _ref(values, x), _ref(values, y)
            if kind == XOR:
                values[top] = p ^ q
            elif kind == AND:
                values[top] = p & q
            elif kind == CH:
                values[top] = (p & q) ^ ((p ^ np.uint8(1)) & _ref(values, z))
            else:
                r = _ref(values, z)
                values[top] = (p & q) ^ (p & r) ^ (q & r)
            top += 1
        base_wire = wire0[instance]
        for i in range(top - num_ports):
            if values[num_ports + i]:
                st_fr(out, base_wire + i, one)
            else:
                st_fr(out, base_wire + i, zero)
