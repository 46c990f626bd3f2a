"""A real prover process on a socket of its own, for tests."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import grpc

from prover import wire
from prover.proto import console_pb2, console_pb2_grpc, proving_pb2, proving_pb2_grpc

SOURCE = Path(__file__).resolve().parents[3] / "src"
START_S = 20.0


class Daemon:
    """`python -m prover serve` in its own process group."""

    def __init__(self, *arguments: str, folder: Path | None = None, backend: str = "cpu") -> None:
        self.folder = folder or Path(tempfile.mkdtemp(prefix="cz"))
        self.socket = self.folder / "p.sock"
        self.process = subprocess.Popen(
            command("--socket", str(self.socket), "--backend", backend, *arguments), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, env=environment(), start_new_session=True,
        )  # fmt: skip
        self.began_s = time.monotonic()
        await_socket(self.socket, self.process)
        self.answering_after_s = time.monotonic() - self.began_s
        options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        self.channel = grpc.insecure_channel(f"unix:{self.socket}", options=options)
        self.console = console_pb2_grpc.ConsoleStub(self.channel)
        self.engine = proving_pb2_grpc.ProvingEngineStub(self.channel)

    @property
    def pid(self) -> int:
        return self.process.pid

    def events(self, timeout_s: float = 120.0) -> Iterator[wire.Event]:
        """What a watch delivers, from its beginning."""
        for message in self.console.Watch(console_pb2.WatchRequest(client="test"), timeout=timeout_s):
            for line in message.line.splitlines():
                event = wire.decode(line)
                assert event is not None
                yield event

    def submit(self, circuit: str, **fields) -> str:
        return self.console.Submit(console_pb2.SubmitRequest(circuit=circuit, **fields), timeout=60).job_id

    def result(self, job_id: str, timeout_ms: int = 120_000):
        return self.engine.AwaitProof(
            proving_pb2.AwaitProofRequest(job_id=job_id, timeout_ms=timeout_ms), timeout=timeout_ms / 1000 + 10
        )

    def end(self) -> tuple[int, str]:
        """Asks it to stop; exit status and everything it said."""
        self.channel.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self, timeout_s: float = 40.0) -> tuple[int, str]:
        try:
            said, _ = self.process.communicate(timeout=timeout_s)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            shutil.rmtree(self.folder, ignore_errors=True)
        return self.process.returncode, said


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "prover", "serve", *arguments]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(SOURCE)}


def await_socket(path: Path, process: subprocess.Popen) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(str(path))
                return
            except OSError:
                assert process.poll() is None, process.communicate()[0]
                time.sleep(0.01)
    raise AssertionError("the socket did not answer")
