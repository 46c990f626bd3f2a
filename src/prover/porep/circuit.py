"""The stacked circuit of one partition: a preamble of 571 rows, then one challenge, recorded once and stamped.

Wires and rows stand in the order of the field's own circuit, so that its parameters fit; only the public wires, of
another kind there, are collected in front. Source: rust-fil-proofs:storage-proofs-porep/src/stacked/circuit/
{proof,params,create_label,hash}.rs (behaviour).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prover.circuits.gadgets.bits import bit_of
from prover.porep.gadgets import Gadgets, create_label, inclusion, stream_bits
from prover.porep.labels import repeated
from prover.porep.shapes import (
    BASE_PARENTS,
    INPUTS_PER_CHALLENGE,
    PARENTS,
    SECTOR_INPUTS,
    Shape,
)
from prover.r1cs.build import Block, Builder
from prover.r1cs.matrices import I64, R1cs
from prover.r1cs.record import Coefficients

REPLICA_BITS = 255
NODE_BITS = 64


@dataclass(frozen=True, slots=True)
class Layout:
    """Wires of the circuit that a witness begins with; everything else follows from them."""

    shape: Shape
    replica_id: int
    comm_d: int
    comm_r: int
    comm_r_last: int
    comm_c: int
    data_leaf: I64
    """(challenges,)"""
    rows: I64
    """(challenges, PARENTS), first of the wires that hold a parent's column, layer 1 first."""
    node_bits: I64
    """(challenges,), first of 64."""


@dataclass(frozen=True, slots=True)
class StackedCircuit:
    r1cs: R1cs
    layout: Layout


def build(shape: Shape) -> StackedCircuit:
    """The circuit of one partition of a sector."""
    gadgets = Gadgets(Coefficients())
    num_inputs = shape.num_inputs
    builder = Builder(f"porep-{shape.name}", 1 + num_inputs)
    with builder.span("preamble"):
        replica_id = builder.wire()
        builder.stamp(gadgets.inputize, [1, replica_id])
        replica = builder.stamp(gadgets.to_bits, [replica_id]).tolist()
        comm_d = builder.wire()
        builder.stamp(gadgets.inputize, [2, comm_d])
        comm_r = builder.wire()
        builder.stamp(gadgets.inputize, [3, comm_r])
        comm_r_last, comm_c = builder.wire(), builder.wire()
        (root,) = builder.stamp(gadgets.hash(2), [comm_c, comm_r_last])
        builder.stamp(gadgets.equal, [comm_r, int(root)])
    block, inside = _challenge(gadgets, shape)
    first = np.array([builder.num_ports + builder.num_wires], np.int64) + block.num_wires * np.arange(
        shape.challenges, dtype=np.int64
    )
    own = 1 + SECTOR_INPUTS + INPUTS_PER_CHALLENGE * np.arange(shape.challenges)[:, None]
    public = own + np.arange(INPUTS_PER_CHALLENGE)
    shared = np.broadcast_to(
        np.array([comm_d, comm_c, comm_r_last, *replica]), (shape.challenges, 3 + REPLICA_BITS)
    )
    builder.stamp(block, np.concatenate([public, shared], axis=1))
    offset = first - block.num_ports
    layout = Layout(
        shape, replica_id, comm_d, comm_r, comm_r_last, comm_c, offset + inside.data_leaf,
        offset[:, None] + np.array(inside.rows), offset + inside.node_bits,
    )  # fmt: skip
    return StackedCircuit(builder.r1cs(gadgets.coefficients), layout)


@dataclass(frozen=True, slots=True)
class _Inside:
    """Columns of a challenge's block."""

    data_leaf: int
    rows: list[int]
    node_bits: int


def _challenge(gadgets: Gadgets, shape: Shape) -> tuple[Block, _Inside]:
    """Ports: the 18 public wires, comm_d, comm_c, comm_r_last, 255 bits of replica_id."""
    builder = Builder("challenge", 1 + INPUTS_PER_CHALLENGE + 3 + REPLICA_BITS)
    public = range(1, 1 + INPUTS_PER_CHALLENGE)
    in_d, in_parents, (node, in_r, in_c) = public[0], public[1 : 1 + PARENTS], public[1 + PARENTS :]
    comm_d, comm_c, comm_r_last = range(1 + INPUTS_PER_CHALLENGE, 4 + INPUTS_PER_CHALLENGE)
    replica = stream_bits(range(4 + INPUTS_PER_CHALLENGE, builder.num_ports))
    levels = [gadgets.level(arity) for arity in shape.arities]

    data_leaf = builder.wire()
    with builder.span("data leaf in D"):
        inclusion(gadgets, builder, [gadgets.sha256_level] * shape.log_nodes, [data_leaf, in_d, comm_d])
    parent = _parent(gadgets, shape)
    first_row = builder.num_ports + builder.num_wires + parent.num_wires * np.arange(PARENTS)
    rows = [
        builder.stamp(parent, [(column, comm_c) for column in chosen], label=label)
        for chosen, label in (
            (in_parents[:BASE_PARENTS], "base parent"), (in_parents[BASE_PARENTS:], "expander parent"),
        )
    ]  # fmt: skip
    with builder.span("challenge bits"):
        bits = builder.stamp(gadgets.node_bits).tolist()
        builder.stamp(gadgets.packed_input(NODE_BITS), [node, *bits])
    labels: list[int] = []
    for layer in range(1, shape.layers + 1):
        with builder.span(f"label of layer {layer}"):
            used = rows[0][:, layer - 1]
            if layer > 1:
                used = np.concatenate([used, rows[1][:, layer - 2]])
            decomposed = [stream_bits(row) for row in builder.stamp(gadgets.to_bits, used[:, None]).tolist()]
            parents = [decomposed[which] for which in repeated(layer)]
            labels.append(create_label(gadgets, builder, replica, parents, layer, [bit_of(b) for b in bits]))
    with builder.span("replica node in R_last"):
        (encoded,) = builder.stamp(gadgets.add, [labels[-1], data_leaf])
        inclusion(gadgets, builder, levels, [int(encoded), in_r, comm_r_last])
    with builder.span("column in C"):
        (column,) = builder.stamp(gadgets.hash(shape.layers), labels)
        inclusion(gadgets, builder, levels, [int(column), in_c, comm_c])
    return builder.block(), _Inside(data_leaf, first_row.tolist(), bits[0])


def _parent(gadgets: Gadgets, shape: Shape) -> Block:
    """A parent's column and its place in C. Ports: the public index, comm_c. Outputs: the rows."""
    builder = Builder("parent", 3)
    rows: Sequence[int] = builder.wires(shape.layers).tolist()
    (column,) = builder.stamp(gadgets.hash(shape.layers), rows)
    inclusion(gadgets, builder, [gadgets.level(arity) for arity in shape.arities], [int(column), 1, 2])
    return builder.block(rows)

