"""A circuit's identity is the SHA-256 of its canonical rows, however they are stamped, and is computed as they stream.

Hashed, little-endian: the tag, u64 num_wires, num_public, num_constraints; then row by row, for A, B and C: u32 number
of terms and, by rising wire, u32 wire and u32 number of the coefficient; then the coefficients, 32 bytes each,
canonical. Coefficients are numbered in the order in which the rows first name them; equal wires of a row are merged
and zero terms dropped first. The appended input rows follow from num_public and are not hashed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from prover.backends.cpu.field import fr_to_ints
from prover.backends.cpu.jit import jit
from prover.params import R
from prover.r1cs.matrices import I64, U32, R1cs, Stamp, Template

TAG = b"cuzktui r1cs 1\0\0"
_BUFFER_WORDS = 1 << 20
_FULL, _REPEATED = 1, 2


def circuit_hash(r1cs: R1cs) -> bytes:
    """The 32-byte identity of a circuit, remembered with it: a large one takes seconds."""
    known = r1cs.labels.get("hash")
    if not isinstance(known, bytes):
        known = r1cs.labels["hash"] = _Hasher(r1cs).digest()
    return known


class _Hasher:
    """Encodes rows into one buffer while the other is being hashed."""

    def __init__(self, r1cs: R1cs) -> None:
        self._r1cs = r1cs
        self._values = fr_to_ints(r1cs.table)
        first: dict[int, int] = {}
        self._canonical = np.array(
            [first.setdefault(value, i) if value else -1 for i, value in enumerate(self._values)], np.int64
        )
        """Place in the table of the first equal value; -1 for a zero."""
        self._place = first
        self._numbers = np.full(len(self._values), -1, np.int64)
        """Number of each place, -1 until a row names it."""
        self._extra: dict[int, int] = {}
        """Numbers of values that only merged terms have."""
        self._order: list[int] = []
        """The values, by number."""
        self._lines = {id(stamp.template): _interleave(stamp.template) for stamp in r1cs.stamps}
        longest = max((int(np.diff(lines[0]).max(initial=0)) for lines in self._lines.values()), default=0)
        self._buffers = [np.empty(max(_BUFFER_WORDS, 1 + 2 * longest), np.uint32) for _ in range(2)]
        self._scratch = np.empty(longest, np.uint64)
        self._state = np.zeros(3, np.int64)
        """Words in the buffer, coefficients numbered so far, why the encoder stopped."""
        self._named = np.zeros(len(self._values), np.int64)
        """Places that the last call of the encoder numbered."""

    def digest(self) -> bytes:
        r1cs = self._r1cs
        sha = hashlib.sha256(TAG)
        sha.update(np.array([r1cs.num_wires, r1cs.num_public, r1cs.num_constraints], "<u8").tobytes())
        with ThreadPoolExecutor(1) as pool:
            pending: Future[None] | None = None

            def flush() -> None:
                nonlocal pending
                words = int(self._state[0])
                if pending is not None:
                    pending.result()
                pending = pool.submit(sha.update, self._buffers[0][:words].data)
                self._buffers.reverse()
                self._state[0] = 0

            for stamp, first, last in _runs(r1cs):
                line = 3 * first
                while line < 3 * last:
                    line = self._encode(stamp, line, 3 * last)
                    if self._state[2] == _FULL:
                        flush()
                    elif self._state[2] == _REPEATED:
                        self._encode_merged(stamp, line)
                        line += 1
            flush()
            if pending is not None:
                pending.result()
        for value in self._order:
            sha.update(value.to_bytes(32, "little"))
        return sha.digest()

    def _encode(self, stamp: Stamp, line: int, last: int) -> int:
        """Encodes lines (a row has three) until the last, or one that does not fit or needs merging; returns it."""
        before = int(self._state[1])
        reached = int(
            _encode_lines(
                *self._lines[id(stamp.template)], stamp.ports, stamp.wire0, line, last, self._canonical, self._numbers,
                self._named, self._scratch, self._buffers[0], self._state,
            )
        )  # fmt: skip
        self._order += [self._values[place] for place in self._named[: int(self._state[1]) - before]]
        return reached

    def _encode_merged(self, stamp: Stamp, flat: int) -> None:
        """One line in which a wire stands twice; the encoder has seen that it fits."""
        template = stamp.template
        indptr, columns, coefficients = self._lines[id(template)]
        instance, line = divmod(flat, 3 * template.num_rows)
        terms: dict[int, int] = {}
        for entry in range(int(indptr[line]), int(indptr[line + 1])):
            column = int(columns[entry])
            own = int(stamp.wire0[instance]) + column - template.num_ports
            wire = int(stamp.ports[instance, column]) if column < template.num_ports else own
            terms[wire] = (terms.get(wire, 0) + self._values[int(coefficients[entry])]) % R
        kept = sorted((wire, value) for wire, value in terms.items() if value)
        words = [len(kept)]
        for wire, value in kept:
            words += [wire, self._number(value)]
        at = int(self._state[0])
        self._buffers[0][at : at + len(words)] = words
        self._state[0] = at + len(words)

    def _number(self, value: int) -> int:
        place = self._place.get(value)
        if place is not None and self._numbers[place] >= 0:
            return int(self._numbers[place])
        if place is None and value in self._extra:
            return self._extra[value]
        number = int(self._state[1])
        self._state[1] += 1
        self._order.append(value)
        if place is not None:
            self._numbers[place] = number
        else:
            self._extra[value] = number
        return number


def _interleave(template: Template) -> tuple[I64, U32, U32]:
    """The three matrices as one: line 3 i + m is row i of matrix m."""
    matrices = (template.a, template.b, template.c)
    lengths = np.stack([np.diff(matrix.indptr) for matrix in matrices], axis=1).reshape(-1)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    columns, coefficients = np.empty(indptr[-1], np.uint32), np.empty(indptr[-1], np.uint32)
    for which, matrix in enumerate(matrices):
        moved = np.repeat(indptr[which:-1:3] - matrix.indptr[:-1], np.diff(matrix.indptr)) + np.arange(matrix.nnz)
        columns[moved], coefficients[moved] = matrix.columns, matrix.coefficients
    return indptr, columns, coefficients


def _runs(r1cs: R1cs) -> Iterator[tuple[Stamp, int, int]]:
    """Stamp, first and last flat row (instance * rows + row), in the order of the circuit's rows."""
    stamps = [stamp for stamp in r1cs.stamps if stamp.template.num_rows and len(stamp.row0)]
    if not stamps:
        return
    row0 = np.concatenate([stamp.row0 for stamp in stamps])
    which = np.repeat(np.arange(len(stamps)), [len(stamp.row0) for stamp in stamps])
    instance = np.concatenate([np.arange(len(stamp.row0)) for stamp in stamps])
    order = np.argsort(row0, kind="stable")
    which, instance = which[order], instance[order]
    follows = np.logical_and(which[1:] == which[:-1], instance[1:] == instance[:-1] + 1)
    starts = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(~follows) + 1])
    ends = np.r_[starts[1:], len(which)]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        stamp = stamps[which[start]]
        rows = stamp.template.num_rows
        first = int(instance[start])
        yield stamp, first * rows, (first + end - start) * rows


@jit
def _encode_lines(  # type: ignore[no-untyped-def]
    indptr, columns, coefficients, ports, wire0, first, last, canonical, numbers, named, scratch, buffer, state
):
    lines = len(indptr) - 1
    num_ports = ports.shape[1]
    at, met, before = state[0], state[1], state[1]
    instance = first // lines
    line = first - instance * lines
    reason = 0
    reached = last
    for flat in range(first, last):
        begin, end = indptr[line], indptr[line + 1]
        if at + 1 + 2 * (end - begin) > len(buffer):
            reason, reached = 1, flat
            break
        base = wire0[instance] - num_ports
        count = 0
        previous = np.uint64(0)
        rising = True
        for entry in range(begin, end):
            place = canonical[coefficients[entry]]
            if place < 0:
                continue
            column = np.int64(columns[entry])
            wire = base + column
            if column < num_ports:
                wire = np.int64(ports[instance, column])
            key = np.uint64(wire) << np.uint64(32) | np.uint64(place)
            if count > 0 and previous >= key:
                rising = False
            previous = key
            scratch[count] = key
            count += 1
        if not rising:
            _sort(scratch, count)
        repeated = False
        for i in range(1, count):
            if scratch[i - 1] >> np.uint64(32) == scratch[i] >> np.uint64(32):
                repeated = True
        if repeated:
            reason, reached = 2, flat
            break
        buffer[at] = np.uint32(count)
        at += 1
        for i in range(count):
            place = np.int64(scratch[i] & np.uint64(0xFFFFFFFF))
            number = numbers[place]
            if number < 0:
                number = met
                numbers[place] = number
                named[met - before] = place
                met += 1
            buffer[at], buffer[at + 1] = np.uint32(scratch[i] >> np.uint64(32)), np.uint32(number)
            at += 2
        line += 1
        if line == lines:
            line = 0
            instance += 1
    state[0], state[1], state[2] = at, met, reason
    return reached


@jit
def _sort(keys, count):  # type: ignore[no-untyped-def]
    """Shell sort: rows are short or nearly sorted runs."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            key = keys[i]
            j = i
            while j >= gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                j -= gap
            keys[j] = key
        gap //= 3
