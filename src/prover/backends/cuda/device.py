"""One CUDA device through CuPy: a stream, its memory, its kernels, and the time that each of them took.

Everything here raises the classes of `failures.py`; a CuPy exception does not leave this file. A card that is lost
takes every other card of the process along.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from prover.backends.cuda import compile as compiler
from prover.backends.cuda.events import Events
from prover.backends.cuda.failures import DeviceLost, NoDevice, OutOfDeviceMemory, from_cupy
from prover.backends.cuda.launch import Memory, pack
from prover.errors import BackendError

PORTABLE = 1
"""cudaHostRegisterPortable: pinned in the eyes of every context of the process."""
LARGE_SHARED_BYTES = 48 * 1024
"""Above this a kernel must ask for its dynamic shared memory."""
MULTIPLIER_LANES_PER_SM = 32
"""32x32 wide products a clock and SM on every architecture since Volta (measured on Hopper: 30.0 of 32)."""
MULTIPLIER_SLOTS = {
    "fr_mul": 112,
    "fr_constant_mul": 93,
    "g1_coordinate_mul": 294,
    "g2_coordinate_mul": 732,
    "g1_add": 4 * 294 + 228,
    "g2_add": 4 * 732 + 588,
    "g1_xyzz_add": 12 * 294 + 2 * 228,
    "g2_xyzz_add": 12 * 732 + 2 * 588,
}
"""Wide products (a narrow one is half) of one operation at the least known cost: what `% of the roof` is of."""


def device_count() -> int:
    """Cards that CUDA shows to this process; CUDA_VISIBLE_DEVICES decides.

    Raises:
        NoDevice: there is none, or CuPy cannot be imported.
    """
    cupy = _cupy()
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except Exception as error:
        raise from_cupy(error, "CUDA") from error


class _Fate:
    """What the cards of this process share: the first loss of one is the end of all."""

    def __init__(self) -> None:
        self.lost = ""
        """What every later use of any card is refused with; empty while they work."""
        self._lock = threading.Lock()
        self._devices: WeakSet[Device] = WeakSet()

    def join(self, device: Device) -> None:
        """A device has been opened."""
        with self._lock:
            self._devices.add(device)

    def seal(self, device: Device, loss: DeviceLost) -> None:
        """After the loss of an open device: none is ever destroyed, not even as the interpreter ends.

        Events, streams, blocks and modules are destroyed by calls to CUDA, which fail on a dead context, and CuPy says
        so on stderr for each. What they hold goes with the process.
        """
        with self._lock:
            if device not in self._devices:
                return
            self.lost = loss.ever_after
            while self._devices:
                # A reference that nobody gives up: those of a module are given up at the end.
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._devices.pop()))


_fate = _Fate()


def _cupy() -> Any:
    try:
        import cupy
    except Exception as error:  # CuPy raises its own kinds at import
        raise NoDevice(f"CuPy cannot be imported ({error}); install the cuda13 or cuda12 extra") from error
    return cupy


@dataclass(frozen=True, slots=True)
class KernelTime:
    """One launch on CLOCK_MONOTONIC."""

    kernel: str
    begin_ns: int
    end_ns: int
    error_ns: int
    """Uncertainty of the mapping from the device's clock."""
    ops: int | None
    op: str
    moved_bytes: int | None


class DeviceMemory:
    """A block of CuPy's pool."""

    def __init__(self, pointer: Any, size_bytes: int) -> None:
        self._pointer, self.size_bytes = pointer, size_bytes
        self.address = int(pointer.ptr)


class Device:
    """A Launcher on a real card.

    Args:
        index: CUDA device number.

    Raises:
        NoDevice: there is none, or CuPy cannot be imported.
        BackendError: a card of this process was lost.
    """

    def __init__(self, index: int = 0) -> None:
        if _fate.lost:
            raise BackendError(_fate.lost)
        if device_count() <= index:
            raise NoDevice(f"there is no CUDA device {index}; prove with --backend cpu")
        cupy = self._cupy = _cupy()
        self.index, self.name = index, f"cuda:{index}"
        with self._translated():
            properties = cupy.cuda.runtime.getDeviceProperties(index)
            self.name = f"cuda:{index} {properties['name'].decode()}"
            self.num_sms = int(properties["multiProcessorCount"])
            self.architecture = f"{properties['major']}{properties['minor']}"
            self.pci_address = str(cupy.cuda.runtime.deviceGetPCIBusId(index))
            attribute = cupy.cuda.runtime.deviceGetAttribute
            self.clock_hz = int(attribute(13, index)) * 1000
            # Two transfers a clock on a bus of so many bits.
            self.memory_bytes_per_s = int(attribute(36, index)) * 1000 * int(attribute(37, index)) // 4
            self.stream = cupy.cuda.Stream(non_blocking=True)
            self.copies = cupy.cuda.Stream(non_blocking=True)
            self._pool = cupy.cuda.MemoryPool()
        self._functions: dict[str, Any] = {}
        self._modules: list[Any] = []
        self._images: list[Any] = []
        self._pinned: set[int] = set()
        self.is_timed = True
        self._times = Events(cupy.cuda.Event)
        self._marks = Events(lambda: cupy.cuda.Event(disable_timing=True))
        self._pending: list[tuple[str, Any, Any, int | None, str, int | None]] = []
        _fate.join(self)

    @property
    def lost(self) -> str:
        """Why no card of this process can be used any more; empty while they can."""
        return _fate.lost

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            # The current device belongs to the thread, and verbs come from several.
            self._cupy.cuda.runtime.setDevice(self.index)
            yield
        except Exception as error:
            module = type(error).__module__ or ""
            if module.startswith("cupy") or type(error).__name__.startswith(("CUDA", "OutOfMemory")):
                told = from_cupy(error, self.name)
                if isinstance(told, DeviceLost):
                    _fate.seal(self, told)
                raise told from error
            raise

    def load(self, images: list[compiler.Image]) -> None:
        """Loads compiled units; kernels are found by name at their first launch."""
        with self._translated():
            modules = [self._cupy.RawModule(path=str(image.path)) for image in images]
            # CuPy loads a module when it is asked for, and gives up those that it alone refers to when Python ends.
            self._images += [module.module for module in modules]
            self._modules += modules

    def _function(self, kernel: str) -> Any:
        if kernel not in self._functions:
            for module in self._modules:
                try:
                    self._functions[kernel] = module.get_function(kernel)
                    break
                except Exception as error:
                    if "NOT_FOUND" not in str(error).upper().replace(" ", "_"):
                        raise
            else:
                raise KeyError(kernel)
        return self._functions[kernel]

    def resources(self, kernel: str) -> tuple[int, int]:
        """Registers and spilled bytes a thread."""
        function = self._function(kernel)
        return int(function.num_regs), int(function.local_size_bytes)

    def empty(self, size_bytes: int) -> Memory:
        with self._translated(), self.stream:
            try:
                return DeviceMemory(self._pool.malloc(max(size_bytes, 1)), size_bytes)
            except self._cupy.cuda.memory.OutOfMemoryError as error:
                raise OutOfDeviceMemory(
                    size_bytes, int(self._cupy.cuda.runtime.memGetInfo()[0]) + self._pool.free_bytes(), self.name
                ) from error

    def zeros(self, size_bytes: int) -> Memory:
        memory = self.empty(size_bytes)
        with self._translated():
            self._cupy.cuda.runtime.memsetAsync(memory.address, 0, size_bytes, self.stream.ptr)
        return memory

    def upload(self, values: npt.NDArray) -> Memory:
        values = np.ascontiguousarray(values)
        memory = self.empty(values.nbytes)
        self.copy_in(memory, values)
        # The array may be a temporary of the caller's.
        self.synchronize()
        return memory

    def copy_in(self, memory: Memory, values: npt.NDArray) -> None:
        """Host to device; `values` must stay alive and unchanged until the stream has passed this point."""
        with self._translated():
            self._cupy.cuda.runtime.memcpyAsync(memory.address, values.ctypes.data, values.nbytes, 1, self.stream.ptr)

    def copy_ahead(self, memory: Memory, values: npt.NDArray) -> Any:
        """Host to device beside the kernels already launched; launches that need it come after `await_copy(result)`.

        Only pinned memory overlaps. `memory` must not be in use by an earlier launch.
        """
        with self._translated():
            self._cupy.cuda.runtime.memcpyAsync(memory.address, values.ctypes.data, values.nbytes, 1, self.copies.ptr)
            arrived = self._marks.take()
            arrived.record(self.copies)
            return arrived

    def await_copy(self, arrived: Any) -> None:
        """Launches after this start once the copy has arrived."""
        with self._translated():
            self.stream.wait_event(arrived)
            # The stream waits for the moment it holds now, whatever it is recorded for next.
            self._marks.give(arrived)

    def copies_after_kernels(self) -> None:
        """Copies after this start once the kernels launched so far have ended: the pool may reuse their memory."""
        with self._translated():
            reached = self._marks.take()
            reached.record(self.stream)
            self.copies.wait_event(reached)
            self._marks.give(reached)

    def pin(self, address: int, size_bytes: int) -> None:
        """Page-locks host memory for every card (an arena's Pinner); where the system refuses, copies are slower."""
        try:
            self._cupy.cuda.runtime.setDevice(self.index)
            self._cupy.cuda.runtime.hostRegister(address, size_bytes, PORTABLE)
        except self._cupy.cuda.runtime.CUDARuntimeError:
            return
        self._pinned.add(address)

    def unpin(self, address: int) -> None:
        """Undoes `pin`; that a lost card cannot is no error here.

        Its driver then holds the pages until the process ends, so that a copy under way harms nobody, and may take what
        is mapped at this address next for them: no card of this process copies anything after that.
        """
        if address not in self._pinned:
            return
        self._pinned.discard(address)
        try:
            with self._translated():
                self._cupy.cuda.runtime.hostUnregister(address)
        except BackendError:
            if not self.lost:
                raise

    def download(self, memory: Memory, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray:
        out = np.empty(shape, dtype)
        with self._translated():
            self._cupy.cuda.runtime.memcpyAsync(out.ctypes.data, memory.address, out.nbytes, 2, self.stream.ptr)
            self.stream.synchronize()
        return out

    def synchronize(self) -> None:
        with self._translated():
            self.stream.synchronize()

    def drain(self) -> None:
        """Waits until nothing enqueued is running, and forgets its times; a lost card is no error here."""
        for stream in (self.copies, self.stream):
            with suppress(Exception), self._translated():
                stream.synchronize()
        self._pending.clear()
        self._times.take_back()
        self._marks.take_back()

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        """An NVTX range, where CuPy was built with NVTX."""
        nvtx = getattr(self._cupy.cuda, "nvtx", None)
        if nvtx is None or not getattr(nvtx, "available", False):
            yield
            return
        nvtx.RangePush(name)
        try:
            yield
        finally:
            nvtx.RangePop()

    def launch(
        self, kernel: str, grid: int | tuple[int, int], threads: int, *arguments: object, shared_bytes: int = 0,
        ops: int | None = None, op: str = "", moved_bytes: int | None = None,
    ) -> None:  # fmt: skip
        x, y = grid if isinstance(grid, tuple) else (grid, 1)
        with self._translated(), self.stream:
            function = self._function(kernel)
            if shared_bytes > LARGE_SHARED_BYTES and function.max_dynamic_shared_size_bytes < shared_bytes:
                function.max_dynamic_shared_size_bytes = shared_bytes
            begin = end = None
            if self.is_timed:
                begin, end = self._times.take(), self._times.take()
                begin.record(self.stream)
            function((x, y, 1), (threads, 1, 1), tuple(pack(a) for a in arguments), shared_mem=shared_bytes)
            if end is not None:
                end.record(self.stream)
                self._pending.append((kernel, begin, end, ops, op, moved_bytes))

    def take_times(self) -> list[KernelTime]:
        """Waits for the stream; every timed launch since the last call."""
        self.synchronize()
        pending, self._pending = self._pending, []
        if not pending:
            return []
        with self._translated():
            # The idle stream passes a new event at once: what that takes is the error of the mapping.
            anchor = self._times.take()
            before_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            anchor.record(self.stream)
            anchor.synchronize()
            after_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            anchor_ns, error_ns = (before_ns + after_ns) // 2, after_ns - before_ns

            def at(event: Any) -> int:
                return anchor_ns - int(self._cupy.cuda.get_elapsed_time(event, anchor) * 1e6)

            times = [
                KernelTime(kernel, at(begin), at(end), error_ns, ops, op, moved)
                for kernel, begin, end, ops, op, moved in pending
            ]
            self._times.give(anchor, *(event for _, begin, end, *_ in pending for event in (begin, end)))
            return times

    def roof_percent(self, launched: KernelTime) -> float | None:
        """Least time the chip needs for the operations or the bytes, whichever is longer, over the time taken."""
        taken_s = (launched.end_ns - launched.begin_ns) / 1e9
        floor_s = 0.0
        if launched.ops and launched.op in MULTIPLIER_SLOTS:
            slots = launched.ops * MULTIPLIER_SLOTS[launched.op]
            floor_s = slots / (self.num_sms * self.clock_hz * MULTIPLIER_LANES_PER_SM)
        if launched.moved_bytes and self.memory_bytes_per_s:
            floor_s = max(floor_s, launched.moved_bytes / self.memory_bytes_per_s)
        return 100 * floor_s / taken_s if floor_s and taken_s > 0 else None

    def trim(self) -> None:
        """Gives the pool's idle memory back to the card; a lost card takes nothing back, and that is no error."""
        if self.lost:
            return
        with suppress(DeviceLost):
            self.synchronize()
            self._pool.free_all_blocks()

    @property
    def pool_bytes(self) -> tuple[int, int]:
        """Bytes in use and bytes held."""
        with self._translated():
            return int(self._pool.used_bytes()), int(self._pool.total_bytes())

    @property
    def memory_bytes(self) -> tuple[int, int]:
        """Free and total bytes of the card."""
        with self._translated():
            free, total = self._cupy.cuda.runtime.memGetInfo()
        return int(free), int(total)
