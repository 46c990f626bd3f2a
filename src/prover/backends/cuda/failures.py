"""What can be wrong with a GPU, one class each, every message with its remedy."""

from __future__ import annotations

from prover.errors import BackendError


class NoDevice(BackendError):
    """No GPU, no driver, a driver too old for the toolkit, or CuPy is not installed."""


class OutOfDeviceMemory(BackendError):
    """The card has no room for what a step needs."""

    def __init__(self, needed_bytes: int, free_bytes: int, device: str) -> None:
        super().__init__(
            f"{device} has {free_bytes / 1e9:.1f} GB free and a step needs {needed_bytes / 1e9:.1f} GB; "
            "prove fewer circuits at once, end other programs on that GPU, or prove with --backend cpu"
        )
        self.needed_bytes, self.free_bytes = needed_bytes, free_bytes


class DeviceLost(BackendError):
    """A fault or a fall off the bus: nothing on any card of this process can be used any more.

    CUDA says of most of these errors that they leave the process in an inconsistent state, in which all further work
    returns the same error, until it is ended and started again (its Runtime API, `cudaError`). That this goes for the
    other cards of the process too was measured on two H200.
    """

    def __init__(self, device: str, detail: str) -> None:
        super().__init__(f"{device} is lost ({detail}); {AFTER_A_LOSS}")
        self.ever_after = (
            f"{device} was lost ({detail}), and with one card CUDA gives up all of a process; {AFTER_A_LOSS}"
        )
        """What every later job is refused with."""


class KernelMissing(BackendError):
    """The kernels could not be compiled or loaded for this architecture."""


AFTER_A_LOSS = (
    "restart the prover (`r` in the console), and if it happens again look at `dmesg` for Xid lines or prove with "
    "--backend cpu"
)
NO_IMAGE = ("NO_BINARY_FOR_GPU", "InvalidDeviceFunction", "NoKernelImageForDevice", "INVALID_IMAGE", "INVALID_PTX")
FATAL = (
    "ILLEGALADDRESS", "ILLEGAL_ADDRESS", "LAUNCHFAIL", "LAUNCH_FAILED", "LAUNCHTIMEOUT", "LAUNCH_TIMEOUT", "ECC",
    "HARDWARESTACK", "HARDWARE_STACK", "ILLEGALINSTRUCTION", "ILLEGAL_INSTRUCTION", "MISALIGNED", "ASSERT", "LOST",
    "CONTEXTISDESTROYED", "CONTEXT_IS_DESTROYED",
)  # fmt: skip
"""Parts of the driver's error names after which a context is dead."""


def from_cupy(error: Exception, device: str) -> BackendError:
    """The class above that a CuPy or driver exception means."""
    text = str(error)
    name = type(error).__name__
    if name == "OutOfMemoryError" or "MemoryAllocation" in text or "OUT_OF_MEMORY" in text:
        return OutOfDeviceMemory(getattr(error, "_size", 0), free_bytes(), device)
    if "InsufficientDriver" in text or "driver version" in text:
        return NoDevice(
            f"there is no NVIDIA driver, or it is older than CuPy's CUDA toolkit ({text.splitlines()[0]}); install or "
            "update the driver, take the cuda12 extra, or prove with --backend cpu"
        )
    if "NoDevice" in text or "no CUDA-capable device" in text or "libcuda" in text:
        return NoDevice(f"no CUDA device: {text}; install the NVIDIA driver or prove with --backend cpu")
    if "DevicesUnavailable" in text or "DEVICE_UNAVAILABLE" in text:
        return NoDevice(
            f"{device} is in use ({text.splitlines()[0]}): another program has it to itself, or its compute mode "
            "forbids it; end that program, choose other cards with --gpus, or prove with --backend cpu"
        )
    if any(name in text for name in NO_IMAGE):
        return KernelMissing(f"no kernel image for {device} ({text}); delete the cubin cache and start again")
    if any(word in text.upper().replace(" ", "") for word in FATAL):
        return DeviceLost(device, text.splitlines()[0])
    what = text.splitlines()[0] if text else name
    return BackendError(f"{device}: {what}; prove with --backend cpu if it happens again")


def free_bytes() -> int:
    """Free device memory, 0 where it cannot be asked."""
    try:
        import cupy

        return int(cupy.cuda.runtime.memGetInfo()[0])
    except Exception:  # the card that failed may not answer
        return 0
