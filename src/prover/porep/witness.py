"""A partition's wires are filled gadget by gadget over all challenges at once, each gadget in one compiled pass.

What comes from outside (openings, and tree D's nodes, which plain hashing gives) is written first; after that nothing
but the chain of blocks inside a label and the levels of a path must wait for one another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from prover.backends.cpu.field import fr_to_ints, ints_to_fr
from prover.circuits.gadgets.merkle_witness import fill_ordered_children, fill_poseidon_levels
from prover.circuits.gadgets.poseidon_witness import fill_poseidon
from prover.circuits.gadgets.scalar_witness import fill_pack, fill_to_bits
from prover.porep.circuit import NODE_BITS, StackedCircuit
from prover.porep.shapes import PARENTS
from prover.porep.trees import sha256_rows
from prover.porep.vanilla import COLUMNS, C1Output, Partition
from prover.r1cs.chunks import Check
from prover.r1cs.matrices import I64, U64, Stamp
from prover.r1cs.tape import fill_bits, gather_bits, write_bits

Told = Callable[[int, str], None]
"""Told how many wires were filled since the last call, and which."""


def fill_witness(
    circuit: StackedCircuit, output: C1Output, partition: int, out: U64, *, told: Told | None = None,
    check: Check | None = None, threads: int = 1,
) -> None:  # fmt: skip
    """Writes every wire of one partition's circuit.

    Args:
        partition: which, from 0.
        out: (num_wires, 4) Fr, Montgomery; written whole.
        check: called between chunks; raises to stop.
    """
    _Filler(circuit, output, output.partitions[partition], out, told, check, threads).fill()


class _Filler:
    def __init__(
        self, circuit: StackedCircuit, output: C1Output, openings: Partition, out: U64, told: Told | None,
        check: Check | None, threads: int,
    ) -> None:  # fmt: skip
        self.layout, self.output, self.openings, self.out = circuit.layout, output, openings, out
        self.shape = circuit.layout.shape
        self.told, self.check, self.threads = told, check, threads
        self.num_public = circuit.r1cs.num_public
        self.stamps: dict[str, list[Stamp]] = {}
        for stamp in circuit.r1cs.stamps:
            self.stamps.setdefault(stamp.template.name, []).append(stamp)

    def fill(self) -> None:
        self._outside()
        self._tree_d()
        for name in ("to-bits", "field-bits"):
            bits = self._one(name)
            fill_to_bits(bits.ports[:, 1].astype(np.int64), bits.wire0, self.out)
            self._count(len(bits.wire0) * bits.template.num_wires, "bits of field elements")
        for name in ("sha256-node", "sha256-padding"):
            self._bits(self._one(name), slice(None), "tree D")
        self._labels()
        packed = self._one("label")
        fill_pack(packed.ports[:, 1:].astype(np.int64), packed.wire0, self.out)
        added = self._one("add")
        sums = zip(*(fr_to_ints(self.out[added.ports[:, i]]) for i in (1, 2)), strict=True)
        self.out[added.wire0] = ints_to_fr(x + y for x, y in sums)
        for arity in {2, self.shape.layers}:
            stamp = self._one(f"poseidon-{arity}")
            fill_poseidon(
                arity, stamp.ports[:, 1:].astype(np.int64), stamp.wire0, self.out, check=self.check,
                threads=self.threads, progress=self._counter(stamp, "columns"),
            )  # fmt: skip
        for arity in dict.fromkeys(self.shape.arities):
            self._levels(arity)

    def _outside(self) -> None:
        out, layout, openings = self.out, self.layout, self.openings
        sector = [int.from_bytes(v, "little") for v in (self.output.replica_id, self.output.comm_d, self.output.comm_r)]
        out[: 1 + self.num_public] = ints_to_fr([1, *openings.public_inputs(*sector)])
        for i, wire in enumerate((layout.replica_id, layout.comm_d, layout.comm_r)):
            out[wire] = out[1 + i]
        out[layout.comm_r_last], out[layout.comm_c] = openings.comm_r_last, openings.comm_c
        out[layout.data_leaf] = openings.data.leaves
        out[layout.rows[:, :, None] + np.arange(self.shape.layers)] = openings.rows[:, :PARENTS]
        nodes = openings.nodes.astype("<u8")[:, None].view(np.uint8)
        write_bits(np.unpackbits(nodes, axis=1, bitorder="little")[:, :NODE_BITS], layout.node_bits, out)

    def _tree_d(self) -> None:
        """Orders the children of every level, whose nodes are hashed here first."""
        data = self.openings.data
        levels, count = self.shape.log_nodes, self.openings.num_challenges
        parents = self._one("pack").wire0.reshape(count, levels)
        nodes = data.leaves
        for level in range(levels):
            nodes = sha256_rows(data.children(level, nodes))
            self.out[parents[:, level]] = nodes
        stamp = self._one("children-2")
        siblings = np.stack(data.siblings, axis=1).reshape(-1, 1, 4)
        fill_ordered_children(
            2, stamp.ports[:, 1].astype(np.int64), stamp.wire0, data.digits.reshape(-1), siblings, self.out,
            threads=self.threads,
        )  # fmt: skip

    def _labels(self) -> None:
        for stamp in self.stamps["label-first"]:
            self._bits(stamp, slice(None), "labels, first block")
        middle = self._one("label-middle")
        chain = np.arange(len(middle.wire0)).reshape(self.openings.num_challenges * self.shape.layers, -1)
        for block in range(chain.shape[1]):
            self._bits(middle, chain[:, block], f"labels, block {block + 1} of {chain.shape[1] + 1}")
        self._bits(self._one("label-last"), slice(None), "labels, last block")

    def _bits(self, stamp: Stamp, chosen: slice | I64, what: str) -> None:
        fill_bits(
            stamp.template, gather_bits(self.out, stamp.ports[chosen]), stamp.wire0[chosen], self.out,
            progress=self._counter(stamp, what), check=self.check, threads=self.threads,
        )  # fmt: skip

    def _levels(self, arity: int) -> None:
        """Every path's levels of one arity; those of the arities below are filled."""
        stamp = self._one(f"poseidon-level-{arity}")
        levels = [i for i, other in enumerate(self.shape.arities) if other == arity]
        columns, replica = self.openings.columns, self.openings.replica

        siblings = np.stack([_ordered(columns.siblings[i], replica.siblings[i]) for i in levels], axis=1)
        digits = _ordered(columns.digits[:, levels], replica.digits[:, levels])
        fill_poseidon_levels(
            arity, stamp.ports[:, 1].astype(np.int64), stamp.wire0, digits.reshape(-1),
            siblings.reshape(-1, arity - 1, 4), self.out, path_length=len(levels), check=self.check,
            threads=self.threads, progress=self._counter(stamp, "paths"),
        )  # fmt: skip

    def _one(self, name: str) -> Stamp:
        (stamp,) = self.stamps[name]
        return stamp

    def _counter(self, stamp: Stamp, what: str) -> Callable[[int], None]:
        return lambda instances: self._count(instances * stamp.template.num_wires, what)

    def _count(self, wires: int, what: str) -> None:
        """All challenges of a partition advance together, gadget by gadget: that is what fills every core."""
        if self.told is not None:
            self.told(wires, f"{what} · {self.openings.num_challenges} challenges together")


Values = TypeVar("Values", U64, I64)


def _ordered(of_columns: Values, of_replica: Values) -> Values:
    """Paths in a challenge's order: parents in C, the node in R_last, the node in C; one row a path."""
    tail = of_columns.shape[1:]
    by_challenge = of_columns.reshape(-1, COLUMNS, *tail)
    parts = (by_challenge[:, :PARENTS], of_replica[:, None], by_challenge[:, PARENTS:])
    return np.concatenate(parts, axis=1).reshape(-1, *tail)
