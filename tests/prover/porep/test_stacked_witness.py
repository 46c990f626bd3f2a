"""A witness is the field's, wire for wire, and every lie in an opening breaks a constraint that is named."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import re
from collections.abc import Callable

import numpy as np
import pytest
from porep_samples import TEST_SHAPES, changed, plus_one, with_other_digit, with_other_leaf, with_other_sibling

from prover.backends.cpu.field import fr_from_mont, fr_to_ints
from prover.errors import Cancelled, UnsatisfiedWitness
from prover.keycache import KeyCache
from prover.porep.circuit import StackedCircuit, build
from prover.porep.public_inputs import sector_inputs
from prover.porep.sector import SectorNames, sparse
from prover.porep.shapes import RegisteredProof, Rule, registered, registered_of, shape_of
from prover.porep.vanilla import C1Output
from prover.porep.witness import fill_witness
from prover.porep.workload import PorepWorkload, check_constraints
from prover.r1cs.evaluate import evaluate_abc, first_unsatisfied
from prover.run import Run, silent
from prover.wire import Progress


@pytest.fixture(scope="module")
def wires(circuit: StackedCircuit) -> np.ndarray:
    """Room for one witness, filled with what must be overwritten."""
    return np.full((circuit.r1cs.num_wires, 4), 0xDEAD, np.uint64)


@pytest.mark.parametrize(
    ("which", "aux", "inputs"),
    [
        (
            "sector",
            "d770385740c1370a0c4ac6750bb00ca19117a85dfe989e030e873c4e90cdda51",
            "bda8277042f4bbc8419098dc29b5aaec3925b093dfe3e4c7d97858315ff2fa6d",
        ),
        (
            "numbered",
            "530a194305d3ea2c9e55b6264c9a16b595458fa1ea80b4f270defcb027df5cf0",
            "95435ebbb5a4d045913777386471328827f7f8dc4743d374bbbd390b72eb0917",
        ),
    ],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_every_wire_of_the_golden_sectors(
    which: str, aux: str, inputs: str, threads: int, circuit: StackedCircuit, wires: np.ndarray,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    output: C1Output = request.getfixturevalue(which)
    fill_witness(circuit, output, 0, wires, threads=threads)
    first = circuit.r1cs.num_public + 1
    assert hashlib.sha256(fr_from_mont(wires[first:]).tobytes()).hexdigest() == aux
    assert hashlib.sha256(fr_from_mont(wires[:first]).tobytes()).hexdigest() == inputs


def test_public_wires_are_what_a_verifier_derives(
    sector: C1Output, circuit: StackedCircuit, wires: np.ndarray
) -> None:
    fill_witness(circuit, sector, 0, wires)
    (derived,) = sector_inputs(sector.proof, sector.replica_id, sector.comm_d, sector.comm_r, sector.seed)
    assert fr_to_ints(wires[1:40]) == derived and len(derived) == 39


@pytest.mark.parametrize("name", ["8-4-0", "8-4-2"])
def test_sub_and_top_trees_are_satisfied(name: str) -> None:
    shape = TEST_SHAPES[name]
    proof = RegisteredProof("test", 0, shape, False, Rule.INTERACTIVE)
    assert check_constraints(workload(sparse(proof, SectorNames()), build(shape)), silent()) > 1_000_000


def test_eleven_layers_are_satisfied() -> None:
    whole = sparse(registered_of(shape_of("32GiB")), SectorNames(), threads=2)
    shape = dataclasses.replace(whole.proof.shape, challenges=1)
    proof = dataclasses.replace(whole.proof, shape=shape)
    first = whole.partitions[3]
    narrow = dataclasses.replace(
        first, nodes=first.nodes[:1], rows=first.rows[:1], column_nodes=first.column_nodes[:1],
        data=_head(first.data, 1), replica=_head(first.replica, 1), columns=_head(first.columns, 15),
    )  # fmt: skip
    output = dataclasses.replace(whole, proof=proof, partitions=(narrow,))
    assert check_constraints(workload(output, build(shape)), silent()) == 7_238_236


def _head(paths, count: int):  # type: ignore[no-untyped-def]
    return dataclasses.replace(
        paths, leaves=paths.leaves[:count], roots=paths.roots[:count], digits=paths.digits[:count],
        siblings=tuple(values[:count] for values in paths.siblings),
    )  # fmt: skip


def workload(output: C1Output, circuit: StackedCircuit) -> PorepWorkload:
    return PorepWorkload(output, KeyCache(), circuit=circuit)


def _rows(challenge: int, column: int, layer: int) -> Callable[[C1Output], C1Output]:
    def change(output: C1Output) -> C1Output:
        rows = output.partitions[0].rows.copy()
        rows[challenge, column, layer] = plus_one(rows[challenge, column, layer])
        return changed(output, rows=rows)

    return change


def _nodes(output: C1Output) -> C1Output:
    return changed(output, nodes=output.partitions[0].nodes + np.array([0, 1]))


LIES = {
    "data leaf": (
        lambda o: changed(o, data=with_other_leaf(o.partitions[0].data, 1)),
        r"challenge 1, data leaf in D, equal \d",
    ),
    "sibling in D": (
        lambda o: changed(o, data=with_other_sibling(o.partitions[0].data, 5, 0)),
        r"challenge 0, data leaf in D, equal \d",
    ),
    "place in D": (
        lambda o: changed(o, data=with_other_digit(o.partitions[0].data, 0, 0)),
        r"challenge 0",
    ),
    "row of a base parent": (_rows(1, 2, 0), r"challenge 1, base parent 2, equal \d"),
    "row of an expander parent": (_rows(0, 13, 1), r"challenge 0, expander parent 7, equal \d"),
    "sibling in C": (
        lambda o: changed(o, columns=with_other_sibling(o.partitions[0].columns, 1, 20)),
        r"challenge 1, base parent 5, equal \d",
    ),
    "sibling in R_last": (
        lambda o: changed(o, replica=with_other_sibling(o.partitions[0].replica, 0, 1)),
        r"challenge 1, replica node in R_last, equal \d",
    ),
    "place in C": (
        lambda o: changed(o, columns=with_other_digit(o.partitions[0].columns, 0, 14)),
        r"challenge 0, column in C, equal \d",
    ),
    "challenged node": (_nodes, r"challenge 1, replica node in R_last, equal \d"),
    "comm_r": (lambda o: dataclasses.replace(o, comm_r=b"\1" + bytes(31)), r"preamble, equal \d"),
    "comm_d": (lambda o: dataclasses.replace(o, comm_d=b"\1" + bytes(31)), r"challenge 0, data leaf in D, equal"),
    "replica_id": (
        lambda o: dataclasses.replace(o, replica_id=bytes(32)),
        r"challenge 0, replica node in R_last, equal \d",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_breaks_a_constraint_that_is_named(lie: str, numbered: C1Output, circuit: StackedCircuit) -> None:
    change, place = LIES[lie]
    with pytest.raises(UnsatisfiedWitness) as caught:
        check_constraints(workload(change(numbered), circuit), silent())
    assert re.search(rf"partition 0, {place}", str(caught.value)), str(caught.value)


def test_a_wrong_wire_inside_a_label_names_layer_block_and_round(
    sector: C1Output, circuit: StackedCircuit, wires: np.ndarray
) -> None:
    from prover.r1cs.evaluate import describe_row

    fill_witness(circuit, sector, 0, wires)
    middle = next(s for s in circuit.r1cs.stamps if s.template.name == "label-middle")
    instance = 18 * (2 * 1 + 1) + 4
    wire = int(middle.wire0[instance]) + 20_000
    assert wires[wire, 0] in (0, 0x00000001FFFFFFFE)
    wires[wire] = [5, 0, 0, 0]
    sides = [np.empty((circuit.r1cs.domain_size, 4), np.uint64) for _ in range(3)]
    evaluate_abc(circuit.r1cs, wires, *sides, threads=2)
    row = first_unsatisfied(circuit.r1cs, *sides, threads=2)
    assert row is not None
    text = describe_row(circuit.r1cs, row)
    assert re.match(rf"challenge 1, label of layer 2, label-middle {instance}, round \d+, row \d+ of 26184", text), text


def test_progress_names_what_is_filled_and_cancellation_is_heard(
    sector: C1Output, circuit: StackedCircuit, wires: np.ndarray
) -> None:
    events: list[object] = []
    run = Run(events.append, "job")
    workload(sector, circuit).witness(0, wires, run)
    told = [event for event in events if isinstance(event, Progress)]
    together = " · 2 challenges together"
    expected = ("tree D", "labels, first block", "labels, block 7 of 19", "paths")
    assert {event.what for event in told} >= {what + together for what in expected}
    assert all(a.done <= b.done <= b.total for a, b in itertools.pairwise(told))
    assert told[-1].done > 0.99 * circuit.r1cs.num_wires
    run.cancel()
    with pytest.raises(Cancelled):
        workload(sector, circuit).witness(0, wires, run)


def test_a_partition_of_many_is_the_one_asked_for() -> None:
    output = sparse(registered("StackedDrg32GiBV1_1"), SectorNames(), threads=2)
    circuit = build(TEST_SHAPES["8-0-0"])
    one = PorepWorkload(output, KeyCache(), circuit=circuit, partitions=[7])
    assert (one.num_circuits, one.partitions) == (1, [7])
    assert PorepWorkload(output, KeyCache(), circuit=circuit).num_circuits == 10


def test_the_tail_is_foretold_by_the_circuit_alone(
    numbered: C1Output, circuit: StackedCircuit, wires: np.ndarray
) -> None:
    from prover.files.densities import densities_of
    from prover.keys import HBasis, ProvingKey, Query, VerifyingKey
    from prover.profile import measure

    d = densities_of(circuit.r1cs)
    point, pair = np.zeros((2, 6), np.uint64), np.zeros((2, 2, 6), np.uint64)
    a, b = (np.broadcast_to(point, (len(w), 2, 6)) for w in (d.a_wires, d.b_wires))
    key = ProvingKey(
        VerifyingKey(point, pair, pair, pair, point[None]), point, point, d.num_wires, d.num_public,
        d.num_constraints, d.domain_size, Query(a, d.a_wires), Query(b, d.b_wires),
        Query(np.broadcast_to(pair, (len(b), 2, 2, 6)), d.b_wires),
        Query(np.broadcast_to(point, (d.num_wires - d.num_public - 1, 2, 6)), None, d.num_public + 1),
        np.broadcast_to(point, (d.domain_size, 2, 6)), HBasis.LAGRANGE_ODD, b"",
    )  # fmt: skip
    foretold = workload(numbered, circuit).profile(key, silent())
    fill_witness(circuit, numbered, 0, wires)
    measured = measure(key, wires)
    for name in ("wires", "a", "b", "l"):
        assert 0.85 * getattr(foretold, name) <= getattr(measured, name) <= getattr(foretold, name), name
