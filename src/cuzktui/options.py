"""How a console looks and what it may do; what is left to be chosen is chosen from the terminal's own description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cuzktui.sources.base import Source
from cuzktui.widgets.view import CircuitChoice


@dataclass(frozen=True, slots=True)
class Options:
    """How a console looks and what it may do."""

    graph: str = "auto"
    """auto | braille | block | ascii"""
    palette: str = "auto"
    """auto | dark | light | ansi"""
    choice: CircuitChoice | None = None
    """What `p` proves at first; None is the demo circuit."""
    recording: Path | None = None
    """The recording that is being written: what `e` exports."""
    is_read_only: bool = False
    demo: Callable[[], Source] | None = None
    """Makes the source that `d` replays; None when no recording is shipped."""
    export_folder: Path | None = None
    """Where `e` writes; None is the working directory."""


def resolved(options: Options, environ: Mapping[str, str]) -> Options:
    """The same options with every `auto` decided.

    Braille needs UTF-8 and a font that has it, which the kernel's own console (TERM=linux) has not; that one has
    sixteen colours too.
    """
    is_kernel_console = environ.get("TERM") == "linux"
    locale = next((environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(name)), "")
    is_plain = bool(locale) and "utf" not in locale.lower()
    graph, palette = options.graph, options.palette
    if graph == "auto":
        graph = "ascii" if is_plain else "block" if is_kernel_console else "braille"
    if palette == "auto":
        palette = "ansi" if is_kernel_console else "dark"
    return replace(options, graph=graph, palette=palette)
