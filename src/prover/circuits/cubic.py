"""``cubic``: x^3 + x + 5 = y with y public, the toy of every introduction."""

from __future__ import annotations

from prover.backends.cpu.field import fr_to_ints, ints_to_fr
from prover.circuits.circuit import Circuit
from prover.params import R
from prover.r1cs.build import Builder
from prover.r1cs.chunks import Check, Progress
from prover.r1cs.matrices import U64
from prover.r1cs.record import ONE, Coefficients, Recorder

_INPUT_BYTES = 48


def build() -> Circuit:
    """The circuit: wires ONE, y, x, x^2, x^3. Its input is x, 48 bytes reduced modulo r."""
    coefficients = Coefficients()
    rec = Recorder("cubic", coefficients, 2)
    x, square, cube = rec.wires(3)
    rec.enforce({x: 1}, {x: 1}, {square: 1})
    rec.enforce({square: 1}, {x: 1}, {cube: 1})
    rec.enforce({cube: 1, x: 1, ONE: 5}, {ONE: 1}, {1: 1})
    builder = Builder("cubic", 2)
    builder.stamp(rec.template(), [1])

    def witness(
        inputs: bytes, out: U64, *, progress: Progress | None = None, check: Check | None = None, threads: int = 1
    ) -> None:
        x = int.from_bytes(inputs, "little") % R
        out[:] = ints_to_fr([1, x**3 + x + 5, x, x * x, x**3])
        if progress is not None:
            progress(len(out))

    return Circuit("cubic", builder.r1cs(coefficients), _INPUT_BYTES, witness, describe)


def describe(public_inputs: U64) -> str:
    """The public result."""
    return f"x^3 + x + 5 = {fr_to_ints(public_inputs)[0]}"
