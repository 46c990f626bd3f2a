"""`cuzk.v1.ProvingEngine` as upstream's clients see it: what is kept, and what works here that is inert there."""

from __future__ import annotations

import json
import threading

import grpc
import pytest

from prover.files.zcash import decode_proof
from prover.proto import proving_pb2 as pb

from .daemon import Daemon

Status = pb.AwaitProofResponse.Status
LONG = {"circuit": "cubic", "num_circuits": 1024}
"""Runs for many seconds, in small steps."""


def ask(request_id: str = "", kind: int = pb.POREP_SEAL_COMMIT, **vanilla) -> pb.SubmitProofRequest:
    payload = json.dumps(vanilla or {"circuit": "cubic"}).encode()
    return pb.SubmitProofRequest(request_id=request_id, proof_kind=kind, vanilla_proof=payload)


def prove(daemon: Daemon, request: pb.SubmitProofRequest, timeout_s: float = 120) -> pb.AwaitProofResponse:
    return daemon.engine.Prove(pb.ProveRequest(submit=request), timeout=timeout_s).result


def refusal(call, *arguments, **more) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments, timeout=30, **more)
    return caught.value.code(), caught.value.details()


@pytest.fixture
def busy(daemon):
    """The prover at work on a long job, which is cancelled afterwards."""
    job_id = daemon.engine.SubmitProof(ask("", **LONG), timeout=10).job_id
    for event in daemon.events():
        if type(event).__name__ == "StageBegan" and event.job_id == job_id and event.stage == "witness":
            break
    yield job_id
    daemon.engine.CancelProof(pb.CancelProofRequest(job_id=job_id), timeout=10)
    assert daemon.result(job_id).status in (Status.CANCELLED, Status.COMPLETED)


def test_a_circuit_is_proved_and_its_times_are_told(daemon):
    result = prove(daemon, ask("porep-f01000-7", circuit="cubic", num_circuits=3))
    assert (result.job_id, result.status, result.error_message) == ("porep-f01000-7", Status.COMPLETED, "")
    assert len(result.proof) == 3 * 192
    proofs = [result.proof[i : i + 192] for i in range(0, 576, 192)]
    assert len({decode_proof(p).c.tobytes() for p in proofs}) == 3
    parts = result.queue_wait_ms + result.srs_load_ms + result.synthesis_ms + result.gpu_compute_ms
    assert parts <= result.total_ms + 4


def test_an_empty_id_is_replaced_and_the_answer_carries_it(daemon):
    result = prove(daemon, ask())
    assert result.status == Status.COMPLETED and len(result.job_id) == 36


def test_ids_with_spaces_and_brackets_as_curio_makes_them_are_kept(daemon):
    assert prove(daemon, ask("wdpost-1000-0-[1 2 3]")).job_id == "wdpost-1000-0-[1 2 3]"


def test_equal_inputs_give_different_bytes(daemon):
    assert prove(daemon, ask("once")).proof != prove(daemon, ask("twice")).proof


def test_two_callers_of_one_id_get_the_one_proof(daemon, busy):
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(prove(daemon, ask("shared", circuit="cubic")))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    daemon.engine.CancelProof(pb.CancelProofRequest(job_id=busy), timeout=10)
    for thread in threads:
        thread.join()
    assert len(results) == 4 and len({r.proof for r in results}) == 1
    assert prove(daemon, ask("shared", circuit="cubic")).proof == results[0].proof


def test_a_failure_is_a_successful_call(daemon):
    for kind, name in ((pb.SNAP_DEALS_UPDATE, "snap-update"), (pb.WINNING_POST, "winning-post")):
        request = pb.SubmitProofRequest(request_id=f"f-{name}", proof_kind=kind, vanilla_proofs=[b"x", b"y"])
        result = prove(daemon, request)
        assert result.status == Status.FAILED and result.proof == b""
        assert result.error_message.startswith(f"{name} proofs cannot be made by this prover")


@pytest.mark.parametrize(
    "payload", [b"", b"{}", b"\xff" * 100, b'{"SectorNum": 1, "Phase1Out": "AA==", "SectorSize": 2048}']
)
def test_a_c1_output_that_cannot_be_read_is_a_failed_proof(daemon, payload):
    request = pb.SubmitProofRequest(request_id="bad-c1", proof_kind=pb.POREP_SEAL_COMMIT, vanilla_proof=payload)
    result = prove(daemon, request)
    assert result.status == Status.FAILED and result.error_message.startswith("C1 output: "), result.error_message
    assert "internal fault" not in result.error_message and "\n" not in result.error_message


def test_a_circuit_that_does_not_exist_is_a_failed_proof(daemon):
    result = prove(daemon, ask("no-circuit", circuit="sudoku:9"))
    assert result.status == Status.FAILED and "no built-in circuit 'sudoku'" in result.error_message


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (pb.SubmitProofRequest(), "invalid proof_kind: 0"),
        (pb.SubmitProofRequest(proof_kind=9), "invalid proof_kind: 9"),
        (ask("x\n"), "printable characters"),
        (ask("x", circuit="cubic", num_circuits=10**6), "num_circuits is 1000000"),
        (ask("x", circuit="cubic", num_circuits="many"), "malformed"),
        (ask("x", circuit="cubic", policy="never"), "release policy 'never' is unknown"),
    ],
)
def test_a_request_that_cannot_be_understood_is_an_invalid_argument(daemon, request_, text):
    code, details = refusal(daemon.engine.SubmitProof, request_)
    assert code is grpc.StatusCode.INVALID_ARGUMENT and text in details
    assert refusal(daemon.engine.Prove, pb.ProveRequest(submit=request_)) == (code, details)


def test_prove_without_a_request_and_await_of_nobody(daemon):
    assert refusal(daemon.engine.Prove, pb.ProveRequest()) == (
        grpc.StatusCode.INVALID_ARGUMENT, "missing submit field",
    )  # fmt: skip
    assert refusal(daemon.engine.AwaitProof, pb.AwaitProofRequest(job_id="ghost")) == (
        grpc.StatusCode.NOT_FOUND, "job not found: ghost",
    )  # fmt: skip


def test_one_id_for_two_requests_is_refused(daemon, busy):
    code, details = refusal(daemon.engine.SubmitProof, ask(busy, circuit="cubic"))
    assert code is grpc.StatusCode.ALREADY_EXISTS and "belongs to another request" in details


def test_waiting_has_an_end_and_the_job_goes_on(daemon, busy):
    reply = daemon.engine.AwaitProof(pb.AwaitProofRequest(job_id=busy, timeout_ms=50), timeout=10)
    assert reply.status == Status.TIMEOUT and "50 ms" in reply.error_message
    assert [q.in_progress for q in daemon.engine.GetStatus(pb.GetStatusRequest()).queues] == [1]


def test_a_client_that_goes_away_does_not_cancel_its_job(daemon, busy):
    with pytest.raises(grpc.RpcError) as caught:
        prove(daemon, ask("left-alone", circuit="cubic"), timeout_s=0.2)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    daemon.engine.CancelProof(pb.CancelProofRequest(job_id=busy), timeout=10)
    assert daemon.result("left-alone").status == Status.COMPLETED


def test_a_running_and_a_waiting_job_can_be_cancelled(daemon, busy):
    daemon.engine.SubmitProof(ask("queued", circuit="cubic"), timeout=10)
    cancel = daemon.engine.CancelProof
    assert cancel(pb.CancelProofRequest(job_id="queued"), timeout=10).was_running is False
    assert daemon.result("queued").status == Status.CANCELLED
    assert cancel(pb.CancelProofRequest(job_id=busy), timeout=10).was_running is True
    result = daemon.result(busy)
    assert (result.status, result.proof) == (Status.CANCELLED, b"") and busy in result.error_message
    assert cancel(pb.CancelProofRequest(job_id=busy), timeout=10).was_running is False
    assert cancel(pb.CancelProofRequest(job_id="ghost"), timeout=10).was_running is False


def test_a_more_urgent_kind_goes_first(daemon, busy):
    slow = daemon.engine.SubmitProof(ask("normal", pb.POREP_SEAL_COMMIT, circuit="cubic"), timeout=10)
    fast = daemon.engine.SubmitProof(ask("urgent", pb.WINNING_POST, circuit="cubic"), timeout=10)
    assert (slow.queue_position, fast.queue_position) == (1, 1)
    queues = {q.proof_kind: q for q in daemon.engine.GetStatus(pb.GetStatusRequest()).queues}
    assert queues["winning-post"].pending == 1
    assert (queues["porep-c2"].pending, queues["porep-c2"].in_progress) == (1, 1)
    daemon.engine.CancelProof(pb.CancelProofRequest(job_id=busy), timeout=10)
    urgent, normal = daemon.result("urgent"), daemon.result("normal")
    assert normal.status == urgent.status == Status.COMPLETED
    assert normal.queue_wait_ms >= urgent.queue_wait_ms


def test_keys_are_listed_preloaded_and_evicted(daemon):
    engine = daemon.engine
    engine.EvictSRS(pb.EvictSrsRequest(circuit_id="cubic"), timeout=60)
    assert "cubic" not in loaded(daemon)
    first = engine.PreloadSRS(pb.PreloadSrsRequest(circuit_id="cubic"), timeout=120)
    assert first.already_loaded is False
    entry = loaded(daemon)["cubic"]
    assert entry.tier == pb.SRSStatus.HOT and entry.size_bytes > 1000 and entry.ref_count == 0
    again = engine.PreloadSRS(pb.PreloadSrsRequest(circuit_id="cubic"), timeout=120)
    assert (again.already_loaded, again.load_time_ms) == (True, 0)
    evicted = engine.EvictSRS(pb.EvictSrsRequest(circuit_id="cubic"), timeout=60)
    assert (evicted.was_loaded, evicted.freed_bytes) == (True, entry.size_bytes)
    assert engine.EvictSRS(pb.EvictSrsRequest(circuit_id="cubic"), timeout=60).was_loaded is False
    assert prove(daemon, ask("after eviction")).status == Status.COMPLETED
    assert "cubic" in loaded(daemon)


def loaded(daemon: Daemon) -> dict[str, pb.SRSStatus]:
    return {s.circuit_id: s for s in daemon.engine.GetStatus(pb.GetStatusRequest(), timeout=10).loaded_srs}


def test_a_key_nobody_knows_cannot_be_preloaded(daemon):
    code, details = refusal(daemon.engine.PreloadSRS, pb.PreloadSrsRequest(circuit_id="porep-32g"))
    assert code is grpc.StatusCode.INTERNAL and details.startswith("unknown circuit ID: porep-32g")


def test_status_and_metrics_count_what_happened(daemon):
    before = daemon.engine.GetStatus(pb.GetStatusRequest(), timeout=10)
    assert prove(daemon, ask("counted")).status == Status.COMPLETED
    assert prove(daemon, ask("counted-bad", circuit="nothing")).status == Status.FAILED
    after = daemon.engine.GetStatus(pb.GetStatusRequest(), timeout=10)
    assert after.total_proofs_completed == before.total_proofs_completed + 1
    assert after.total_proofs_failed == before.total_proofs_failed + 1
    assert list(after.queues) == [] and list(after.gpus) == []
    text = daemon.engine.GetMetrics(pb.GetMetricsRequest(), timeout=10).prometheus_text
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert int(lines["cuzk_proofs_completed_total"]) == after.total_proofs_completed
    assert int(lines['cuzk_proofs_completed{proof_kind="porep_c2"}']) >= 1
    assert float(lines['cuzk_proof_duration_seconds_sum{proof_kind="porep_c2"}']) > 0
    assert lines["cuzk_queue_depth"] == lines["cuzk_running_jobs"] == "0"


def test_a_request_larger_than_upstream_takes_is_taken(daemon):
    request = pb.SubmitProofRequest(
        request_id="large", proof_kind=pb.SNAP_DEALS_UPDATE, vanilla_proofs=[bytes(70 << 20)] * 2
    )
    assert prove(daemon, request).status == Status.FAILED
