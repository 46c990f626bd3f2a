"""Every built-in circuit has one name here; what a user types becomes a circuit or one clear sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass

from prover.circuits import cubic, poseidon_merkle, sha256_chain
from prover.circuits.circuit import Circuit
from prover.errors import UnknownCircuit


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    about: str
    parameter: str = ""
    """What the number after the colon means; empty if there is none."""
    maximum: int = 0
    """Largest parameter; the smallest is 1."""

    @property
    def usage(self) -> str:
        return f"{self.name}:{self.parameter} (1 to {self.maximum})" if self.parameter else self.name


ENTRIES = (
    Entry("sha256-chain", "SHA-256 of a private message, its digest public", "BLOCKS", sha256_chain.MAX_BLOCKS),
    Entry("poseidon-merkle", "a leaf's path in an oct-tree, its root public", "DEPTH", poseidon_merkle.MAX_DEPTH),
    Entry("cubic", "x^3 + x + 5 = y, the toy"),
)


def parse(text: str) -> tuple[str, int | None]:
    """Name and parameter of what a user typed, e.g. ``sha256-chain:8``.

    Raises:
        UnknownCircuit: no such name, or the parameter is missing, not a number or out of range.
    """
    name, colon, tail = text.strip().partition(":")
    entry = next((entry for entry in ENTRIES if entry.name == name), None)
    if entry is None:
        raise UnknownCircuit(f"no built-in circuit {name[:60]!r}; there are " + ", ".join(e.usage for e in ENTRIES))
    if not entry.parameter:
        if colon:
            raise UnknownCircuit(f"{name} takes no parameter; write {entry.usage}")
        return name, None
    if not re.fullmatch(r"[0-9]{1,9}", tail) or not 1 <= int(tail) <= entry.maximum:
        raise UnknownCircuit(f"{text.strip()[:60]!r}: parameter missing or out of range; write {entry.usage}")
    return name, int(tail)


def build(text: str) -> Circuit:
    """The circuit that a user named.

    Raises:
        UnknownCircuit: as `parse`.
    """
    name, parameter = parse(text)
    if parameter is None:
        return cubic.build()
    return sha256_chain.build(parameter) if name == "sha256-chain" else poseidon_merkle.build(parameter)
