"""Every kernel a proof needs, compiled on two cores with an empty cache; and, on a card, loaded from a full one.

Usage: python benchmarks/gpu_compile.py --out FOLDER [ARCHITECTURE...]   (default: the card's; 80 90 120 without one)
Asked for: 60 s in all, 30 s a unit, 0.5 s to load. Cores may be shared, so the compilers' CPU time stands beside the
wall; with two workers on two cores idle otherwise, the wall is about half of it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpu_session import machine, say

from prover.backends.cuda.compile import UNITS, compile_units
from prover.backends.cuda.device import Device
from prover.errors import BackendError

CORES = 2
ONE_OF_EACH = (
    "g1_reduce_chunks", "g2_reduce_chunks", "g1_fill_table", "g2_fill_table", "g1_singles", "g2_singles", "ntt_pass",
    "count_bins", "classify_scalars",
)  # fmt: skip
"""A kernel of every unit: the driver loads a unit when the first of its kernels is asked for."""


@contextmanager
def two_cores() -> Iterator[list[int]]:
    """Processes started inside run on two of this one's cores."""
    before = os.sched_getaffinity(0)
    chosen = sorted(before)[:CORES]
    os.sched_setaffinity(0, chosen)
    try:
        yield chosen
    finally:
        os.sched_setaffinity(0, before)


def cold(architecture: str) -> dict[str, object]:
    """Seconds of a compile into the empty cache."""
    before, began = os.times(), time.perf_counter()
    with two_cores() as cores:
        images = compile_units(
            UNITS, architecture, workers=CORES, on_progress=lambda done, of, unit: say(architecture, done, of, unit)
        )
    wall_s, after = time.perf_counter() - began, os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    seconds = {i.unit: round(i.seconds, 2) for i in sorted(images, key=lambda i: -i.seconds)}
    slowest = next(iter(seconds))
    return {
        "cores": cores, "wall_s": round(wall_s, 2), "cpu_s": round(cpu_s, 2), "slowest": slowest,
        "slowest_s": seconds[slowest], "unit_s": seconds,
    }  # fmt: skip


def warm(architecture: str, device: Device) -> dict[str, float]:
    """Seconds from a full cache to kernels that can be launched."""
    began = time.perf_counter()
    images = compile_units(UNITS, architecture)
    found = time.perf_counter()
    device.load(images)
    for kernel in ONE_OF_EACH:
        device.resources(kernel)
    loaded = time.perf_counter()
    return {
        "cache_s": round(found - began, 4), "load_s": round(loaded - found, 4), "total_s": round(loaded - began, 4)
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("architectures", nargs="*")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "benchmarks/results")))
    arguments = parser.parse_args()
    try:
        card = Device()
    except BackendError as error:
        say(error)
        card = None
    own = card.architecture if card else ""
    results: dict[str, object] = {"machine": machine()}
    for architecture in arguments.architectures or ([own] if card else ["80", "90", "120"]):
        with tempfile.TemporaryDirectory() as cache:
            os.environ["CUZK_CUBIN_CACHE"] = cache
            row = {"cold": cold(architecture)}
            if card and architecture == own:
                row["warm"] = warm(architecture, card)
        results[f"sm_{architecture}"] = row
        say(f"sm_{architecture}", json.dumps(row))
        (arguments.out / "gpu_compile.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
