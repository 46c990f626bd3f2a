"""Upstream's log lines, whole, torn and foreign, from a file that is rotated under the reader."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzktui.collector.logs import LogTail
from cuzktui.collector.timing_lines import LineParser, fields_of
from prover import wire


@pytest.mark.parametrize(("line", "expected"), [
    ("CUZK_TIMING: prep_msm_ms=1759", {"tag": "CUZK_TIMING", "prep_msm_ms": "1759"}),
    ("CUZK_TIMING: b_g2_msm_ms=23425 num_circuits=10",
     {"tag": "CUZK_TIMING", "b_g2_msm_ms": "23425", "num_circuits": "10"}),
    ("May 05 host cuzk[7]: CUZK_TIMING: gpu_tid=0 tail_msm_ms=1254 gpu_total_ms=26126",
     {"tag": "CUZK_TIMING", "gpu_tid": "0", "tail_msm_ms": "1254", "gpu_total_ms": "26126"}),
    ("CUZK_TIMING: epilogue_ms=10 pre_destructor_ms=26138",
     {"tag": "CUZK_TIMING", "epilogue_ms": "10", "pre_destructor_ms": "26138"}),
    ("CUZK_NTT_H: d_b_alloc=0ms ntt_kernels=310ms msm_invoke=340ms total=681ms",
     {"tag": "CUZK_NTT_H", "d_b_alloc": "0", "ntt_kernels": "310", "msm_invoke": "340", "total": "681"}),
    ("CUZK_TIMING: host_register=fallback err=-2",
     {"tag": "CUZK_TIMING", "host_register": "fallback", "err": "-2"}),
    ("CUZK_TIMING: set pool release threshold to MAX on gpu 0",
     {"tag": "CUZK_TIMING", "text": "set pool release threshold to MAX on gpu 0"}),
    ("TIMELINE,40774,GPU_END,porep-1000-7,worker=0,partition=3,gpu_ms=3750",
     {"tag": "TIMELINE", "ms": "40774", "event": "GPU_END", "job_id": "porep-1000-7", "worker": "0", "partition": "3",
      "gpu_ms": "3750"}),
    ("TIMELINE,5,GPU_QUEUE,j,monolithic", {"tag": "TIMELINE", "ms": "5", "event": "GPU_QUEUE", "job_id": "j"}),
    ("an ordinary line = of text", {}),
    ("", {}),
])  # fmt: skip
def test_each_form_gives_its_fields(line, expected):
    assert fields_of(line) == expected


def test_a_tracing_line_gives_message_spans_and_values_without_colours():
    line = (
        "\x1b[2m2026-05-05T12:00:01.234567Z\x1b[0m \x1b[32m INFO\x1b[0m gpu_worker{worker_id=0 gpu=0 "
        'job_id="porep-1000-7" partition=Some(3)}: cuzk_core::engine: GPU prove complete (split) proof_count=1 '
        "proof_bytes=192 gpu_ms=3750 gpus=[0, 1]"
    )
    ((_, fields),) = LineParser().parse(line)
    assert fields["message"] == "GPU prove complete (split)" and fields["level"] == "INFO"
    assert (fields["gpu_ms"], fields["job_id"], fields["partition"]) == ("3750", "porep-1000-7", "3")
    assert fields["gpus"] == "[0, 1]"


def test_a_c_line_inside_a_timeline_line_is_cut_out_and_the_halves_are_joined():
    parser = LineParser()
    first = parser.parse("TIMELINE,1523,SYNTH_CUZK_TIMING: prep_msm_ms=5")
    second = parser.parse("START,porep-1,partition=3")
    assert first == [("CUZK_TIMING: prep_msm_ms=5", {"tag": "CUZK_TIMING", "prep_msm_ms": "5"})]
    assert second[0][0] == "TIMELINE,1523,SYNTH_START,porep-1,partition=3"
    assert second[0][1]["event"] == "SYNTH_START" and second[0][1]["partition"] == "3"


def test_two_c_lines_may_tear_one_timeline_line():
    parser = LineParser()
    parser.parse("TIMELINE,1CUZK_TIMING: prep_msm_ms=5")
    parser.parse("523,SYNTH_CUZK_TIMING: async_dealloc_ms=6")
    ((text, fields),) = parser.parse("START,porep-1,partition=3")
    assert text == "TIMELINE,1523,SYNTH_START,porep-1,partition=3" and fields["ms"] == "1523"


@given(st.text(max_size=300))
def test_no_text_is_an_error(text):
    parser = LineParser()
    for line in (text, "TIMELINE," + text, "CUZK_TIMING: " + text, "TIMELINE,1CUZK_TIMING: " + text, text):
        for _, fields in parser.parse(line):
            assert all(isinstance(value, str) for value in fields.values())


@pytest.fixture
def tail(tmp_path, events):
    started = []

    def follow(path) -> LogTail:
        started.append(LogTail(path, events.put))
        started[-1].start()
        return started[-1]

    yield follow
    for thread in started:
        thread.stop()


def is_line(text: str):
    return lambda e: isinstance(e, wire.LogLine) and e.text == text


def append(path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_new_lines_come_and_old_ones_do_not(tmp_path, tail, events):
    path = tmp_path / "cuzk.log"
    append(path, "old\n")
    tail(path)
    events.wait(lambda e: isinstance(e, wire.SourceChanged) and e.alive)
    append(path, "CUZK_TIMING: prep_ms")
    append(path, "m_ms=7\nnext\n")
    line = events.wait(lambda e: isinstance(e, wire.LogLine))
    assert line.fields == {"tag": "CUZK_TIMING", "prep_msm_ms": "7"} and line.source == str(path)
    events.wait(is_line("next"))
    assert len(events.of(wire.LogLine)) == 2


def test_a_file_that_appears_later_is_read_from_its_beginning(tmp_path, tail, events):
    path = tmp_path / "cuzk.log"
    tail(path)
    events.wait(lambda e: isinstance(e, wire.SourceChanged) and not e.alive)
    append(path, "first\n")
    events.wait(is_line("first"))
    assert events.of(wire.SourceChanged)[-1].alive


def test_rotation_loses_no_line(tmp_path, tail, events):
    path = tmp_path / "cuzk.log"
    append(path, "old\n")
    tail(path)
    events.wait(lambda e: isinstance(e, wire.SourceChanged))
    append(path, "a\n")
    os.rename(path, tmp_path / "cuzk.log.1")
    append(tmp_path / "cuzk.log.1", "b\n")
    append(path, "c\n")
    events.wait(is_line("c"))
    assert [e.text for e in events.of(wire.LogLine)] == ["a", "b", "c"]


def test_a_truncated_file_is_read_from_its_beginning(tmp_path, tail, events):
    path = tmp_path / "cuzk.log"
    append(path, "a long old line\n")
    tail(path)
    events.wait(lambda e: isinstance(e, wire.SourceChanged))
    path.write_text("")
    append(path, "new\n")
    events.wait(is_line("new"))


def test_an_endless_line_and_bytes_that_are_no_text_do_no_harm(tmp_path, tail, events):
    path = tmp_path / "cuzk.log"
    append(path, "")
    tail(path)
    events.wait(lambda e: isinstance(e, wire.SourceChanged))
    path.write_bytes(b"x" * 100_000 + b"\n\xff\xfe\x00\nend\n")
    events.wait(is_line("end"))
    assert all(len(e.text) <= 4096 for e in events.of(wire.LogLine))


def test_a_log_that_grows_faster_than_it_is_read_is_skipped_and_counted(tmp_path, tail, events):
    path = tmp_path / "cuzk.log"
    append(path, "")
    tail(path)
    events.wait(lambda e: isinstance(e, wire.SourceChanged))
    append(path, "".join(f"line {number:08d}\n" for number in range(300_000)) + "end\n")
    events.wait(is_line("end"))
    dropped = sum(e.count for e in events.of(wire.Dropped))
    lines = len(events.of(wire.LogLine))
    assert dropped > 100_000 and abs(lines + dropped - 300_001) <= 2 * len(events.of(wire.Dropped)) + 1
