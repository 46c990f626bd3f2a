"""iden3 files taken apart and put together by this test code alone, so that faults can be placed anywhere."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Parts:
    magic: bytes
    version: int
    sections: tuple[tuple[int, bytes], ...]

    def get(self, kind: int) -> bytes:
        return dict(self.sections)[kind]

    def having(self, kind: int, content: bytes) -> Parts:
        return replace(self, sections=tuple((k, content if k == kind else c) for k, c in self.sections))

    def without(self, kind: int) -> Parts:
        return replace(self, sections=tuple(s for s in self.sections if s[0] != kind))

    def patched(self, kind: int, offset: int, new: bytes) -> Parts:
        old = self.get(kind)
        assert offset + len(new) <= len(old)
        return self.having(kind, old[:offset] + new + old[offset + len(new) :])

    def bytes(self, count: int | None = None) -> bytes:
        head = self.magic + struct.pack("<II", self.version, len(self.sections) if count is None else count)
        return head + b"".join(struct.pack("<IQ", kind, len(c)) + c for kind, c in self.sections)


def take_apart(path: Path) -> Parts:
    data = path.read_bytes()
    version, count = struct.unpack("<II", data[4:12])
    sections, offset = [], 12
    for _ in range(count):
        kind, size = struct.unpack("<IQ", data[offset : offset + 12])
        sections.append((kind, data[offset + 12 : offset + 12 + size]))
        offset += 12 + size
    assert offset == len(data)
    return Parts(data[:4], version, tuple(sections))


def u32(value: int) -> bytes:
    return struct.pack("<I", value)
