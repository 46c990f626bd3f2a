"""`cuzk-prover serve`: the options of the daemon; the socket answers before anything heavy is imported."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from prover import cli_backend
from prover.errors import BadRequest
from prover.gpu_list import parse_gpus
from prover.wire import Policy

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}


def add(verbs: argparse._SubParsersAction) -> None:
    """Declares the verb."""
    parser = verbs.add_parser(
        "serve", help="answer gRPC on a unix socket until told to stop",
        description="Serves cuzk.v1.ProvingEngine and cuzktui.v1.Console. No transport is encrypted or authenticated: "
        "the socket's mode 0600 is the protection, and --listen has none.",
    )  # fmt: skip
    parser.add_argument("--socket", type=Path, metavar="PATH", help="default: prover.sock in the runtime folder")
    parser.add_argument("--listen", action="append", default=[], metavar="HOST:PORT", help="TCP as well, unprotected")
    parser.add_argument("--status-listen", default="", metavar="HOST:PORT", help="HTTP GET /status, JSON")
    cli_backend.add(parser)
    parser.add_argument("--policy", choices=[str(p) for p in Policy], default=str(Policy.RECYCLE),
                        help="how host buffers are given back, where a job does not say")  # fmt: skip
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="default: the cores of this process")
    parser.add_argument("--pool-bytes", default="8GiB", metavar="SIZE", help="what the policy recycle may keep")
    parser.add_argument("--cache-dir", type=Path, metavar="DIR", help="compiled kernels and test keys")
    parser.add_argument("--log-timing", action="store_true", help="write CUZK_TIMING and TIMELINE lines to stderr")
    parser.add_argument("--owner-pid", type=int, metavar="PID", help="end when this process ends")
    parser.add_argument("--keep-prover", action="store_true", help="outlive the owner and the terminal")


def run(arguments: argparse.Namespace) -> int:
    """Serves; does not return."""
    if arguments.cache_dir is not None:
        os.environ["CUZKTUI_CACHE_DIR"] = str(arguments.cache_dir.absolute())
    if arguments.threads < 0:
        raise BadRequest(f"--threads {arguments.threads}: 0 or more")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its faults reach us as exceptions; its log is not ours
    from prover.serve.server import ServeOptions, serve
    from prover.serve.worker import WorkerOptions

    serve(
        ServeOptions(
            socket=(arguments.socket or default_socket()).absolute(),
            listen=tuple(arguments.listen),
            status_listen=arguments.status_listen,
            policy=Policy(arguments.policy),
            owner_pid=None if arguments.keep_prover else arguments.owner_pid,
            outlives_terminal=arguments.keep_prover,
            log_timing=arguments.log_timing,
            worker=WorkerOptions(
                backend=arguments.backend,
                threads=arguments.threads,
                pool_bytes=parse_bytes(arguments.pool_bytes),
                placement=arguments.placement,
                gpus=parse_gpus(arguments.gpus, arguments.backend),
            ),
        )
    )


def default_socket() -> Path:
    """Where a prover listens when nobody says otherwise: one a user."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime) / "cuzktui" if runtime else Path("/tmp") / f"cuzktui-{os.getuid()}"
    return folder / "prover.sock"


def parse_bytes(text: str) -> int:
    """Bytes of `1048576`, `64MiB` or `8g`.

    Raises:
        BadRequest: it is not a size.
    """
    digits = text.rstrip("kmgibKMGIB")
    unit = text[len(digits) :].lower()
    if not (digits.isascii() and digits.isdigit()) or unit not in UNITS:
        raise BadRequest(f"size {text!r} is not a number of bytes, KiB, MiB or GiB")
    return int(digits) * UNITS[unit]
