"""The ledger panel says whose the memory is: what the prover claims to hold, by owner, against what was measured."""

from __future__ import annotations

from cuzktui import format as fmt
from cuzktui.analysis.expectation import Expected, expected_of
from cuzktui.analysis.reconcile import reconciled
from cuzktui.widgets.canvas import Canvas
from cuzktui.widgets.chart import STACK
from cuzktui.widgets.dots import bar
from cuzktui.widgets.frame import Words, framed
from cuzktui.widgets.grid import Grid
from cuzktui.widgets.roles import Role
from cuzktui.widgets.view import View
from prover.wire import Owner

_NAMES = {
    Owner.SRS: "proving key",
    Owner.SETUP: "setup",
    Owner.POOL: "pool",
    Owner.ASSIGNMENT: "assignment",
    Owner.ABC: "a, b, c",
    Owner.SPLIT: "split vectors",
    Owner.TAIL_BASES: "tail bases",
    Owner.SCRATCH: "scratch",
}


class LedgerPanel(Canvas):
    """Owners of host memory; the colours are those of the graph."""

    def draw(self, view: View, width: int, height: int) -> Grid:
        return ledger_grid(view, width, height)


def ledger_grid(view: View, width: int, height: int) -> Grid:
    """The panel as text."""
    stack = expected_of(view.snapshot)
    if stack and view.is_stranger:
        return _expected_grid(view, stack, width, height)
    ledger = view.snapshot.ledger
    now = ledger.host_by_owner
    shown, is_peak = (now, False) if sum(now.values()) > 0 else (dict(ledger.peak_by_owner), True)
    total = sum(shown.values())
    title: Words = [("ledger", Role.TITLE), (" · at its peak" if is_peak and total else " · now", Role.MUTED)]
    grid = framed(width, height, view.glyphs, title, right=[(fmt.size(total), Role.STRONG)], foot=_reconciled(view))
    inside = height - 2
    if inside < 1 or width < 24:
        return grid
    y = 1
    for leak in ledger.leaks[-2:]:
        if y <= inside:
            grid.put(2, y, f"LEAK {leak.label}: {fmt.size(leak.size_bytes)} still in use", Role.BAD)
            y += 1
    if not total and y == 1:
        grid.put(2, 1, "no buffer yet", Role.MUTED)
    for owner, role, letter in reversed(STACK):
        size = shown.get(owner, 0)
        if not size or y > inside:
            continue
        mark = letter if view.glyphs.mode == "ascii" else "█"
        grid.put(2, y, f"{mark} ", role)
        grid.put(4, y, _NAMES[owner], Role.TEXT)
        room = width - 4 - 2 - 14 - 9
        if room >= 8:
            filled, rest = bar(size / total if total else None, room, view.glyphs)
            x = grid.put(18, y, filled, role)
            grid.put(x, y, rest, Role.GRID)
        grid.put_right(width - 2, y, fmt.size(size), Role.TEXT)
        y += 1
    return grid


def _expected_grid(view: View, stack: tuple[Expected, ...], width: int, height: int) -> Grid:
    """The stack that an operator expects of a foreign process, and what was measured beside it."""
    total = sum(part.size_bytes for part in stack)
    process = view.snapshot.process
    peak = process.peak_resident_bytes if process is not None else None
    share = f" · {fmt.percent(100 * peak / total)} of it" if peak is not None and total else ""
    foot: Words = [("peak measured ", Role.MUTED), (f"{fmt.size(peak)}{share}", Role.STRONG)]
    title: Words = [("expected", Role.TITLE), (" · named by you, not measured", Role.MUTED)]
    grid = framed(width, height, view.glyphs, title, right=[(fmt.size(total), Role.LIMIT)], foot=foot)
    inside = height - 2
    if inside < 1 or width < 24:
        return grid
    for y, part in enumerate(reversed(stack[:inside]), start=1):
        grid.put(2, y, part.name[:14], Role.TEXT)
        room = width - 4 - 14 - 20
        if room >= 6:
            filled, rest = bar(part.size_bytes / total if total else None, room, view.glyphs)
            x = grid.put(17, y, filled, Role.LIMIT)
            grid.put(x, y, rest, Role.GRID)
        each = f"{part.count}×{fmt.size(part.each_bytes)} " if part.count > 1 and room >= 6 else ""
        grid.put_right(width - 2, y, f"{each}{fmt.size(part.size_bytes)}", Role.TEXT)
    return grid


def _reconciled(view: View) -> Words:
    """What the ledger does not hold: the process itself, or more than that."""
    held = reconciled(view.snapshot)
    if held is not None and held.has_leak:
        return [("UNEXPLAINED ", Role.BAD), (fmt.size(held.surely_unexplained_bytes), Role.BAD)]
    process, ledger = view.snapshot.process, view.snapshot.ledger
    anon = process.memory.last("anon") if process is not None else None
    if anon is None or ledger.host_bytes <= 0:
        return []
    return [("not in the ledger ", Role.MUTED), (fmt.size(max(0.0, anon - ledger.host_bytes)), Role.TEXT)]
