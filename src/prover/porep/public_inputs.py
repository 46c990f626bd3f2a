"""A verifier's public inputs follow from commitments, seed and graph; no opening is needed."""

from __future__ import annotations

from prover.errors import BadRequest
from prover.params import R
from prover.porep.challenges import challenges
from prover.porep.graph import Graph
from prover.porep.shapes import RegisteredProof


def public_inputs(
    graph: Graph, nodes: list[int], replica_id: bytes, comm_d: bytes, comm_r: bytes
) -> list[int]:
    """Public inputs of one partition, ONE left out.

    Args:
        nodes: the partition's challenges, in order.
        replica_id, comm_d, comm_r: 32 bytes each, little-endian.

    Raises:
        BadRequest: a commitment is not below r.
    """
    inputs = []
    for name, value in (("replica_id", replica_id), ("comm_d", comm_d), ("comm_r", comm_r)):
        number = int.from_bytes(value, "little")
        if len(value) != 32 or number >= R:
            raise BadRequest(f"{name} is not 32 bytes below r")
        inputs.append(number)
    for node in nodes:
        inputs += [node, *graph.parents(node), node, node, node]
    return inputs


def sector_inputs(
    proof: RegisteredProof, replica_id: bytes, comm_d: bytes, comm_r: bytes, seed: bytes
) -> list[list[int]]:
    """Public inputs of every partition of a sector, in order; see `public_inputs`."""
    graph = Graph(proof.shape.num_nodes, proof.porep_id, is_legacy=proof.is_legacy_graph)
    return [
        public_inputs(graph, challenges(proof, k, replica_id, comm_r, seed), replica_id, comm_d, comm_r)
        for k in range(proof.partitions)
    ]
