"""`cuzktui.v1.Console`: what our own console asks for. Handlers only look things up; no proving work runs in them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import grpc

from prover.errors import BadRequest, ProverError
from prover.proto import console_pb2 as pb
from prover.proto import console_pb2_grpc
from prover.serve.queue import JobQueue, QueueFull
from prover.serve.refusal import is_local, refuse
from prover.serve.request import JobRequest, check, new_job_id, parse_policy

WATCH_LIMIT = 16
"""Watchers at a time: each holds one of the server's threads and a bounded queue."""


class ConsoleService(console_pb2_grpc.ConsoleServicer):
    """Args:
    queue: where jobs go.
    list_circuits: usage lines of the built-in circuits; may load them on the first call.
    shut_down: begins the shutdown, given the reason.
    """

    def __init__(
        self, queue: JobQueue, list_circuits: Callable[[], list[str]], shut_down: Callable[[str], object]
    ) -> None:
        self._queue, self._list_circuits, self._shut_down = queue, list_circuits, shut_down
        self._numbers = itertools.count(1)

    def Submit(self, request: pb.SubmitRequest, context: grpc.ServicerContext) -> pb.SubmitReply:
        try:
            job, position = self._queue.submit(self._job_request(request, context))
        except ProverError as error:
            refuse(context, error)
        return pb.SubmitReply(job_id=job.job_id, queue_position=position)

    def Cancel(self, request: pb.CancelRequest, context: grpc.ServicerContext) -> pb.CancelReply:
        was_running, was_queued = self._queue.cancel(request.job_id)
        return pb.CancelReply(was_running=was_running, was_queued=was_queued)

    def SetPolicy(self, request: pb.PolicyRequest, context: grpc.ServicerContext) -> pb.PolicyReply:
        try:
            policy = parse_policy(request.policy) if request.policy else self._queue.policy
        except ProverError as error:
            refuse(context, error)
        if policy is not self._queue.policy:
            self._queue.set_policy(policy)
        return pb.PolicyReply(policy=policy)

    def ListCircuits(self, request: pb.ListCircuitsRequest, context: grpc.ServicerContext) -> pb.ListCircuitsReply:
        return pb.ListCircuitsReply(usage=self._list_circuits())

    def Watch(self, request: pb.WatchRequest, context: grpc.ServicerContext) -> Iterator[pb.EventLine]:
        hub = self._queue.hub
        if hub.watcher_count >= WATCH_LIMIT:
            refuse(context, QueueFull(f"{WATCH_LIMIT} watchers are connected, as many as may"))
        present, watcher = hub.watch()
        try:
            if not context.add_callback(watcher.close):
                return
            yield pb.EventLine(line=b"".join(present))
            for lines in watcher.batches():
                yield pb.EventLine(line=lines)
        finally:
            hub.unwatch(watcher)

    def Shutdown(self, request: pb.ShutdownRequest, context: grpc.ServicerContext) -> pb.ShutdownReply:
        living = self._queue.waiting() + ([self._queue.running] if self._queue.running else [])
        accepted = request.even_if_busy or not living
        if accepted:
            self._shut_down("a client asked for it")
        return pb.ShutdownReply(accepted=accepted, jobs_of_others=len(living))

    def _job_request(self, request: pb.SubmitRequest, context: grpc.ServicerContext) -> JobRequest:
        paths = [request.zkey_path, request.wtns_path, request.c1_path, request.key_path]
        if any(paths) and not is_local(context):
            raise BadRequest("files are taken from clients of the unix socket only")
        kind = "porep-c2" if request.c1_path else "file" if request.zkey_path else "circuit"
        return check(
            JobRequest(
                job_id=request.job_id or new_job_id(next(self._numbers)), circuit=request.circuit,
                num_circuits=request.num_circuits or 1, policy=parse_policy(request.policy) if request.policy else None,
                client=request.client, zkey_path=request.zkey_path, wtns_path=request.wtns_path,
                c1_path=request.c1_path, key_path=request.key_path, backend=request.backend, kind=kind,
            )
        )  # fmt: skip

