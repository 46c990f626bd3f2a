"""Kernels become cubins in worker processes, once for each source text, compiler and architecture.

NVRTC can crash or hang, so a compile is a child process with a time limit; its death is an error that names the unit.
Cubins are cached on disk under the hash of everything that went into them.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prover.backends.cuda.failures import KernelMissing

UNITS = (
    "reduce_g1", "reduce_g2", "fixed_base_g1", "fixed_base_g2", "accumulate_g2", "ntt", "accumulate_g1", "sort",
    "scalars",
)  # fmt: skip
"""Translation units a proof or a setup needs, slowest first."""
PROBE_UNITS = ("probe",)
"""Checks and measurements only."""
TIME_LIMIT_S = 120.0
ELF_MAGIC = b"\x7fELF"
INCLUDE = re.compile(r'#include "([a-z0-9_]+\.cuh)"\s*')


@dataclass(frozen=True, slots=True)
class Image:
    """A compiled unit."""

    unit: str
    path: Path
    seconds: float
    """0 where it came from the cache."""
    report: str
    """ptxas: registers, stack and spills of each kernel; empty from the cache."""


def kernel_folder() -> Path:
    """Where the sources are: inside the installed package, or at the top of the repository."""
    import prover

    package = Path(prover.__file__).parent
    installed = package / "_kernels"
    return installed if installed.is_dir() else package.parents[1] / "kernels"


def source_of(unit: str) -> str:
    """The unit as one text, headers in place (NVRTC then needs no files)."""
    return _flatten(kernel_folder() / f"{unit}.cu", set())


def _flatten(path: Path, seen: set[str]) -> str:
    lines = []
    for line in path.read_text().splitlines(keepends=True):
        match = INCLUDE.fullmatch(line)
        if match is None:
            lines.append("" if line.startswith("#pragma once") else line)
        elif match[1] not in seen:
            seen.add(match[1])
            lines.append(_flatten(path.with_name(match[1]), seen))
    return "".join(lines)


def cache_folder() -> Path:
    """CUZK_CUBIN_CACHE, or the user's cache folder."""
    chosen = os.environ.get("CUZK_CUBIN_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "cuzktui" / "cubin"


def options(architecture: str) -> list[str]:
    return ["--std=c++17", f"--gpu-architecture=sm_{architecture}", "--ptxas-options=-v"]


def compiler_version() -> tuple[int, int]:
    """NVRTC's version.

    Raises:
        KernelMissing: NVRTC is not installed.
    """
    try:
        from cupy.cuda import nvrtc

        return nvrtc.getVersion()
    except Exception as error:  # ImportError, or the loader's own
        raise KernelMissing(f"NVRTC cannot be loaded ({error}); install the cuda13 or cuda12 extra") from error


def cached_path(unit: str, architecture: str, version: tuple[int, int]) -> Path:
    text = "\0".join([source_of(unit), *options(architecture), f"{version[0]}.{version[1]}"])
    return cache_folder() / f"{unit}-sm_{architecture}-{hashlib.sha256(text.encode()).hexdigest()[:24]}.cubin"


def compile_units(
    units: Sequence[str], architecture: str, *, workers: int | None = None, time_limit_s: float = TIME_LIMIT_S,
    on_progress: Callable[[int, int, str], None] | None = None, check: Callable[[], None] | None = None,
) -> list[Image]:  # fmt: skip
    """Compiles what the cache lacks, `workers` at a time.

    Args:
        architecture: compute capability without the dot, e.g. `90`.
        on_progress: (done, total, unit just finished).
        check: called between polls; may raise to stop the work.

    Raises:
        KernelMissing: a compile failed, died or ran past the limit.
    """
    version = compiler_version()
    images: list[Image] = []
    waiting = []
    for unit in units:
        path = cached_path(unit, architecture, version)
        if _is_image(path):
            images.append(Image(unit, path, 0.0, ""))
        else:
            waiting.append((unit, path))
    running: list[_Job] = []
    try:
        while waiting or running:
            while waiting and len(running) < (workers or os.cpu_count() or 1):
                running.append(_Job(*waiting.pop(0), architecture))
            for job in list(running):
                if job.is_done(time_limit_s):
                    running.remove(job)
                    images.append(job.result())
                    if on_progress:
                        on_progress(len(images), len(units), job.unit)
            if check:
                check()
            time.sleep(0.01)
    finally:
        for job in running:
            job.stop()
    return images


def _is_image(path: Path) -> bool:
    """Whether the cache holds something that looks like a cubin; anything else is compiled anew."""
    try:
        with path.open("rb") as file:
            return file.read(len(ELF_MAGIC)) == ELF_MAGIC
    except OSError:
        return False


class _Job:
    def __init__(self, unit: str, path: Path, architecture: str) -> None:
        self.unit, self.path, self.began_s = unit, path, time.monotonic()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise KernelMissing(
                f"{path.parent}: compiled kernels cannot be kept there ({error.strerror}); set CUZK_CUBIN_CACHE to a "
                "folder that can be written"
            ) from error
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (lives as long as the process)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "prover.backends.cuda.compile", unit, architecture, str(path)],
            stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )  # fmt: skip

    def is_done(self, time_limit_s: float) -> bool:
        if self.process.poll() is None:
            if time.monotonic() - self.began_s < time_limit_s:
                return False
            self.stop()
            raise KernelMissing(f"compiling {self.unit}.cu took longer than {time_limit_s:.0f} s and was stopped")
        return True

    def result(self) -> Image:
        self.log.seek(0)
        report = self.log.read()
        self.log.close()
        if self.process.returncode != 0 or not _is_image(self.path):
            raise KernelMissing(
                f"compiling {self.unit}.cu ended with status {self.process.returncode}: {report[-2000:].strip()}"
            )
        return Image(self.unit, self.path, time.monotonic() - self.began_s, report)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def compile_here(unit: str, architecture: str, path: Path) -> str:
    """Compiles one unit in this process and returns the ptxas report."""
    from cupy.cuda import nvrtc

    program = nvrtc.createProgram(source_of(unit), f"{unit}.cu", (), ())
    try:
        nvrtc.compileProgram(program, options(architecture))
    except nvrtc.NVRTCError as error:
        raise KernelMissing(f"{unit}.cu: {error}\n{nvrtc.getProgramLog(program)}") from error
    # CuPy hands the image out without its last byte (it treats it as text); that byte is a zero of the ELF tail.
    image = nvrtc.getCUBIN(program) + b"\0"
    report = nvrtc.getProgramLog(program)
    partial = path.with_suffix(f".{os.getpid()}.tmp")
    partial.write_bytes(image)
    partial.replace(path)
    return report


if __name__ == "__main__":
    print(compile_here(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
