"""The prover's own events come over one gRPC stream that is taken up again whenever it breaks.

What was missed while it was broken is counted from the sender's numbers and reported as `Dropped`. The gRPC library is
imported in this thread, so that sampling does not wait for it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from prover import wire
from prover.errors import WireError
from prover.run import now

FIRST_RETRY_S = 0.05
LAST_RETRY_S = 1.0
MAX_MESSAGE_BYTES = 16 << 20


class WatchStream(threading.Thread):
    """Subscribes to `cuzktui.v1.Console.Watch`.

    Args:
        address: path of a unix socket, or `host:port`.
        put: takes every event, in order; must not block.
    """

    def __init__(self, address: str, put: Callable[[wire.Event], None]) -> None:
        super().__init__(name="watch", daemon=True)
        self.address = address
        self._put = put
        self._halt = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._call = None
        self._last_seq = 0
        self._sender_pid = 0
        self._bad_lines = 0
        self._refusal = ""

    def stop(self) -> None:
        self._halt.set()
        call = self._call
        if call is not None:
            call.cancel()
        self.join(timeout=2)

    def wait_idle(self, timeout_s: float) -> None:
        """Waits until a broken stream has delivered its last event."""
        self._idle.wait(timeout_s)

    def run(self) -> None:
        retry_s = FIRST_RETRY_S
        while not self._halt.is_set():
            if is_listening(self.address):
                retry_s = FIRST_RETRY_S if self._follow() else retry_s
            self._halt.wait(retry_s)
            retry_s = min(retry_s * 1.5, LAST_RETRY_S)

    def _follow(self) -> bool:
        """Reads one stream to its end; whether anything came."""
        import grpc

        from prover.proto import console_pb2, console_pb2_grpc

        options = [("grpc.max_receive_message_length", MAX_MESSAGE_BYTES), ("grpc.enable_http_proxy", 0)]
        heard = False
        detail = "closed by the prover"
        with grpc.insecure_channel(target(self.address), options=options) as channel:
            call = console_pb2_grpc.ConsoleStub(channel).Watch(
                console_pb2.WatchRequest(client="collector"), wait_for_ready=False
            )
            self._call = call
            self._idle.clear()
            try:
                for message in call:
                    for event in self._decode(message.line):
                        if not heard:
                            heard = True
                            self._put(wire.SourceChanged(t_ns=now(), source="prover", alive=True, detail=self.address))
                        self._take(event)
            except grpc.RpcError as error:
                detail = error.details() or error.code().name
                if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                    detail = "what answers there is not a prover of this kind"
            finally:
                self._call = None
                self._idle.set()
        if self._halt.is_set():
            return heard
        if heard or detail != self._refusal:
            # A refusal that repeats at every attempt is said once.
            self._refusal = "" if heard else detail
            self._put(wire.SourceChanged(t_ns=now(), source="prover", alive=False, detail=detail))
        return heard

    def _decode(self, lines: bytes) -> Iterator[wire.Event]:
        for line in lines.splitlines():
            try:
                event = wire.decode(line)
            except WireError as error:
                self._bad_lines += 1
                if self._bad_lines == 1:
                    text = f"the prover sent a line that is left out, as are any more of its kind: {error}"
                    event = wire.Notice(t_ns=now(), text=text, level="warning")
                else:
                    continue
            if event is not None:
                yield event

    def _take(self, event: wire.Event) -> None:
        if isinstance(event, wire.Hello) and event.pid != self._sender_pid:
            self._sender_pid, self._last_seq = event.pid, 0
        if event.seq:
            missed = event.seq - self._last_seq - 1
            if isinstance(event, wire.State):
                missed += 1
            if self._last_seq and missed > 0:
                self._put(wire.Dropped(t_ns=event.t_ns, count=missed))
            self._last_seq = event.seq
        self._put(event)


def target(address: str) -> str:
    """The gRPC target of an address: unix sockets by absolute path."""
    if "/" in address or not address.rpartition(":")[0]:
        return f"unix:{Path(address).absolute()}"
    return address


def is_listening(address: str) -> bool:
    """Whether somebody accepts connections there; cheap, so that gRPC's slow back-off is never met."""
    host, _, port = address.rpartition(":")
    try:
        if "/" in address or not host:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.settimeout(0.5)
                probe.connect(address)
        else:
            socket.create_connection((host, int(port)), timeout=0.5).close()
    except (OSError, ValueError):
        return False
    return True
