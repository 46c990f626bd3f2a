"""How a refused request is answered: one gRPC status for each kind of refusal, and the error's own sentence."""

from __future__ import annotations

from typing import NoReturn

import grpc

from prover.errors import ProverError
from prover.serve.queue import IdTaken, QueueFull


def refuse(context: grpc.ServicerContext, error: ProverError, status: grpc.StatusCode | None = None) -> NoReturn:
    """Ends the call with the error's sentence, under `status` or the one of its kind."""
    context.abort(status or status_of(error), str(error))
    raise AssertionError("abort returned")


def status_of(error: ProverError) -> grpc.StatusCode:
    """The gRPC status of a request that was refused."""
    if isinstance(error, QueueFull):
        return grpc.StatusCode.RESOURCE_EXHAUSTED
    if isinstance(error, IdTaken):
        return grpc.StatusCode.ALREADY_EXISTS
    return grpc.StatusCode.INVALID_ARGUMENT


def is_local(context: grpc.ServicerContext) -> bool:
    """Whether the client came through the unix socket, hence runs as this user or as root."""
    return context.peer().startswith("unix:")
