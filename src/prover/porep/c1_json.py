"""The JSON of a C1 output, member by member, as serde writes it; a value of another type or length is refused.

Source: rust-filecoin-proofs-api:src/seal.rs, rust-fil-proofs:storage-proofs-porep/src/stacked/vanilla/*.rs,
storage-proofs-core/src/merkle/proof.rs; the wrapper is lotus:cmd/lotus-bench/main.go `Commit2In`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from prover.porep.shapes import BASE_PARENTS, EXPANDER_PARENTS, LABEL_PARENTS

Byte = Annotated[int, Meta(ge=0, le=255)]
Bytes32 = Annotated[list[Byte], Meta(min_length=32, max_length=32)]
Count = Annotated[int, Meta(ge=0, lt=1 << 32)]


class Element(Struct, frozen=True):
    """One level of a path."""

    hashes: list[Bytes32]
    index: Count


class Path(Struct, frozen=True):
    path: list[Element]


class Single(Struct, frozen=True):
    root: Bytes32
    leaf: Bytes32
    path: Path


class Sub(Struct, frozen=True):
    base_proof: Path
    sub_proof: Path
    root: Bytes32
    leaf: Bytes32


class Top(Struct, frozen=True):
    base_proof: Path
    sub_proof: Path
    top_proof: Path
    root: Bytes32
    leaf: Bytes32


class MerkleData(Struct, frozen=True):
    """Exactly one of the three is there."""

    single: Single | UnsetType = msgspec.field(name="Single", default=UNSET)
    sub: Sub | UnsetType = msgspec.field(name="Sub", default=UNSET)
    top: Top | UnsetType = msgspec.field(name="Top", default=UNSET)


class Merkle(Struct, frozen=True):
    data: MerkleData


class ColumnValues(Struct, frozen=True):
    index: Count
    rows: list[Bytes32]
    hasher: None = msgspec.field(name="_h", default=None)


class Column(Struct, frozen=True):
    column: ColumnValues
    inclusion_proof: Merkle


class Columns(Struct, frozen=True):
    c_x: Column
    drg_parents: Annotated[list[Column], Meta(min_length=BASE_PARENTS, max_length=BASE_PARENTS)]
    exp_parents: Annotated[list[Column], Meta(min_length=EXPANDER_PARENTS, max_length=EXPANDER_PARENTS)]


class Label(Struct, frozen=True):
    parents: Annotated[list[Bytes32], Meta(min_length=LABEL_PARENTS, max_length=LABEL_PARENTS)]
    layer_index: Count
    node: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class Opening(Struct, frozen=True):
    """One challenge of a vanilla proof."""

    comm_d_proofs: Merkle
    comm_r_last_proof: Merkle
    replica_column_proofs: Columns
    labeling_proofs: list[Label]
    encoding_proof: Label


class Output(Struct, frozen=True):
    """`SealCommitPhase1Output`; openings are decoded one at a time, as they are needed."""

    registered_proof: str
    vanilla_proofs: dict[str, list[list[Raw]]]
    comm_r: Bytes32
    comm_d: Bytes32
    replica_id: Bytes32
    seed: Bytes32
    ticket: Bytes32


class Wrapper(Struct, frozen=True):
    """What lotus-bench and its users call c1.json; the inner JSON in base64."""

    sector_number: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] = msgspec.field(name="SectorNum")
    phase1_out: bytes = msgspec.field(name="Phase1Out")
    sector_size: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] = msgspec.field(name="SectorSize")


class Probe(Struct, frozen=True):
    """Tells wrapper and inner JSON apart."""

    phase1_out: Raw | UnsetType = msgspec.field(name="Phase1Out", default=UNSET)
    registered_proof: Raw | UnsetType = UNSET
