"""What this host offers a prover and its console: one line a check, and with each fault its remedy."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `level`: ok | note | fault; only a fault keeps the program from working."""

    what: str
    level: str
    text: str


def run() -> int:
    """Prints every check; returns 1 when something is broken."""
    checks = list(all_checks())
    for check in checks:
        print(f"{check.level:5}  {check.what:12} {check.text}")
    return 1 if any(check.level == "fault" for check in checks) else 0


def all_checks() -> Iterator[Check]:
    """Every check, one after the other; none raises."""
    yield Check("python", "ok", sys.version.split()[0])
    for distribution in ("numba", "textual", "grpcio", "protobuf", "py-arkworks-bls12381", "msgspec"):
        yield _package(distribution)
    for check in (_gpu, _memory, _huge_pages, _cgroup, _pressure, _disk, _clock, _terminal):
        yield from check()


def _package(distribution: str) -> Check:
    try:
        return Check("package", "ok", f"{distribution} {importlib.metadata.version(distribution)}")
    except importlib.metadata.PackageNotFoundError:
        return Check("package", "fault", f"{distribution} is missing: pip install {distribution}")


def _gpu() -> Iterator[Check]:
    from cuzktui.collector.nvml import GpuSampler

    sampler = GpuSampler(lambda _event: None, frozenset)
    sampler.start()
    sampler.wait_verdict(5.0)
    sampler.stop()
    if not sampler.devices:
        yield Check("gpu", "note", f"{sampler.note or 'NVML does not answer'}; proofs are made on the CPU")
        return
    for number, name in enumerate(sampler.devices):
        yield Check(f"gpu {number}", "ok", name)
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        yield Check("gpu", "note", f"CUDA_VISIBLE_DEVICES={visible}: the prover sees these alone, numbered from 0")
    cupy = importlib.util.find_spec("cupy") is not None
    remedy = "cupy is missing: pip install 'cuzktui[cuda13]' (or cuda12, by the driver)"
    yield Check("cupy", "ok" if cupy else "note", "installed" if cupy else remedy)


def _memory() -> Iterator[Check]:
    from cuzktui.collector.host import HostReader

    host = HostReader().read()
    available = host.mem_available_bytes
    if available is None:
        yield Check("memory", "note", "/proc/meminfo is not readable: admission cannot check a job's predicted peak")
    else:
        yield Check("memory", "ok", f"{available / 1e9:.1f} GB available of {(host.mem_total_bytes or 0) / 1e9:.1f}")


def _huge_pages() -> Iterator[Check]:
    try:
        text = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    except OSError:
        yield Check("huge pages", "note", "not offered by this kernel: sync-huge and async-huge behave like 4k")
        return
    chosen = text.partition("[")[2].partition("]")[0]
    if chosen == "never":
        yield Check("huge pages", "note", "never: the huge policies behave like 4k; echo madvise > …/enabled as root")
    else:
        yield Check("huge pages", "ok", chosen)


def _cgroup() -> Iterator[Check]:
    from cuzktui.collector.host import find_cgroup

    group = find_cgroup(os.getpid())
    if group is None:
        yield Check("cgroup", "note", "no memory accounting: limits and kills for memory are read from the host only")
    else:
        limit = "no limit" if group.limit_bytes is None else f"limit {group.limit_bytes / 1e9:.1f} GB"
        yield Check("cgroup", "ok", f"{limit} ({group.usage_path})")


def _pressure() -> Iterator[Check]:
    if os.access("/proc/pressure/memory", os.R_OK):
        yield Check("pressure", "ok", "readable")
    else:
        yield Check("pressure", "note", "not readable: boot with psi=1 to see memory and CPU pressure")


def _disk() -> Iterator[Check]:
    from cuzktui.sources.recordings import state_folder

    folder = state_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        remedy = "use --record FILE or set XDG_STATE_HOME"
        yield Check("recordings", "fault", f"{folder}: {error.strerror or error}; {remedy}")
        return
    level = "ok" if free > 1 << 30 else "note"
    yield Check("recordings", level, f"{folder}, {free / 1e9:.1f} GB free" + ("" if level == "ok" else ": little"))


def _clock() -> Iterator[Check]:
    import time

    resolution_ns = int(time.get_clock_info("monotonic").resolution * 1e9)
    try:
        source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text().strip()
    except OSError:
        source = "unknown source"
    slow = source not in ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "unknown source")
    text = f"{source}, {resolution_ns} ns" + ("; reading it is slow, prefer tsc" if slow else "")
    yield Check("clock", "note" if slow else "ok", text)


def _terminal() -> Iterator[Check]:
    import locale

    term = os.environ.get("TERM", "")
    if not sys.stdout.isatty() or term in ("", "dumb"):
        yield Check("terminal", "note", "none here: use prove, record, report or export")
        return
    encoding = locale.getpreferredencoding(False)
    colours = "24-bit" if os.environ.get("COLORTERM") in ("truecolor", "24bit") else "256 or fewer colours"
    yield Check("terminal", "ok" if "UTF" in encoding.upper() else "note", f"{term}, {colours}, {encoding}")
    for name, steps in (("braille", "⣀⣤⣶⣿"), ("block", "▁▃▅█"), ("ascii", "._-#")):
        yield Check("glyphs", "ok", f"{steps}  {name}: if this is not four rising steps, choose another with --graph")
