"""A `cuzk.v1` request becomes a job: PoRep from its C1 wrapper, or a built-in circuit named in `vanilla_proof`.

A built-in circuit is asked for with any proof kind and `vanilla_proof` = JSON
`{"circuit": "sha256-chain:8", "num_circuits": 4, "policy": "recycle"}` (the last two optional).
"""

from __future__ import annotations

import msgspec

from prover.errors import BadRequest
from prover.proto import proving_pb2 as pb
from prover.serve.request import JobRequest, Priority, check, parse_policy

KINDS = {
    pb.POREP_SEAL_COMMIT: "porep-c2",
    pb.SNAP_DEALS_UPDATE: "snap-update",
    pb.WINDOW_POST_PARTITION: "window-post",
    pb.WINNING_POST: "winning-post",
}
_BY_KIND = {"winning-post": Priority.CRITICAL, "window-post": Priority.HIGH}
MAX_CIRCUIT_BYTES = 4096
"""A `vanilla_proof` longer than this does not name a built-in circuit."""


class _BuiltIn(msgspec.Struct, frozen=True):
    circuit: str
    num_circuits: int = 1
    policy: str = ""


def job_request(request: pb.SubmitProofRequest, job_id: str, peer: str) -> JobRequest:
    """The job that an upstream client asks for.

    Raises:
        BadRequest: unknown proof kind, an id that cannot be printed, or a bad field of the JSON.
    """
    if request.proof_kind not in KINDS:
        raise BadRequest(f"invalid proof_kind: {request.proof_kind}")
    kind = KINDS[request.proof_kind]
    priority = _priority(request.priority, kind)
    client = f"cuzk.v1 {peer.split(':', 1)[0]}"
    built_in = _built_in(request.vanilla_proof)
    if built_in is not None:
        return check(
            JobRequest(
                job_id=job_id, circuit=built_in.circuit, num_circuits=built_in.num_circuits, client=client,
                policy=parse_policy(built_in.policy) if built_in.policy else None, kind=kind, priority=priority,
            )
        )  # fmt: skip
    payload = request.vanilla_proof if kind == "porep-c2" else b""
    return check(
        JobRequest(
            job_id=job_id, c1=payload, client=client, kind=kind, priority=priority, miner_id=request.miner_id,
            sector_number=request.sector_number,
        )
    )  # fmt: skip


def _priority(number: int, kind: str) -> Priority:
    """Upstream's rule: 0 means the kind's own, an unknown number means normal."""
    if number == 0:
        return _BY_KIND.get(kind, Priority.NORMAL)
    return Priority(number) if number in Priority.__members__.values() else Priority.NORMAL


def _built_in(payload: bytes) -> _BuiltIn | None:
    if len(payload) > MAX_CIRCUIT_BYTES or b'"circuit"' not in payload:
        return None
    try:
        return msgspec.json.decode(payload, type=_BuiltIn)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"vanilla_proof names a circuit but is malformed: {error}") from None
