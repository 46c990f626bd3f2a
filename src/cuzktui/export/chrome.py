"""Chrome Trace Event JSON: `ts` and `dur` are microseconds since the trace's first event, to the nanosecond.

Absolute epochs would lose a quarter of a microsecond in a double, so the wall clock stands in `otherData`.
Opens in ui.perfetto.dev and chrome://tracing.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cuzktui.export.layout import Layout, lay_out
from prover.wire import Event


def render_chrome(events: list[Event]) -> bytes:
    """The trace of a stream as one JSON object."""
    return msgspec.json.encode(chrome_trace(lay_out(events)))


def chrome_trace(layout: Layout) -> dict[str, Any]:
    """The JSON object: metadata first, then every event in order of time."""
    timed: list[dict[str, Any]] = []

    def us(t_ns: int) -> float:
        return (t_ns - layout.base_ns) / 1000

    for lane in layout.lanes:
        for piece in lane.slices:
            timed.append(
                {
                    "ph": "X", "name": piece.name, "cat": piece.category, "pid": lane.process, "tid": lane.thread,
                    "ts": us(piece.begin_ns), "dur": (piece.end_ns - piece.begin_ns) / 1000, "args": piece.args,
                }
            )  # fmt: skip
    for counter in layout.counters:
        for t_ns, values in counter.rows:
            args = dict(zip(counter.keys, values, strict=True))
            timed.append({"ph": "C", "name": counter.name, "pid": counter.process, "ts": us(t_ns), "args": args})
    for mark in layout.instants:
        timed.append(
            {"ph": "i", "s": "p", "name": mark.name, "cat": "mark", "pid": mark.process, "tid": 0, "ts": us(mark.t_ns),
             "args": mark.args}
        )  # fmt: skip
    for stretch in layout.asyncs:
        common = {"name": stretch.name, "cat": stretch.category, "id": stretch.ident, "pid": stretch.process, "tid": 0}
        timed.append({"ph": "b", **common, "ts": us(stretch.begin_ns), "args": stretch.args})
        timed.append({"ph": "e", **common, "ts": us(stretch.end_ns)})
    for flow in layout.flows:
        for at, (t_ns, process, thread) in enumerate(flow.stops):
            phase = "s" if at == 0 else "f" if at == len(flow.stops) - 1 else "t"
            ending = {"bp": "e"} if phase == "f" else {}
            timed.append(
                {"ph": phase, "name": flow.name, "cat": "flow", "id": flow.ident, "pid": process, "tid": thread,
                 "ts": us(t_ns), **ending}
            )  # fmt: skip
    timed.sort(key=lambda event: (event["ts"], -event.get("dur", 0.0)))
    about = {**layout.about, "unix_ns": str(layout.unix_ns), "monotonic_ns": str(layout.base_ns)}
    return {"displayTimeUnit": "ms", "otherData": about, "traceEvents": [*_metadata(layout), *timed]}


def _metadata(layout: Layout) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []

    def say(what: str, process: int, thread: int, **args: object) -> None:
        told.append({"ph": "M", "name": what, "pid": process, "tid": thread, "ts": 0, "args": args})

    for rank, (process, name) in enumerate(layout.processes.items()):
        say("process_name", process, 0, name=name)
        say("process_sort_index", process, 0, sort_index=rank)
    for lane in layout.lanes:
        say("thread_name", lane.process, lane.thread, name=lane.name)
        say("thread_sort_index", lane.process, lane.thread, sort_index=lane.thread)
    return told
