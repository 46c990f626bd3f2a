"""The finding line holds the one sentence that matters now: what was found, what went wrong, or what to press."""

from __future__ import annotations

from cuzktui.widgets.canvas import Canvas
from cuzktui.widgets.frame import Words, words
from cuzktui.widgets.grid import Grid
from cuzktui.widgets.pair import comparison
from cuzktui.widgets.roles import Role
from cuzktui.widgets.view import View

_FRESH_NS = 15_000_000_000
"""An error stays on the line for so long unless something newer is found."""


class FindingLine(Canvas):
    """One sentence under the graph."""

    def draw(self, view: View, width: int, height: int) -> Grid:
        return finding_grid(view, width, height)


def finding_grid(view: View, width: int, height: int = 1) -> Grid:
    """The line as text; a sentence too long for one row goes on in the next where there is one."""
    grid = Grid(width, height)
    pieces = _pieces(view)
    length = sum(len(text) for text, _ in pieces)
    room = width - 4
    if view.offer and (height > 1 or length + len(view.offer) + 3 <= room):
        grid.put_right(width - 1, height - 1, view.offer, Role.KEY)
        room -= len(view.offer) + 2 if height == 1 else 0
    if room < 4 or not pieces:
        return grid
    mark = ">" if view.glyphs.mode == "ascii" else "▸"
    grid.put(1, 0, mark, pieces[0][1])
    if length <= room or height < 2:
        words(grid, 3, 0, pieces, room, view.glyphs)
        return grid
    text, role = "".join(piece for piece, _ in pieces), pieces[0][1]
    cut = text.rfind(" ", 0, room + 1)
    cut = cut if cut > room // 2 else room
    grid.put(3, 0, text[:cut], role)
    offered = len(view.offer) + 2 if view.offer else 0
    words(grid, 3, 1, [(text[cut:].lstrip(), role)], room - offered, view.glyphs)
    return grid


def is_long(view: View, width: int) -> bool:
    """The sentence, with what is offered beside it, needs a second row."""
    length = sum(len(text) for text, _ in _pieces(view)) + (len(view.offer) + 3 if view.offer else 0)
    return length > width - 4


def _pieces(view: View) -> Words:
    snapshot = view.snapshot
    process = snapshot.process
    if process is not None and process.ended is not None and not snapshot.is_replay:
        ended = process.ended
        stage = f" in stage {ended.stage}" if ended.stage else ""
        who = "prover" if process.role == "prover" else "process"
        told: Words = [(f"{who} {ended.pid} ended{stage}: {ended.reason or 'no reason known'}", Role.BAD)]
        told = [*told, ("  w tells why", Role.KEY)]
        return [*told, ("  r starts it again", Role.KEY)] if view.can_restart else told
    if snapshot.gpu_lost and not snapshot.is_replay:
        may_restart = view.can_restart and not view.is_read_only
        remedy: Words = [("r starts the prover again", Role.KEY), (": ", Role.BAD)] if may_restart else []
        return [("GPU lost; " if remedy else "GPU lost: ", Role.BAD), *remedy, (snapshot.gpu_lost, Role.BAD)]
    if view.alarms:
        return [(view.alarms[0].text, Role.BAD if view.alarms[0].level == "error" else Role.WARN)]
    error = next((n for n in reversed(snapshot.notices[-20:]) if n.level == "error"), None)
    if error is not None and snapshot.t_ns - error.t_ns < _FRESH_NS:
        return [(error.text, Role.BAD)]
    compared = comparison(view.pair_jobs())
    if compared:
        return compared
    if view.finding:
        return view.finding
    if view.job is None and not snapshot.is_replay and not view.is_read_only:
        return [("p makes a real proof; watch its memory stay, and go, after the last computation", Role.MUTED)]
    return []
