"""A node's label is one SHA-256 of replica_id, layer, node and its parents' labels, cut to 254 bits.

Source: rust-fil-proofs:storage-proofs-porep/src/stacked/vanilla/{create_label,proof}.rs,
storage-proofs-core/src/util.rs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from prover.porep.shapes import BASE_PARENTS, LABEL_PARENTS, PARENTS


def prover_id(miner_id: int) -> bytes:
    """A miner's actor id as LEB128 in 32 bytes, zeros behind."""
    encoded = bytearray()
    while miner_id >= 0x80:
        encoded.append(miner_id & 0x7F | 0x80)
        miner_id >>= 7
    encoded.append(miner_id)
    return bytes(encoded).ljust(32, b"\0")


def replica_id(prover: bytes, sector_number: int, ticket: bytes, comm_d: bytes, porep_id: bytes) -> bytes:
    """32 bytes that no two sectors share; the sector number goes in big-endian."""
    return trimmed(hashlib.sha256(prover + sector_number.to_bytes(8, "big") + ticket + comm_d + porep_id))


def label(replica: bytes, layer: int, node: int, parents: Sequence[bytes]) -> bytes:
    """The label of a node.

    Args:
        layer: counted from 1.
        parents: labels of `repeated` parents; none for node 0.
    """
    head = replica + layer.to_bytes(4, "big") + node.to_bytes(8, "big") + bytes(20)
    return trimmed(hashlib.sha256(head + b"".join(parents)))


def repeated(layer: int) -> list[int]:
    """Which of the 14 parents stand in a label's preimage, in order: on layer 1 the six base parents alone."""
    count = BASE_PARENTS if layer == 1 else PARENTS
    return [i % count for i in range(LABEL_PARENTS)]


def trimmed(digest: hashlib._Hash) -> bytes:
    """A SHA-256 digest with its two highest bits cleared, so that it is below r."""
    value = digest.digest()
    return value[:31] + bytes([value[31] & 0x3F])
