"""CSV per stage, CUZK_TIMING lines and Perfetto protobuf say the same numbers as the events they came from."""

from __future__ import annotations

import csv
import io
import re

import pytest

from builders import MS, Story
from cuzktui.export.csv_stages import HEADER, render_csv
from cuzktui.export.timing import render_timing
from prover import wire
from prover.wire import Stage


def staged(story: Story) -> list[wire.Event]:
    """The story with the epilogue and the G2 product as stages of their own."""
    events = story.build()
    marks = ((Stage.B_G2_MSM, 0, 900), (Stage.PREP_MSM, 0, 300), (Stage.EPILOGUE, 3990, 4000))
    for stage, begin_ms, end_ms in marks:
        at = {"job_id": story.job_id, "stage": stage}
        events.append(wire.StageBegan(t_ns=story.prove_begin_ns + begin_ms * MS, **at))
        events.append(wire.StageEnded(t_ns=story.prove_begin_ns + end_ms * MS, **at))
    return sorted(events, key=lambda e: e.t_ns)


def test_a_csv_row_is_one_stage_run() -> None:
    rows = list(csv.DictReader(io.StringIO(render_csv(Story().build()).decode())))
    assert tuple(rows[0]) == HEADER
    prove = next(row for row in rows if row["stage"] == "prove")
    assert (prove["wall_ms"], prove["circuit"], prove["policy"]) == ("4800.000", "", "sync-4k")
    witness = [row for row in rows if row["stage"] == "witness"]
    assert [row["circuit"] for row in witness] == ["0", "1"]
    assert all(row["cpu_ms"] == "500.000" and row["ops"] == "120000" for row in witness)
    assert [float(row["begin_ms"]) for row in rows] == sorted(float(row["begin_ms"]) for row in rows)


def test_a_stage_that_runs_has_no_end_in_the_csv() -> None:
    story = Story()
    events = [e for e in story.build() if e.t_ns <= story.prove_begin_ns + 100 * MS]
    rows = list(csv.DictReader(io.StringIO(render_csv(events).decode())))
    prove = next(row for row in rows if row["stage"] == "prove")
    assert (prove["end_ms"], prove["wall_ms"], prove["ok"]) == ("", "", "")


def test_a_job_name_cannot_break_a_csv_row() -> None:
    rows = list(csv.reader(io.StringIO(render_csv(Story(job_id='a,"b"\n').build()).decode())))
    assert {len(row) for row in rows} == {len(HEADER)}
    assert rows[1][0] == 'a,"b"\n'


def test_timing_lines_carry_the_measured_figures_of_the_job() -> None:
    lines = render_timing(staged(Story())).decode().splitlines()
    assert "CUZK_TIMING: prep_msm_ms=300" in lines
    assert "CUZK_TIMING: gpu_tid=0 ntt_msm_h_ms=2000" in lines
    assert "CUZK_TIMING: gpu_tid=0 batch_add_ms=1000" in lines
    assert "CUZK_TIMING: gpu_tid=0 tail_msm_ms=1000 gpu_total_ms=4000" in lines
    assert "CUZK_TIMING: b_g2_msm_ms=900 num_circuits=2" in lines
    assert "CUZK_TIMING: epilogue_ms=10 pre_destructor_ms=4000" in lines
    assert lines.count("CUZK_NTT_H: ntt_kernels=500ms msm_invoke=500ms total=1000ms") == 2


def test_the_gap_can_be_computed_from_the_lines_as_upstream_does() -> None:
    text = render_timing(staged(Story())).decode()
    gpu_ms = re.search(r"GPU prove complete .*gpu_ms=(\d+)", text)
    inner_ms = re.search(r"pre_destructor_ms=(\d+)", text)
    assert gpu_ms and inner_ms
    assert int(gpu_ms[1]) - int(inner_ms[1]) == 800


def test_what_was_not_measured_has_no_key() -> None:
    text = render_timing(Story().build()).decode()
    assert "CUZK_TIMING: pre_destructor_ms=4000" in text.splitlines()
    for key in ("epilogue_ms", "prep_msm_ms", "b_g2_msm_ms", "split_vectors_ms", "async_dealloc_ms"):
        assert key not in text
    assert "async_dealloc_ms=600" in render_timing(Story(gap_ms=1, async_ms=600).build()).decode()


GRAMMAR = re.compile(
    r"^(CUZK_TIMING:( \w+=-?\d+)+|CUZK_NTT_H:( \w+=\d+ms)+|TIMELINE,\d+,[A-Z_]+,[^,]+,(\w+=\d+,?)+"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z  INFO .*)$"
)


def test_every_line_has_upstreams_grammar() -> None:
    for line in render_timing(staged(Story(job_id="porep-1,000"))).decode().splitlines():
        assert GRAMMAR.match(line), line


def test_a_perfetto_trace_reads_back_with_its_slices_counters_and_units() -> None:
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="extra `trace` not installed")
    from cuzktui.export.perfetto import render_perfetto

    story = Story()
    trace = pb.Trace.FromString(render_perfetto(story.build()))
    events = [(p.timestamp, p.track_event) for p in trace.packet if p.HasField("track_event")]
    assert [t for t, _ in events] == sorted(t for t, _ in events)
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    assert {e.track_uuid for _, e in events} <= set(tracks)
    depth: dict[int, int] = {}
    for _, event in events:
        if event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
            depth[event.track_uuid] = depth.get(event.track_uuid, 0) + 1
        elif event.type == pb.TrackEvent.TYPE_SLICE_END:
            depth[event.track_uuid] -= 1
            assert depth[event.track_uuid] >= 0
    assert not any(depth.values())
    prove = next(t for t, e in events if e.name == "prove")
    assert prove == story.prove_begin_ns
    clocks = [c for p in trace.packet if p.HasField("clock_snapshot") for c in p.clock_snapshot.clocks]
    assert {p.timestamp_clock_id for p in trace.packet if p.HasField("track_event")} <= {c.clock_id for c in clocks}
    anon = next(t for t in tracks.values() if t.name == "memory anon")
    assert anon.counter.unit == pb.CounterDescriptor.UNIT_SIZE_BYTES
    levels = [e.double_counter_value for _, e in events if e.track_uuid == anon.uuid]
    assert max(levels) == 8_300_000_000
