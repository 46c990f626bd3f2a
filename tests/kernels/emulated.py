"""A Launcher whose memory is numpy and whose kernels are the same sources compiled by g++ (see emulation.hpp)."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt

from prover.backends.cuda.launch import Memory, pack

REPOSITORY = Path(__file__).resolve().parents[2]


def build(folder: Path) -> Path:
    """Compiles every kernel for the host."""
    library = folder / "kernels.so"
    here = Path(__file__).parent
    subprocess.run(
        ["g++", "-std=c++17", "-O2", "-fPIC", "-shared", "-fno-strict-aliasing", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=0",
         "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-Wno-clobbered", "-Wno-class-memaccess",
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
