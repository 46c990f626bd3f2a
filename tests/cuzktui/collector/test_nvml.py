"""NVML with every fault it is known for: absent, refusing, hanging, lying, losing the device and coming back."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from cuzktui.collector import nvml as module
from cuzktui.collector.nvml import GpuSampler
from prover import wire

NA64, NA32 = (1 << 64) - 1, (1 << 32) - 1


def error_class(name: str) -> type[Exception]:
    return type(name, (Exception,), {})


class FakeNvml:
    """A driver of two devices; `faults` maps a function's name to an exception to raise or a value to give."""

    def __init__(self, **faults: object) -> None:
        self.faults = dict(faults)
        self.inits = 0

    def __getattr__(self, name: str):
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def call(*arguments: object) -> object:
            if name == "nvmlInit":
                self.inits += 1
            fault = self.faults.get(name)
            if isinstance(fault, Exception):
                raise fault
            if callable(fault):
                return fault(*arguments)
            return fault if name in self.faults else GOOD[name](*arguments)

        return call


GOOD = {
    "nvmlInit": lambda: None,
    "nvmlShutdown": lambda: None,
    "nvmlDeviceGetCount": lambda: 2,
    "nvmlDeviceGetHandleByIndex": lambda index: index,
    "nvmlDeviceGetName": lambda handle: f"NVIDIA H200 {handle}",
    "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=97, memory=30),
    "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(total=140 << 30, used=41 << 30, free=99 << 30),
    "nvmlDeviceGetComputeRunningProcesses": lambda handle: [
        SimpleNamespace(pid=41, usedGpuMemory=40 << 30), SimpleNamespace(pid=42, usedGpuMemory=1 << 30),
    ],
    "nvmlDeviceGetPowerUsage": lambda handle: 412_000,
    "nvmlDeviceGetCurrentClocksEventReasons": lambda handle: 0x4 | 0x20 | 0x1,
    "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 0,
    "nvmlDeviceGetClockInfo": lambda handle, which: 1980 if which == 1 else 3201,
    "nvmlDeviceGetTemperature": lambda handle, sensor: 61,
    "nvmlDeviceGetPcieThroughput": lambda handle, counter: 12_000 if counter == 1 else 100,
}  # fmt: skip


@pytest.fixture
def watch(events, monkeypatch):
    monkeypatch.setattr(module, "PERIOD_S", 0.01)
    monkeypatch.setattr(module, "PCIE_PERIOD_S", 0.01)
    monkeypatch.setattr(module, "RETRY_S", 0.02)
    started = []

    def start(load) -> GpuSampler:
        sampler = GpuSampler(events.put, lambda: frozenset({41}), load)
        started.append(sampler)
        sampler.start()
        return sampler

    yield start
    for sampler in started:
        sampler.stop()


def is_gpu(event: wire.Event) -> bool:
    return isinstance(event, wire.GpuSample)


def test_a_healthy_driver_gives_every_reading_in_its_unit(watch, events):
    watch(FakeNvml)
    sample = events.wait(lambda e: is_gpu(e) and e.device == 1 and e.pcie_rx_bytes_per_s is not None)
    assert sample.name == "NVIDIA H200 1" and sample.error == ""
    assert (sample.util_percent, sample.temperature_c, sample.power_w) == (97, 61, 412.0)
    assert (sample.mem_used_bytes, sample.mem_total_bytes, sample.process_bytes) == (41 << 30, 140 << 30, 40 << 30)
    assert (sample.sm_mhz, sample.mem_mhz, sample.throttle) == (1980, 3201, "power cap, software thermal")
    assert (sample.pcie_rx_bytes_per_s, sample.pcie_tx_bytes_per_s) == (12_000 * 1024, 100 * 1024)


@pytest.mark.parametrize(("function", "fields"), [
    ("nvmlDeviceGetUtilizationRates", ["util_percent"]),
    ("nvmlDeviceGetMemoryInfo", ["mem_used_bytes", "mem_total_bytes"]),
    ("nvmlDeviceGetComputeRunningProcesses", ["process_bytes"]),
    ("nvmlDeviceGetPowerUsage", ["power_w"]),
    ("nvmlDeviceGetClockInfo", ["sm_mhz", "mem_mhz"]),
    ("nvmlDeviceGetTemperature", ["temperature_c"]),
    ("nvmlDeviceGetPcieThroughput", ["pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s"]),
])  # fmt: skip
@pytest.mark.parametrize("fault", ["NVMLError_NotSupported", "NVMLError_NoPermission", "NVMLError_Timeout"])
def test_any_call_may_fail_and_only_its_reading_is_none(watch, events, function, fields, fault):
    watch(lambda: FakeNvml(**{function: error_class(fault)()}))
    sample = events.wait(is_gpu)
    for name in ("util_percent", "mem_used_bytes", "process_bytes", "power_w", "sm_mhz", "temperature_c"):
        assert (getattr(sample, name) is None) == (name in fields)
    assert sample.error == "" and all(getattr(sample, name) is None for name in fields)


def test_a_driver_without_the_new_name_of_a_function_is_asked_by_the_old_one(watch, events):
    old = FakeNvml(nvmlDeviceGetCurrentClocksEventReasons=AttributeError("no such function"))
    old.faults["nvmlDeviceGetCurrentClocksThrottleReasons"] = 0x8
    watch(lambda: old)
    assert events.wait(is_gpu).throttle == "hardware slowdown"


@pytest.mark.parametrize("value", [NA64, NA32, -1, None, "n/a"])
def test_the_drivers_sentinels_are_none_and_never_a_number(watch, events, value):
    watch(lambda: FakeNvml(
        nvmlDeviceGetUtilizationRates=SimpleNamespace(gpu=value), nvmlDeviceGetPowerUsage=value,
        nvmlDeviceGetMemoryInfo=SimpleNamespace(used=value, total=value), nvmlDeviceGetTemperature=value,
        nvmlDeviceGetComputeRunningProcesses=[SimpleNamespace(pid=41, usedGpuMemory=value)],
    ))  # fmt: skip
    sample = events.wait(is_gpu)
    assert sample.util_percent is sample.power_w is sample.mem_used_bytes is sample.mem_total_bytes is None
    assert sample.temperature_c is sample.process_bytes is None


@pytest.mark.parametrize(("fault", "words"), [
    ("NVMLError_LibraryNotFound", "no NVIDIA driver"),
    ("NVMLError_LibRmVersionMismatch", "different versions"),
    ("NVMLError_Unknown", "create the container again"),
    ("NVMLError_NoPermission", "NVML"),
])  # fmt: skip
def test_a_driver_that_cannot_be_opened_is_said_once_with_its_reason(watch, events, fault, words):
    sampler = watch(lambda: FakeNvml(nvmlInit=error_class(fault)()))
    sampler.join(5)
    told = events.of(wire.SourceChanged)
    assert [(e.source, e.alive) for e in told] == [("nvml", False)] and words in told[0].detail
    assert words in sampler.note and sampler.devices == [] and not events.of(wire.GpuSample)


def test_bindings_that_are_not_installed_are_said(watch):
    def load():
        raise ModuleNotFoundError("pynvml")

    sampler = watch(load)
    sampler.wait_verdict(5)
    assert "nvidia-ml-py" in sampler.note


def test_a_lost_device_is_reported_and_taken_up_again_when_it_is_back(watch, events):
    driver = FakeNvml()
    watch(lambda: driver)
    events.wait(is_gpu)
    driver.faults["nvmlDeviceGetPowerUsage"] = error_class("NVMLError_GpuIsLost")("GPU is lost")
    lost = events.wait(lambda e: is_gpu(e) and e.error)
    assert lost.error == "GPU is lost" and lost.power_w is None and lost.temperature_c is None
    driver.faults.clear()
    events.wait(lambda e: is_gpu(e) and not e.error and e.t_ns > lost.t_ns)
    assert driver.inits >= 2


def counted(answers: dict[str, int], **faults: object) -> FakeNvml:
    """A driver that counts how often it is asked what."""

    def counting(name: str):
        def call(*arguments: object) -> object:
            answers[name] = answers.get(name, 0) + 1
            given = faults.get(name, GOOD[name])
            return given(*arguments) if callable(given) else given

        return call

    return FakeNvml(**{name: counting(name) for name in GOOD})


def test_what_changes_slowly_is_asked_for_once_while_the_rest_is_read_many_times(watch, events):
    answers: dict[str, int] = {}
    watch(lambda: counted(answers))
    events.wait(lambda e: is_gpu(e) and len(events.of(wire.GpuSample)) >= 20)
    for name in ("ComputeRunningProcesses", "Temperature", "CurrentClocksEventReasons"):
        assert answers[f"nvmlDeviceGet{name}"] == 2, "once a device"
    assert answers["nvmlDeviceGetUtilizationRates"] >= 20
    assert {e.process_bytes for e in events.of(wire.GpuSample)} == {40 << 30}


def test_what_changes_slowly_is_asked_for_again_after_its_time(watch, events, monkeypatch):
    monkeypatch.setattr(module, "SLOW_PERIOD_NS", 1_000_000)
    heat = iter(range(30, 1000))
    watch(lambda: FakeNvml(nvmlDeviceGetTemperature=lambda handle, sensor: next(heat)))
    events.wait(lambda e: is_gpu(e) and (e.temperature_c or 0) >= 35)


def test_a_driver_that_answers_slowly_is_asked_less_often(watch, events):
    waiting = threading.Event()
    watch(lambda: FakeNvml(nvmlDeviceGetPowerUsage=lambda handle: waiting.wait(0.005) or 412_000))
    events.wait(lambda e: is_gpu(e) and e.device == 1 and len(events.of(wire.GpuSample)) >= 6)
    first, second, *_ = (e.t_ns for e in events.of(wire.GpuSample) if e.device == 0)
    assert second - first >= 0.9 * module.COST_FACTOR * 10e6


def test_no_pause_is_longer_than_the_longest():
    assert module._pause_s(0.2, 100_000) == 0.2
    assert module._pause_s(0.2, 10_000_000) == 0.5
    assert module._pause_s(1.0, 3_000_000_000) == module.MAX_PAUSE_S


def test_a_hanging_driver_holds_up_nobody_else(watch, events):
    release = threading.Event()
    sampler = watch(lambda: FakeNvml(nvmlDeviceGetCount=lambda: release.wait(30) or 0))
    sampler.wait_verdict(0.05)
    assert sampler.devices == [] and sampler.note == ""
    release.set()


def test_no_device_is_a_reason_too(watch):
    sampler = watch(lambda: FakeNvml(nvmlDeviceGetCount=0))
    sampler.wait_verdict(5)
    assert "no device" in sampler.note
