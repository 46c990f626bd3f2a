"""`cuzktui.v1.Console`: the event stream of real proofs, policies, cancelling and the status page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import grpc
import pytest

from prover import wire
from prover.proto import console_pb2 as pb
from prover.proto import console_pb2_grpc, proving_pb2
from prover.wire import Outcome, Policy, Stage

from .daemon import Daemon

DATA = Path(__file__).resolve().parents[2] / "data" / "snarkjs_2p10"


def events_of(daemon: Daemon, circuit: str, **fields) -> list[wire.Event]:
    """Everything a watcher hears from before a job was submitted until it has ended."""
    heard: list[wire.Event] = []
    job_id = ""
    for event in daemon.events():
        if isinstance(event, wire.State):
            job_id = daemon.submit(circuit, **fields)
        heard.append(event)
        if isinstance(event, wire.JobEnded) and event.job_id == job_id:
            return heard
    raise AssertionError("the stream ended")


def present_of(daemon: Daemon) -> list[wire.Event]:
    """What a new watcher is told before anything new happens."""
    present, number = [], 0
    stream = daemon.events()
    for event in stream:
        if isinstance(event, wire.State):
            number = event.seq
            daemon.console.SetPolicy(pb.PolicyRequest(policy=other(event.policy)), timeout=10)
            daemon.console.SetPolicy(pb.PolicyRequest(policy=str(event.policy)), timeout=10)
        if event.seq > number:
            stream.close()
            return present
        present.append(event)
    raise AssertionError("the stream ended")


def other(policy: Policy) -> str:
    return next(str(p) for p in Policy if p is not policy)


def test_the_story_of_a_job_is_whole_and_in_order(daemon):
    heard = events_of(daemon, "cubic", num_circuits=2, client="test")
    numbers = [e.seq for e in heard if e.seq]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    live = [e for e in heard if e.seq > numbers[0]]
    mine = next(e for e in live if isinstance(e, wire.JobSubmitted))
    story = [e for e in live if getattr(e, "job_id", None) == mine.job_id]
    assert (mine.circuit, mine.num_circuits, mine.client) == ("cubic", 2, "test")
    tops = [e.stage for e in story if isinstance(e, wire.StageBegan) and e.stage in wire.TOP_STAGES]
    assert list(dict.fromkeys(tops)) == [
        Stage.QUEUE, Stage.SETUP, Stage.SRS, Stage.SYNTH, Stage.PROVE, Stage.VERIFY,
    ]  # fmt: skip
    began = [(e.stage, e.circuit) for e in story if isinstance(e, wire.StageBegan)]
    ended = [(e.stage, e.circuit) for e in story if isinstance(e, wire.StageEnded) and e.ok]
    assert sorted(began, key=str) == sorted(ended, key=str)
    sized = [e for e in story if isinstance(e, wire.JobSubmitted)][-1]
    assert sized.num_constraints and sized.domain_size and sized.t_ns == mine.t_ns
    end = story[-1]
    assert isinstance(end, wire.JobEnded) and end.outcome is Outcome.PROVED and end.verified
    assert len(end.proof_hex) == 2 * 2 * 192 and len(end.public_inputs) == 2
    inner = next(e for e in story if isinstance(e, wire.InnerEnded))
    outer = next(e for e in story if isinstance(e, wire.OuterEnded))
    assert inner.inner_ns <= outer.outer_ns


def test_the_parts_of_a_job_add_up_to_what_a_watcher_measures(daemon):
    heard = events_of(daemon, "cubic", num_circuits=16)
    end = heard[-1]
    first = next(e for e in heard if isinstance(e, wire.JobSubmitted) and e.job_id == end.job_id)
    m = end.metrics
    parts = sum(m[f"{name}_ms"] for name in ("queue", "setup", "srs", "synth", "outer", "verify"))
    assert parts == pytest.approx(m["total_ms"], rel=0.001)
    assert m["gap_ms"] == pytest.approx(m["outer_ms"] - m["inner_ms"], abs=0.01)
    assert (end.t_ns - first.t_ns) / 1e6 == pytest.approx(m["total_ms"], rel=0.02, abs=10)


@pytest.mark.parametrize("policy", list(Policy))
def test_every_buffer_a_job_allocates_is_given_back_under_every_policy(daemon, policy):
    heard = events_of(daemon, "cubic", policy=str(policy))
    job_id = heard[-1].job_id
    assert heard[-1].metrics["policy"] == policy
    held = {e.buffer_id for e in heard if isinstance(e, wire.BufferAllocated) and e.job_id == job_id}
    assert held
    held -= {e.buffer_id for e in heard if isinstance(e, wire.BufferReleased)}
    if policy.startswith("sync"):
        assert not held
    for event in daemon.events():  # an asynchronous release may be on its way still
        if isinstance(event, wire.State):
            daemon.submit("cubic", policy=str(policy))
        if isinstance(event, wire.BufferAllocated) and event.seq == 0 and event.job_id == job_id:
            assert event.buffer_id in held
        if isinstance(event, wire.BufferReleased):
            held.discard(event.buffer_id)
        if isinstance(event, wire.JobEnded):
            break
    present = [e for e in present_of(daemon) if isinstance(e, wire.BufferAllocated)]
    assert all(e.job_id != job_id for e in present)


def test_a_second_watcher_in_the_middle_of_a_job_hears_of_it(daemon):
    stream = daemon.events()
    job_id = ""
    for event in stream:
        if isinstance(event, wire.State):
            job_id = daemon.submit("cubic", num_circuits=1024)
        if isinstance(event, wire.StageBegan) and event.job_id == job_id and event.stage is Stage.SYNTH:
            break
    late = daemon.events()
    assert isinstance(next(late), wire.Hello)
    state = next(late)
    assert isinstance(state, wire.State) and state.running == job_id
    past = []
    for event in late:
        if event.seq:
            break
        past.append(event)
    assert any(isinstance(e, wire.JobSubmitted) and e.job_id == job_id for e in past)
    assert any(isinstance(e, wire.StageBegan) and e.stage is Stage.SYNTH for e in past)
    assert any(isinstance(e, wire.BufferAllocated) for e in past)
    reply = daemon.console.Cancel(pb.CancelRequest(), timeout=10)
    assert (reply.was_running, reply.was_queued) == (True, False)
    end = next(e for e in late if isinstance(e, wire.JobEnded))
    assert (end.job_id, end.outcome) == (job_id, Outcome.CANCELLED)


def test_a_policy_can_be_changed_for_the_jobs_to_come(daemon):
    stream = daemon.events()
    state = [next(stream), next(stream)][1]
    try:
        assert daemon.console.SetPolicy(pb.PolicyRequest(policy="sync-4k"), timeout=10).policy == "sync-4k"
        assert next(e for e in stream if isinstance(e, wire.PolicyChanged)).policy is Policy.SYNC_4K
        assert events_of(daemon, "cubic")[-1].metrics["policy"] == "sync-4k"
        assert daemon.console.SetPolicy(pb.PolicyRequest(), timeout=10).policy == "sync-4k"
    finally:
        daemon.console.SetPolicy(pb.PolicyRequest(policy=str(state.policy)), timeout=10)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "a job is one of"),
        ({"circuit": "cubic", "policy": "yes"}, "release policy 'yes' is unknown"),
        ({"circuit": "cubic", "num_circuits": 2000}, "num_circuits is 2000"),
        ({"zkey_path": "relative.zkey", "wtns_path": "/w"}, "not absolute"),
    ],
)
def test_a_bad_submission_is_an_invalid_argument(daemon, fields, text):
    with pytest.raises(grpc.RpcError) as caught:
        daemon.console.Submit(pb.SubmitRequest(**fields), timeout=10)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT and text in caught.value.details()


def test_a_file_that_does_not_exist_fails_its_job_by_name(daemon):
    end = events_of(daemon, "", zkey_path="/nowhere/x.zkey", wtns_path="/nowhere/x.wtns")[-1]
    assert end.outcome is Outcome.FAILED and end.error.startswith("/nowhere/x.zkey")


def test_a_zkey_with_its_witness_is_proved_and_its_key_listed(daemon):
    files = {"zkey_path": str(DATA / "small.zkey"), "wtns_path": str(DATA / "small.wtns")}
    end = events_of(daemon, "", **files)[-1]
    assert end.outcome is Outcome.PROVED and end.verified, end.error
    assert end.public_inputs == [json.loads((DATA / "small_public.json").read_text())]
    status = daemon.engine.GetStatus(proving_pb2.GetStatusRequest(), timeout=10)
    assert "small.zkey" in {entry.circuit_id for entry in status.loaded_srs}


def test_files_are_not_taken_from_the_network():
    daemon = Daemon("--listen", "127.0.0.1:0", backend="reference")
    try:
        port = int(re.search(r"127\.0\.0\.1:(\d+)", daemon.process.stdout.readline())[1])
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = console_pb2_grpc.ConsoleStub(channel)
            with pytest.raises(grpc.RpcError) as caught:
                stub.Submit(pb.SubmitRequest(zkey_path="/etc/shadow", wtns_path="/etc/shadow"), timeout=10)
            assert "unix socket only" in caught.value.details()
            assert len(stub.ListCircuits(pb.ListCircuitsRequest(), timeout=60).usage) == 3
    finally:
        assert daemon.end()[0] == 0


def test_circuits_are_listed_with_their_usage(daemon):
    usage = daemon.console.ListCircuits(pb.ListCircuitsRequest(), timeout=60).usage
    assert [line.split(":")[0] for line in usage] == ["sha256-chain", "poseidon-merkle", "cubic"]


def test_a_busy_prover_refuses_a_shutdown_and_says_how_many_jobs_it_has(daemon):
    job_id = daemon.submit("cubic", num_circuits=1024)
    reply = daemon.console.Shutdown(pb.ShutdownRequest(), timeout=10)
    assert (reply.accepted, reply.jobs_of_others) == (False, 1)
    daemon.console.Cancel(pb.CancelRequest(job_id=job_id), timeout=10)
    daemon.result(job_id)
