"""Recording and reading recordings without a screen."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from cuzktui.collector.collect import DEFAULT_BUDGET_BYTES, Collector, Options
from cuzktui.model.snapshot import EXPECTATION
from cuzktui.sources.recordings import new_recording
from prover import wire
from prover.errors import BadRequest
from prover.run import now


def record(
    *, pids: tuple[int, ...], address: str | None, logs: tuple[Path, ...], command: tuple[str, ...],
    output: Path | None, budget_bytes: int | None, thin: bool, expect: str = "",
) -> int:  # fmt: skip
    """Records until everything watched has ended or a signal comes; returns the exit code.

    Raises:
        BadRequest: there is nothing to record, or it cannot be.
    """
    if not (pids or address or command or logs):
        raise BadRequest("nothing to record: name --pid N, --socket ADDRESS, --log FILE or -- COMMAND")
    path = output or new_recording()
    if path.exists() and not path.is_char_device():
        raise BadRequest(f"{path} exists already; a recording is never written over")
    collector = Collector(
        Options(
            pids=pids, prover_address=address, logs=logs, record=path, command=command, role="foreign", stream=False,
            budget_bytes=DEFAULT_BUDGET_BYTES if budget_bytes is None else budget_bytes or None, thin=thin,
            until_ended=bool(pids or command) and not address,
        ),
        _tell,
    )  # fmt: skip
    if expect:
        collector.put(wire.Marker(t_ns=now(), text=expect, by=EXPECTATION))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: collector.stop())
    print(f"recording to {path}; Ctrl-C ends it", file=sys.stderr)
    collector.run()
    if collector.recording_failed:
        return 1
    print(f"recorded {path}", file=sys.stderr)
    return 0


def _tell(event: wire.Event) -> None:
    """What an operator must know while nothing is on the screen."""
    match event:
        case wire.Notice(text=text, level=level) if level != "info":
            print(f"{level}: {text}", file=sys.stderr)
        case wire.ProcessEnded(pid=pid, reason=reason, stage=stage):
            print(f"process {pid} {reason}" + (f" in stage {stage}" if stage else ""), file=sys.stderr)
