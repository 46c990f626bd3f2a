"""Textual's own parts (menus, messages) take their colours from the same palettes as the panels."""

from __future__ import annotations

from textual.theme import Theme

from cuzktui.widgets.palette import BACKGROUNDS

_ANSI_VARIABLES = {
    "ansi-background": "ansi_black",
    "ansi-foreground": "ansi_white",
    "block-cursor-background": "ansi_white",
    "block-cursor-foreground": "ansi_black",
    "border-blurred": "ansi_black",
}
"""What Textual's own style sheet asks of a theme that uses the terminal's colours."""


def theme_of(palette: str) -> Theme:
    """The theme that goes with a palette: dark, light or ansi."""
    dark = palette != "light"
    surface = {"dark": "#151c27", "light": "#ffffff", "ansi": "ansi_default"}[palette]
    return Theme(
        name=f"cuzk-{palette}",
        primary={"dark": "#6fb7ff", "light": "#1f6fd0", "ansi": "ansi_blue"}[palette],
        foreground={"dark": "#c5cdd8", "light": "#2b3442", "ansi": "ansi_default"}[palette],
        background=BACKGROUNDS[palette],
        surface=surface,
        panel=surface,
        warning="#f2b84b",
        error="#ff6b6b",
        success="#7fd48b",
        accent="#ff7a59",
        dark=dark,
        ansi=palette == "ansi",
        variables=_ANSI_VARIABLES if palette == "ansi" else {},
    )
