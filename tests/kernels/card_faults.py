"""Breaks its own process's use of a GPU in one way and says what came of it; a broken context dies with the process.

Usage: python card_faults.py lost | image | lost-of-several NUMBER
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from proving import BLINDING, with_new_key

from prover import wire
from prover.arena import Arena
from prover.backends.cpu.backend import CpuBackend
from prover.backends.cuda import compile as compiler
from prover.backends.cuda.backend import CudaBackend
from prover.backends.cuda.device import Device
from prover.backends.select import default_threads, make_backend
from prover.backends.spread import Spread
from prover.errors import ProverError
from prover.jobs import Prover
from prover.run import Run, silent
from prover.wire import Policy


class Nowhere:
    """Memory that no card has."""

    address, size_bytes = 4096, 1 << 20


def lose() -> None:
    """A right proof, one whose kernels read an illegal address, one after that, and the end of the prover."""
    backend = CudaBackend()
    backend.warm_up(silent())
    arena = Arena(lambda _event: None, pinner=backend.pinner)
    prover, workload = Prover(backend, arena), with_new_key("poseidon-merkle:1")
    load_key = backend.load_key

    def broken(key, run):
        made = load_key(key, run)
        made.h = Nowhere()
        return made

    for policy in (Policy.RECYCLE, Policy.SYNC_HUGE, Policy.ASYNC_4K):
        began = time.perf_counter()
        try:
            print("verified", prover.run_job(workload, policy, silent(), blinding=BLINDING).verified)
            prover.evict()
            backend.load_key = broken
        except ProverError as error:
            print(f"{type(error).__name__} after {time.perf_counter() - began:.1f} s: {error}")
    prover.close()
    print("left", len(arena.live_buffers()), "buffers and", arena.pending_bytes, "bytes")


def load_wrong_images() -> None:
    """Kernels of another architecture, and none at all behind the first bytes of a file."""
    device = Device()
    other = "90" if device.architecture.startswith("8") else "80"
    with TemporaryDirectory() as folder:
        damaged = Path(folder) / "damaged.cubin"
        damaged.write_bytes(compiler.ELF_MAGIC + bytes(1000))
        for images in (compiler.compile_units(["scalars"], other), [compiler.Image("scalars", damaged, 0.0, "")]):
            broken = Device()
            try:
                broken.load(images)
                broken.launch("scalar_digits", 1, 128)
                print("launched")
            except ProverError as error:
                print(f"{type(error).__name__}: {error}")


def lose_one_of_several() -> None:
    """A right proof over all cards, one that loses a card, two after it, one on the CPU, and the end of the prover."""
    backend, _ = make_backend("cuda", default_threads())
    assert isinstance(backend, Spread)
    backend.warm_up(silent())
    said: list[wire.Event] = []
    arena = Arena(said.append, pinner=backend.pinner)
    prover, workload = Prover(backend, arena), with_new_key("poseidon-merkle:1")
    for turn, policy in enumerate((Policy.RECYCLE, Policy.RECYCLE, Policy.RECYCLE, Policy.SYNC_HUGE)):
        if turn == 1:
            (resident, _), = prover._keys.values()
            resident.parts[int(sys.argv[2])].resident.h = Nowhere()
        try:
            result = prover.run_job(workload, policy, Run(said.append, "job"), blinding=BLINDING)
            print("verified", result.verified, ", ".join(backend.devices))
        except ProverError as error:
            print(f"{type(error).__name__}: {error}")
    cpu = Prover(CpuBackend(default_threads()), arena)
    print("on the cpu", cpu.run_job(workload, Policy.SYNC_4K, silent(), blinding=BLINDING).verified, backend.devices)
    cpu.evict()
    prover.close()
    kept = [event.label for event in said if isinstance(event, wire.BufferLeaked)]
    print("left", len(arena.live_buffers()), "buffers and", arena.pending_bytes, "bytes, kept", len(kept))


if __name__ == "__main__":
    {"lost": lose, "image": load_wrong_images, "lost-of-several": lose_one_of_several}[sys.argv[1]]()
