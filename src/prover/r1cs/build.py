"""A block is templates and blocks stamped at relative places; it is stamped in turn as a whole, by offsets alone.

A block has the interface of a template: column 0 is ONE, then its ports, then its own wires. A circuit is a block
whose ports are ONE and the public wires. Stamping k instances costs array operations, never a loop over rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prover.r1cs.matrices import I64, U32, R1cs, Stamp, Template
from prover.r1cs.record import Coefficients


@dataclass(frozen=True, slots=True)
class Places:
    """Named ranges of rows, outer before inner: what a broken constraint is called."""

    begin: I64
    end: I64
    """(m,) rows begin .. end - 1."""
    text: I64
    """(m,) index into `texts`."""
    number: I64
    """(m,) instance, counted from 0; -1 where there is only one."""
    texts: tuple[str, ...] = ()

    def names(self, row: int) -> list[str]:
        """The names of the ranges around a row, outermost first."""
        inside = np.flatnonzero((self.begin <= row) & (row < self.end))
        inside = inside[np.argsort(self.begin[inside] - self.end[inside], kind="stable")]
        return [
            self.texts[self.text[i]] + (f" {self.number[i]}" if self.number[i] >= 0 else "") for i in inside
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block:
    """Stamps whose rows, wires and ports count from the block's own beginning."""

    name: str
    num_ports: int
    num_wires: int
    num_rows: int
    stamps: tuple[Stamp, ...]
    """One for each template; `wire0` and `ports` are columns of the block."""
    outputs: tuple[int, ...]
    places: Places


class Builder:
    """Lays templates and blocks one after another, allocating rows and wires in the order of the calls.

    Args:
        name: of the block or circuit.
        num_ports: columns given from outside, ONE included; for a circuit 1 + its public wires.
    """

    def __init__(self, name: str, num_ports: int = 1) -> None:
        self.name, self.num_ports = name, num_ports
        self.num_rows = 0
        self.num_wires = 0
        self._pieces: dict[int, tuple[Template, list[Stamp]]] = {}
        self._places: list[tuple[I64, I64, I64, I64]] = []
        self._texts: dict[str, int] = {}

    def wire(self) -> int:
        """Allocates one wire that no gadget owns; returns its column."""
        return int(self.wires(1)[0])

    def wires(self, count: int) -> U32:
        """Allocates `count` wires; returns their columns."""
        first = self.num_ports + self.num_wires
        self.num_wires += count
        return np.arange(first, first + count, dtype=np.uint32)

    def stamp(
        self, part: Template | Block, ports: npt.ArrayLike = (), *, count: int | None = None, label: str = ""
    ) -> U32:
        """Places instances of a part behind everything placed so far.

        Args:
            ports: columns at the part's ports, ONE left out: (num_ports - 1,) for one instance or
                (instances, num_ports - 1).
            count: instances of a part without ports.
            label: names these rows; of a block, its own name if empty.
        Returns:
            Columns of the part's outputs: (outputs,) for one-dimensional ports, else (instances, outputs).
        """
        given = np.asarray(ports, dtype=np.uint32)
        single = given.ndim == 1 and count is None
        given = given.reshape(1 if single else count if count is not None else len(given), part.num_ports - 1)
        instances = len(given)
        own = self.num_ports + self.num_wires
        row0 = self.num_rows + part.num_rows * np.arange(instances, dtype=np.int64)
        wire0 = own + part.num_wires * np.arange(instances, dtype=np.int64)
        wired = np.concatenate([np.zeros((instances, 1), np.uint32), given], axis=1)
        self.num_rows += part.num_rows * instances
        self.num_wires += part.num_wires * instances
        if isinstance(part, Template):
            if label:
                self._name(label, row0, row0 + part.num_rows)
            self._add(Stamp(part, row0, wire0, wired))
        else:
            self._name(label or part.name, row0, row0 + part.num_rows)
            self._nest(part.places, row0)
            for stamp in part.stamps:
                self._add(shift(stamp, part.num_ports, row0, wire0, wired))
        outputs = resolve(np.asarray(part.outputs, dtype=np.int64), part.num_ports, wire0, wired)
        return outputs[0] if single else outputs

    @contextmanager
    def span(self, label: str) -> Iterator[None]:
        """Names the rows placed inside the with-block."""
        begin = self.num_rows
        yield
        self._name(label, np.array([begin], np.int64), np.array([self.num_rows], np.int64))

    def block(self, outputs: Sequence[int] = ()) -> Block:
        """Everything placed so far as one part for another builder."""
        return Block(
            self.name, self.num_ports, self.num_wires, self.num_rows, self._stamps(),
            tuple(int(column) for column in outputs), self._all_places(),
        )  # fmt: skip

    def r1cs(self, coefficients: Coefficients, *, num_outputs: int = 0) -> R1cs:
        """Everything placed so far as a circuit; the ports after ONE are its public wires."""
        return R1cs(
            num_constraints=self.num_rows,
            num_wires=self.num_ports + self.num_wires,
            num_public=self.num_ports - 1,
            table=coefficients.table(),
            stamps=self._stamps(),
            num_outputs=num_outputs,
            name=self.name,
            labels={"places": self._all_places()},
        )

    def _add(self, stamp: Stamp) -> None:
        self._pieces.setdefault(id(stamp.template), (stamp.template, []))[1].append(stamp)

    def _stamps(self) -> tuple[Stamp, ...]:
        merged = []
        for template, pieces in self._pieces.values():
            row0 = np.concatenate([p.row0 for p in pieces])
            order = np.argsort(row0, kind="stable")
            merged.append(
                Stamp(
                    template,
                    row0[order],
                    np.concatenate([p.wire0 for p in pieces])[order],
                    np.concatenate([p.ports for p in pieces])[order],
                )
            )
        return tuple(merged)

    def _name(self, label: str, begin: I64, end: I64) -> None:
        number = np.arange(len(begin), dtype=np.int64) if len(begin) > 1 else np.array([-1], np.int64)
        text = np.full(len(begin), self._texts.setdefault(label, len(self._texts)), np.int64)
        self._places.append((begin, end, text, number))

    def _nest(self, places: Places, row0: I64) -> None:
        texts = np.array([self._texts.setdefault(text, len(self._texts)) for text in places.texts], np.int64)
        if len(texts):
            count = len(row0)
            self._places.append(
                (
                    (row0[:, None] + places.begin).reshape(-1),
                    (row0[:, None] + places.end).reshape(-1),
                    np.tile(texts[places.text], count),
                    np.tile(places.number, count),
                )
            )

    def _all_places(self) -> Places:
        columns = [np.concatenate([np.zeros(0, np.int64), *(p[i] for p in self._places)]) for i in range(4)]
        return Places(columns[0], columns[1], columns[2], columns[3], tuple(self._texts))


def shift(stamp: Stamp, num_ports: int, row0: I64, wire0: I64, ports: U32) -> Stamp:
    """The stamps that instances of a block make of one of its own; instance by instance.

    Args:
        num_ports: of the block.
        row0, wire0, ports: of the block's instances.
    """
    count = len(row0)
    return Stamp(
        stamp.template,
        (row0[:, None] + stamp.row0).reshape(-1),
        (wire0[:, None] + (stamp.wire0 - num_ports)).reshape(-1),
        resolve(stamp.ports.reshape(-1), num_ports, wire0, ports).reshape(count * len(stamp.row0), -1),
    )


def resolve(columns: npt.NDArray[np.integer], num_ports: int, wire0: I64, ports: U32) -> U32:
    """Columns of a part as columns of what surrounds it: (columns,) to (instances, columns)."""
    relative = columns.astype(np.int64)
    is_port = relative < num_ports
    outer = np.where(
        is_port, ports[:, np.where(is_port, relative, 0)].astype(np.int64), wire0[:, None] + (relative - num_ports)
    )
    return outer.astype(np.uint32)
