"""An excerpt of a recording replays as if it had been recorded alone: some jobs, everything around a release, no paths.

Readings between the releases are thinned, and short kernels that follow one another are told as one, as the prover does
with the shortest. Buffers and keys that exist when a job begins are allocated at its begin, as a watcher who comes late
is told of them. No other event of a job is left out but steps of progress that follow closely.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from prover import wire
from prover.errors import BadRequest

BEFORE_NS, AFTER_NS = 500_000_000, 700_000_000
"""Kept round a job; before it no more than what lies behind the job before."""
AROUND_RELEASE_NS = 200_000_000
MEMORY_STEP_NS, CPU_STEP_NS, PROGRESS_STEP_NS = 100_000_000, 190_000_000, 100_000_000
SHORT_NS = 5_000_000
SHORT_NAME = "short kernels"
COMMAND = "python -m prover serve"
Window = tuple[int, int]


def excerpt(events: Iterable[wire.Event], job_ids: Sequence[str], host: str = "demo") -> list[wire.Event]:
    """The events of some jobs of one recording, in order of arrival.

    Args:
        host: how the machine is named in the excerpt.

    Raises:
        BadRequest: the recording has no such job, or is empty.
    """
    recorded = list(events)
    if not recorded or not isinstance(recorded[0], wire.Hello):
        raise BadRequest("an excerpt is made of a recording, which begins with a hello")
    windows = [_window(recorded, job_id) for job_id in job_ids]
    begin_ns, end_ns = min(w[0] for w in windows), max(w[1] for w in windows)
    kept: list[wire.Event] = [_hello_at(recorded[0], begin_ns), *_present(recorded, begin_ns)]
    inside = [e for e in recorded[1:] if begin_ns <= e.t_ns <= end_ns and any(a <= e.t_ns <= b for a, b in windows)]
    kept += _thinned(_joined(inside), _releases(inside), set(job_ids))
    return [_without_names(event, host) for event in kept]


def _hello_at(hello: wire.Hello, t_ns: int) -> wire.Hello:
    return replace(hello, t_ns=t_ns, unix_ns=hello.unix_ns + t_ns - hello.t_ns)


def _window(events: Sequence[wire.Event], job_id: str) -> Window:
    times = [event.t_ns for event in events if getattr(event, "job_id", None) == job_id]
    if not times:
        raise BadRequest(f"no job {job_id} in the recording")
    buffers = {e.buffer_id for e in events if isinstance(e, wire.BufferAllocated) and e.job_id == job_id}
    times += [e.t_ns for e in events if isinstance(e, wire.BufferReleased) and e.buffer_id in buffers]
    submitted = [e.t_ns for e in events if isinstance(e, wire.JobSubmitted) and e.job_id == job_id]
    first_ns = min(submitted or times)
    ends = [e.t_ns for e in events if isinstance(e, wire.JobEnded | wire.BufferReleased) and e.t_ns < first_ns]
    return max([first_ns - BEFORE_NS, *(t_ns + 1 for t_ns in ends)]), max(times) + AFTER_NS


def _present(events: Sequence[wire.Event], begin_ns: int) -> list[wire.Event]:
    """What a watcher who comes at `begin_ns` is told first: the prover, the process, and every buffer that exists."""
    provers: list[wire.Event] = []
    processes: dict[int, wire.Event] = {}
    buffers: dict[int, wire.Event] = {}
    for event in events:
        if event.t_ns >= begin_ns:
            continue
        if isinstance(event, wire.Hello) and event.source == "prover":
            provers = [_hello_at(event, begin_ns)]
        elif isinstance(event, wire.ProcessSeen):
            processes[event.pid] = event
        elif isinstance(event, wire.BufferAllocated):
            buffers[event.buffer_id] = event
        elif isinstance(event, wire.BufferReleased):
            buffers.pop(event.buffer_id, None)
    return [*provers, *(replace(event, t_ns=begin_ns) for event in (*processes.values(), *buffers.values()))]


def _releases(events: Sequence[wire.Event]) -> list[Window]:
    """Stretches in which memory goes back, and their surroundings."""
    found: list[Window] = []
    for event in events:
        if isinstance(event, wire.BufferReleased) and event.how not in ("pool", "reused"):
            found.append((event.begin_ns - AROUND_RELEASE_NS, event.t_ns + AROUND_RELEASE_NS))
        elif isinstance(event, wire.InnerEnded | wire.OuterEnded):
            found.append((event.t_ns - AROUND_RELEASE_NS, event.t_ns + AROUND_RELEASE_NS))
    merged: list[Window] = []
    for begin, end in sorted(found):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _thinned(events: Sequence[wire.Event], releases: Sequence[Window], job_ids: set[str]) -> Iterator[wire.Event]:
    last: dict[tuple[object, ...], int] = {}
    for event in events:
        if getattr(event, "job_id", "") not in ("", *job_ids):
            continue
        step_ns = 0
        series: tuple[object, ...] = (type(event), getattr(event, "pid", None))
        if isinstance(event, wire.MemSample) and not any(a <= event.t_ns <= b for a, b in releases):
            step_ns = MEMORY_STEP_NS
        elif isinstance(event, wire.CpuSample | wire.HostSample | wire.CollectorCost):
            step_ns = CPU_STEP_NS
        elif isinstance(event, wire.Progress) and event.done < event.total:
            step_ns, series = PROGRESS_STEP_NS, (event.stage, event.circuit)
        if step_ns and event.t_ns - last.get(series, 0) < step_ns:
            continue
        last[series] = event.t_ns
        yield event


def _joined(events: Sequence[wire.Event]) -> list[wire.Event]:
    """Neighbouring short device spans of a stage and circuit become one, as long as all of them together."""
    kept: list[wire.Event] = []
    run: list[wire.Span] = []

    def close() -> None:
        if len(run) == 1:
            kept.append(run[0])
        elif run:
            end_ns = max(span.t_ns for span in run)
            busy_ns = sum(span.t_ns - span.begin_ns for span in run)
            count = sum(span.ops or 0 if span.name == SHORT_NAME else 1 for span in run)
            kept.append(
                wire.Span(
                    t_ns=end_ns, job_id=run[0].job_id, name=SHORT_NAME, begin_ns=end_ns - busy_ns, stage=run[0].stage,
                    circuit=run[0].circuit, lane=run[0].lane, ops=count, op="launch", error_ns=run[0].error_ns,
                )
            )  # fmt: skip
        run.clear()

    for event in events:
        if isinstance(event, wire.Span) and event.lane != "cpu" and event.t_ns - event.begin_ns < SHORT_NS:
            if run and _place(run[0]) != _place(event):
                close()
            run.append(event)
            continue
        if isinstance(event, wire.Span | wire.StageBegan | wire.StageEnded):
            close()
        kept.append(event)
    close()
    return kept


def _place(span: wire.Span) -> tuple[object, ...]:
    return span.job_id, span.stage, span.circuit, span.lane.split()[0]


def _without_names(event: wire.Event, host: str) -> wire.Event:
    """The same without folders and the name of the machine that it was recorded on."""
    if isinstance(event, wire.Hello):
        return replace(event, host=host)
    if isinstance(event, wire.ProcessSeen):
        return replace(event, command=COMMAND)
    if isinstance(event, wire.JobEnded) and event.metrics.get("key_file"):
        return replace(event, metrics=event.metrics | {"key_file": None})
    if isinstance(event, wire.SourceChanged | wire.Notice):
        name = "detail" if isinstance(event, wire.SourceChanged) else "text"
        words = getattr(event, name).split(" ")
        return replace(event, **{name: " ".join("…" if word.strip("(;:").startswith("/") else word for word in words)})
    return event
