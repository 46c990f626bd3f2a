"""The console from its first picture to its exit status; the terminal is restored whatever happens."""

from __future__ import annotations

import os
import sys

from cuzktui.app import ConsoleApp
from cuzktui.desk import Control
from cuzktui.options import Options
from cuzktui.sources.base import Source
from cuzktui.terminal import check_terminal, run_supervised


def run(source: Source, *, control: Control | None = None, options: Options | None = None, mouse: bool = True) -> int:
    """Shows the console until it is left; the terminal is restored whatever happens.

    Args:
        source: started here, in the process that draws; stopped when the console ends.
        control: of the prover that takes requests; None only watches.
    Returns:
        Exit status: 0, or 128 + n after signal n.
    Raises:
        NoTerminal: standard output cannot show a full-screen console.
    """
    check_terminal(sys.stdout, os.environ)
    return run_supervised(lambda: _run_here(source, control, options, mouse))


def _run_here(source: Source, control: Control | None, options: Options | None, mouse: bool) -> int:
    app = ConsoleApp(source, control=control, options=options)
    try:
        app.run(mouse=mouse)
    finally:
        source.stop()
    return app.return_code or 0
