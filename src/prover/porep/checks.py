"""What a C1 output says is recomputed by plain hashing before anything is proved; the first contradiction is named.

Each check has one word (`BadVanillaProof.check`). Source of what is compared: the checks that rust-fil-proofs makes of
a vanilla proof (storage-proofs-porep/src/stacked/vanilla/{params,proof,column_proof,labeling_proof}.rs).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prover.backends.cpu.field import fr_to_ints, ints_to_fr
from prover.errors import BadVanillaProof, Mismatch
from prover.porep.c1_read import column_name
from prover.porep.challenges import challenges
from prover.porep.graph import Graph
from prover.porep.labels import label, prover_id, repeated, replica_id
from prover.porep.shapes import BASE_PARENTS, PARENTS
from prover.porep.trees import HashRows, Paths, canonical_bytes, from_canonical, poseidon_rows, sha256_rows
from prover.porep.vanilla import COLUMNS, C1Output, Partition
from prover.r1cs.matrices import U64
from prover.run import Run, silent
from prover.wire import Stage


def check_output(
    output: C1Output, *, run: Run | None = None, threads: int = 1, miner_id: int | None = None,
    sector_number: int | None = None,
) -> None:  # fmt: skip
    """Every check there is.

    Args:
        miner_id, sector_number: also derive replica_id from them; without a miner it is believed.

    Raises:
        BadVanillaProof: the first check that fails.
        Mismatch: the wrapper's sector is another one than asked for.
    """
    run = run or silent()
    _commitments(output)
    if None not in (sector_number, output.sector_number) and sector_number != output.sector_number:
        raise Mismatch(f"{output.source}: is of sector {output.sector_number}, and {sector_number} was asked for")
    number = output.sector_number if sector_number is None else sector_number
    if miner_id is not None and number is not None:
        _replica_id(output, miner_id, number)
    graph = Graph(output.proof.shape.num_nodes, output.proof.porep_id, is_legacy=output.proof.is_legacy_graph)
    for k, partition in enumerate(output.partitions):
        run.check()
        run.progress(Stage.SETUP, k, len(output.partitions), "partitions", what="checking the C1 output")
        _Checker(output, k, partition, graph, threads).check()


def _commitments(output: C1Output) -> None:
    for name in ("comm_r", "comm_d", "seed"):
        if not any(getattr(output, name)):
            raise BadVanillaProof(output.source, "commitments", name, "is all zeros, which no sealed sector has")
    for name in ("comm_r", "comm_d", "replica_id"):
        value = getattr(output, name)
        if fr_to_ints(from_canonical(value)) != [int.from_bytes(value, "little")]:
            raise BadVanillaProof(output.source, "values", name, "is not below r, so no field element")


def _replica_id(output: C1Output, miner_id: int, sector_number: int) -> None:
    derived = replica_id(prover_id(miner_id), sector_number, output.ticket, output.comm_d, output.proof.porep_id)
    if derived != output.replica_id:
        fault = f"is not that of miner {miner_id}, sector {sector_number}, this ticket and comm_d"
        raise BadVanillaProof(output.source, "replica_id", "replica_id", fault)


class _Checker:
    """The checks of one partition."""

    def __init__(self, output: C1Output, number: int, partition: Partition, graph: Graph, threads: int) -> None:
        self.output, self.number, self.partition, self.graph = output, number, partition, graph
        self._poseidon: HashRows = lambda rows: poseidon_rows(rows, threads=threads)

    def check(self) -> None:
        self._challenges()
        self._places()
        self._roots()
        self._column_hashes()
        self._labels()
        self._paths("data", sha256_rows)
        self._paths("replica", self._poseidon)
        self._paths("columns", self._poseidon)

    def _challenges(self) -> None:
        output = self.output
        derived = challenges(output.proof, self.number, output.replica_id, output.comm_r, output.seed)
        for i, (node, expected) in enumerate(zip(self.partition.nodes.tolist(), derived, strict=True)):
            if node != expected:
                raise self._bad("challenges", i, "labeling_proofs", f"opens node {node}, and seed demands {expected}")

    def _places(self) -> None:
        """Every path and column is of the node that graph and challenge name."""
        data, replica = self.partition.data.indices, self.partition.replica.indices
        columns = self.partition.columns.indices
        for i, node in enumerate(self.partition.nodes.tolist()):
            for name, index in (("comm_d_proofs", data[i]), ("comm_r_last_proof", replica[i])):
                if index != node:
                    raise self._bad("places", i, name, f"is the path of node {index}, not of {node}")
            for k, expected in enumerate((*self.graph.parents(node), node)):
                for what, found in (
                    ("column is", int(self.partition.column_nodes[i, k])),
                    ("inclusion_proof is the path", columns[COLUMNS * i + k]),
                ):
                    if found != expected:
                        fault = f"{what} of node {found}, and the graph demands {expected}"
                        raise self._bad("parents" if k < PARENTS else "places", i, column_name(k), fault)

    def _roots(self) -> None:
        """Every path of a tree names the tree's one root, and the roots are those committed to."""
        comm_d = from_canonical(self.output.comm_d)[0]
        for name, expected in (("data", comm_d), ("replica", None), ("columns", None)):
            paths: Paths = getattr(self.partition, name)
            root = paths.roots[0] if expected is None else expected
            every = np.broadcast_to(root, paths.roots.shape)
            self._equal("roots", name, paths.roots, every, "root differs from the tree's")
        both = np.stack([self.partition.comm_c, self.partition.comm_r_last])[None]
        if canonical_bytes(self._poseidon(both)) != self.output.comm_r:
            place = f"partition {self.number}"
            raise BadVanillaProof(self.output.source, "comm_r", place, "is not the hash of the roots of C and R_last")

    def _column_hashes(self) -> None:
        rows = self.partition.rows
        hashed = self._poseidon(rows.reshape(-1, *rows.shape[2:]))
        self._equal("columns", "columns", hashed, self.partition.columns.leaves, "rows do not hash to the leaf in C")

    def _labels(self) -> None:
        """The challenged node's labels follow from its parents', and the last one encodes the data."""
        layers = self.output.proof.shape.layers
        text = canonical_bytes(self.partition.rows)
        values = [text[i : i + 32] for i in range(0, len(text), 32)]
        for i, node in enumerate(self.partition.nodes.tolist()):
            first = [(COLUMNS * i + k) * layers for k in range(COLUMNS)]
            for layer in range(1, layers + 1):
                parents = [
                    values[first[k] + (layer - 1 if k < BASE_PARENTS else layer - 2)] for k in repeated(layer)
                ]
                if label(self.output.replica_id, layer, node, parents) != values[first[PARENTS] + layer - 1]:
                    fault = f"label of layer {layer} does not follow from the parents' labels"
                    raise self._bad("labels", i, "c_x", fault)
        keys = fr_to_ints(self.partition.rows[:, PARENTS, -1])
        data = fr_to_ints(self.partition.data.leaves)
        encoded = ints_to_fr(x + y for x, y in zip(keys, data, strict=True))
        self._equal("encoding", "replica", encoded, self.partition.replica.leaves, "leaf is not label plus data")

    def _paths(self, name: str, hash_rows: HashRows) -> None:
        paths: Paths = getattr(self.partition, name)
        self._equal("paths", name, paths.computed_roots(hash_rows), paths.roots, "path does not lead to its root")

    def _equal(self, check: str, name: str, found: U64, expected: U64, fault: str) -> None:
        wrong = np.flatnonzero((found != expected).any(axis=1))
        if len(wrong):
            i = int(wrong[0])
            where: Callable[[int], str] = {
                "data": lambda _: "comm_d_proofs",
                "replica": lambda _: "comm_r_last_proof",
                "columns": lambda i: column_name(i % COLUMNS),
            }[name]
            raise self._bad(check, i // COLUMNS if name == "columns" else i, where(i), fault)

    def _bad(self, check: str, challenge: int, part: str, fault: str) -> BadVanillaProof:
        place = f"partition {self.number}, challenge {challenge}, {part}"
        return BadVanillaProof(self.output.source, check, place, fault)
