"""NVML may be absent, refuse any call, hang or lose the device: a reading is then None, and the reason is said.

Only the collector loads the driver library, and in threads of its own, so that no fault of it reaches the console.
Utilisation, memory and power are asked for five times a second, what changes slowly once a second, and whatever the
driver takes its time for less often: a prover that allocates or pins memory waits for the same driver. PCIe throughput
blocks for 20 ms and has its own lane.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from prover import wire
from prover.run import now

PERIOD_S = 0.2
SLOW_PERIOD_NS = 1_000_000_000
PCIE_PERIOD_S = 1.0
COST_FACTOR, MAX_PAUSE_S = 50, 5.0
"""Each round of questions is followed by a pause of so many times its length, within reason."""
RETRY_S = 5.0
NOT_AVAILABLE = (1 << 64) - 1
"""NVML_VALUE_NOT_AVAILABLE: what the driver writes for a number it does not have (WSL, MIG, unified memory)."""

SLOWDOWNS = {
    0x02: "application clocks", 0x04: "power cap", 0x08: "hardware slowdown", 0x10: "sync boost",
    0x20: "software thermal", 0x40: "hardware thermal", 0x80: "hardware power brake", 0x100: "display clocks",
}  # fmt: skip
"""Bits of nvmlClocksEventReasons that slow a device down; bit 1 (idle) does not."""


def load_pynvml() -> ModuleType:
    """The module of the distribution nvidia-ml-py."""
    return importlib.import_module("pynvml")


@dataclass(frozen=True, slots=True)
class Slow:
    """Readings of one device that are kept for a second."""

    t_ns: int
    process_bytes: int | None
    temperature_c: int | None
    sm_mhz: int | None
    mem_mhz: int | None
    throttle: str | None


class GpuSampler(threading.Thread):
    """Reads every device.

    Args:
        put: takes `GpuSample`, `SourceChanged` and `Notice`; must not block.
        pids: processes whose device memory is added up.
        load: gives a module with NVML's function names.
    """

    def __init__(
        self,
        put: Callable[[wire.Event], None],
        pids: Callable[[], frozenset[int]],
        load: Callable[[], ModuleType] = load_pynvml,
    ) -> None:
        super().__init__(name="nvml", daemon=True)
        self._put, self._pids, self._load = put, pids, load
        self._halt = threading.Event()
        self._nvml: Any = None
        self._handles: list[tuple[int, Any, str]] = []
        self._pcie: dict[int, tuple[int | None, int | None]] = {}
        self._slow: dict[int, Slow] = {}
        self._told = ""
        self._verdict = threading.Event()
        self.devices: list[str] = []
        """Names of the devices found."""
        self.note = ""
        """Why there is no device, where there is none."""

    def wait_verdict(self, timeout_s: float) -> None:
        """Waits until devices were found or not, at most so long: a driver may hang."""
        self._verdict.wait(timeout_s)

    def stop(self) -> None:
        self._halt.set()
        self.join(timeout=1)

    def run(self) -> None:
        pcie = threading.Thread(target=self._read_pcie_slowly, name="nvml-pcie", daemon=True)
        while not self._halt.is_set():
            if not self._handles and not self._open():
                if self._nvml is None:
                    return
                self._halt.wait(RETRY_S)
                continue
            if not pcie.ident:
                pcie.start()
            begin = now()
            lost = False
            for index, handle, name in self._handles:
                sample = self.read(index, handle, name)
                lost = lost or bool(sample.error)
                self._put(sample)
            if lost:
                self._close()
                self._halt.wait(RETRY_S)
            else:
                self._halt.wait(_pause_s(PERIOD_S, now() - begin))
        self._close()

    def read(self, index: int, handle: Any, name: str) -> wire.GpuSample:
        """One device's sample; `error` is set when the device itself is gone."""
        errors: list[str] = []

        def ask(function: str, *arguments: Any) -> Any:
            if errors:
                return None
            try:
                value = getattr(self._nvml, function)(handle, *arguments)
            except Exception as error:
                if _is_lost(error):
                    errors.append(_text(error))
                return None
            return None if value == NOT_AVAILABLE else value

        rates = ask("nvmlDeviceGetUtilizationRates")
        memory = ask("nvmlDeviceGetMemoryInfo")
        power_mw = _number(ask("nvmlDeviceGetPowerUsage"))
        slow = self._slow.get(index)
        if slow is None or errors or now() - slow.t_ns >= SLOW_PERIOD_NS:
            slow = self._slow[index] = self._read_slow(ask)
        rx, tx = self._pcie.get(index, (None, None))
        return wire.GpuSample(
            t_ns=now(), device=index, name=name, util_percent=_number(getattr(rates, "gpu", None)),
            mem_used_bytes=_number(getattr(memory, "used", None)),
            mem_total_bytes=_number(getattr(memory, "total", None)),
            process_bytes=slow.process_bytes, power_w=None if power_mw is None else power_mw / 1000,
            temperature_c=slow.temperature_c, sm_mhz=slow.sm_mhz, mem_mhz=slow.mem_mhz, pcie_rx_bytes_per_s=rx,
            pcie_tx_bytes_per_s=tx, throttle=slow.throttle, error=errors[0] if errors else "",
        )  # fmt: skip

    def _read_slow(self, ask: Callable[..., Any]) -> Slow:
        bits = ask("nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:
            bits = ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        return Slow(
            now(), self._process_bytes(ask("nvmlDeviceGetComputeRunningProcesses")),
            _number(ask("nvmlDeviceGetTemperature", 0)), _number(ask("nvmlDeviceGetClockInfo", 1)),
            _number(ask("nvmlDeviceGetClockInfo", 2)), _slowdown(bits),
        )  # fmt: skip

    def _process_bytes(self, processes: Any) -> int | None:
        if processes is None:
            return None
        pids = self._pids()
        used = [_number(getattr(p, "usedGpuMemory", None)) for p in processes if getattr(p, "pid", -1) in pids]
        known = [size for size in used if size is not None]
        return sum(known) if known else None

    def _open(self) -> bool:
        """Loads the library and finds the devices; says once why there are none."""
        try:
            if self._nvml is None:
                nvml = self._load()
                nvml.nvmlInit()
                self._nvml = nvml
            else:
                self._nvml.nvmlInit()
            count = self._nvml.nvmlDeviceGetCount()
            for index in range(count):
                handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
                self._handles.append((index, handle, self._device_name(handle)))
        except Exception as error:
            self._handles.clear()
            self._tell(False, _why(error))
            return False
        if not self._handles:
            self._tell(False, "the NVIDIA driver reports no device")
            return False
        self._tell(True, ", ".join(name for _, _, name in self._handles))
        return True

    def _device_name(self, handle: Any) -> str:
        try:
            name = self._nvml.nvmlDeviceGetName(handle)
        except Exception:
            return ""
        return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)

    def _close(self) -> None:
        self._handles.clear()
        self._pcie.clear()
        self._slow.clear()
        try:
            if self._nvml is not None:
                self._nvml.nvmlShutdown()
        except Exception:
            return

    def _tell(self, alive: bool, detail: str) -> None:
        if detail != self._told:
            self._told = detail
            self._put(wire.SourceChanged(t_ns=now(), source="nvml", alive=alive, detail=detail))
        self.devices, self.note = ([name for _, _, name in self._handles], "") if alive else ([], detail)
        self._verdict.set()

    def _read_pcie_slowly(self) -> None:
        pause_s = PCIE_PERIOD_S
        while not self._halt.wait(pause_s):
            begin = now()
            for index, handle, _ in tuple(self._handles):
                self._pcie[index] = (self._pcie_rate(handle, 1), self._pcie_rate(handle, 0))
            pause_s = _pause_s(PCIE_PERIOD_S, now() - begin)

    def _pcie_rate(self, handle: Any, counter: int) -> int | None:
        try:
            value = _number(self._nvml.nvmlDeviceGetPcieThroughput(handle, counter))
        except Exception:
            return None
        return None if value is None else value * 1024


def _pause_s(least_s: float, cost_ns: int) -> float:
    """How long a driver is left alone after questions that took so long."""
    return max(least_s, min(COST_FACTOR * cost_ns / 1e9, MAX_PAUSE_S))


def _number(value: Any) -> int | None:
    """A reading as an integer; None for the driver's not-available values."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0 or value in (NOT_AVAILABLE, (1 << 32) - 1):
        return None
    return value


def _slowdown(bits: Any) -> str | None:
    if _number(bits) is None:
        return None
    return ", ".join(name for bit, name in SLOWDOWNS.items() if bits & bit)


def _is_lost(error: Exception) -> bool:
    return type(error).__name__ in (
        "NVMLError_GpuIsLost", "NVMLError_ResetRequired", "NVMLError_Unknown", "NVMLError_Uninitialized",
        "NVMLError_DriverNotLoaded",
    )  # fmt: skip


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


def _why(error: Exception) -> str:
    """One sentence why there are no readings, with the known cause where there is one."""
    match type(error).__name__:
        case "ModuleNotFoundError":
            return "the NVML bindings (nvidia-ml-py) are not installed"
        case "NVMLError_LibraryNotFound":
            return "no NVIDIA driver on this host (libnvidia-ml is not found)"
        case "NVMLError_LibRmVersionMismatch":
            return "NVIDIA driver and library have different versions: reload the kernel module or reboot"
        case "NVMLError_Unknown":
            return "NVML fails with an unknown error; in a container that lost its devices, create the container again"
        case "NVMLError_GpuIsLost":
            return "GPU is lost: it has fallen off the bus"
        case _:
            return f"NVML: {_text(error)}"
