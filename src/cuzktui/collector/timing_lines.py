"""The upstream daemon's log lines as fields: `CUZK_TIMING:`, `CUZK_NTT_H:`, `TIMELINE,` and tracing lines.

Two streams may share one file, any prefix may precede a tag, colours may be on, and a C line may land in the middle of
a TIMELINE line, which is written in several pieces: the foreign part is cut out and the two halves are joined again.
Unknown keys are kept; a line of no known form has no fields.
"""

from __future__ import annotations

import re

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
C_TAG = re.compile(r"(CUZK_TIMING|CUZK_NTT_H): ")
C_PAIR = re.compile(r"([A-Za-z_]\w*)=(-?\d+|[A-Za-z_]\w*)(?:ms)?(?=\s|$)")
TIMELINE = re.compile(r"TIMELINE,(\d{1,18}),([A-Z_]+),([^,]*),(.*)$")
TRACING = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]+Z)\s+(TRACE|DEBUG|INFO|WARN|ERROR)\s+(.*)$")
TARGET = re.compile(r"(?:^|: )((?:\w+::)*\w+): (?=[^:])")
TRACE_PAIR = re.compile(r'(?:^|\s)([a-z_][a-z0-9_]*)=("(?:[^"\\]|\\.)*"|\[[^\]]*\]|Some\([^)]*\)|\S+)')
MAX_FIELDS = 64


class LineParser:
    """Parses the lines of one file in order."""

    def __init__(self) -> None:
        self._half = ""

    def parse(self, line: str) -> list[tuple[str, dict[str, str]]]:
        """The whole lines that this one completes, each with its fields; usually one."""
        line = COLOUR.sub("", line)
        c_tag = C_TAG.search(line)
        if c_tag:
            before, c_line = line[: c_tag.start()], line[c_tag.start() :]
            half = self._half + before if self._half or "TIMELINE," in before else ""
            self._half = half
            return [(c_line if half else line, c_fields(c_line))]
        if self._half and "TIMELINE," not in line:
            line = self._half + line
        self._half = ""
        return [(line, fields_of(line))]


def fields_of(line: str) -> dict[str, str]:
    """Fields of a whole line without colours; empty when its form is not known."""
    c_tag = C_TAG.search(line)
    if c_tag:
        return c_fields(line[c_tag.start() :])
    timeline = TIMELINE.search(line)
    if timeline:
        ms, event, job_id, detail = timeline.groups()
        pairs = (part.partition("=") for part in detail.split(",")[:MAX_FIELDS])
        detail_fields = {key.strip(): value.strip() for key, equals, value in pairs if equals}
        return {"tag": "TIMELINE", "ms": ms, "event": event, "job_id": job_id} | detail_fields
    tracing = TRACING.search(line)
    return _tracing_fields(*tracing.groups()) if tracing else {}


def c_fields(line: str) -> dict[str, str]:
    """Fields of a line that begins with a C tag: numbers without their unit, as text."""
    tag, _, rest = line.partition(": ")
    fields = {"tag": tag}
    for key, value in C_PAIR.findall(rest)[:MAX_FIELDS]:
        fields.setdefault(key, value.removesuffix("ms") if value[0] in "-0123456789" else value)
    if len(fields) == 1 and rest.strip():
        fields["text"] = rest.strip()[:200]
    return fields


def _tracing_fields(time: str, level: str, rest: str) -> dict[str, str]:
    """Time, level, message and `key=value` pairs; the message is what stands between the target and the first pair."""
    targets = list(TARGET.finditer(rest))
    message = rest[targets[-1].end() :] if targets else rest
    first = TRACE_PAIR.search(" " + message)
    fields = {"tag": "tracing", "time": time, "level": level}
    fields["message"] = message[: max(0, first.start() - 1)].strip() if first else message.strip()
    for key, value in TRACE_PAIR.findall(rest.replace("{", " ").replace("}", " "))[:MAX_FIELDS]:
        value = value.removeprefix("Some(").removesuffix(")") if value.startswith("Some(") else value
        fields.setdefault(key, value.strip('"'))
    return fields
