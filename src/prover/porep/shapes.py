"""A sector's size fixes everything else: nodes, trees, layers, partitions, challenges, and so the circuit.

Source: rust-fil-proofs:filecoin-proofs/src/{constants,parameters}.rs, rust-filecoin-proofs-api:src/registry.rs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from prover.errors import BadRequest

NODE_BYTES = 32
BASE_PARENTS = 6
EXPANDER_PARENTS = 8
PARENTS = BASE_PARENTS + EXPANDER_PARENTS
LABEL_PARENTS = 37
"""Parents in the preimage of a label: the real ones, repeated."""
INPUTS_PER_CHALLENGE = 4 + PARENTS
"""Place in D, the parents' places in C, the challenge, its place in R_last, its place in C."""
SECTOR_INPUTS = 3
"""replica_id, comm_d, comm_r."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One size of sector. Trees C and R_last have `top` trees of `sub` trees of arity `base`; 0 means no such level."""

    name: str
    sector_bytes: int
    base: int
    sub: int
    top: int
    layers: int
    partitions: int
    """Of an interactive proof."""
    challenges: int
    """Per partition."""
    porep_number: int | None = None
    """Place among the registered proofs of version 1; None where there is none."""

    @property
    def num_nodes(self) -> int:
        return self.sector_bytes // NODE_BYTES

    @property
    def log_nodes(self) -> int:
        return self.num_nodes.bit_length() - 1

    @property
    def base_levels(self) -> int:
        """Levels of one base tree."""
        base_nodes = self.num_nodes // (max(1, self.sub) * max(1, self.top))
        return (base_nodes.bit_length() - 1) // (self.base.bit_length() - 1)

    @property
    def arities(self) -> tuple[int, ...]:
        """Of the levels of trees C and R_last, leaf to root."""
        return (self.base,) * self.base_levels + tuple(arity for arity in (self.sub, self.top) if arity)

    @property
    def num_inputs(self) -> int:
        """Public inputs of a partition, ONE left out."""
        return SECTOR_INPUTS + INPUTS_PER_CHALLENGE * self.challenges

    @property
    def family(self) -> str:
        """What the proofs of this size are called, version and feature left out."""
        return f"StackedDrg{self.name}V1"


KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SHAPES = (
    Shape("2KiB", 2 * KIB, 8, 0, 0, 2, 1, 2, 0),
    Shape("4KiB", 4 * KIB, 8, 2, 0, 2, 1, 2),
    Shape("16KiB", 16 * KIB, 8, 8, 0, 2, 1, 2),
    Shape("32KiB", 32 * KIB, 8, 8, 2, 2, 1, 2),
    Shape("8MiB", 8 * MIB, 8, 0, 0, 2, 1, 2, 1),
    Shape("16MiB", 16 * MIB, 8, 2, 0, 2, 1, 2),
    Shape("512MiB", 512 * MIB, 8, 0, 0, 2, 1, 2, 2),
    Shape("1GiB", 1 * GIB, 8, 2, 0, 2, 1, 2),
    Shape("32GiB", 32 * GIB, 8, 8, 0, 11, 10, 18, 3),
    Shape("64GiB", 64 * GIB, 8, 8, 2, 11, 10, 18, 4),
)
"""Sizes without a number exist in the field's own tests only; a C1 output cannot name them."""


class Rule(StrEnum):
    """How the challenges are drawn."""

    INTERACTIVE = "interactive"
    SYNTHETIC = "synthetic"
    NON_INTERACTIVE = "non-interactive"


@dataclass(frozen=True, slots=True)
class RegisteredProof:
    """One of the twenty proofs that the network knows."""

    name: str
    number: int
    shape: Shape
    is_legacy_graph: bool
    """API 1.0.0: other order of base parents, narrower expander."""
    rule: Rule

    @property
    def porep_id(self) -> bytes:
        """u64 number, u64 nonce 0, both little-endian, and 16 zeros."""
        return self.number.to_bytes(8, "little") + bytes(24)

    @property
    def partitions(self) -> int:
        if self.rule is not Rule.NON_INTERACTIVE:
            return self.shape.partitions
        return 126 if self.shape.partitions > 1 else 13


_FAMILIES = (
    ("", True, Rule.INTERACTIVE),
    ("_1", False, Rule.INTERACTIVE),
    ("_1_Feat_SyntheticPoRep", False, Rule.SYNTHETIC),
    ("_2_Feat_NonInteractivePoRep", False, Rule.NON_INTERACTIVE),
)
REGISTERED = tuple(
    RegisteredProof(shape.family + suffix, 5 * place + shape.porep_number, shape, is_legacy, rule)
    for place, (suffix, is_legacy, rule) in enumerate(_FAMILIES)
    for shape in SHAPES
    if shape.porep_number is not None
)


def shape_of(text: str) -> Shape:
    """The shape that a user names, e.g. ``2KiB`` or ``32GiB``.

    Raises:
        BadRequest: no such size.
    """
    wanted = text.replace(" ", "").lower()
    for shape in SHAPES:
        if shape.name.lower() == wanted:
            return shape
    raise BadRequest(f"no sector size {text[:40]!r}; there are " + ", ".join(shape.name for shape in SHAPES))


def registered(name: str) -> RegisteredProof:
    """The registered proof of that name.

    Raises:
        BadRequest: there is none.
    """
    for proof in REGISTERED:
        if proof.name == name:
            return proof
    first, last = REGISTERED[0].name, REGISTERED[-1].name
    raise BadRequest(f"registered proof {name[:60]!r} is unknown; there are {first} to {last}")


def registered_of(shape: Shape, rule: Rule = Rule.INTERACTIVE, *, is_legacy_graph: bool = False) -> RegisteredProof:
    """The registered proof of a size.

    Raises:
        BadRequest: the network knows none of this size and rule.
    """
    for proof in REGISTERED:
        if (proof.shape, proof.rule, proof.is_legacy_graph) == (shape, rule, is_legacy_graph):
            return proof
    raise BadRequest(f"no registered proof of {shape.name} sectors is {rule}")
