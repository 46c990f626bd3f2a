"""A request is checked here, once, before it may wait in the queue; what passes names exactly one thing to prove."""

from __future__ import annotations

import hashlib
import os
import secrets
from dataclasses import dataclass, replace
from enum import IntEnum

from prover.errors import BadRequest
from prover.wire import Policy

BACKENDS = ("cpu", "cuda", "reference")
PLACEMENTS = ("auto", "device", "host")
MAX_ID_CHARS = 256
MAX_CIRCUITS = 1024
"""More would make the line of a finished job's event longer than a line may be."""
MAX_TEXT_CHARS = 4096


class Priority(IntEnum):
    """Numbers of upstream's wire; a higher one goes first."""

    LOW = 1
    NORMAL = 2
    HIGH = 3
    CRITICAL = 4


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What a client asks for. Exactly one of `circuit`, `zkey_path`, `c1_path` and `c1` is set."""

    job_id: str
    circuit: str = ""
    """A built-in circuit, such as `sha256-chain:8`."""
    num_circuits: int = 1
    policy: Policy | None = None
    """None: the prover's policy at the time the job starts."""
    client: str = ""
    zkey_path: str = ""
    wtns_path: str = ""
    c1_path: str = ""
    c1: bytes | None = None
    """The wrapper that a PoRep client sends, JSON, as it came."""
    key_path: str = ""
    backend: str = ""
    kind: str = "circuit"
    """circuit | file | porep-c2: names a queue in the status."""
    priority: Priority = Priority.NORMAL
    miner_id: int = 0
    sector_number: int = 0

    @property
    def size_bytes(self) -> int:
        """What the request itself holds while it waits."""
        return len(self.c1 or b"")

    @property
    def title(self) -> str:
        """What a screen calls the job's circuit."""
        if self.circuit:
            return self.circuit
        path = self.zkey_path or self.c1_path
        return os.path.basename(path) if path else "porep"

    def without_payload(self) -> JobRequest:
        """What may be kept of it once the job has ended."""
        return replace(self, c1=None)

    def fingerprint(self) -> bytes:
        """Identity of everything but the id: two requests of one id and one fingerprint are the same job."""
        parts = (
            self.circuit, str(self.num_circuits), self.policy or "", self.zkey_path, self.wtns_path, self.c1_path,
            self.key_path, self.backend, self.kind, str(self.miner_id), str(self.sector_number),
        )  # fmt: skip
        digest = hashlib.sha256("\0".join(parts).encode())
        digest.update(self.c1 or b"")
        return digest.digest()


def new_job_id(number: int) -> str:
    """Short, and unlike the ids of a prover that ran before this one."""
    return f"{number}-{secrets.token_hex(2)}"


def check(request: JobRequest) -> JobRequest:
    """The request itself, once everything that needs no file and no circuit was looked at.

    Raises:
        BadRequest: names the field, its value's fault and what is allowed.
    """
    check_id(request.job_id)
    sources = [bool(request.circuit), bool(request.zkey_path), bool(request.c1_path) or request.c1 is not None]
    if sum(sources) != 1:
        raise BadRequest("a job is one of: a circuit, a zkey with its witness, a PoRep C1 output")
    if bool(request.zkey_path) != bool(request.wtns_path):
        raise BadRequest("zkey_path and wtns_path go together")
    if not 1 <= request.num_circuits <= MAX_CIRCUITS:
        raise BadRequest(f"num_circuits is {request.num_circuits}; 1 to {MAX_CIRCUITS} are possible")
    for name in ("circuit", "client", "zkey_path", "wtns_path", "c1_path", "key_path", "backend"):
        text = getattr(request, name)
        if len(text) > MAX_TEXT_CHARS or not text.isprintable():
            raise BadRequest(f"{name} is too long or holds unprintable characters")
        if name.endswith("_path") and text and not os.path.isabs(text):
            raise BadRequest(f"{name} {text} is not absolute; the prover has another working directory")
    if request.backend not in ("", *BACKENDS):
        raise BadRequest(f"backend {request.backend} is unknown; there are {', '.join(BACKENDS)}")
    return request


def check_id(job_id: str) -> str:
    """The id, if it can be printed and logged.

    Raises:
        BadRequest: it is longer than MAX_ID_CHARS or holds unprintable characters.
    """
    if len(job_id) > MAX_ID_CHARS or not job_id.isprintable():
        raise BadRequest(f"a job id is at most {MAX_ID_CHARS} printable characters")
    return job_id


def parse_policy(text: str) -> Policy:
    """The policy of that name.

    Raises:
        BadRequest: no policy has it.
    """
    try:
        return Policy(text)
    except ValueError:
        raise BadRequest(f"release policy {text!r} is unknown; there are {', '.join(Policy)}") from None
