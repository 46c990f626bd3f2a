"""An independent reader of Chrome traces: what a viewer would drop, misdraw or refuse is a sentence in `faults`.

Knows the format only, nothing of how this project lays traces out. Rules: Trace Event Format, and what Perfetto's
importer does with each event.
"""

from __future__ import annotations

import json
import math
from typing import Any

PHASES = set("XCMibnestf")
METADATA = {"process_name", "process_sort_index", "thread_name", "thread_sort_index"}


def faults(text: bytes) -> list[str]:
    """Everything that is wrong with a trace, empty for a good one."""
    trace = json.loads(text)
    events = trace.get("traceEvents")
    if not isinstance(events, list):
        return ["traceEvents is not a list"]
    found = [f for k, event in enumerate(events) for f in _event_faults(k, event)]
    if found:
        return found
    return [*_names(events), *_nesting(events), *_counters(events), *_asyncs(events), *_flows(events), *_order(events)]


def _event_faults(k: int, event: dict[str, Any]) -> list[str]:
    where = f"event {k} ({event.get('ph')} {event.get('name')!r})"
    found = []
    if event.get("ph") not in PHASES:
        return [f"{where}: phase is not one a viewer reads"]
    for field in ("pid", "ts", "name"):
        if field not in event:
            found.append(f"{where}: no {field}")
    if event["ph"] != "C" and not isinstance(event.get("tid"), int):
        found.append(f"{where}: no integer tid")
    for field in ("ts", "dur"):
        value = event.get(field, 0)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
            found.append(f"{where}: {field} is not a number")
        elif value < 0:
            found.append(f"{where}: {field} is negative")
        elif value > 1e12:
            found.append(f"{where}: {field} of {value} us is no time since the trace began; is it in another unit?")
        elif abs(value * 1000 - round(value * 1000)) > 1e-3:
            found.append(f"{where}: {field} is finer than a nanosecond")
    if event["ph"] == "X" and "dur" not in event:
        found.append(f"{where}: X without dur")
    return found


def _names(events: list[dict[str, Any]]) -> list[str]:
    processes = {e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name" and e["args"].get("name")}
    threads = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    unread = [e["name"] for e in events if e["ph"] == "M" and e["name"] not in METADATA]
    found = [f"metadata {name!r} is read by no viewer" for name in unread]
    for pid in sorted({e["pid"] for e in events} - processes):
        found.append(f"process {pid} has no name")
    for pid, tid in sorted({(e["pid"], e["tid"]) for e in events if e["ph"] == "X"} - threads):
        found.append(f"thread {pid}/{tid} has no name")
    return found


def _nesting(events: list[dict[str, Any]]) -> list[str]:
    lanes: dict[tuple[int, int], list[tuple[int, int, str]]] = {}
    for e in events:
        if e["ph"] == "X":
            begin = round(e["ts"] * 1000)
            lanes.setdefault((e["pid"], e["tid"]), []).append((begin, begin + round(e["dur"] * 1000), e["name"]))
    found = []
    for lane, slices in lanes.items():
        ends: list[tuple[int, str]] = []
        for begin, end, name in sorted(slices, key=lambda s: (s[0], -s[1])):
            while ends and ends[-1][0] <= begin:
                ends.pop()
            if ends and end > ends[-1][0]:
                found.append(f"thread {lane[0]}/{lane[1]}: {name!r} overlaps {ends[-1][1]!r} in part")
            ends.append((end, name))
    return found


def _counters(events: list[dict[str, Any]]) -> list[str]:
    found, last, keys = [], {}, {}
    for e in events:
        if e["ph"] != "C":
            continue
        track = (e["pid"], e["name"])
        if not e.get("args"):
            found.append(f"counter {track}: no values")
        for key, value in e.get("args", {}).items():
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
                found.append(f"counter {track} {key}: {value!r} is not a number")
        if e["ts"] <= last.get(track, -1):
            found.append(f"counter {track}: time does not increase at {e['ts']}")
        if keys.setdefault(track, set(e.get("args", {}))) != set(e.get("args", {})):
            found.append(f"counter {track}: its keys change")
        last[track] = e["ts"]
    return found


def _asyncs(events: list[dict[str, Any]]) -> list[str]:
    open_since: dict[tuple[Any, ...], float] = {}
    found = []
    for e in events:
        if e["ph"] not in "be":
            continue
        key = (e["pid"], e.get("cat"), e.get("id"), e["name"])
        if not e.get("cat") or e.get("id") in (None, ""):
            found.append(f"async {e['name']!r}: no cat or id")
        if e["ph"] == "b":
            open_since[key] = e["ts"]
        elif key not in open_since:
            found.append(f"async {e['name']!r}: ends before it begins")
        else:
            del open_since[key]
    return [*found, *(f"async {key[3]!r}: never ends" for key in open_since)]


def _flows(events: list[dict[str, Any]]) -> list[str]:
    slices = [(e["pid"], e["tid"], e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X"]
    steps: dict[tuple[Any, ...], str] = {}
    found = []
    for e in events:
        if e["ph"] not in "stf":
            continue
        inside = any(s[:2] == (e["pid"], e["tid"]) and s[2] <= e["ts"] <= s[3] for s in slices)
        if not inside:
            found.append(f"flow {e['name']!r} {e['ph']}: outside every slice of its thread")
        if e["ph"] == "f" and e.get("bp") != "e":
            found.append(f"flow {e['name']!r}: its end binds to the next slice, not to the enclosing one")
        key = (e.get("cat"), e["name"], e.get("id"))
        steps[key] = steps.get(key, "") + e["ph"]
    for key, phases in steps.items():
        if phases[0] != "s" or phases[-1] != "f" or "s" in phases[1:]:
            found.append(f"flow {key[1]!r}: steps {phases} are no s..f")
    return found


def _order(events: list[dict[str, Any]]) -> list[str]:
    times = [e["ts"] for e in events if e["ph"] != "M"]
    return [] if times == sorted(times) else ["events are not in order of time"]
