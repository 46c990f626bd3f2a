"""What several tests of PoRep take for granted: small shapes, a sector's data, and outputs with one member changed."""

from __future__ import annotations

import dataclasses

import numpy as np

from prover.backends.cpu.field import fr_to_ints, ints_to_fr
from prover.porep.shapes import Shape
from prover.porep.trees import Paths
from prover.porep.vanilla import C1Output

NUMBERED = b"".join(node.to_bytes(8, "little") + bytes(24) for node in range(64))
"""A 2 KiB sector whose node i holds i."""
TEST_SHAPES = {
    "2-0-0": Shape("test-2", 8 * 32, 2, 0, 0, 2, 1, 1),
    "8-0-0": Shape("test-8", 8 * 32, 8, 0, 0, 2, 1, 1),
    "8-4-0": Shape("test-8-4", 32 * 32, 8, 4, 0, 2, 1, 1),
    "8-4-2": Shape("test-8-4-2", 64 * 32, 8, 4, 2, 2, 1, 1),
}
"""The shapes of rust-fil-proofs' stacked circuit tests."""


def changed(output: C1Output, **fields: object) -> C1Output:
    """A copy of an output whose first partition has other members."""
    first = dataclasses.replace(output.partitions[0], **fields)  # type: ignore[arg-type]
    return dataclasses.replace(output, partitions=(first, *output.partitions[1:]))


def with_other_leaf(paths: Paths, row: int) -> Paths:
    """Paths of which one has the next field element for a leaf."""
    leaves = paths.leaves.copy()
    leaves[row] = plus_one(leaves[row])
    return dataclasses.replace(paths, leaves=leaves)


def with_other_sibling(paths: Paths, level: int, row: int) -> Paths:
    siblings = [values.copy() for values in paths.siblings]
    siblings[level][row, 0] = plus_one(siblings[level][row, 0])
    return dataclasses.replace(paths, siblings=tuple(siblings))


def with_other_digit(paths: Paths, level: int, row: int) -> Paths:
    digits = paths.digits.copy()
    digits[row, level] = (digits[row, level] + 1) % paths.arities[level]
    return dataclasses.replace(paths, digits=digits)


def plus_one(value: np.ndarray) -> np.ndarray:
    """A (4,) field element plus 1."""
    return ints_to_fr([fr_to_ints(value[None])[0] + 1])[0]
