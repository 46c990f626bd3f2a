"""Which nodes a partition must open: three rules, each a function of public values.

Source: rust-fil-proofs:storage-proofs-porep/src/stacked/vanilla/challenges.rs.
"""

from __future__ import annotations

import hashlib
import itertools

from prover.porep.chacha import words
from prover.porep.shapes import RegisteredProof, Rule

MAX_SYNTHETIC = 1 << 18
_NONCE = b"synth-porep\0"
_TAG = b"filecoin.io|PoRep|1|"


def challenges(proof: RegisteredProof, partition: int, replica_id: bytes, comm_r: bytes, seed: bytes) -> list[int]:
    """Nodes that a partition opens, in order.

    Args:
        replica_id, comm_r, seed: 32 bytes each.
    """
    shape = proof.shape
    numbers = range(shape.challenges * partition, shape.challenges * (partition + 1))
    if proof.rule is Rule.SYNTHETIC:
        return synthetic(shape.num_nodes, numbers, replica_id, comm_r, seed)
    if proof.rule is Rule.NON_INTERACTIVE:
        return [_drawn(_TAG + b"NonInteractive|1" + replica_id + comm_r, j, shape.num_nodes) for j in numbers]
    return interactive(shape.num_nodes, numbers, replica_id, seed)


def interactive(num_nodes: int, numbers: range, replica_id: bytes, seed: bytes) -> list[int]:
    """The j-th challenge is a hash of replica_id, seed and j; node 0 is never one."""
    return [_drawn(replica_id + seed, j, num_nodes) for j in numbers]


def synthetic(
    num_nodes: int, numbers: range, replica_id: bytes, comm_r: bytes, seed: bytes, *,
    num_candidates: int = MAX_SYNTHETIC,
) -> list[int]:  # fmt: skip
    """A choice by seed among candidates that replica_id and comm_r fix before the seed is known."""
    candidates = min(num_nodes, num_candidates)
    stream = words(_key(b"Selection", replica_id + seed), 20, nonce=_NONCE)
    selected = list(itertools.islice(stream, numbers.start, numbers.stop))
    return [synthetic_candidate(num_nodes, word % candidates, replica_id, comm_r) for word in selected]


def synthetic_candidate(num_nodes: int, number: int, replica_id: bytes, comm_r: bytes) -> int:
    """The number-th of the synthetic challenges: 32 bytes, half a block, of the generation stream."""
    stream = words(_key(b"Generation", replica_id + comm_r), 20, nonce=_NONCE, first_block=number // 2)
    block = list(itertools.islice(stream, 16))[8 * (number % 2) :][:8]
    return sum(word << 32 * i for i, word in enumerate(block)) % (num_nodes - 1) + 1


def _drawn(prefix: bytes, number: int, num_nodes: int) -> int:
    digest = hashlib.sha256(prefix + number.to_bytes(4, "little")).digest()
    return int.from_bytes(digest, "little") % (num_nodes - 1) + 1


def _key(purpose: bytes, text: bytes) -> bytes:
    return hashlib.blake2b(text, key=_TAG + b"Synthetic|1|" + purpose, digest_size=32).digest()
