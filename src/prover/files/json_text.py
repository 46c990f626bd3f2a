"""JSON from outside is read whole, small, without repeated keys, and field by field; every fault names its field."""

from __future__ import annotations

import json
import os
import re

import numpy as np

from prover.errors import BadFile
from prover.files.binfile import open_regular

MAX_BYTES = 2 << 20
"""A verification key of 5 500 public inputs; parsed, the worst text of this size takes under 50 MB."""
MAX_DEPTH = 64
MAX_DIGITS = 160
"""Decimal digits of a field element, with room: Fp has 115."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
"""A string, or what begins like one and never ends; possessive, so that no text makes it look twice."""


class JsonFile:
    """A parsed JSON document whose parts are asked for by field.

    Raises:
        BadFile: unreadable, too large, not JSON, nested too deeply, a key given twice.
    """

    def __init__(self, path: str | os.PathLike[str], content: bytes | None = None) -> None:
        self.path = path
        content = self._read() if content is None else content
        if _depth(content) > MAX_DEPTH:
            raise BadFile(path, "", f"is JSON nested deeper than {MAX_DEPTH} levels")
        try:
            self.root: object = json.loads(
                content.decode("utf-8-sig"),
                object_pairs_hook=self._unique, parse_constant=self._no_constant, parse_float=self._no_float,
            )  # fmt: skip
        except UnicodeDecodeError as error:
            raise BadFile(path, f"offset {error.start}", "is not UTF-8 text, so not JSON") from error
        except json.JSONDecodeError as error:
            raise BadFile(path, f"line {error.lineno}, column {error.colno}", f"is not JSON: {error.msg}") from error
        except ValueError as error:
            raise BadFile(path, "", f"holds a number that is out of range: {str(error)[:60]}") from error

    def bad(self, place: str, fault: str) -> BadFile:
        return BadFile(self.path, place, fault)

    def members(self) -> dict[str, object]:
        if not isinstance(self.root, dict):
            raise self.bad("", f"is a JSON {_kind(self.root)} where an object is expected")
        return self.root

    def field(self, name: str) -> object:
        fields = self.members()
        if name not in fields:
            raise self.bad(name, "field is missing")
        return fields[name]

    def array(self, value: object, place: str, length: int | None = None) -> list[object]:
        if not isinstance(value, list):
            raise self.bad(place, f"is a JSON {_kind(value)} where an array is expected")
        if length is not None and len(value) != length:
            raise self.bad(place, f"has {len(value)} elements where {length} are expected")
        return value

    def integer(self, value: object, place: str, below: int, what: str) -> int:
        """A non-negative decimal string (or JSON integer) below a bound."""
        if isinstance(value, str):
            if not (value.isascii() and value.isdigit() and len(value) <= MAX_DIGITS):
                raise self.bad(place, f"{value[:24]!r} is not a decimal number of at most {MAX_DIGITS} digits")
            number = int(value)
        elif isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            number = value
        else:
            raise self.bad(place, f"is a JSON {_kind(value)} where a decimal string is expected")
        if number >= below:
            raise self.bad(place, f"value is not below {what}")
        return number

    def _read(self) -> bytes:
        with open_regular(self.path) as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise BadFile(self.path, "", f"is larger than {MAX_BYTES >> 20} MiB, which no file of this kind is")
        return content

    def _unique(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        fields = dict(pairs)
        if len(fields) != len(pairs):
            seen: set[str] = set()
            twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise BadFile(self.path, twice[:40], "field is given twice")
        return fields

    def _no_constant(self, text: str) -> object:
        raise BadFile(self.path, "", f"holds {text}, which is not JSON")

    def _no_float(self, text: str) -> object:
        raise BadFile(self.path, "", f"holds the fraction {text[:24]}, and every number here is an integer")


def _depth(content: bytes) -> int:
    """Deepest nesting of the text, brackets inside strings not counted.

    Measured before parsing: the parser recurses on the C stack, and a raised recursion limit lets it run off its end.
    """
    bare = np.frombuffer(_STRING.sub(b"", content), np.uint8)
    steps = np.isin(bare, (ord("["), ord("{"))).astype(np.int32) - np.isin(bare, (ord("]"), ord("}")))
    return int(np.cumsum(steps).max(initial=0))


def _kind(value: object) -> str:
    names = {dict: "object", list: "array", str: "string", int: "number", bool: "boolean", type(None): "null"}
    return names.get(type(value), type(value).__name__)
