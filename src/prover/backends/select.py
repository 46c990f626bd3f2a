"""Which backend a name means on this host; `auto` is the GPU where one can be used and the CPU otherwise."""

from __future__ import annotations

import ctypes
import os

from prover.backends import Backend
from prover.errors import BackendError, BadRequest


def default_threads() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0))


def make_backend(name: str, threads: int, placement: str = "auto") -> tuple[Backend, str]:
    """The backend, and why it is not the GPU (empty where it is, or where nobody asked).

    Args:
        placement: where a GPU's proving keys live between proofs: on the card, on the host, or wherever they fit.

    Raises:
        BackendError: the backend that was asked for cannot run here.
        BadRequest: no backend has this name.
    """
    if name == "reference":
        from prover.reference.backend import ReferenceBackend

        return ReferenceBackend(), ""
    if name in ("cuda", "auto"):
        try:
            return _cuda(placement), ""
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


def _cuda(placement: str) -> Backend:
    try:
        # The driver's own library first: importing CuPy to learn that there is none costs more than a second.
        ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise BackendError("no NVIDIA driver on this host (libcuda.so.1 is not found)") from error
    try:
        from prover.backends.cuda.backend import CudaBackend
        from prover.backends.cuda.resident import Placement
    except ImportError as error:
        raise BackendError(f"no GPU backend: {error}; install the extra cuda12 or cuda13") from error
    return CudaBackend(placement=Placement(placement))
