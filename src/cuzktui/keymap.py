"""One table of keys: the footer, the help page and the bindings are read from it, so that none can disagree."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding


@dataclass(frozen=True, slots=True)
class Key:
    """A key and what it does."""

    keys: str
    """Textual's names, comma separated: any of them does it."""
    shown: str
    """How the key is written on the screen."""
    action: str
    """Name of the app's action."""
    short: str
    """One or two words for the footer; empty keeps it off the footer."""
    long: str
    """A line of the help page."""
    changes_prover: bool = False
    """It asks something of the prover: refused in a replay and in a read-only console."""


KEYS = (
    Key("p", "p", "prove", "prove", "make a proof of the chosen circuit", True),
    Key(
        "x",
        "x",
        "pair",
        "pair",
        "the same proof twice, sync-4k and then async-4k, side by side; in a replay its last two",
        True,
    ),
    Key("c", "c", "cancel", "cancel", "cancel the running job, or the next one in the queue", True),
    Key("o", "o", "policy", "policy", "choose how the next jobs give their memory back", True),
    Key("1,2,3,4,5", "1-5", "circuit", "", "choose the circuit that p and x prove", True),
    Key("n", "n", "experiment", "experiment", "the chosen circuit under each policy, three times, with medians", True),
    Key("k", "k", "page('compare')", "compare", "two jobs side by side: a pair, or the picked one and the newest"),
    Key("w", "w", "page('post-mortem')", "why", "why the process ended, and its last thirty seconds"),
    Key("space", "space", "freeze", "freeze", "hold the picture; the recording goes on"),
    Key("left", "←", "scroll(-1)", "", "look further back"),
    Key("right", "→", "scroll(1)", "", "look further on; at the end the picture is live again"),
    Key("plus,equals_sign", "+", "zoom(-1)", "", "a shorter stretch of time"),
    Key("minus", "−", "zoom(1)", "", "a longer stretch of time"),
    Key("0,home", "0", "live", "", "back to the live edge and the automatic time window"),
    Key("l,escape", "l", "lens", "lens", "close the gap lens, or open it again"),
    Key("e", "e", "export", "export", "write a Chrome trace of everything so far"),
    Key("v", "v", "verify", "verify", "check the latest proof again, here and now"),
    Key("d", "d", "demo", "demo", "replay a recorded run, marked REPLAY"),
    Key("r", "r", "restart", "restart", "start the prover again after it ended or lost its GPUs", True),
    Key("m", "m", "mapped", "", "draw mapped and shared memory on top, or leave it out"),
    Key("g", "g", "glyphs", "", "next glyph set: braille, blocks, ASCII"),
    Key("t", "t", "palette", "", "next palette: dark, light, the terminal's own colours"),
    Key("question_mark,f1", "?", "help", "help", "this page"),
    Key("q,ctrl+c,ctrl+q", "q", "leave", "quit", "leave; asks first when others have jobs in this prover"),
)

FOOTER_ORDER = (
    "restart",
    "prove",
    "pair",
    "cancel",
    "policy",
    "lens",
    "page('post-mortem')",
    "freeze",
    "export",
    "page('compare')",
    "experiment",
    "verify",
    "demo",
    "help",
    "leave",
)
"""Actions on the footer, the most wanted first: what does not fit is left to the help page."""


def by_action(action: str) -> Key:
    """The entry of an action.

    Raises:
        KeyError: no key has that action.
    """
    for key in KEYS:
        if key.action == action:
            return key
    raise KeyError(action)


def bindings() -> list[Binding]:
    """The table as Textual wants it; keys that carry a number give it to their action."""
    return [
        Binding(keys, action, key.short or key.action, show=False, priority=key.action == "leave")
        for key in KEYS
        for keys, action in _bound(key)
    ]


def _bound(key: Key) -> list[tuple[str, str]]:
    if key.action != "circuit":
        return [(key.keys, key.action)]
    return [(number, f"circuit({number})") for number in key.keys.split(",")]
