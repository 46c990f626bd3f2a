"""A C1 output written here is byte for byte what serde writes of the same values."""

from __future__ import annotations

import os

import msgspec
from msgspec import UNSET

from prover.files.atomic import write_bytes
from prover.porep import c1_json
from prover.porep.labels import repeated
from prover.porep.shapes import BASE_PARENTS, PARENTS, Shape
from prover.porep.trees import Paths, canonical_bytes
from prover.porep.vanilla import COLUMNS, C1Output, Partition
from prover.r1cs.matrices import U64

Values = list[list[int]]


def write_c1(path: str | os.PathLike[str], output: C1Output) -> None:
    """Writes the wrapper JSON."""
    write_bytes(path, wrapper_json(output))


def wrapper_json(output: C1Output) -> bytes:
    """The wrapper, with sector number 0 where the output knows none."""
    size_bytes = output.proof.shape.sector_bytes
    return msgspec.json.encode(c1_json.Wrapper(output.sector_number or 0, inner_json(output), size_bytes))


def inner_json(output: C1Output) -> bytes:
    """`SealCommitPhase1Output`."""
    shape = output.proof.shape
    rows = [[msgspec.Raw(msgspec.json.encode(o)) for o in _openings(p, shape)] for p in output.partitions]
    return msgspec.json.encode(
        c1_json.Output(
            output.proof.name, {shape.family: rows}, list(output.comm_r), list(output.comm_d),
            list(output.replica_id), list(output.seed), list(output.ticket),
        )
    )  # fmt: skip


def _openings(partition: Partition, shape: Shape) -> list[c1_json.Opening]:
    layers = shape.layers
    data = _merkles(partition.data, 0)
    replica = _merkles(partition.replica, bool(shape.sub) + bool(shape.top))
    inclusion = _merkles(partition.columns, bool(shape.sub) + bool(shape.top))
    rows = _values(partition.rows)
    openings = []
    for i, node in enumerate(partition.nodes.tolist()):
        first = COLUMNS * i
        columns = [
            c1_json.Column(
                c1_json.ColumnValues(int(index), rows[(first + k) * layers : (first + k + 1) * layers]),
                inclusion[first + k],
            )
            for k, index in enumerate(partition.column_nodes[i])
        ]
        labels = [_label(columns, layer, node) for layer in range(1, layers + 1)]
        opened = c1_json.Columns(columns[PARENTS], columns[:BASE_PARENTS], columns[BASE_PARENTS:PARENTS])
        openings.append(c1_json.Opening(data[i], replica[i], opened, labels, labels[-1]))
    return openings


def _label(columns: list[c1_json.Column], layer: int, node: int) -> c1_json.Label:
    parents = [
        columns[which].column.rows[layer - 1 if which < BASE_PARENTS else layer - 2] for which in repeated(layer)
    ]
    return c1_json.Label(parents, layer, node)


def _merkles(paths: Paths, upper: int) -> list[c1_json.Merkle]:
    leaves, roots = _values(paths.leaves), _values(paths.roots)
    levels = [_values(siblings) for siblings in paths.siblings]
    found = []
    for i, digits in enumerate(paths.digits.tolist()):
        elements = [
            c1_json.Element(values[i * (arity - 1) : (i + 1) * (arity - 1)], digit)
            for values, arity, digit in zip(levels, paths.arities, digits, strict=True)
        ]
        base = c1_json.Path(elements[: len(elements) - upper])
        higher = [c1_json.Path([element]) for element in elements[len(elements) - upper :]]
        root, leaf = roots[i], leaves[i]
        if upper == 0:
            body = c1_json.MerkleData(single=c1_json.Single(root, leaf, base))
        elif upper == 1:
            body = c1_json.MerkleData(UNSET, c1_json.Sub(base, higher[0], root, leaf))
        else:
            body = c1_json.MerkleData(UNSET, UNSET, c1_json.Top(base, higher[0], higher[1], root, leaf))
        found.append(c1_json.Merkle(body))
    return found


def _values(values: U64) -> Values:
    data = canonical_bytes(values)
    return [list(data[i : i + 32]) for i in range(0, len(data), 32)]
