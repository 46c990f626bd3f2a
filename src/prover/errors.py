"""Every failure this package raises on purpose is a ProverError; the CLI and the service map nothing else."""

from __future__ import annotations


class ProverError(Exception):
    """One sentence: what is wrong, where, and what to do. `exit_code` is what a command ends with."""

    exit_code = 2


class BadFile(ProverError):
    """A file's bytes are not what its format demands.

    Args:
        path: the file as the user named it.
        place: section, field or offset, e.g. ``section 4, offset 1032``.
        fault: what is wrong there, and the remedy where there is one.
    """

    def __init__(self, path: object, place: str, fault: str) -> None:
        super().__init__(f"{path}: {place}: {fault}" if place else f"{path}: {fault}")
        self.path, self.place, self.fault = str(path), place, fault


class Mismatch(ProverError):
    """Two inputs that are each valid do not belong together (key and circuit, key and witness)."""


class BadVanillaProof(ProverError):
    """A C1 output contradicts itself, its graph or its sector, so that no proof of it could verify.

    Args:
        source: the file as the user named it.
        check: one word for the rule that is broken, e.g. ``labels``.
        place: partition, challenge, part; empty where the whole output is meant.
        fault: what is wrong there.
    """

    def __init__(self, source: object, check: str, place: str, fault: str) -> None:
        super().__init__(": ".join(part for part in (str(source), f"check of {check}", place, fault) if part))
        self.check, self.place, self.fault = check, place, fault


class InvalidPoint(ProverError):
    """A point is off its curve or outside the prime-order subgroup."""


class UnsatisfiedWitness(ProverError):
    """The witness breaks a constraint; `row` is the first one, `detail` names gadget or wires."""

    def __init__(self, row: int, detail: str = "") -> None:
        super().__init__(f"witness does not satisfy constraint {row}" + (f" ({detail})" if detail else ""))
        self.row, self.detail = row, detail


class DomainTooLarge(ProverError):
    """More rows than the largest power-of-two domain that Fr has (2**32)."""


class UnknownCircuit(ProverError):
    """No built-in circuit has this name, or its parameter is out of range."""


class BadRequest(ProverError):
    """A request to the service or the command line cannot be carried out as asked."""


class WontFit(ProverError):
    """Admission refused a job or a setup: its predicted peak exceeds what host or cgroup can give."""

    def __init__(
        self, predicted_bytes: int, available_bytes: int, what: str, subject: str = "job",
        remedy: str = "use fewer circuits, another policy, or free memory",
    ) -> None:  # fmt: skip
        super().__init__(
            f"{subject} needs {predicted_bytes / 1e9:.1f} GB at its peak and {what} has {available_bytes / 1e9:.1f} GB;"
            f" {remedy}"
        )
        self.predicted_bytes, self.available_bytes = predicted_bytes, available_bytes


class Cancelled(ProverError):
    """The job was cancelled between two chunks of work."""

    exit_code = 130


class ProofRejected(ProverError):
    """A finished proof did not verify and was not handed out."""

    exit_code = 1


class BackendError(ProverError):
    """A backend cannot run here (no device, no driver, no kernel image, out of device memory, device lost)."""


class WireError(ProverError):
    """A line of an event stream is not an event, or its schema is another one."""
