"""Random circuits for property tests: templates of random rows, stamped at random ports, alone and inside blocks."""

from __future__ import annotations

from hypothesis import strategies as st

from prover.params import R
from prover.r1cs.build import Builder
from prover.r1cs.matrices import R1cs, Template
from prover.r1cs.record import Coefficients, Recorder

VALUES = st.sampled_from([1, -1, 2, -2, 8, 1 << 40, R - 5, 12345678901234567890])


@st.composite
def templates(draw: st.DrawFn, coefficients: Coefficients, name: str) -> Template:
    num_ports = draw(st.integers(1, 4))
    rec = Recorder(name, coefficients, num_ports)
    rec.wires(draw(st.integers(0, 4)))
    columns = st.integers(0, num_ports + rec.num_wires - 1)
    combination = st.dictionaries(columns, VALUES, max_size=5)
    for _ in range(draw(st.integers(0, 4))):
        rec.enforce(draw(combination), draw(combination), draw(combination))
    return rec.template(draw(st.lists(columns, max_size=3)))


@st.composite
def circuits(draw: st.DrawFn) -> R1cs:
    coefficients = Coefficients()
    parts = [draw(templates(coefficients, f"template-{i}")) for i in range(draw(st.integers(1, 3)))]
    inner = Builder("inner", draw(st.integers(1, 3)))
    _stamp_some(draw, inner, parts)
    num_columns = inner.num_ports + inner.num_wires
    block = inner.block(draw(st.lists(st.integers(0, num_columns - 1), max_size=3)))
    outer = Builder("outer", draw(st.integers(1, 4)))
    outer.wires(draw(st.integers(0, 2)))
    _stamp_some(draw, outer, [*parts, block])
    return outer.r1cs(coefficients)


def _stamp_some(draw: st.DrawFn, builder: Builder, parts: list) -> None:
    for _ in range(draw(st.integers(1, 3))):
        part = draw(st.sampled_from(parts))
        count = draw(st.integers(1, 3))
        known = st.integers(0, builder.num_ports + builder.num_wires - 1)
        row = st.lists(known, min_size=part.num_ports - 1, max_size=part.num_ports - 1)
        builder.stamp(part, draw(st.lists(row, min_size=count, max_size=count)), count=count)
