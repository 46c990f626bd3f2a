"""An excerpt of a recording says of its jobs what the whole recording says, in fewer lines and without paths."""

from __future__ import annotations

from pathlib import Path

import pytest

import cuzktui
from cuzktui.analysis import analyse, analyse_job
from cuzktui.collector.excerpt import excerpt
from cuzktui.collector.reading import read_recording
from prover import wire
from prover.errors import BadRequest

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def recorded() -> list[wire.Event]:
    return list(read_recording(DATA / "gigabyte_sync_4k.jsonl"))


@pytest.fixture(scope="module")
def job_id(recorded: list[wire.Event]) -> str:
    return next(event.job_id for event in recorded if isinstance(event, wire.JobSubmitted))


def test_the_job_of_an_excerpt_has_the_figures_of_the_recording(recorded: list[wire.Event], job_id: str) -> None:
    cut = excerpt(recorded, [job_id])
    assert len(cut) < len(recorded)
    whole, part = analyse_job(recorded, job_id), analyse_job(cut, job_id)
    assert part.gap is not None and whole.gap is not None
    assert part.gap.explained == whole.gap.explained and part.gap.released_bytes == whole.gap.released_bytes
    assert part.stages_ms == whole.stages_ms and part.finding == whole.finding
    assert part.peak_rss_bytes == pytest.approx(whole.peak_rss_bytes, rel=0.02)


def test_no_reading_around_a_release_is_left_out(recorded: list[wire.Event], job_id: str) -> None:
    released = next(e for e in recorded if isinstance(e, wire.BufferReleased) and e.how == "munmap")

    def near(events: list[wire.Event]) -> list[wire.Event]:
        return [e for e in events if isinstance(e, wire.MemSample) and abs(e.t_ns - released.t_ns) < 150_000_000]

    assert near(recorded) and near(excerpt(recorded, [job_id])) == near(recorded)


def test_what_existed_before_the_job_is_there_when_the_excerpt_begins(
    recorded: list[wire.Event], job_id: str
) -> None:
    hello = recorded[0]
    folder = "/home/somebody/prover.sock"
    key = wire.BufferAllocated(
        t_ns=hello.t_ns + 1, buffer_id=1 << 50, job_id="", label="proving key", owner=wire.Owner.SRS,
        place=wire.Place.DEVICE, size_bytes=7,
    )  # fmt: skip
    gone = wire.BufferAllocated(
        t_ns=hello.t_ns + 2, buffer_id=1 << 51, job_id="", label="idle pool", owner=wire.Owner.POOL,
        place=wire.Place.HOST, size_bytes=9,
    )  # fmt: skip
    back = wire.BufferReleased(
        t_ns=hello.t_ns + 4, buffer_id=1 << 51, begin_ns=hello.t_ns + 3, size_bytes=9, how="trim"
    )
    seen = wire.ProcessSeen(t_ns=hello.t_ns + 3, pid=4, command=f"python -m prover serve --socket {folder}")
    moved = [event for event in recorded[1:] if event.t_ns > hello.t_ns]
    cut = excerpt([hello, key, gone, seen, back, *moved], [job_id])
    begin_ns = cut[0].t_ns
    first_ns = next(e.t_ns for e in cut if getattr(e, "job_id", None) == job_id)
    assert first_ns - 500_000_000 <= begin_ns < first_ns
    assert begin_ns > hello.t_ns + 4
    held = [e.buffer_id for e in cut if isinstance(e, wire.BufferAllocated) and e.t_ns == begin_ns]
    assert 1 << 50 in held and 1 << 51 not in held
    assert not any(b"/home" in wire.encode(event) for event in cut)
    assert analyse(cut).job is not None


def test_a_job_that_is_not_there_is_refused(recorded: list[wire.Event]) -> None:
    with pytest.raises(BadRequest, match="no job absent"):
        excerpt(recorded, ["absent"])
    with pytest.raises(BadRequest, match="hello"):
        excerpt(recorded[1:], ["absent"])


def test_an_excerpt_of_the_second_job_does_not_reach_into_the_first() -> None:
    pair = list(read_recording(Path(cuzktui.__file__).parent / "demo" / "run.jsonl"))
    first, second = (event.job_id for event in pair if isinstance(event, wire.JobEnded))
    cut = excerpt(pair, [second])
    assert not any(getattr(event, "job_id", "") == first for event in cut[1:] if not _was_there(event, cut[0]))
    assert all(e.begin_ns >= cut[0].t_ns for e in cut if isinstance(e, wire.BufferReleased))
    assert analyse_job(cut, second).finding == analyse_job(pair, second).finding


def _was_there(event: wire.Event, hello: wire.Event) -> bool:
    return isinstance(event, wire.BufferAllocated) and event.t_ns == hello.t_ns


def test_short_kernels_that_follow_one_another_are_one_span_with_all_their_time(
    recorded: list[wire.Event], job_id: str
) -> None:
    end_ns = next(e.t_ns for e in recorded if isinstance(e, wire.InnerEnded)) - 1_000_000_000
    kernels = [
        wire.Span(
            t_ns=end_ns + k * 1_000_000, begin_ns=end_ns + k * 1_000_000 - 400_000, job_id=job_id, name=f"kernel {k}",
            stage=wire.Stage.NTT_H, circuit=0, lane="cuda:0 s0",
        )
        for k in range(10)
    ]  # fmt: skip
    at = next(i for i, event in enumerate(recorded) if event.t_ns >= end_ns + 10_000_000)
    cut = excerpt([*recorded[:at], *kernels, *recorded[at:]], [job_id])
    (joined,) = [e for e in cut if isinstance(e, wire.Span) and e.lane.startswith("cuda")]
    assert (joined.t_ns, joined.t_ns - joined.begin_ns, joined.ops) == (kernels[-1].t_ns, 4_000_000, 10)
