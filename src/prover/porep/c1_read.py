"""A C1 output is read whole and small: sizes are bounded first, then openings are decoded one partition at a time.

Accepted: the wrapper JSON of lotus-bench and Curio, and the inner JSON that it carries in base64.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

import msgspec
import numpy as np

from prover.backends.cpu.field import fr_to_mont
from prover.errors import BadFile, BadRequest, BadVanillaProof
from prover.files.binfile import open_regular
from prover.files.canonical import first_not_fr
from prover.porep import c1_json
from prover.porep.labels import repeated
from prover.porep.shapes import PARENTS, RegisteredProof, Rule, Shape, registered
from prover.porep.trees import Paths, raw_values
from prover.porep.vanilla import COLUMNS, C1Output, Partition

MAX_BYTES = 192 << 20
"""A 64 GiB wrapper has 52 MB."""
MAX_NUMBERS = 16 << 20
"""Elements of all arrays: a 64 GiB output has 11 million."""

Place = Callable[[int], str]
T = TypeVar("T")


def read_c1(path: str | os.PathLike[str], *, check_copies: bool = True) -> C1Output:
    """The C1 output in a file.

    Args:
        check_copies: refuse an output whose redundant members differ from what they repeat.

    Raises:
        BadFile: not a C1 output, or of a size that this prover does not take.
        BadVanillaProof: a value that is no field element, or a copy that differs.
    """
    with open_regular(path) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if size_bytes > MAX_BYTES:
            raise BadFile(path, "", f"has {size_bytes} bytes, and a C1 output at most {MAX_BYTES}")
        data = file.read(MAX_BYTES + 1)
    return parse_c1(data, str(path), check_copies=check_copies)


def parse_c1(data: bytes, source: str = "C1 output", *, check_copies: bool = True) -> C1Output:
    """The C1 output in memory, wrapper or inner JSON; see `read_c1`."""
    if len(data) > MAX_BYTES:
        raise BadFile(source, "", f"has {len(data)} bytes, and a C1 output at most {MAX_BYTES}")
    probe = _decode(data, c1_json.Probe, source, "")
    wrapper = None
    if probe.phase1_out is not msgspec.UNSET:
        wrapper = _decode(data, c1_json.Wrapper, source, "")
        data = wrapper.phase1_out
    elif probe.registered_proof is msgspec.UNSET:
        raise BadFile(source, "", "is JSON, but has neither Phase1Out nor registered_proof: not a C1 output")
    inner = "Phase1Out" if wrapper else ""
    numbers = data.count(b",") + 1
    if numbers > MAX_NUMBERS:
        raise BadFile(source, inner, f"holds {numbers} values, and at most {MAX_NUMBERS} are read")
    output = _decode(data, c1_json.Output, source, inner)
    proof = _proof(output, source, inner)
    if wrapper and wrapper.sector_size != proof.shape.sector_bytes:
        fault = f"is {wrapper.sector_size} and {proof.name} has sectors of {proof.shape.sector_bytes} bytes"
        raise BadFile(source, "SectorSize", fault)
    rows = _openings(output, proof, source)
    partitions = tuple(
        _Reader(source, proof.shape, k, check_copies).partition(raw) for k, raw in enumerate(rows)
    )
    return C1Output(
        proof, partitions, bytes(output.comm_r), bytes(output.comm_d), bytes(output.replica_id), bytes(output.seed),
        bytes(output.ticket), wrapper.sector_number if wrapper else None, source,
    )  # fmt: skip


def _proof(output: c1_json.Output, source: str, inner: str) -> RegisteredProof:
    try:
        proof = registered(output.registered_proof)
    except BadRequest as error:
        raise BadFile(source, f"{inner} registered_proof".strip(), str(error)) from None
    if proof.rule is Rule.NON_INTERACTIVE:
        raise BadFile(source, "registered_proof", f"{proof.name}: the aggregate of its partitions is not made here")
    return proof


def _openings(output: c1_json.Output, proof: RegisteredProof, source: str) -> list[list[msgspec.Raw]]:
    shape = proof.shape
    if list(output.vanilla_proofs) != [shape.family]:
        keys = ", ".join(key[:40] for key in output.vanilla_proofs) or "nothing"
        raise BadFile(source, "vanilla_proofs", f"holds {keys}, and {proof.name} needs {shape.family} alone")
    rows = output.vanilla_proofs[shape.family]
    if len(rows) != proof.partitions:
        fault = f"holds {len(rows)} partitions, and {proof.name} has {proof.partitions}"
        raise BadFile(source, "vanilla_proofs", fault)
    for k, row in enumerate(rows):
        if len(row) != shape.challenges:
            fault = f"opens {len(row)} challenges, and {shape.name} sectors have {shape.challenges} a partition"
            raise BadFile(source, f"vanilla_proofs, partition {k}", fault)
    return rows


class _Reader:
    """Turns the openings of one partition into arrays."""

    def __init__(self, source: str, shape: Shape, partition: int, check_copies: bool) -> None:
        self.source, self.shape, self.partition_number, self.check_copies = source, shape, partition, check_copies

    def partition(self, raw: Sequence[msgspec.Raw]) -> Partition:
        openings = [
            _decode(bytes(piece), c1_json.Opening, self.source, self._at(i)) for i, piece in enumerate(raw)
        ]
        every = range(len(openings))
        columns = []
        for i in every:
            opened = openings[i].replica_column_proofs
            columns.append([*opened.drg_parents, *opened.exp_parents, opened.c_x])
            self._structure(i, openings[i], columns[i])
            if self.check_copies:
                self._copies(i, openings[i], columns[i])
        flat = [column for row in columns for column in row]
        kind = "top" if self.shape.top else "sub" if self.shape.sub else "single"
        d_arities = (2,) * self.shape.log_nodes
        return Partition(
            nodes=np.array([o.labeling_proofs[0].node for o in openings], np.int64),
            data=self._paths([o.comm_d_proofs for o in openings], d_arities, "single", self._named("comm_d_proofs")),
            replica=self._paths(
                [o.comm_r_last_proof for o in openings], self.shape.arities, kind, self._named("comm_r_last_proof")
            ),
            columns=self._paths([c.inclusion_proof for c in flat], self.shape.arities, kind, self._column),
            rows=self._values(
                [row for column in flat for row in column.column.rows],
                lambda i: f"{self._column(i // self.shape.layers)} rows[{i % self.shape.layers}]",
            ).reshape(len(openings), COLUMNS, self.shape.layers, 4),
            column_nodes=np.array([c.column.index for c in flat], np.int64).reshape(-1, COLUMNS),
        )

    def _structure(self, i: int, opening: c1_json.Opening, columns: list[c1_json.Column]) -> None:
        layers = self.shape.layers
        if len(opening.labeling_proofs) != layers:
            fault = f"has {len(opening.labeling_proofs)} layers, and {self.shape.name} sectors have {layers}"
            raise BadFile(self.source, f"{self._at(i)}, labeling_proofs", fault)
        for k, column in enumerate(columns):
            if len(column.column.rows) != layers:
                place = self._column(COLUMNS * i + k)
                raise BadFile(self.source, f"{place} rows", f"has {len(column.column.rows)} of {layers} layers")

    def _copies(self, i: int, opening: c1_json.Opening, columns: list[c1_json.Column]) -> None:
        """Members that the circuit does not read must say what the ones it reads say."""
        for layer, label in enumerate(opening.labeling_proofs, 1):
            place = f"labeling_proofs[{layer - 1}]"
            if label.layer_index != layer or label.node != opening.labeling_proofs[0].node:
                raise self._differs(i, place, f"is of layer {label.layer_index}, node {label.node}")
            for parent, which in zip(label.parents, repeated(layer), strict=True):
                row = layer - 1 if which < 6 else layer - 2
                if parent != columns[which].column.rows[row]:
                    raise self._differs(i, f"{place} parents", f"differ from parent {which}'s row {row}")
        if opening.encoding_proof != opening.labeling_proofs[-1]:
            raise self._differs(i, "encoding_proof", "differs from the last labeling proof")

    def _differs(self, i: int, place: str, fault: str) -> BadVanillaProof:
        return BadVanillaProof(self.source, "copies", f"{self._at(i)}, {place}", fault)

    def _paths(
        self, merkles: Sequence[c1_json.Merkle], arities: tuple[int, ...], kind: str, place: Place
    ) -> Paths:
        bodies = [self._body(merkle.data, kind, place(i)) for i, merkle in enumerate(merkles)]
        elements = [self._elements(body, arities, place(i)) for i, body in enumerate(bodies)]
        siblings = []
        for level, arity in enumerate(arities):
            hashes = [value for row in elements for value in row[level].hashes]
            wide = arity - 1
            values = self._values(hashes, partial(_sibling, place, level, wide))
            siblings.append(values.reshape(len(bodies), wide, 4))
        return Paths(
            arities,
            self._values([body.leaf for body in bodies], lambda i: f"{place(i)} leaf"),
            self._values([body.root for body in bodies], lambda i: f"{place(i)} root"),
            np.array([[element.index for element in row] for row in elements], np.int64),
            tuple(siblings),
        )

    def _body(
        self, data: c1_json.MerkleData, kind: str, place: str
    ) -> c1_json.Single | c1_json.Sub | c1_json.Top:
        found = {name: getattr(data, name) for name in ("single", "sub", "top")}
        given = [name for name, body in found.items() if body is not msgspec.UNSET]
        if given != [kind]:
            raise BadFile(self.source, place, f"holds {', '.join(given) or 'no tree'} where {kind} is expected")
        body: c1_json.Single | c1_json.Sub | c1_json.Top = found[kind]
        return body

    def _elements(
        self, body: c1_json.Single | c1_json.Sub | c1_json.Top, arities: tuple[int, ...], place: str
    ) -> list[c1_json.Element]:
        if isinstance(body, c1_json.Single):
            parts = [body.path.path]
        else:
            parts = [body.base_proof.path, body.sub_proof.path]
            if isinstance(body, c1_json.Top):
                parts.append(body.top_proof.path)
        upper = len(parts) - 1
        lengths = [len(arities) - upper, *[1] * upper]
        if [len(part) for part in parts] != lengths:
            fault = f"has levels {[len(part) for part in parts]} where {lengths} are expected"
            raise BadFile(self.source, f"{place} path", fault)
        elements = [element for part in parts for element in part]
        for level, (element, arity) in enumerate(zip(elements, arities, strict=True)):
            if len(element.hashes) != arity - 1 or element.index >= arity:
                fault = f"has {len(element.hashes)} hashes and index {element.index} where the arity is {arity}"
                raise BadFile(self.source, f"{place} path[{level}]", fault)
        return elements

    def _values(self, values: Iterable[list[int]], place: Place) -> np.ndarray:
        raw = raw_values(b"".join(map(bytes, values)))
        bad = first_not_fr(raw) if len(raw) else -1
        if bad >= 0:
            raise BadVanillaProof(self.source, "values", place(bad), "is not below r, so no field element")
        return fr_to_mont(raw)

    def _at(self, challenge: int) -> str:
        return f"partition {self.partition_number}, challenge {challenge}"

    def _named(self, member: str) -> Place:
        return lambda i: f"{self._at(i)}, {member}"

    def _column(self, i: int) -> str:
        return f"{self._at(i // COLUMNS)}, {column_name(i % COLUMNS)}"


def column_name(which: int) -> str:
    """What a C1 output calls the column."""
    if which == PARENTS:
        return "c_x"
    return f"drg_parents[{which}]" if which < 6 else f"exp_parents[{which - 6}]"


def _sibling(place: Place, level: int, wide: int, i: int) -> str:
    return f"{place(i // wide)} path[{level}].hashes[{i % wide}]"


def _decode(data: bytes, kind: type[T], source: str, place: str) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadFile(source, place, f"is not the JSON of a C1 output: {str(error)[:200]}") from None
