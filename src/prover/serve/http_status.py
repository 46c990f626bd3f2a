"""`GET /status` over HTTP, opt-in: the JSON that upstream's pollers read, one small request a connection."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

from prover.errors import BadRequest

REQUEST_BYTES = 4096
TIMEOUT_S = 2.0


class HttpStatus:
    """Args:
    listen: `host:port`; port 0 picks one.
    body: makes the JSON.

    Raises:
        BadRequest: the address cannot be listened on.
    """

    def __init__(self, listen: str, body: Callable[[], bytes]) -> None:
        host, port = split_address(listen)
        try:
            self._socket = socket.create_server((host, port), family=_family(host, port))
        except OSError as error:
            raise BadRequest(f"--status-listen {listen}: {error.strerror or error}") from error
        self._body = body
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, name="prover/http", daemon=True).start()

    def close(self) -> None:
        """Stops listening."""
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                try:
                    head = _head(connection, time.monotonic() + TIMEOUT_S)
                    if head:
                        connection.sendall(self._answer(head))
                except OSError:
                    continue

    def _answer(self, head: bytes) -> bytes:
        first = head.split(b"\r\n", 1)[0]
        if first.startswith((b"GET /status ", b"GET /status?")):
            return _response(b"200 OK", b"application/json", self._body())
        return _response(b"404 Not Found", b"text/plain", b"only GET /status is served here\n")


def split_address(listen: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[v6]:port`.

    Raises:
        BadRequest: it is neither.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise BadRequest(f"address {listen!r} is not host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _family(host: str, port: int) -> socket.AddressFamily:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]


def _head(connection: socket.socket, end_s: float) -> bytes:
    """What comes before the blank line, as far as it fits one small buffer; raises TimeoutError when it is late."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < REQUEST_BYTES:
        connection.settimeout(max(0.001, end_s - time.monotonic()))
        piece = connection.recv(REQUEST_BYTES - len(head))
        if not piece:
            break
        head += piece
    return head


def _response(status: bytes, kind: bytes, body: bytes) -> bytes:
    lines = (
        b"HTTP/1.1 " + status, b"Content-Type: " + kind, b"Content-Length: %d" % len(body),
        b"Access-Control-Allow-Origin: *", b"Connection: close", b"", body,
    )  # fmt: skip
    return b"\r\n".join(lines)
