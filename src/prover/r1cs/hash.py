"""A circuit's identity is the SHA-256 of its canonical rows, however they are stamped, and is computed as they stream.

Hashed, little-endian: the tag, u64 num_wires, num_public, num_constraints; then row by row, for A, B and C: u32 number
of terms and, by rising wire, u32 wire and u32 number of the coefficient; then the coefficients, 32 bytes each,
canonical. Coefficients are numbered in the order in which the rows first name them; equal wires of a row are merged
and zero terms dropped first. The appended input rows follow from num_public and are not hashed.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from prover.backends.cpu.field import fr_to_ints
from prover.backends.cpu.jit import jit
from prover.params import R
from prover.r1cs.matrices import R1cs, Stamp

TAG = b"cuzktui r1cs 1\0\0"
_BUFFER_WORDS = 1 << 20
_FULL, _REPEATED = 1, 2


def circuit_hash(r1cs: R1cs) -> bytes:
    """The 32-byte identity of a circuit."""
    return _Hasher(r1cs).digest()


class _Hasher:
    """Encodes rows into one buffer while the other is being hashed."""

    def __init__(self, r1cs: R1cs) -> None:
        self._r1cs = r1cs
        self._values = fr_to_ints(r1cs.table)
        first: dict[int, int] = {}
        # -1 marks a zero; equal values share the place of the first.
        self._canonical = np.array(
            [first.setdefault(value, i) if value else -1 for i, value in enumerate(self._values)], np.int64
        )
        self._place = first
        self._numbers = np.full(len(self._values), -1, np.int64)
        self._extra: dict[int, int] = {}
        self._order: list[int] = []
        """Values met only as sums of merged terms, by value, and the numbers' values in order of appearance."""
        longest = max(
            (int(np.diff(m.indptr).max(initial=0)) for s in r1cs.stamps for m in _matrices(s)), default=0
        )  # fmt: skip
        size = max(_BUFFER_WORDS, 3 * (1 + 2 * longest))
        self._buffers = [np.empty(size, np.uint32), np.empty(size, np.uint32)]
        self._scratch = np.empty(longest + 1, np.uint64)
        self._state = np.zeros(3, np.int64)
        """Words in the buffer, coefficients numbered so far, why the encoder stopped."""
        self._named = np.zeros(len(self._values), np.int64)

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
                row = first
                while row < last:
                    row = self._encode(stamp, row, last)
                    if self._state[2] == _FULL:
                        flush()
                    elif self._state[2] == _REPEATED:
                        flush()
                        self._encode_merged(stamp, row)
                        row += 1
            flush()
            if pending is not None:
                pending.result()
        for value in self._order:
            sha.update(value.to_bytes(32, "little"))
        return sha.digest()

    def _encode(self, stamp: Stamp, row: int, last: int) -> int:
        template = stamp.template
        before = int(self._state[1])
        reached = int(
            _encode_rows(
                template.a.indptr, template.a.columns, template.a.coefficients,
                template.b.indptr, template.b.columns, template.b.coefficients,
                template.c.indptr, template.c.columns, template.c.coefficients,
                stamp.ports, stamp.wire0, row, last, self._canonical, self._numbers, self._named, self._scratch,
                self._buffers[0], self._state,
            )
        )  # fmt: skip
        self._order += [self._values[place] for place in self._named[: int(self._state[1]) - before]]
        return reached

    def _encode_merged(self, stamp: Stamp, flat: int) -> None:
        """One row in which a wire stands twice; it fills an empty buffer."""
        template = stamp.template
        instance, row = divmod(flat, template.num_rows)
        words: list[int] = []
        for matrix in _matrices(stamp):
            terms: dict[int, int] = {}
            for entry in range(int(matrix.indptr[row]), int(matrix.indptr[row + 1])):
                column = int(matrix.columns[entry])
                own = int(stamp.wire0[instance]) + column - template.num_ports
                wire = int(stamp.ports[instance, column]) if column < template.num_ports else own
                terms[wire] = (terms.get(wire, 0) + self._values[int(matrix.coefficients[entry])]) % R
            kept = sorted((wire, value) for wire, value in terms.items() if value)
            words.append(len(kept))
            for wire, value in kept:
                words += [wire, self._number(value)]
        self._buffers[0][: len(words)] = words
        self._state[0] = len(words)

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


def _matrices(stamp: Stamp):  # type: ignore[no-untyped-def]
    return stamp.template.a, stamp.template.b, stamp.template.c


def _runs(r1cs: R1cs):  # type: ignore[no-untyped-def]
    """Stamp, first and last flat row (instance * rows + row), in the order of the circuit's rows."""
    stamps = [stamp for stamp in r1cs.stamps if stamp.template.num_rows and len(stamp.row0)]
    if not stamps:
        return
    row0 = np.concatenate([stamp.row0 for stamp in stamps])
    which = np.repeat(np.arange(len(stamps)), [len(stamp.row0) for stamp in stamps])
    instance = np.concatenate([np.arange(len(stamp.row0)) for stamp in stamps])
    order = np.argsort(row0, kind="stable")
    which, instance = which[order], instance[order]
    follows = (which[1:] == which[:-1]) & (instance[1:] == instance[:-1] + 1)
    starts = np.flatnonzero(np.r_[True, ~follows])
    ends = np.r_[starts[1:], len(which)]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        stamp = stamps[which[start]]
        rows = stamp.template.num_rows
        first = int(instance[start])
        yield stamp, first * rows, (first + end - start) * rows


@jit
def _encode_rows(  # type: ignore[no-untyped-def]
    a_indptr, a_columns, a_coefficients, b_indptr, b_columns, b_coefficients, c_indptr, c_columns, c_coefficients,
    ports, wire0, first, last, canonical, numbers, named, scratch, buffer, state,
):  # fmt: skip
    rows = len(a_indptr) - 1
    before = state[1]
    state[2] = 0
    for flat in range(first, last):
        instance = flat // rows
        row = flat - instance * rows
        terms = a_indptr[row + 1] - a_indptr[row] + b_indptr[row + 1] - b_indptr[row] + c_indptr[row + 1] - c_indptr[row]
        if state[0] + 3 + 2 * terms > len(buffer):
            state[2] = 1
            return flat
        start, met = state[0], state[1]
        ok = _encode_terms(
            a_indptr, a_columns, a_coefficients, row, ports, wire0, instance, canonical, numbers, named, before,
            scratch, buffer, state,
        )  # fmt: skip
        ok = ok and _encode_terms(
            b_indptr, b_columns, b_coefficients, row, ports, wire0, instance, canonical, numbers, named, before,
            scratch, buffer, state,
        )  # fmt: skip
        ok = ok and _encode_terms(
            c_indptr, c_columns, c_coefficients, row, ports, wire0, instance, canonical, numbers, named, before,
            scratch, buffer, state,
        )  # fmt: skip
        if not ok:
            for i in range(met - before, state[1] - before):
                numbers[named[i]] = -1
            state[0], state[1], state[2] = start, met, 2
            return flat
    return last


@jit
def _encode_terms(  # type: ignore[no-untyped-def]
    indptr, columns, coefficients, row, ports, wire0, instance, canonical, numbers, named, before, scratch, buffer,
    state,
):  # fmt: skip
    """Appends one combination; False, with the state to be restored, when a wire stands twice in it."""
    num_ports = ports.shape[1]
    base = wire0[instance] - num_ports
    count = 0
    sorted_so_far = True
    for entry in range(indptr[row], indptr[row + 1]):
        place = canonical[coefficients[entry]]
        if place < 0:
            continue
        column = np.int64(columns[entry])
        wire = base + column
        if column < num_ports:
            wire = np.int64(ports[instance, column])
        scratch[count] = np.uint64(wire) << np.uint64(32) | np.uint64(place)
        sorted_so_far = sorted_so_far and (count == 0 or scratch[count - 1] < scratch[count])
        count += 1
    if not sorted_so_far:
        _sort(scratch, count)
    at = state[0]
    buffer[at] = np.uint32(count)
    at += 1
    previous = np.int64(-1)
    for i in range(count):
        wire = np.int64(scratch[i] >> np.uint64(32))
        if wire == previous:
            return False
        previous = wire
        place = np.int64(scratch[i] & np.uint64(0xFFFFFFFF))
        number = numbers[place]
        if number < 0:
            number = state[1]
            numbers[place] = number
            named[number - before] = place
            state[1] += 1
        buffer[at], buffer[at + 1] = np.uint32(wire), np.uint32(number)
        at += 2
    state[0] = at
    return True


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
