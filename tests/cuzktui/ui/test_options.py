"""What is left to the console is decided from the terminal's own words."""

from __future__ import annotations

import pytest

from cuzktui.options import Options, resolved


@pytest.mark.parametrize(
    ("environ", "graph", "palette"),
    [
        ({"TERM": "xterm-256color", "LANG": "en_GB.UTF-8"}, "braille", "dark"),
        ({"TERM": "tmux-256color"}, "braille", "dark"),
        ({"TERM": "linux", "LANG": "C.UTF-8"}, "block", "ansi"),
        ({"TERM": "xterm", "LANG": "C"}, "ascii", "dark"),
        ({"TERM": "xterm", "LANG": "en_GB.UTF-8", "LC_ALL": "POSIX"}, "ascii", "dark"),
    ],
)
def test_glyphs_and_palette_follow_the_terminal(environ: dict[str, str], graph: str, palette: str) -> None:
    found = resolved(Options(), environ)
    assert (found.graph, found.palette) == (graph, palette)


def test_what_was_chosen_is_kept() -> None:
    found = resolved(Options(graph="block", palette="light"), {"TERM": "linux", "LANG": "C"})
    assert (found.graph, found.palette) == ("block", "light")
