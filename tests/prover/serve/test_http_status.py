"""GET /status: upstream's JSON, truthful, for a prover at rest, at work and after."""

from __future__ import annotations

import json
import re
import socket
import urllib.error
import urllib.request

import pytest

from prover import wire
from prover.proto import proving_pb2
from prover.serve.http_status import TIMEOUT_S

from .daemon import Daemon


@pytest.fixture(scope="module")
def page():
    daemon = Daemon("--status-listen", "127.0.0.1:0")
    line = daemon.process.stdout.readline()
    yield daemon, re.search(r"http://\S+/status", line)[0]
    assert daemon.end()[0] == 0


def read(url: str) -> dict:
    with urllib.request.urlopen(url, timeout=10) as reply:
        assert reply.headers["Content-Type"] == "application/json"
        assert reply.headers["Access-Control-Allow-Origin"] == "*"
        return json.loads(reply.read())


def test_a_prover_at_rest(page):
    status = read(page[1])
    assert set(status) == {
        "uptime_secs", "memory", "synthesis", "pipelines", "gpu_workers", "allocations", "counters", "buffers",
    }  # fmt: skip
    assert status["pipelines"] == status["gpu_workers"] == []
    memory = status["memory"]
    assert memory["total_bytes"] == memory["used_bytes"] + memory["available_bytes"] > 0
    assert status["counters"]["queue_depth"] == 0


def test_a_job_from_waiting_to_done(page):
    daemon, url = page
    first = daemon.submit("cubic", num_circuits=512, job_id="first")
    daemon.submit("cubic", num_circuits=2, job_id="second")
    waiting = {p["job_id"]: p for p in read(url)["pipelines"]}["second"]
    assert [p["state"] for p in waiting["partitions"]] == ["pending", "pending"]
    assert waiting["partitions"][0]["synth_ms"] is None
    for event in daemon.events():
        if isinstance(event, wire.StageBegan) and event.job_id == first and (event.circuit or 0) > 3:
            break
    status = read(url)
    running = {p["job_id"]: p for p in status["pipelines"]}["first"]
    assert running["proof_kind"] == "circuit" and running["total_partitions"] == 512
    assert running["partitions"][0]["state"] in ("synth_done", "gpu") and running["partitions"][0]["synth_ms"] >= 0
    assert status["memory"]["used_bytes"] > 0 and status["buffers"]["aux_in_flight"] > 0
    daemon.engine.CancelProof(proving_pb2.CancelProofRequest(job_id=first), timeout=10)
    daemon.result("second")
    done = {p["job_id"]: p for p in read(url)["pipelines"]}
    assert {p["state"] for p in done["first"]["partitions"]} == {"failed"}
    assert done["second"]["partitions_done"] == 2
    assert all(p["synth_ms"] is not None and p["gpu_ms"] is not None for p in done["second"]["partitions"])
    after = read(url)
    assert after["counters"]["completed_by_kind"] == {"circuit": 1}
    assert after["allocations"]["srs"][0]["circuit_id"] == "cubic" and after["allocations"]["srs"][0]["evictable"]


def test_anything_else_is_not_found(page):
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(page[1].replace("/status", "/secrets"), timeout=10)
    assert caught.value.code == 404


def test_a_client_that_says_nothing_does_not_keep_the_page_from_others(page):
    host, port = re.search(r"//([^/]+):(\d+)/", page[1]).groups()
    with socket.create_connection((host, int(port))) as silent:
        silent.sendall(b"GET /sta")
        assert read(page[1])["uptime_secs"] > 0
        silent.settimeout(3 * TIMEOUT_S)
        assert silent.recv(1000) == b""
