"""The seam between orchestration and hardware: memory is an address and a size, a kernel is a name.

`msm.py` and `ntt.py` see only this protocol, so they run unchanged on a GPU (`device.py`) and, in tests, on the host
emulation of the same kernels.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]

FR_BYTES = 32
MAX_COUNT = 1 << 31
"""Point indices carry a sign in bit 31."""


class Memory(Protocol):
    """Device memory; freed (to the pool of its stream) when the last reference goes."""

    @property
    def address(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...


class Launcher(Protocol):
    """Allocates, copies and launches in the order of the calls (one stream)."""

    num_sms: int

    def empty(self, size_bytes: int) -> Memory:
        """Uninitialised memory of at least one byte.

        Raises:
            OutOfDeviceMemory: the device cannot give that much.
        """

    def zeros(self, size_bytes: int) -> Memory: ...

    def upload(self, values: npt.NDArray) -> Memory:
        """A copy of a C-contiguous host array."""

    def download(self, memory: Memory, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray:
        """A host copy of the first bytes of `memory`, after everything launched before."""

    def launch(
        self, kernel: str, grid: int | tuple[int, int], threads: int, *arguments: object, shared_bytes: int = 0,
        ops: int | None = None, op: str = "", moved_bytes: int | None = None,
    ) -> None:  # fmt: skip
        """Enqueues a kernel.

        Args:
            arguments: Memory (its address), None (null), int (32 bits) or a numpy scalar of the kernel's own width.
            ops, op, moved_bytes: what the algorithm must do, for the kernel table.
        """


class Window:
    """Part of another Memory, `offset_bytes` in; keeps the whole alive."""

    def __init__(self, whole: Memory, offset_bytes: int, size_bytes: int | None = None) -> None:
        self.whole = whole
        self.address = whole.address + offset_bytes
        self.size_bytes = whole.size_bytes - offset_bytes if size_bytes is None else size_bytes


def pack(argument: object) -> np.generic:
    """The bytes of one kernel argument."""
    if argument is None:
        return np.uint64(0)
    if isinstance(argument, np.generic):
        return argument
    if isinstance(argument, int):
        return np.uint32(argument)
    return np.uint64(argument.address)  # type: ignore[attr-defined]


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)
