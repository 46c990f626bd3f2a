"""A stamped circuit and the same circuit written row by row are one circuit (acceptance 11)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from r1cs_oracle import rows_of, value_of
from random_circuits import circuits

from prover.backends.cpu.field import fr_to_ints, ints_to_fr
from prover.circuits import registry
from prover.params import R
from prover.r1cs.build import Builder
from prover.r1cs.columns import columns_at
from prover.r1cs.evaluate import evaluate_abc
from prover.r1cs.expand import Rows, expand, one_template
from prover.r1cs.hash import circuit_hash
from prover.r1cs.matrices import R1cs
from prover.r1cs.record import Coefficients, Recorder

BUILT_IN = ["cubic", "poseidon-merkle:1", "poseidon-merkle:3", "sha256-chain:1", "sha256-chain:2"]


def rows_from(rows: Rows) -> list[tuple[dict[int, int], ...]]:
    table = fr_to_ints(rows.table)
    sides = [
        [
            {int(m.columns[e]): table[m.coefficients[e]] for e in range(m.indptr[i], m.indptr[i + 1])}
            for i in range(len(m.indptr) - 1)
        ]
        for m in (rows.a, rows.b, rows.c)
    ]
    return list(zip(*sides, strict=True))


def random_witness(r1cs: R1cs, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    values = [1] + [int.from_bytes(rng.bytes(40), "little") % R for _ in range(r1cs.num_wires - 1)]
    return [v if rng.random() < 0.5 else int(rng.integers(0, 2)) if i else 1 for i, v in enumerate(values)]


@settings(max_examples=150, deadline=None)
@given(circuits())
def test_random_circuits_expand_to_their_meaning(r1cs: R1cs) -> None:
    expected = rows_of(r1cs)
    rows = expand(r1cs)
    assert rows_from(rows) == expected
    for matrix in (rows.a, rows.b, rows.c):
        for i in range(r1cs.num_constraints):
            wires = matrix.columns[matrix.indptr[i] : matrix.indptr[i + 1]].astype(np.int64)
            assert (np.diff(wires) > 0).all()
    assert circuit_hash(one_template(r1cs)) == circuit_hash(r1cs)


@settings(max_examples=100, deadline=None)
@given(circuits())
def test_random_circuits_evaluate_to_their_meaning(r1cs: R1cs) -> None:
    witness = random_witness(r1cs, 5)
    encoded = ints_to_fr(witness)
    sides = [np.full((r1cs.domain_size, 4), 0xABCD, np.uint64) for _ in range(3)]
    evaluate_abc(r1cs, encoded, *sides, threads=2)
    rows = rows_of(r1cs)
    inputs = witness[: r1cs.num_public + 1]
    padding = r1cs.domain_size - len(rows)
    for which, side in enumerate(sides):
        appended = inputs if which == 0 else [0] * len(inputs)
        expected = [value_of(row[which], witness) for row in rows] + appended
        assert fr_to_ints(side) == expected + [0] * (padding - len(inputs))


@settings(max_examples=100, deadline=None)
@given(circuits())
def test_columns_are_the_transposed_rows(r1cs: R1cs) -> None:
    weights = [pow(3, i, R) for i in range(r1cs.domain_size)]
    columns = columns_at(r1cs, ints_to_fr(weights))
    rows = rows_of(r1cs)
    for which, column in enumerate(columns):
        expected = [0] * r1cs.num_wires
        for row, weight in zip(rows, weights, strict=False):
            for wire, value in row[which].items():
                expected[wire] = (expected[wire] + value * weight) % R
        if which == 0:
            for wire in range(r1cs.num_public + 1):
                expected[wire] = (expected[wire] + weights[len(rows) + wire]) % R
        assert fr_to_ints(column) == expected


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_circuits_stamped_equal_expanded(name: str) -> None:
    r1cs = registry.build(name).r1cs
    expanded = one_template(r1cs)
    assert expanded.num_constraints == r1cs.num_constraints == expanded.stamps[0].template.num_rows
    assert expanded.nnz == r1cs.nnz
    assert circuit_hash(expanded) == circuit_hash(r1cs)
    assert rows_from(expand(r1cs)) == rows_of(r1cs)


def tiny(value: int = 3, column: int = 1, num_public: int = 1) -> R1cs:
    coefficients = Coefficients()
    rec = Recorder("tiny", coefficients, 2)
    rec.wires(2)
    rec.enforce({column: value, 0: 1}, {2: 1}, {3: 1})
    builder = Builder("tiny", 1 + num_public)
    builder.stamp(rec.template(), [1])
    return builder.r1cs(coefficients)


def test_the_hash_sees_coefficients_wires_and_publics() -> None:
    variants = [tiny(), tiny(value=4), tiny(column=2), tiny(num_public=2)]
    assert len({circuit_hash(r1cs) for r1cs in variants}) == len(variants)


def test_ports_that_meet_are_merged_and_cancelled_terms_dropped() -> None:
    coefficients = Coefficients()
    rec = Recorder("pair", coefficients, 3)
    rec.enforce({1: 5, 2: 7}, {1: 1, 2: -1}, {1: 1, 2: 1})
    builder = Builder("meet", 2)
    builder.stamp(rec.template(), [1, 1])
    r1cs = builder.r1cs(coefficients)
    assert rows_from(expand(r1cs)) == [({1: 12}, {}, {1: 2})] == rows_of(r1cs)
    assert circuit_hash(one_template(r1cs)) == circuit_hash(r1cs)


def test_the_hash_is_the_documented_bytes() -> None:
    import hashlib

    numbers = [np.array([4, 1, 1], "<u8").tobytes()]
    numbers.append(np.array([2, 0, 0, 1, 1, 1, 2, 0, 1, 3, 0], "<u4").tobytes())
    values = b"".join(v.to_bytes(32, "little") for v in (1, 3))
    assert circuit_hash(tiny()) == hashlib.sha256(b"cuzktui r1cs 1\0\0" + b"".join(numbers) + values).digest()
