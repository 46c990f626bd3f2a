"""A gadget is written once over columns and recorded as one Template; allocation and constraint order are the caller's.

Columns: 0 is ONE, then the ports, then the wires in the order they are allocated (`Recorder.wire`). A linear
combination is a dict from column to integer coefficient, any sign and size; it is reduced modulo r when a row is
recorded, terms that vanish are dropped and the rest is kept in rising column order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from prover.params import FR_MONT, R
from prover.r1cs.matrices import U64, Csr, Template
from prover.r1cs.tape import BitTape, TapeWriter

ONE = 0
"""The column whose value is 1 in every template, block and circuit."""

Combination = Mapping[int, int]


class Coefficients:
    """The distinct coefficients of one circuit; every template stamped into it must share this table."""

    def __init__(self) -> None:
        self._index: dict[int, int] = {1: 0, R - 1: 1}
        self._raw: dict[int, int] = {1: 0, -1: 1}

    def index(self, value: int) -> int:
        """Place of value mod r in the table, entered if new; value must not be 0 mod r."""
        found = self._raw.get(value)
        if found is None:
            found = self._raw[value] = self._index.setdefault(value % R, len(self._index))
        return found

    def __len__(self) -> int:
        return len(self._index)

    def table(self) -> U64:
        """(k, 4) Fr, Montgomery; entry 0 is 1 and entry 1 is -1."""
        raw = b"".join((value * FR_MONT % R).to_bytes(32, "little") for value in self._index)
        return np.frombuffer(raw, dtype="<u8").astype(np.uint64).reshape(-1, 4)


class Recorder:
    """Collects the rows of one gadget.

    Args:
        name: what a broken constraint is called by.
        coefficients: table of the circuit that the template is for.
        num_ports: columns that a stamp connects, ONE included.
    """

    def __init__(self, name: str, coefficients: Coefficients, num_ports: int = 1) -> None:
        self.name, self.coefficients, self.num_ports = name, coefficients, num_ports
        self.num_wires = 0
        self.tape = TapeWriter()
        """Filled by gadgets over bits; a template keeps it when it computes every wire."""
        self._rows: tuple[list[int], list[int], list[int]] = ([0], [0], [0])
        self._columns: tuple[list[int], list[int], list[int]] = ([], [], [])
        self._coefficients: tuple[list[int], list[int], list[int]] = ([], [], [])
        self._marks: list[tuple[int, str]] = []

    @property
    def num_rows(self) -> int:
        return len(self._rows[0]) - 1

    def wire(self) -> int:
        """Allocates the next wire; returns its column."""
        self.num_wires += 1
        return self.num_ports + self.num_wires - 1

    def wires(self, count: int) -> range:
        """Allocates `count` wires; returns their columns."""
        first = self.num_ports + self.num_wires
        self.num_wires += count
        return range(first, first + count)

    def enforce(self, a: Combination, b: Combination, c: Combination) -> None:
        """Records the row a * b = c."""
        index = self.coefficients.index
        for which, combination in enumerate((a, b, c)):
            columns, places = self._columns[which], self._coefficients[which]
            terms = combination.items() if len(combination) < 2 else sorted(combination.items())
            for column, value in terms:
                if value % R:
                    columns.append(column)
                    places.append(index(value))
            self._rows[which].append(len(columns))

    def mark(self, part: str) -> None:
        """Names the rows from here on, up to the next mark."""
        self._marks.append((self.num_rows, part))

    def template(self, outputs: Sequence[int] = ()) -> Template:
        """The gadget recorded so far; `outputs` are columns that a circuit wires on."""
        tape: BitTape | None = self.tape.tape() if self.tape.num_wires == self.num_wires > 0 else None
        a, b, c = (
            Csr(
                indptr=np.array(self._rows[which], dtype=np.int64),
                columns=np.array(self._columns[which], dtype=np.uint32),
                coefficients=np.array(self._coefficients[which], dtype=np.uint32),
            )
            for which in range(3)
        )
        return Template(
            self.name, self.num_ports, self.num_wires, a, b, c, tuple(outputs), tuple(self._marks), tape
        )  # fmt: skip
