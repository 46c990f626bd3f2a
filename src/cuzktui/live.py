"""From a command to a screen: which source the console shows and whether there is a prover that it may ask."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from cuzktui.sources.base import Source
from cuzktui.sources.replay import ReplaySource
from cuzktui.sources.session import Session, SessionSpec
from prover.errors import BadRequest

DEMO_RECORDING = Path(__file__).parent / "demo" / "run.jsonl"
"""A real run, shipped with the package."""


def console(spec: SessionSpec, options: argparse.Namespace, porep: dict[str, str] | None = None) -> int:
    """The live console of a session; returns its exit status.

    Args:
        porep: `c1_path`, and `key_path` where there is one: what `p` proves.

    Raises:
        NoTerminal: standard output cannot show it.
    """
    from cuzktui.options import Options
    from cuzktui.showing import run
    from cuzktui.widgets.view import CircuitChoice

    choice = None
    if porep:
        choice = CircuitChoice(f"porep {Path(porep['c1_path']).name}", 1, tuple(porep.items()))
    session = Session(spec)
    try:
        code = run(
            session, control=session.control if session.can_submit else None, mouse=not options.no_mouse,
            options=Options(
                graph=options.graph, choice=choice, recording=session.recording, demo=demo_source()
            ),
        )  # fmt: skip
        if spec.keep_prover and spec.start_prover:
            print(f"the prover goes on; watch it again with: cuzktui attach --socket {session.address}")
        return code
    finally:
        session.forget_folder()


def replay(path: Path, speed: float, options: argparse.Namespace) -> int:
    """The console over a recording; returns its exit status.

    Raises:
        BadFile: it is no recording.
        NoTerminal: standard output cannot show it.
    """
    from cuzktui.options import Options
    from cuzktui.showing import run

    if not 0 <= speed <= 1000:
        raise BadRequest(f"--speed {speed:g}: from 0 (at once) to 1000")
    source = ReplaySource(path, speed)
    return run(
        source, mouse=not options.no_mouse, options=Options(graph=options.graph, recording=path, is_read_only=True)
    )


def demo_recording() -> Path:
    """The recording that is shipped.

    Raises:
        BadRequest: this installation has none.
    """
    if not DEMO_RECORDING.exists():
        raise BadRequest("no recording is shipped here; make one: cuzktui prove sha256-chain:8 --record FILE")
    return DEMO_RECORDING


def demo_source() -> Callable[[], Source] | None:
    """Makes the source of the demo; None where no recording is shipped."""
    if not DEMO_RECORDING.exists():
        return None

    def make() -> Source:
        return ReplaySource(DEMO_RECORDING)

    return make
