"""A Launcher whose memory is numpy and whose kernels are the same sources compiled by g++ (see emulation.hpp)."""

from __future__ import annotations

import ctypes
import subprocess
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from prover.backends.cuda.device import KernelTime
from prover.backends.cuda.failures import OutOfDeviceMemory
from prover.backends.cuda.launch import Memory, pack

REPOSITORY = Path(__file__).resolve().parents[2]


def build(folder: Path) -> Path:
    """Compiles every kernel for the host."""
    library = folder / "kernels.so"
    here = Path(__file__).parent
    subprocess.run(
        ["g++", "-std=c++17", "-O2", "-fPIC", "-shared", "-fno-strict-aliasing", "-U_FORTIFY_SOURCE",
         "-D_FORTIFY_SOURCE=0", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-Wno-clobbered",
         "-Wno-class-memaccess",
         f"-I{REPOSITORY / 'kernels'}", f"-I{here}", str(here / "driver.cpp"), "-o", str(library)],
        check=True, timeout=300,
    )  # fmt: skip
    return library


class HostMemory:
    def __init__(self, size_bytes: int) -> None:
        # Poisoned, so that reading what nothing wrote shows.
        self.array = np.full(-(-max(size_bytes, 1) // 16) * 2 + 2, 0xDEADBEEFDEADBEEF, np.uint64)
        start = self.array.ctypes.data
        self.address = -(-start // 16) * 16
        self.size_bytes = size_bytes


class Emulated:
    """Launches run at once, on the calling thread."""

    num_sms = 1

    def __init__(self, library: Path) -> None:
        self._run = ctypes.CDLL(str(library)).run
        self.launched: list[str] = []

    def empty(self, size_bytes: int) -> Memory:
        return HostMemory(size_bytes)

    def zeros(self, size_bytes: int) -> Memory:
        memory = HostMemory(size_bytes)
        ctypes.memset(memory.address, 0, size_bytes)
        return memory

    def upload(self, values: npt.NDArray) -> Memory:
        memory = HostMemory(values.nbytes)
        ctypes.memmove(memory.address, np.ascontiguousarray(values).ctypes.data, values.nbytes)
        return memory

    def download(self, memory: Memory, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray:
        out = np.empty(shape, dtype)
        assert out.nbytes <= memory.size_bytes
        ctypes.memmove(out.ctypes.data, memory.address, out.nbytes)
        return out

    def launch(
        self, kernel: str, grid: int | tuple[int, int], threads: int, *arguments: object, shared_bytes: int = 0,
        ops: int | None = None, op: str = "", moved_bytes: int | None = None,
    ) -> None:  # fmt: skip
        x, y = grid if isinstance(grid, tuple) else (grid, 1)
        assert x > 0 and y > 0, f"{kernel} launched on nothing"
        values = [np.array([pack(a)]) for a in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(v.ctypes.data for v in values))
        self.launched.append(kernel)
        if self._run(kernel.encode(), x, y, threads, pointers) != 0:
            raise KeyError(kernel)


class EmulatedCard(Emulated):
    """What `CudaBackend` asks of a device beyond launching: copies are done when they are called for."""

    name, index, architecture, pci_address = "cuda:0 emulation", 0, "90", "0000:00:00.0"
    memory_bytes = (1 << 34, 1 << 34)
    pool_bytes = (0, 0)
    lost = ""

    def __init__(self, library: Path) -> None:
        super().__init__(library)
        self.drained = False
        self.fail_above_bytes: int | None = None
        """Allocations above this run out of memory, once; then the limit is gone."""
        self.largest_bytes = 0
        self.held_at_trim_bytes: int | None = None
        self._held: WeakSet[Memory] = WeakSet()

    def empty(self, size_bytes: int) -> Memory:
        if self.fail_above_bytes is not None and size_bytes > self.fail_above_bytes:
            limit, self.fail_above_bytes = self.fail_above_bytes, None
            raise OutOfDeviceMemory(size_bytes, limit, self.name)
        memory = super().empty(size_bytes)
        self.largest_bytes = max(self.largest_bytes, size_bytes)
        self._held.add(memory)
        return memory

    @property
    def held_bytes(self) -> int:
        """Memory from `empty` that somebody refers to."""
        return sum(memory.size_bytes for memory in self._held)

    def copy_in(self, memory: Memory, values: npt.NDArray) -> None:
        assert values.flags.c_contiguous and values.nbytes <= memory.size_bytes
        ctypes.memmove(memory.address, values.ctypes.data, values.nbytes)

    def copy_ahead(self, memory: Memory, values: npt.NDArray) -> None:
        self.copy_in(memory, values)

    def await_copy(self, arrived: object) -> None:
        pass

    def copies_after_kernels(self) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def trim(self) -> None:
        self.held_at_trim_bytes = self.held_bytes

    def drain(self) -> None:
        self.drained = True

    def range(self, name: str) -> AbstractContextManager[None]:
        return nullcontext()

    def take_times(self) -> list[KernelTime]:
        launched, self.launched = self.launched, []
        return [KernelTime(k, i * 50_000, i * 50_000 + 25_000, 1, None, "", None) for i, k in enumerate(launched)]

    def roof_percent(self, launched: KernelTime) -> float | None:
        return None
