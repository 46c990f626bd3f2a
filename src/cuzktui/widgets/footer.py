"""The footer offers the keys that do something now; each hint answers to a click as to its key."""

from __future__ import annotations

from textual import events

from cuzktui import format as fmt
from cuzktui.keymap import FOOTER_ORDER, Key, by_action
from cuzktui.messages import KeyClicked
from cuzktui.widgets.canvas import Canvas
from cuzktui.widgets.grid import Grid
from cuzktui.widgets.roles import Role
from cuzktui.widgets.view import View

_ALWAYS = ("help", "leave")
_APART = 2
"""Cells between two hints."""


class FooterLine(Canvas):
    """Keys at the left, what the console itself costs at the right."""

    def draw(self, view: View, width: int, height: int) -> Grid:
        return footer_grid(view, width, height)

    def on_click(self, event: events.Click) -> None:
        if self._view is None:
            return
        for first, last, key in _places(self._view, self.size.width):
            if first <= event.x < last:
                self.post_message(KeyClicked(key.action))


def footer_grid(view: View, width: int, height: int = 1) -> Grid:
    """The line as text."""
    grid = Grid(width, height)
    for first, _, key in _places(view, width):
        x = grid.put(first, 0, key.shown, Role.KEY)
        grid.put(x + 1, 0, key.short, Role.MUTED)
    cost = _cost(view)
    if width >= 110:
        grid.put_right(width - 1, 0, cost, Role.FAINT)
    return grid


def _cost(view: View) -> str:
    return f"ui {fmt.percent(view.ui_cpu_percent)}" if view.ui_cpu_percent is not None else ""


def _places(view: View, width: int) -> list[tuple[int, int, Key]]:
    """First cell, cell after the last, and key of each hint that fits; the way to help and out is always there."""
    room = width - 1 - (len(_cost(view)) + 2 if width >= 110 else 0)
    wanted = [key for action in FOOTER_ORDER if _does_something(key := by_action(action), view)]
    kept = [key for key in wanted if key.action in _ALWAYS]
    left = room - 1 - sum(_cells(key) for key in kept)
    shown = []
    for key in wanted:
        if key in kept:
            continue
        left -= _cells(key)
        if left < 0:
            break
        shown.append(key)
    places, x = [], 1
    for key in shown + kept:
        end = x + _cells(key) - _APART
        if end <= room:
            places.append((x, end, key))
        x = end + _APART
    return places


def _cells(key: Key) -> int:
    return len(key.shown) + 1 + len(key.short) + _APART


def _does_something(key: Key, view: View) -> bool:
    snapshot = view.snapshot
    if key.action == "pair" and snapshot.is_replay:
        return sum(job.outer_end_ns is not None for job in snapshot.jobs) > 1
    if key.changes_prover and (view.is_read_only or snapshot.is_replay):
        return False
    if key.action == "cancel":
        return snapshot.running is not None or bool(snapshot.queued)
    if key.action == "restart":
        return view.can_restart and snapshot.needs_restart
    if key.action == "page('post-mortem')":
        return any(process.ended is not None for process in snapshot.processes.values())
    if key.action == "page('compare')":
        return sum(job.outer_end_ns is not None for job in snapshot.jobs) > 1
    if key.action == "lens":
        return bool(snapshot.lenses)
    if key.action == "verify":
        return any(job.proof_hex for job in snapshot.jobs)
    return True
