"""A block stamped many times is the same rows as its parts stamped one by one, and every row has a name."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from r1cs_oracle import rows_of

from prover.backends.cpu.field import fr_to_ints
from prover.params import R
from prover.r1cs.build import Block, Builder
from prover.r1cs.chunks import run_chunks
from prover.r1cs.evaluate import describe_row
from prover.r1cs.matrices import R1cs
from prover.r1cs.record import Coefficients, Recorder


def link(coefficients: Coefficients) -> tuple[Block, object]:
    """A block of a square and a sum: ports x, y; output x^2 + y."""
    square = Recorder("square", coefficients, 2)
    out = square.wire()
    square.enforce({1: 1}, {1: 1}, {out: 1})
    total = Recorder("sum", coefficients, 3)
    total.mark("only row")
    result = total.wire()
    total.enforce({1: 1, 2: 1}, {0: 1}, {result: 1})
    builder = Builder("link", 3)
    with builder.span("inside"):
        squared = builder.stamp(square.template([out]), [1])
        summed = builder.stamp(total.template([result]), [squared[0], 2])
    return builder.block([int(summed[0])]), (square.template([out]), total.template([result]))


def test_a_block_stamped_at_once_equals_its_parts_one_by_one() -> None:
    coefficients = Coefficients()
    block, (square, total) = link(coefficients)
    at_once, one_by_one = Builder("c", 3), Builder("c", 3)
    at_once.stamp(block, [[1, 2], [2, 1], [2, 2]])
    for x, y in ((1, 2), (2, 1), (2, 2)):
        squared = one_by_one.stamp(square, [x])
        one_by_one.stamp(total, [squared[0], y])
    assert rows_of(at_once.r1cs(coefficients)) == rows_of(one_by_one.r1cs(coefficients))


def test_outputs_are_the_wires_of_each_instance() -> None:
    coefficients = Coefficients()
    block, _ = link(coefficients)
    builder = Builder("c", 3)
    before = builder.wire()
    outputs = builder.stamp(block, [[1, 2], [2, 1]])
    assert before == 3
    assert outputs.tolist() == [[5], [7]]
    assert builder.stamp(block, [int(outputs[0, 0]), 1]).tolist() == [9]


def test_rows_are_named_through_blocks_instances_and_parts() -> None:
    coefficients = Coefficients()
    block, _ = link(coefficients)
    builder = Builder("c", 3)
    builder.stamp(block, [[1, 2], [2, 1]], label="challenge")
    r1cs = builder.r1cs(coefficients)
    assert describe_row(r1cs, 0) == "challenge 0, inside, square 0, row 0 of 1"
    assert describe_row(r1cs, 3) == "challenge 1, inside, sum 1, only row, row 0 of 1"


def test_one_template_at_many_places_is_kept_once() -> None:
    coefficients = Coefficients()
    block, _ = link(coefficients)
    builder = Builder("c", 3)
    builder.stamp(block, np.tile([[1, 2]], (1000, 1)))
    r1cs: R1cs = builder.r1cs(coefficients)
    assert len(r1cs.stamps) == 2
    assert (r1cs.num_constraints, r1cs.num_wires, r1cs.nnz) == (2000, 2003, (3000, 2000, 2000))


def test_wrong_numbers_of_ports_are_refused() -> None:
    coefficients = Coefficients()
    block, _ = link(coefficients)
    with pytest.raises(ValueError):
        Builder("c", 3).stamp(block, [1])


def test_the_coefficient_table_begins_with_one_and_minus_one() -> None:
    coefficients = Coefficients()
    assert coefficients.index(-1) == coefficients.index(R - 1) == 1
    assert coefficients.index(5 - R) == coefficients.index(5) == 2
    assert fr_to_ints(coefficients.table()) == [1, R - 1, 5]


def test_the_domain_holds_constraints_and_input_rows() -> None:
    for rows in range(1, 20):
        for num_public in range(5):
            coefficients = Coefficients()
            rec = Recorder("rows", coefficients)
            for _ in range(rows):
                rec.enforce({0: 1}, {0: 1}, {0: 1})
            builder = Builder("c", 1 + num_public)
            builder.stamp(rec.template())
            size = builder.r1cs(coefficients).domain_size
            needed = rows + num_public + 1
            assert size >= needed and (size // 2 < needed or size == 2)


@pytest.mark.parametrize("threads", [1, 3])
def test_chunks_all_run_once_and_a_failure_stops_the_rest(threads: int) -> None:
    lock, seen = threading.Lock(), []

    def chunk(i: int) -> int:
        if i == 70:
            raise ZeroDivisionError
        with lock:
            seen.append(i)
        return i

    done: list[int] = []
    run_chunks([lambda i=i: chunk(i) for i in range(50)], threads, done.append, None)  # type: ignore[misc]
    assert sorted(seen) == sorted(done) == list(range(50))
    seen.clear()
    with pytest.raises(ZeroDivisionError):
        run_chunks([lambda i=i: chunk(i) for i in range(60, 5000)], threads, None, None)  # type: ignore[misc]
    assert len(seen) < 100
