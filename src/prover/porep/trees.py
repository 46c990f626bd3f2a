"""A Merkle tree holds only the nodes that differ from the tree over default leaves, so 2^31 leaves cost what is set.

Values are Fr, Montgomery, (n, 4). A level's arity may differ from the next one's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from prover.backends.cpu.field import fr_from_mont, fr_to_mont
from prover.circuits.gadgets.poseidon_witness import poseidon_hashes
from prover.porep.labels import trimmed
from prover.r1cs.matrices import I64, U64

HashRows = Callable[[U64], U64]
"""Digests (n, 4) of rows of children (n, arity, 4)."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Inclusion paths of one tree, one a row."""

    arities: tuple[int, ...]
    """Leaf to root."""
    leaves: U64
    """(paths, 4)"""
    roots: U64
    """(paths, 4)"""
    digits: I64
    """(paths, levels): place of the node among its parent's children."""
    siblings: tuple[U64, ...]
    """For each level (paths, arity - 1, 4), the other children in order."""

    @property
    def indices(self) -> list[int]:
        """Which leaf each path belongs to."""
        found = [0] * len(self.digits)
        scale = 1
        for arity, column in zip(self.arities, self.digits.T.tolist(), strict=True):
            found = [index + scale * digit for index, digit in zip(found, column, strict=True)]
            scale *= arity
        return found

    def children(self, level: int, nodes: U64) -> U64:
        """Rows of one level, (paths, arity, 4): the nodes put among their siblings."""
        arity = self.arities[level]
        rows = np.empty((len(nodes), arity, 4), np.uint64)
        place = self.digits[:, level]
        others = np.arange(arity)[None, :] != place[:, None]
        rows[others] = self.siblings[level].reshape(-1, 4)
        rows[np.arange(len(nodes)), place] = nodes
        return rows

    def computed_roots(self, hash_rows: HashRows) -> U64:
        """The roots that leaves and siblings give."""
        nodes = self.leaves
        for level in range(len(self.arities)):
            nodes = hash_rows(self.children(level, nodes))
        return nodes


class Tree:
    """A tree of which some leaves are set and the others are one default.

    Args:
        arities: leaf to root.
        indices: the leaves that are set, rising.
        leaves: their values, (n, 4).
        default: (4,), the value of every other leaf.
    """

    def __init__(
        self, arities: Sequence[int], indices: I64, leaves: U64, default: U64, hash_rows: HashRows
    ) -> None:
        self.arities = tuple(arities)
        self._levels: list[tuple[I64, U64, U64]] = []
        for arity in self.arities:
            self._levels.append((indices, leaves, default))
            parents = np.unique(indices // arity)
            rows = self._row_of(len(self._levels) - 1, parents, arity)
            both = hash_rows(np.concatenate([rows, np.broadcast_to(default, (1, arity, 4))]))
            indices, leaves, default = parents, both[:-1], both[-1]
        self.root: U64 = leaves[0] if len(leaves) else default

    def paths(self, indices: I64) -> Paths:
        """Paths of some leaves."""
        leaves = self._values(0, indices)
        at = indices
        digits, siblings = [], []
        for level, arity in enumerate(self.arities):
            place = at % arity
            rows = self._row_of(level, at // arity, arity)
            others = np.arange(arity)[None, :] != place[:, None]
            digits.append(place)
            siblings.append(rows[others].reshape(len(at), arity - 1, 4))
            at = at // arity
        roots = np.tile(self.root, (len(indices), 1))
        return Paths(self.arities, leaves, roots, np.stack(digits, axis=1), tuple(siblings))

    def _row_of(self, level: int, parents: I64, arity: int) -> U64:
        children = (parents[:, None] * arity + np.arange(arity)).reshape(-1)
        return self._values(level, children).reshape(len(parents), arity, 4)

    def _values(self, level: int, wanted: I64) -> U64:
        indices, values, default = self._levels[level]
        found = np.tile(default, (len(wanted), 1))
        if len(indices):
            place = np.minimum(np.searchsorted(indices, wanted), len(indices) - 1)
            known = indices[place] == wanted
            found[known] = values[place[known]]
        return found


def poseidon_rows(rows: U64, *, threads: int = 1) -> U64:
    """Poseidon of each row."""
    return poseidon_hashes(rows.shape[1], rows, threads=threads)


def sha256_rows(rows: U64) -> U64:
    """SHA-256 of each row's canonical bytes, cut to 254 bits: tree D."""
    width = 32 * rows.shape[1]
    data = canonical_bytes(rows)
    digests = b"".join(trimmed(hashlib.sha256(data[i : i + width])) for i in range(0, len(data), width))
    return from_canonical(digests)


def canonical_bytes(values: U64) -> bytes:
    """Values one after another as Filecoin stores them: 32 bytes each, little-endian, canonical."""
    return fr_from_mont(np.ascontiguousarray(values).reshape(-1, 4)).tobytes()


def from_canonical(data: bytes) -> U64:
    """(n, 4) values of 32 bytes each, all below r."""
    return fr_to_mont(raw_values(data))


def raw_values(data: bytes) -> U64:
    """(n, 4) limbs of 32 bytes each as they are, in fresh memory."""
    return np.frombuffer(data, "<u8").astype(np.uint64).reshape(-1, 4)
