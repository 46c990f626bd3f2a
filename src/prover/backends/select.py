"""Which backend a name means on this host; `auto` is the GPU where one can be used and the CPU otherwise."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence

from prover.backends import Backend
from prover.errors import BackendError, BadRequest


def default_threads() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0))


def make_backend(
    name: str, threads: int, placement: str = "auto", gpus: Sequence[int] = ()
) -> tuple[Backend, str]:  # fmt: skip
    """The backend, and why it is not the GPU (empty where it is, or where nobody asked).

    Args:
        placement: where a GPU's proving keys live between proofs: on the card, on the host, or wherever they fit.
        gpus: CUDA numbers of the cards to use; every one that CUDA shows where none is named.

    Raises:
        BackendError: the backend that was asked for cannot run here.
        BadRequest: no backend has this name, or no card this number.
    """
    if name == "reference":
        from prover.reference.backend import ReferenceBackend

        return ReferenceBackend(), ""
    if name in ("cuda", "auto"):
        try:
            return _cuda(placement, gpus), ""
        except BackendError as error:
            if name == "cuda":
                raise
            reason = str(error)
    elif name == "cpu":
        reason = ""
    else:
        raise BadRequest(f"backend {name} is unknown; there are auto, cpu, cuda and reference")
    from prover.backends.cpu.backend import CpuBackend

    return CpuBackend(threads), reason


def _cuda(placement: str, gpus: Sequence[int]) -> Backend:
    try:
        # The driver's own library first: importing CuPy to learn that there is none costs more than a second.
        ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise BackendError("no NVIDIA driver on this host (libcuda.so.1 is not found)") from error
    # Numbers are then those of nvidia-smi, as far as CUDA_VISIBLE_DEVICES leaves them.
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    try:
        from prover.backends.cuda.backend import CudaBackend
        from prover.backends.cuda.device import device_count
        from prover.backends.cuda.resident import Placement
    except ImportError as error:
        raise BackendError(f"no GPU backend: {error}; install the extra cuda12 or cuda13") from error
    where = Placement(placement)
    return over_cards(gpus, device_count(), lambda index: CudaBackend(index, placement=where))


def over_cards(gpus: Sequence[int], count: int, open_card: Callable[[int], Backend]) -> Backend:
    """One card's own backend, or a Spread over several; a card that cannot be opened is left out, and said.

    Args:
        gpus: which; all where empty.
        count: number of cards there are.

    Raises:
        BackendError: what kept the first card from being opened, where none can be.
        BadRequest: a number in `gpus` is no card's.
    """
    for index in gpus:
        if not 0 <= index < count:
            raise BadRequest(f"--gpus {index}: CUDA shows {count} here, numbered from 0")
    opened, failed = [], []
    for index in gpus or range(count):
        try:
            opened.append(open_card(index))
        except BackendError as error:
            failed.append(error)
    if not opened:
        raise failed[0] if failed else BackendError("CUDA shows no GPU here; look at CUDA_VISIBLE_DEVICES")
    if len(opened) == 1 and not failed:
        return opened[0]
    from prover.backends.spread import Spread

    return Spread(opened, [str(error) for error in failed])
