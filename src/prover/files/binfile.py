"""An iden3 binary file is a magic, a version and sections in any order; no count in it is believed unchecked.

Layout, all little-endian: 4-byte magic, u32 version, u32 section count, then per section u32 type, u64 size, bytes.
Source: iden3/binfileutils; snarkjs and circom write `.r1cs`, `.wtns` and `.zkey` in it.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from prover.errors import BadFile

HEADER_BYTES = 12
SECTION_HEADER_BYTES = 12
MAX_SECTIONS = 1024
"""Far above any real file (a zkey has 10); bounds the walk over a file of empty sections."""


@dataclass(frozen=True, slots=True)
class Section:
    kind: int
    offset: int
    """Of the first content byte in the file."""
    size_bytes: int


class BinFile:
    """An open container whose section table has been checked against the file's size.

    Args:
        path: the file; named in every error.
        magic: four ASCII letters.
        versions: accepted versions.
        names: what each known section holds; a known section must not come twice, unknown ones are skipped.

    Raises:
        BadFile: unreadable, wrong magic or version, truncated, oversized or duplicated section, trailing bytes.
    """

    def __init__(
        self, path: str | os.PathLike[str], magic: bytes, versions: Sequence[int], names: Mapping[int, str]
    ) -> None:
        self.path, self.names = Path(path), names
        self._file = open_regular(path)
        try:
            self.size_bytes = os.fstat(self._file.fileno()).st_size
            self.sections = self._read_table(magic, versions)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> BinFile:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._file.close()

    def section(self, kind: int) -> SectionReader:
        """A reader at the start of a section.

        Raises:
            BadFile: the file has no such section.
        """
        if kind not in self.sections:
            raise BadFile(self.path, self._label(kind), "section is missing; the file is incomplete, write it again")
        return SectionReader(self.path, self._file, self.sections[kind], self._label(kind))

    def has(self, kind: int) -> bool:
        return kind in self.sections

    def _label(self, kind: int) -> str:
        return f"section {kind} ({self.names[kind]})" if kind in self.names else f"section {kind}"

    def _read_table(self, magic: bytes, versions: Sequence[int]) -> dict[int, Section]:
        head = self._file.read(HEADER_BYTES)
        wanted = magic.decode()
        if head[:4] != magic:
            raise BadFile(self.path, "offset 0", f"magic is {head[:4]!r}, expected {magic!r}: not a .{wanted} file")
        if len(head) < HEADER_BYTES:
            raise BadFile(self.path, "offset 4", f"file ends inside its header ({self.size_bytes} bytes): truncated")
        version, count = struct.unpack("<II", head[4:])
        if version not in versions:
            accepted = " or ".join(map(str, versions))
            raise BadFile(self.path, "offset 4", f"version {version} of .{wanted} is not supported, only {accepted}")
        if count > MAX_SECTIONS:
            raise BadFile(self.path, "offset 8", f"claims {count} sections, and a file may have {MAX_SECTIONS}")
        sections: dict[int, Section] = {}
        offset = HEADER_BYTES
        for i in range(count):
            self._file.seek(offset)
            head = self._file.read(SECTION_HEADER_BYTES)
            if len(head) < SECTION_HEADER_BYTES:
                fault = f"file ends before section {i + 1} of {count}: truncated, copy it again"
                raise BadFile(self.path, f"offset {offset}", fault)
            kind, size = struct.unpack("<IQ", head)
            start = offset + SECTION_HEADER_BYTES
            if size > self.size_bytes - start:
                raise BadFile(
                    self.path,
                    f"{self._label(kind)}, offset {offset + 4}",
                    f"claims {size} bytes and the file has {self.size_bytes - start} left: truncated, copy it again",
                )
            if kind in sections and kind in self.names:
                raise BadFile(self.path, f"{self._label(kind)}, offset {offset}", "section comes twice")
            sections[kind] = Section(kind, start, size)
            offset = start + size
        if offset != self.size_bytes:
            raise BadFile(
                self.path,
                f"offset {offset}",
                f"{self.size_bytes - offset} bytes follow the last of {count} sections; the section count is wrong",
            )
        return sections


class SectionReader:
    """Reads one section front to back; each read is checked against what is left of it before memory is taken."""

    def __init__(self, path: Path, file: BinaryIO, section: Section, label: str) -> None:
        self._path, self._file, self._section, self._label = path, file, section, label
        self.position = 0

    @property
    def remaining_bytes(self) -> int:
        return self._section.size_bytes - self.position

    def bad(self, fault: str, position: int | None = None) -> BadFile:
        """The error for a fault at `position` of this section (default: where the reader stands)."""
        at = self._section.offset + (self.position if position is None else position)
        return BadFile(self._path, f"{self._label}, offset {at}", fault)

    def raw(self, size_bytes: int, what: str) -> bytes:
        self._need(size_bytes, what)
        self._file.seek(self._section.offset + self.position)
        content = self._file.read(size_bytes)
        if len(content) != size_bytes:
            raise self.bad(f"file shrank while {what} was read")
        self.position += size_bytes
        return content

    def u32(self, what: str) -> int:
        return int.from_bytes(self.raw(4, what), "little")

    def u64(self, what: str) -> int:
        return int.from_bytes(self.raw(8, what), "little")

    def integer(self, size_bytes: int, what: str) -> int:
        return int.from_bytes(self.raw(size_bytes, what), "little")

    def limbs(self, shape: tuple[int, ...], what: str) -> npt.NDArray[np.uint64]:
        """An array of little-endian uint64 of this shape, in fresh memory."""
        return self._array(np.dtype("<u8"), shape, what)

    def words(self, shape: tuple[int, ...], what: str) -> npt.NDArray[np.uint32]:
        """An array of little-endian uint32 of this shape, in fresh memory."""
        return self._array(np.dtype("<u4"), shape, what)

    def end(self, what: str) -> None:
        """Raises BadFile if bytes of the section are left over."""
        if self.remaining_bytes:
            raise self.bad(f"{self.remaining_bytes} bytes too many after {what}; size and counts disagree")

    def _array(self, dtype: np.dtype, shape: tuple[int, ...], what: str) -> npt.NDArray:
        count = 1
        for n in shape:
            count *= n
        self._need(count * dtype.itemsize, what)
        self._file.seek(self._section.offset + self.position)
        array = np.empty(shape, dtype)
        view = array.reshape(-1).view(np.uint8).data
        done = 0
        while done < len(view):
            got = self._file.readinto(view[done:])  # type: ignore[attr-defined]
            if not got:
                raise self.bad(f"file shrank while {what} was read")
            done += got
        self.position += len(view)
        return array

    def _need(self, size_bytes: int, what: str) -> None:
        if size_bytes > self.remaining_bytes:
            raise self.bad(f"{what} needs {size_bytes} bytes and the section has {self.remaining_bytes} left")


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Opens a regular file for reading.

    Raises:
        BadFile: it does not exist, may not be read, or is a folder, pipe or device.
    """
    try:
        # Opening a pipe would wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise BadFile(path, "", f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    file = os.fdopen(descriptor, "rb") if _is_regular(descriptor) else None
    if file is None:
        os.close(descriptor)
        raise BadFile(path, "", "is not a regular file")
    return file


def write_binfile(
    out: BinaryIO, magic: bytes, version: int, sections: Iterable[tuple[int, Sequence[bytes | npt.NDArray]]]
) -> None:
    """Writes a container; each section is the concatenation of its parts (bytes, or C-contiguous arrays)."""
    listed = list(sections)
    out.write(magic + struct.pack("<II", version, len(listed)))
    for kind, parts in listed:
        views = [_bytes_of(part) for part in parts]
        out.write(struct.pack("<IQ", kind, sum(len(v) for v in views)))
        for view in views:
            out.write(view)


def _bytes_of(part: bytes | npt.NDArray) -> memoryview:
    if isinstance(part, bytes):
        return memoryview(part)
    return np.ascontiguousarray(part).reshape(-1).view(np.uint8).data


def _is_regular(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)
