"""Palettes give every role a style that survives 256 and 16 colours; none is needed to read the screen."""

from __future__ import annotations

from rich.style import Style

from cuzktui.widgets.roles import Role

_DARK = {
    Role.TEXT: "#c5cdd8",
    Role.MUTED: "#8391a5",
    Role.FAINT: "#56637a",
    Role.TITLE: "bold #dbe4f0",
    Role.STRONG: "bold #f2f6fc",
    Role.BORDER: "#3a475c",
    Role.BORDER_FOCUS: "#6fb7ff",
    Role.GOOD: "#7fd48b",
    Role.WARN: "#f2b84b",
    Role.BAD: "bold #ff6b6b",
    Role.GAP: "#ff7a59",
    Role.GAP_LABEL: "bold #ff9d7f",
    Role.KEY: "bold #6fb7ff",
    Role.ON: "bold #ff6b6b",
    Role.MEMORY: "#5a7fa8",
    Role.MAPPED: "#4a5568",
    Role.MEMORY_LABEL: "bold #dbe4f0",
    Role.LIMIT: "#f2b84b",
    Role.GRID: "#2b3647",
    Role.STAGE_SETUP: "#8391a5",
    Role.STAGE_SYNTH: "#5aa9e6",
    Role.STAGE_PROVE: "#b48cf2",
    Role.STAGE_VERIFY: "#7fd48b",
    Role.KERNEL: "#b48cf2",
    Role.KERNEL_ALT: "#8a6fd1",
    Role.GPU: "#7fd48b",
    Role.USER: "#5aa9e6",
    Role.SYSTEM: "#f2b84b",
    Role.OWNER_ABC: "#3fa7b8",
    Role.OWNER_ASSIGNMENT: "#4f8fd9",
    Role.OWNER_SPLIT: "#8f7fe0",
    Role.OWNER_TAIL: "#c07fc9",
    Role.OWNER_SRS: "#5fae7a",
    Role.OWNER_SCRATCH: "#9aa86a",
    Role.OWNER_POOL: "#56789c",
    Role.OWNER_SETUP: "#7c8798",
    Role.CURSOR: "bold #0e131b on #dbe4f0",
}

_LIGHT = {
    Role.TEXT: "#2b3442",
    Role.MUTED: "#5b687a",
    Role.FAINT: "#8592a3",
    Role.TITLE: "bold #18202c",
    Role.STRONG: "bold #0b1018",
    Role.BORDER: "#aab5c3",
    Role.BORDER_FOCUS: "#1f6fd0",
    Role.GOOD: "#1d7a35",
    Role.WARN: "#9a6400",
    Role.BAD: "bold #c22727",
    Role.GAP: "#cf4520",
    Role.GAP_LABEL: "bold #b53510",
    Role.KEY: "bold #1f6fd0",
    Role.ON: "bold #c22727",
    Role.MEMORY: "#7b99bd",
    Role.MAPPED: "#b3bcc9",
    Role.MEMORY_LABEL: "bold #18202c",
    Role.LIMIT: "#9a6400",
    Role.GRID: "#d3dae3",
    Role.STAGE_SETUP: "#5b687a",
    Role.STAGE_SYNTH: "#1f6fd0",
    Role.STAGE_PROVE: "#7545c9",
    Role.STAGE_VERIFY: "#1d7a35",
    Role.KERNEL: "#7545c9",
    Role.KERNEL_ALT: "#9a78dd",
    Role.GPU: "#1d7a35",
    Role.USER: "#1f6fd0",
    Role.SYSTEM: "#b87400",
    Role.OWNER_ABC: "#1c8495",
    Role.OWNER_ASSIGNMENT: "#2f6fc0",
    Role.OWNER_SPLIT: "#6a57c9",
    Role.OWNER_TAIL: "#a04fab",
    Role.OWNER_SRS: "#2f8550",
    Role.OWNER_SCRATCH: "#6f7d33",
    Role.OWNER_POOL: "#5d7fa5",
    Role.OWNER_SETUP: "#6b7687",
    Role.CURSOR: "bold #ffffff on #18202c",
}

_ANSI = {
    Role.TEXT: "white",
    Role.MUTED: "white",
    Role.FAINT: "bright_black",
    Role.TITLE: "bold white",
    Role.STRONG: "bold bright_white",
    Role.BORDER: "bright_black",
    Role.BORDER_FOCUS: "bright_blue",
    Role.GOOD: "green",
    Role.WARN: "yellow",
    Role.BAD: "bold bright_red",
    Role.GAP: "bright_red",
    Role.GAP_LABEL: "bold bright_red",
    Role.KEY: "bold bright_blue",
    Role.ON: "bold bright_red",
    Role.MEMORY: "blue",
    Role.MAPPED: "bright_black",
    Role.MEMORY_LABEL: "bold bright_white",
    Role.LIMIT: "yellow",
    Role.GRID: "bright_black",
    Role.STAGE_SETUP: "white",
    Role.STAGE_SYNTH: "bright_blue",
    Role.STAGE_PROVE: "magenta",
    Role.STAGE_VERIFY: "green",
    Role.KERNEL: "magenta",
    Role.KERNEL_ALT: "bright_magenta",
    Role.GPU: "green",
    Role.USER: "bright_blue",
    Role.SYSTEM: "yellow",
    Role.OWNER_ABC: "cyan",
    Role.OWNER_ASSIGNMENT: "bright_blue",
    Role.OWNER_SPLIT: "magenta",
    Role.OWNER_TAIL: "bright_magenta",
    Role.OWNER_SRS: "green",
    Role.OWNER_SCRATCH: "yellow",
    Role.OWNER_POOL: "blue",
    Role.OWNER_SETUP: "white",
    Role.CURSOR: "reverse",
}

BACKGROUNDS = {"dark": "#0e131b", "light": "#f7f9fc", "ansi": "ansi_default"}
"""Screen colour of each palette, as Textual reads colours."""

PALETTES = {"dark": _DARK, "light": _LIGHT, "ansi": _ANSI}


def styles(palette: str) -> list[Style]:
    """Styles of a palette, indexed by role.

    Args:
        palette: dark | light | ansi; ansi uses the terminal's own sixteen colours.
    Raises:
        KeyError: no palette has that name.
    """
    table = PALETTES[palette]
    background = "" if palette == "ansi" else f" on {BACKGROUNDS[palette]}"
    return [Style.parse(s if " on " in (s := table[role]) or s == "reverse" else s + background) for role in Role]
