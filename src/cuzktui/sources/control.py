"""Requests to a prover: every call has a deadline, blocks its own thread only, and fails with one sentence.

The gRPC library is imported on the first call, so a screen that only shows events never pays for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from cuzktui.collector.watch import is_listening, target
from prover.errors import BadRequest, ProverError
from prover.wire import Policy

DEADLINE_S = 5.0
START_PATIENCE_S = 20.0
T = TypeVar("T")


class ProverUnreachable(ProverError):
    """Nobody answers at the prover's address."""

    exit_code = 3


class ControlClient:
    """Asks a prover through `cuzktui.v1.Console`. Thread-safe.

    Args:
        address: socket path or `host:port`.
        client: how the prover names whoever asked.
    """

    def __init__(self, address: str, client: str = "console") -> None:
        self.address, self._client = address, client
        self._lock = threading.Lock()
        self._channel: Any = None
        self._stub: Any = None

    def submit(
        self,
        circuit: str = "",
        num_circuits: int = 1,
        policy: Policy | str | None = None,
        *,
        job_id: str = "",
        wait_s: float = START_PATIENCE_S,
        **files: str,
    ) -> str:
        """Queues a job and returns its id.

        Args:
            circuit: a built-in circuit, e.g. `sha256-chain:8`.
            num_circuits: circuits of the job, all of this shape.
            policy: how its memory is given back; None for the prover's present policy.
            wait_s: how long a prover that is still starting is waited for.
            files: `zkey_path` with `wtns_path`, or `c1_path` with `key_path`, instead of a circuit; `backend`.

        Raises:
            BadRequest: the prover refused, with its reason.
            ProverUnreachable: it does not answer.
        """
        from prover.proto import console_pb2 as pb

        self.wait_listening(wait_s)
        request = pb.SubmitRequest(
            circuit=circuit, num_circuits=num_circuits, policy=str(policy or ""), job_id=job_id, client=self._client,
            **files,
        )  # fmt: skip
        return self._ask(lambda stub: stub.Submit(request, timeout=DEADLINE_S)).job_id

    def cancel(self, job_id: str = "") -> bool:
        """Cancels a job, or the running one; whether there was one."""
        from prover.proto import console_pb2 as pb

        reply = self._ask(lambda stub: stub.Cancel(pb.CancelRequest(job_id=job_id), timeout=DEADLINE_S))
        return reply.was_running or reply.was_queued

    def set_policy(self, policy: Policy | str) -> Policy:
        """Sets the policy of later jobs; returns the one in force."""
        from prover.proto import console_pb2 as pb

        return Policy(
            self._ask(lambda stub: stub.SetPolicy(pb.PolicyRequest(policy=str(policy)), timeout=DEADLINE_S)).policy
        )

    def list_circuits(self) -> list[str]:
        """Usage lines of the built-in circuits."""
        from prover.proto import console_pb2 as pb

        return list(self._ask(lambda stub: stub.ListCircuits(pb.ListCircuitsRequest(), timeout=4 * DEADLINE_S)).usage)

    def shut_down(self, even_if_busy: bool = False) -> int:
        """Asks the prover to end; returns how many jobs kept it from doing so (0 when it ends)."""
        from prover.proto import console_pb2 as pb

        request = pb.ShutdownRequest(even_if_busy=even_if_busy)
        reply = self._ask(lambda stub: stub.Shutdown(request, timeout=DEADLINE_S))
        return 0 if reply.accepted else reply.jobs_of_others

    def wait_listening(self, timeout_s: float) -> None:
        """Waits until somebody listens at the address.

        Raises:
            ProverUnreachable: nobody does within the time.
        """
        end = time.monotonic() + timeout_s
        while not is_listening(self.address):
            if time.monotonic() >= end:
                raise ProverUnreachable(f"no prover answers at {self.address}")
            time.sleep(0.02)

    def close(self) -> None:
        with self._lock:
            if self._channel is not None:
                self._channel.close()
            self._channel = self._stub = None

    def _ask(self, call: Callable[[Any], T]) -> T:
        import grpc

        try:
            return call(self._connected())
        except grpc.RpcError as error:
            raise self._translate(error) from None

    def _connected(self) -> Any:
        import grpc

        from prover.proto import console_pb2_grpc

        with self._lock:
            if self._stub is None:
                options = [("grpc.enable_http_proxy", 0), ("grpc.initial_reconnect_backoff_ms", 100)]
                self._channel = grpc.insecure_channel(target(self.address), options=options)
                self._stub = console_pb2_grpc.ConsoleStub(self._channel)
            return self._stub

    def _translate(self, error: Any) -> ProverError:
        import grpc

        code, details = error.code(), error.details() or ""
        if code is grpc.StatusCode.UNAVAILABLE:
            return ProverUnreachable(f"no prover answers at {self.address}")
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return ProverUnreachable(f"the prover at {self.address} did not answer in time")
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return BadRequest(f"what listens at {self.address} is not a prover of this kind")
        return BadRequest(details or code.name)
