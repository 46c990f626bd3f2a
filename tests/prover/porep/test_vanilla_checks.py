"""Each contradiction in a C1 output is refused by the check made for it, before anything is proved."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from porep_samples import changed, plus_one, with_other_digit, with_other_leaf, with_other_sibling

from prover.errors import BadVanillaProof, Mismatch
from prover.params import R
from prover.porep.checks import check_output
from prover.porep.sector import SectorNames, sparse
from prover.porep.shapes import registered
from prover.porep.vanilla import C1Output


def _root(output: C1Output, name: str, row: int) -> C1Output:
    paths = getattr(output.partitions[0], name)
    roots = paths.roots.copy()
    roots[row] = plus_one(roots[row])
    return changed(output, **{name: dataclasses.replace(paths, roots=roots)})


def _all_roots(output: C1Output, name: str) -> C1Output:
    paths = getattr(output.partitions[0], name)
    roots = np.tile(plus_one(paths.roots[0]), (len(paths.roots), 1))
    return changed(output, **{name: dataclasses.replace(paths, roots=roots)})


def _row(output: C1Output, challenge: int, column: int) -> C1Output:
    rows = output.partitions[0].rows.copy()
    rows[challenge, column, 0] = plus_one(rows[challenge, column, 0])
    return changed(output, rows=rows)


def _column_node(output: C1Output) -> C1Output:
    nodes = output.partitions[0].column_nodes.copy()
    nodes[1, 3] += 1
    return changed(output, column_nodes=nodes)


def _paths(output: C1Output, name: str):  # type: ignore[no-untyped-def]
    return getattr(output.partitions[0], name)


LIES = {
    "zero comm_r": (lambda o: dataclasses.replace(o, comm_r=bytes(32)), "commitments", "comm_r"),
    "zero comm_d": (lambda o: dataclasses.replace(o, comm_d=bytes(32)), "commitments", "comm_d"),
    "zero seed": (lambda o: dataclasses.replace(o, seed=bytes(32)), "commitments", "seed"),
    "comm_r above r": (
        lambda o: dataclasses.replace(o, comm_r=(R + 1).to_bytes(32, "little")), "values", "comm_r",
    ),
    "replica_id": (lambda o: dataclasses.replace(o, replica_id=b"\1" * 32), "replica_id", "replica_id"),
    "ticket": (lambda o: dataclasses.replace(o, ticket=b"\2" * 32), "replica_id", "replica_id"),
    "seed": (lambda o: dataclasses.replace(o, seed=b"\2" * 32), "challenges", "challenge 0, labeling_proofs"),
    "node": (lambda o: changed(o, nodes=o.partitions[0].nodes + np.array([0, 1])), "challenges", "challenge 1"),
    "place in D": (
        lambda o: changed(o, data=with_other_digit(_paths(o, "data"), 3, 1)), "places", "challenge 1, comm_d_proofs",
    ),
    "place in R_last": (
        lambda o: changed(o, replica=with_other_digit(_paths(o, "replica"), 1, 0)), "places",
        "challenge 0, comm_r_last_proof",
    ),
    "place of a parent": (
        lambda o: changed(o, columns=with_other_digit(_paths(o, "columns"), 0, 15)), "parents",
        "challenge 1, drg_parents[0]",
    ),
    "place of c_x": (
        lambda o: changed(o, columns=with_other_digit(_paths(o, "columns"), 0, 14)), "places", "challenge 0, c_x",
    ),
    "name of a column": (_column_node, "parents", "challenge 1, drg_parents[3]"),
    "comm_d": (lambda o: dataclasses.replace(o, comm_d=b"\1" * 32), "roots", "challenge 0, comm_d_proofs"),
    "one root of D": (lambda o: _root(o, "data", 1), "roots", "challenge 1, comm_d_proofs"),
    "one root of C": (lambda o: _root(o, "columns", 22), "roots", "challenge 1, exp_parents[1]"),
    "one root of R_last": (lambda o: _root(o, "replica", 1), "roots", "challenge 1, comm_r_last_proof"),
    "all roots of C": (lambda o: _all_roots(o, "columns"), "comm_r", "partition 0"),
    "all roots of R_last": (lambda o: _all_roots(o, "replica"), "comm_r", "partition 0"),
    "comm_r": (lambda o: dataclasses.replace(o, comm_r=b"\1" + bytes(31)), "comm_r", "partition 0"),
    "row of a parent": (lambda o: _row(o, 0, 8), "columns", "challenge 0, exp_parents[2]"),
    "row of c_x": (lambda o: _row(o, 1, 14), "columns", "challenge 1, c_x"),
    "leaf of C": (
        lambda o: changed(o, columns=with_other_leaf(_paths(o, "columns"), 16)), "columns",
        "challenge 1, drg_parents[1]",
    ),
    "leaf of R_last": (
        lambda o: changed(o, replica=with_other_leaf(_paths(o, "replica"), 1)), "encoding",
        "challenge 1, comm_r_last_proof",
    ),
    "data leaf": (
        lambda o: changed(o, data=with_other_leaf(_paths(o, "data"), 0)), "encoding", "challenge 0, comm_r_last_proof",
    ),
    "sibling in D": (
        lambda o: changed(o, data=with_other_sibling(_paths(o, "data"), 5, 1)), "paths", "challenge 1, comm_d_proofs",
    ),
    "sibling in R_last": (
        lambda o: changed(o, replica=with_other_sibling(_paths(o, "replica"), 0, 0)), "paths",
        "challenge 0, comm_r_last_proof",
    ),
    "sibling in C": (
        lambda o: changed(o, columns=with_other_sibling(_paths(o, "columns"), 1, 29)), "paths", "challenge 1, c_x",
    ),
}  # fmt: skip


def test_honest_sectors_pass(sector: C1Output, numbered: C1Output) -> None:
    for output in (sector, numbered):
        check_output(output, miner_id=1000, sector_number=1)
        check_output(output)


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused_by_name(lie: str, numbered: C1Output) -> None:
    change, check, place = LIES[lie]
    with pytest.raises(BadVanillaProof) as caught:
        check_output(change(numbered), miner_id=None if lie == "comm_d" else 1000)
    assert caught.value.check == check
    assert place in caught.value.place and "\n" not in str(caught.value)


def test_labels_that_only_a_column_hash_vouches_for_are_refused(numbered: C1Output) -> None:
    """A forger who also fixes the column's hash and its path is caught by the label itself."""
    from prover.porep.trees import poseidon_rows

    lied = _row(numbered, 0, 14)
    partition = lied.partitions[0]
    leaves = partition.columns.leaves.copy()
    leaves[14] = poseidon_rows(partition.rows[0, 14][None])[0]
    forged = changed(lied, columns=dataclasses.replace(partition.columns, leaves=leaves))
    with pytest.raises(BadVanillaProof, match="label of layer 1 does not follow") as caught:
        check_output(forged)
    assert (caught.value.check, caught.value.place) == ("labels", "partition 0, challenge 0, c_x")


def test_a_fault_in_a_later_partition_is_placed_there() -> None:
    output = sparse(registered("StackedDrg32GiBV1_1"), SectorNames(), threads=2)
    first, _, third, *more = output.partitions
    swapped = dataclasses.replace(output, partitions=(first, third, third, *more))
    with pytest.raises(BadVanillaProof, match="partition 1, challenge 0") as caught:
        check_output(swapped, threads=2)
    assert caught.value.check == "challenges"


def test_another_miner_or_sector_is_refused(numbered: C1Output) -> None:
    with pytest.raises(BadVanillaProof, match="miner 1001"):
        check_output(numbered, miner_id=1001)
    with pytest.raises(Mismatch, match="sector 1, and 2 was asked for"):
        check_output(numbered, miner_id=1000, sector_number=2)
