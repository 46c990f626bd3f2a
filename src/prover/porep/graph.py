"""The parents of a node follow from porep_id and node alone: six drawn near it, eight by a permutation of all.

Source: rust-fil-proofs:storage-proofs-core/src/{drgraph,crypto/feistel}.rs,
storage-proofs-porep/src/stacked/vanilla/graph.rs.
"""

from __future__ import annotations

import functools
import hashlib

from prover.porep.chacha import words
from prover.porep.shapes import BASE_PARENTS, EXPANDER_PARENTS


class Graph:
    """The stacked graph of one sector size and porep_id.

    Args:
        num_nodes: a power of two.
        is_legacy: API 1.0.0.
    """

    def __init__(self, num_nodes: int, porep_id: bytes, *, is_legacy: bool) -> None:
        self.num_nodes, self.is_legacy = num_nodes, is_legacy
        self._drg_seed = hashlib.sha256(b"Filecoin_DRSample" + porep_id).digest()[:28]
        feistel = hashlib.sha256(b"Filecoin_Feistel" + porep_id).digest()
        self.feistel_keys = tuple(int.from_bytes(feistel[8 * i : 8 * i + 8], "little") for i in range(4))
        self._half_bits = max(1, -(-(EXPANDER_PARENTS * num_nodes - 1).bit_length() // 2))

    @functools.lru_cache(maxsize=1 << 16)  # noqa: B019 (a graph lives as long as the sector it belongs to)
    def parents(self, node: int) -> tuple[int, ...]:
        """Six base parents, then eight expander parents, in graph order; repetitions happen."""
        return (*self.base_parents(node), *self.expander_parents(node))

    def base_parents(self, node: int) -> list[int]:
        """Lower nodes, most of them near; all zero for nodes 0 and 1."""
        if node < 2:
            return [0] * BASE_PARENTS
        drawn = BASE_PARENTS - 1
        scaled = node * drawn
        buckets = (scaled - 1).bit_length()
        stream = words(self._drg_seed + node.to_bytes(4, "little"), 8)
        parents = []
        for _ in range(drawn):
            bucket = self._u64(stream) % buckets + 1
            highest = min(scaled, 1 << bucket)
            lowest = max(2, highest // 2)
            distance = lowest + self._u64(stream) % (highest - lowest + 1)
            parent = (scaled - distance) // drawn
            parents.append(node - 1 if parent == node else parent)
        return [*parents, node - 1] if self.is_legacy else [node - 1, *parents]

    def expander_parents(self, node: int) -> list[int]:
        """Nodes of the layer before."""
        return [self._expand(EXPANDER_PARENTS * node + i) // EXPANDER_PARENTS for i in range(EXPANDER_PARENTS)]

    def _expand(self, value: int) -> int:
        end = EXPANDER_PARENTS * self.num_nodes
        value = self._permute(value)
        while value >= end:
            value = self._permute(value)
        return value & 0xFFFFFFFF if self.is_legacy else value

    def _permute(self, value: int) -> int:
        half = self._half_bits
        mask = (1 << half) - 1
        left, right = value >> half & mask, value & mask
        for key in self.feistel_keys[:3]:
            digest = hashlib.blake2b(right.to_bytes(8, "big") + key.to_bytes(8, "big")).digest()
            left, right = right, left ^ int.from_bytes(digest[:8], "big") & mask
        return left << half | right

    @staticmethod
    def _u64(stream: object) -> int:
        low = next(stream)  # type: ignore[call-overload]
        return int(low | next(stream) << 32)  # type: ignore[call-overload]
