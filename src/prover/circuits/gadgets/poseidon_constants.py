"""Poseidon's constants as Filecoin fixes them, derived from nothing but the arity.

Field r, S-box x^5, width arity + 1, eight full rounds, strength Standard. Two forms: the plain permutation (`rounds`,
`mds`), and the optimised one whose values stand in the circuit (`compressed`, `pre_sparse`, `sparse`).
Source: Poseidon (eprint 2019/458), appendices A, B, F; neptune:src/{round_constants,mds,preprocessing}.rs (behaviour).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from prover.params import R

FULL_ROUNDS = 8
HALF = FULL_ROUNDS // 2
PARTIAL_ROUNDS = {2: 55, 4: 56, 8: 57, 11: 57}
"""Per arity, Poseidon's 128-bit figures with neptune's margin."""

Matrix = list[list[int]]


@dataclass(frozen=True, slots=True)
class Sparse:
    """A matrix that is the identity but for column 0 (`w_hat`) and row 0 (`v`, without its first entry)."""

    w_hat: tuple[int, ...]
    v: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PoseidonConstants:
    arity: int
    partial_rounds: int
    rounds: tuple[tuple[int, ...], ...]
    """Round constants of the plain permutation."""
    mds: tuple[tuple[int, ...], ...]
    compressed: tuple[int, ...]
    """(8 width + partial_rounds,), in the order of use."""
    pre_sparse: tuple[tuple[int, ...], ...]
    sparse: tuple[Sparse, ...]
    """One for each partial round, in the order of use."""

    @property
    def width(self) -> int:
        return self.arity + 1

    @property
    def domain_tag(self) -> int:
        """State cell 0 of a Merkle tree hash: as many ones as there are children."""
        return (1 << self.arity) - 1


@functools.cache
def constants(arity: int) -> PoseidonConstants:
    """Everything for one arity: 2, 4, 8 or 11."""
    width, partial = arity + 1, PARTIAL_ROUNDS[arity]
    stream = _grain(width, partial)
    rounds = [[next(stream) for _ in range(width)] for _ in range(FULL_ROUNDS + partial)]
    mds = [[pow(i + j + width, -1, R) for j in range(width)] for i in range(width)]
    pre_sparse, sparse = _factor(mds, partial)
    return PoseidonConstants(
        arity, partial, tuple(map(tuple, rounds)), tuple(map(tuple, mds)),
        tuple(_compress(rounds, mds, partial)), tuple(map(tuple, pre_sparse)), sparse,
    )  # fmt: skip


def permute(arity: int, inputs: list[int]) -> int:
    """The hash by the plain permutation on integers: the oracle of the optimised one."""
    fixed = constants(arity)
    state = [fixed.domain_tag, *inputs]
    for number, row in enumerate(fixed.rounds):
        state = [(s + k) % R for s, k in zip(state, row, strict=True)]
        is_full = number < HALF or number >= HALF + fixed.partial_rounds
        state = [pow(s, 5, R) if is_full or i == 0 else s for i, s in enumerate(state)]
        state = _times(state, fixed.mds)
    return state[1]


def _grain(width: int, partial: int) -> Iterator[int]:
    """Field elements from the 80-bit Grain register, 255 accepted bits each, those not below r rejected."""
    fields = ((1, 2), (1, 4), (255, 12), (width, 12), (FULL_ROUNDS, 10), (partial, 10), ((1 << 30) - 1, 30))
    state = [value >> (size - 1 - i) & 1 for value, size in fields for i in range(size)]

    def step() -> int:
        new = state[62] ^ state[51] ^ state[38] ^ state[23] ^ state[13] ^ state[0]
        del state[0]
        state.append(new)
        return new

    for _ in range(160):
        step()
    while True:
        value = 0
        for _ in range(255):
            while not step():
                step()
            value = value << 1 | step()
        if value < R:
            yield value


def _compress(rounds: Matrix, mds: Matrix, partial: int) -> list[int]:
    """Moves every constant of a round through the linear layer before it, partial rounds down to one each."""
    inverse = _invert(mds)
    out = list(rounds[0])
    for i in range(1, HALF):
        out += _times(rounds[i], inverse)
    single = []
    total = rounds[HALF + partial]
    for i in range(partial):
        back = _times(total, inverse)
        single.append(back[0])
        back[0] = 0
        total = [(x + y) % R for x, y in zip(rounds[HALF + partial - 1 - i], back, strict=True)]
    out += _times(total, inverse)
    out += reversed(single)
    for i in range(1, HALF):
        out += _times(rounds[HALF + partial + i], inverse)
    return out


def _factor(mds: Matrix, partial: int) -> tuple[Matrix, tuple[Sparse, ...]]:
    """The dense matrices of the partial rounds as one dense matrix and sparse ones."""
    current = [list(row) for row in mds]
    recorded = []
    for _ in range(partial):
        inverse = _invert([row[1:] for row in current[1:]])
        column = [row[0] for row in current[1:]]
        w_hat = [sum(x * y for x, y in zip(row, column, strict=True)) % R for row in inverse]
        recorded.append(Sparse((current[0][0], *w_hat), tuple(current[0][1:])))
        prime = [[1] + [0] * (len(mds) - 1)] + [[0, *row[1:]] for row in current[1:]]
        current = _product(mds, prime)
    return current, tuple(reversed(recorded))


def _times(vector: list[int], matrix: Matrix | tuple[tuple[int, ...], ...]) -> list[int]:
    """Row vector times matrix."""
    return [sum(x * row[j] for x, row in zip(vector, matrix, strict=True)) % R for j in range(len(vector))]


def _product(x: Matrix, y: Matrix) -> Matrix:
    return [_times(row, y) for row in x]


def _invert(matrix: Matrix) -> Matrix:
    """Gauss-Jordan; a Cauchy matrix and what is derived from it here are invertible."""
    size = len(matrix)
    rows = [list(row) + [int(i == j) for j in range(size)] for i, row in enumerate(matrix)]
    for i in range(size):
        pivot = next(k for k in range(i, size) if rows[k][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        scale = pow(rows[i][i], -1, R)
        rows[i] = [value * scale % R for value in rows[i]]
        for k in range(size):
            if k != i and rows[k][i]:
                factor = rows[k][i]
                rows[k] = [(x - factor * y) % R for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[size:] for row in rows]
