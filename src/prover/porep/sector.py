"""Openings of a sector are made from its labels and trees, whether all of its nodes are known or only those opened.

Replication of every node is for the small sectors of tests; a sparse sector has the shape of any size, the labels of
the opened nodes' parents being invented. Both give C1 outputs that satisfy the circuit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prover.backends.cpu.field import fr_to_ints, ints_to_fr
from prover.errors import BadRequest
from prover.porep.challenges import challenges
from prover.porep.graph import Graph
from prover.porep.labels import label, prover_id, repeated, replica_id
from prover.porep.shapes import BASE_PARENTS, NODE_BYTES, RegisteredProof, Rule
from prover.porep.trees import Tree, canonical_bytes, from_canonical, poseidon_rows, sha256_rows
from prover.porep.vanilla import COLUMNS, C1Output, Partition
from prover.r1cs.matrices import I64, U64
from prover.run import Run, silent
from prover.wire import Stage

MAX_REPLICATED_NODES = 1 << 10
"""32 KiB: seconds in interpreted Python."""


@dataclass(frozen=True, slots=True)
class SectorNames:
    """What a replica is bound to."""

    miner_id: int = 1000
    sector_number: int = 1
    ticket: bytes = b"\x01" * 32
    seed: bytes = b"\x01" * 32


def replicate(
    proof: RegisteredProof, names: SectorNames, data: bytes | None = None, *, run: Run | None = None, threads: int = 1
) -> C1Output:
    """Seals a small sector and opens its challenges.

    Args:
        data: the sector's bytes, every 32 of them below r as a little-endian integer; zeros when None.

    Raises:
        BadRequest: the sector is too large for this, or data is not of its size.
    """
    run, shape = run or silent(), proof.shape
    if shape.num_nodes > MAX_REPLICATED_NODES:
        raise BadRequest(f"{shape.name} is too large to be sealed here; make a sparse sector of its shape")
    data = bytes(shape.sector_bytes) if data is None else data
    if len(data) != shape.sector_bytes:
        raise BadRequest(f"data has {len(data)} bytes and a {shape.name} sector {shape.sector_bytes}")
    leaves = from_canonical(data)
    every = np.arange(shape.num_nodes, dtype=np.int64)
    tree_d = Tree((2,) * shape.log_nodes, every, leaves, np.zeros(4, np.uint64), sha256_rows)
    replica = _replica_id(proof, names, tree_d)
    graph = Graph(shape.num_nodes, proof.porep_id, is_legacy=proof.is_legacy_graph)
    layers: list[list[bytes]] = []
    for layer in range(1, shape.layers + 1):
        run.check()
        run.progress(Stage.WITNESS, layer - 1, shape.layers, "layers", what="labels")
        layers.append(label_layer(graph, replica, layer, layers[-1] if layers else []))
    labels = np.stack([from_canonical(b"".join(layer)) for layer in layers], axis=1)
    return _open(proof, names, tree_d, every, labels, (every, leaves), graph, threads)


def label_layer(graph: Graph, replica: bytes, layer: int, below: Sequence[bytes]) -> list[bytes]:
    """Labels of all nodes of a layer.

    Args:
        below: those of the layer before; empty for layer 1.
    """
    labels: list[bytes] = []
    for node in range(graph.num_nodes):
        if node == 0:
            labels.append(label(replica, layer, node, ()))
            continue
        parents = graph.base_parents(node) if layer == 1 else graph.parents(node)
        values = [labels[p] if i < BASE_PARENTS else below[p] for i, p in enumerate(parents)]
        labels.append(label(replica, layer, node, [values[i] for i in repeated(layer)]))
    return labels


def sparse(
    proof: RegisteredProof, names: SectorNames, *, seed: bytes = b"sparse", run: Run | None = None, threads: int = 1
) -> C1Output:
    """A C1 output of any size without sealing: zero data, true graph and challenges, invented parents.

    Args:
        seed: makes the parents' labels.

    Raises:
        BadRequest: the rule draws its challenges from comm_r, which here depends on them.
    """
    run, shape = run or silent(), proof.shape
    if proof.rule is not Rule.INTERACTIVE:
        raise BadRequest(f"{proof.name}: a sparse sector's challenges must not depend on comm_r")
    nothing, zero = np.zeros(0, np.int64), np.zeros(4, np.uint64)
    tree_d = Tree((2,) * shape.log_nodes, nothing, np.zeros((0, 4), np.uint64), zero, sha256_rows)
    replica = _replica_id(proof, names, tree_d)
    graph = Graph(shape.num_nodes, proof.porep_id, is_legacy=proof.is_legacy_graph)
    opened = sorted(
        {node for k in range(proof.partitions) for node in challenges(proof, k, replica, bytes(32), names.seed)}
    )
    known: dict[int, list[bytes]] = {
        node: _invented(seed, node, shape.layers) for parent in opened for node in graph.parents(parent)
    }
    known.update((node, []) for node in opened)
    for layer in range(1, shape.layers + 1):
        run.check()
        run.progress(Stage.WITNESS, layer - 1, shape.layers, "layers", what="labels")
        for node in opened:
            parents = graph.parents(node)[: BASE_PARENTS if layer == 1 else None]
            values = [known[p][layer - 1 if i < BASE_PARENTS else layer - 2] for i, p in enumerate(parents)]
            known[node].append(label(replica, layer, node, [values[i] for i in repeated(layer)]))
    nodes = np.array(sorted(known), np.int64)
    labels = from_canonical(b"".join(value for node in nodes.tolist() for value in known[node]))
    places = np.array(opened, np.int64)
    no_data = np.zeros((len(places), 4), np.uint64)
    return _open(
        proof, names, tree_d, nodes, labels.reshape(len(nodes), shape.layers, 4), (places, no_data), graph, threads
    )


def _invented(seed: bytes, node: int, layers: int) -> list[bytes]:
    stream = hashlib.shake_256(seed + node.to_bytes(8, "little")).digest(NODE_BYTES * layers)
    values = [stream[i : i + NODE_BYTES] for i in range(0, len(stream), NODE_BYTES)]
    return [value[:31] + bytes([value[31] & 0x3F]) for value in values]


def _replica_id(proof: RegisteredProof, names: SectorNames, tree_d: Tree) -> bytes:
    comm_d = canonical_bytes(tree_d.root)
    return replica_id(prover_id(names.miner_id), names.sector_number, names.ticket, comm_d, proof.porep_id)


def _open(
    proof: RegisteredProof, names: SectorNames, tree_d: Tree, nodes: I64, labels: U64, replicated: tuple[I64, U64],
    graph: Graph, threads: int,
) -> C1Output:  # fmt: skip
    """Trees over the known nodes, and the openings of every partition.

    Args:
        nodes: rising; all that are opened, and their parents.
        labels: (nodes, layers, 4).
        replicated: nodes whose replica is known, rising, and their data (n, 4).
    """
    shape = proof.shape
    zero = np.zeros(4, np.uint64)

    def hash_rows(rows: U64) -> U64:
        return poseidon_rows(rows, threads=threads)

    tree_c = Tree(shape.arities, nodes, hash_rows(labels), zero, hash_rows)
    places, data = replicated
    last = labels[np.searchsorted(nodes, places), -1]
    encoded = ints_to_fr(x + y for x, y in zip(fr_to_ints(last), fr_to_ints(data), strict=True))
    tree_r = Tree(shape.arities, places, encoded, zero, hash_rows)
    comm_r = canonical_bytes(hash_rows(np.stack([tree_c.root, tree_r.root])[None]))
    replica = _replica_id(proof, names, tree_d)
    partitions = []
    for k in range(proof.partitions):
        opened = np.array(challenges(proof, k, replica, comm_r, names.seed), np.int64)
        columns = np.array([[*graph.parents(node), node] for node in opened.tolist()], np.int64)
        partitions.append(
            Partition(
                opened, tree_d.paths(opened), tree_r.paths(opened), tree_c.paths(columns.reshape(-1)),
                labels[np.searchsorted(nodes, columns.reshape(-1))].reshape(len(opened), COLUMNS, shape.layers, 4),
                columns,
            )
        )  # fmt: skip
    comm_d = canonical_bytes(tree_d.root)
    return C1Output(
        proof, tuple(partitions), comm_r, comm_d, replica, names.seed, names.ticket, names.sector_number,
        "sector made here",
    )  # fmt: skip
