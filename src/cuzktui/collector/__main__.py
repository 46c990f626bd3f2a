"""The collector as a process: `python -m cuzktui.collector`; it ends on TERM, INT, HUP or with its owner."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from cuzktui.collector.collect import DEFAULT_BUDGET_BYTES, Collector, Options
from cuzktui.collector.owner import OwnerLine
from prover.errors import ProverError


def main(argv: list[str] | None = None) -> int:
    """Runs a collector; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m cuzktui.collector", description=__doc__)
    parser.add_argument("--pid", type=int, action="append", default=[], help="process to observe; may be repeated")
    parser.add_argument("--role", choices=("prover", "foreign"), default="prover", help="what these processes are")
    parser.add_argument("--prover-socket", metavar="ADDRESS", help="socket path or host:port of a prover to follow")
    parser.add_argument("--log", type=Path, action="append", default=[], help="log file to follow; may be repeated")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write a recording")
    parser.add_argument("--segment", type=int, default=0, help="number of this segment of the recording")
    parser.add_argument("--budget-bytes", type=int, default=DEFAULT_BUDGET_BYTES, help="limit of all its parts")
    parser.add_argument("--no-thin", action="store_true", help="keep quiet stretches whole")
    parser.add_argument("--no-gpu", action="store_true", help="do not load NVML")
    parser.add_argument("--owned", action="store_true", help="take orders from standard input and end with it")
    arguments = parser.parse_args(argv)
    options = Options(
        pids=tuple(arguments.pid), prover_address=arguments.prover_socket, record=arguments.record,
        segment=arguments.segment, budget_bytes=arguments.budget_bytes or None, thin=not arguments.no_thin,
        role=arguments.role, logs=tuple(arguments.log), gpu=not arguments.no_gpu,
    )  # fmt: skip
    try:
        collector = Collector(options)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: collector.stop())
        if arguments.owned:
            OwnerLine(collector.watch, collector.put, collector.stop).start()
        collector.run()
    except ProverError as error:
        print(f"cuzktui.collector: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
