"""A real proof without a screen: one JSON object, true parts, and an answer whatever is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_support import children_of, cuzktui, is_gone

from cuzktui.collector.reading import read_recording
from cuzktui.progress import ProgressLines
from prover import wire
from prover.wire import Outcome, Policy, Stage

PARTS = ("queue_ms", "setup_ms", "srs_ms", "synth_ms", "outer_ms", "verify_ms")
ASKED = (
    "verified", "proof_hex", "policy", *PARTS, "inner_ms", "gap_ms", "release_ms", "total_ms", "peak_rss_bytes",
    "peak_predicted_bytes", "explained_percent", "gap_explained_percent", "stages",
)  # fmt: skip


@pytest.fixture(scope="module")
def proved(tmp_path_factory) -> tuple[dict, subprocess.CompletedProcess[str], Path]:
    """One proof of the smallest circuit of two, with everything asked for."""
    folder = tmp_path_factory.mktemp("proved")
    done = cuzktui(
        "prove", "sha256-chain:1", "--circuits", 2, "--policy", "sync-4k", "--json", "--backend", "cpu",
        "--record", folder / "run.jsonl", "--export", folder / "trace.json", timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done, folder


def test_standard_output_is_one_json_object_with_every_figure(proved):
    answer, done, _ = proved
    assert done.stdout.count("\n") == 1
    assert [name for name in ASKED if name not in answer] == []
    assert answer["verified"] is True and answer["outcome"] == "proved" and answer["error"] == ""
    assert len(answer["proof_hex"]) == 2 * 192 * 2
    assert answer["policy"] == "sync-4k" and answer["num_circuits"] == 2


def test_the_parts_add_up_to_the_time_from_request_to_reply(proved):
    answer, _, folder = proved
    parts = sum(answer[name] for name in PARTS)
    assert abs(answer["total_ms"] - parts) < 0.02 * answer["total_ms"]
    assert answer["gap_ms"] == pytest.approx(answer["outer_ms"] - answer["inner_ms"], abs=0.01)
    events = list(read_recording(folder / "run.jsonl"))
    submitted = next(e for e in events if isinstance(e, wire.JobSubmitted))
    ended = next(e for e in events if isinstance(e, wire.JobEnded))
    assert answer["total_ms"] == pytest.approx((ended.t_ns - submitted.t_ns) / 1e6, abs=1)


def test_the_stages_are_those_of_the_protocol(proved):
    answer, _, _ = proved
    assert {"synth", "prove", "ntt_h", "msm_h", "b_g2_msm", "release", "verify"} <= set(answer["stages"])


def test_progress_goes_to_standard_error_in_lines(proved):
    _, done, _ = proved
    assert "prove" in done.stderr and "verify" in done.stderr
    assert "\r" not in done.stderr and "\x1b" not in done.stderr


def test_the_recording_and_the_trace_are_there_and_tell_the_same_proof(proved):
    answer, _, folder = proved
    events = list(read_recording(folder / "run.jsonl"))
    ended = [e for e in events if isinstance(e, wire.JobEnded)]
    assert [e.proof_hex for e in ended] == [answer["proof_hex"]]
    released = sum(e.size_bytes for e in events if isinstance(e, wire.BufferReleased) and e.how == "munmap")
    assert released > 0
    assert json.loads((folder / "trace.json").read_text())["traceEvents"]


class Running:
    """A proof in progress and its recording."""

    def __init__(self, path: Path, *arguments: str) -> None:
        self.path = path
        command = [sys.executable, "-m", "cuzktui", "prove", *arguments, "--json", "--backend", "cpu"]
        self.popen = subprocess.Popen(
            [*command, "--record", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def wait(self, wanted, timeout_s: float = 200.0) -> wire.Event:
        """The first wanted event in the recording."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and self.popen.poll() is None:
            if self.path.exists() and self.path.stat().st_size:
                for event in read_recording(self.path):
                    if wanted(event):
                        return event
            time.sleep(0.05)
        raise AssertionError(f"not in the recording: {self.popen.stderr.read()[-500:] if self.popen.poll() else ''}")

    def answer(self) -> tuple[int, dict, str]:
        out, err = self.popen.communicate(timeout=60)
        return self.popen.returncode, json.loads(out) if out else {}, err


@pytest.fixture
def running(tmp_path):
    started: list[Running] = []

    def start(*arguments: str) -> Running:
        started.append(Running(tmp_path / "run.jsonl", *arguments))
        return started[-1]

    yield start
    for run in started:
        if run.popen.poll() is None:
            run.popen.kill()
        run.popen.communicate()


@pytest.mark.parametrize("stage", [Stage.SYNTH, Stage.MSM_H])
def test_a_killed_prover_is_named_with_signal_and_stage_in_the_answer(running, proved, stage):
    run = running("sha256-chain:1", "--circuits", "8")
    prover = run.wait(lambda e: isinstance(e, wire.Hello) and e.source == "prover").pid
    run.wait(lambda e: isinstance(e, wire.StageBegan) and e.stage is stage)
    os.kill(prover, signal.SIGKILL)
    code, answer, err = run.answer()
    died = answer["died"]
    assert code == 3 and answer["verified"] is False
    assert (died["what"], died["pid"], died["signal"]) == ("prover", prover, 9)
    assert died["stage"].partition("/")[0] in ("synth", "prove") and died["stage"] in answer["error"]
    assert answer["error"] in err
    assert any(isinstance(e, wire.ProcessEnded) and e.pid == prover for e in read_recording(run.path))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_with_its_own_code_and_leaves_no_process(running, number):
    run = running("sha256-chain:1", "--circuits", "64")
    run.wait(lambda e: isinstance(e, wire.Hello) and e.source == "prover")
    started = children_of(run.popen.pid)
    assert len(started) == 2
    run.popen.send_signal(number)
    code, answer, _ = run.answer()
    assert code == 128 + number and answer == {}
    assert all(is_gone(pid) for pid in started)


def test_killed_outright_it_leaves_no_process_and_a_readable_recording(running):
    run = running("sha256-chain:1", "--circuits", "64")
    run.wait(lambda e: isinstance(e, wire.Hello) and e.source == "prover")
    started = children_of(run.popen.pid)
    run.popen.kill()
    run.popen.communicate()
    assert len(started) == 2 and all(is_gone(pid) for pid in started)
    assert any(isinstance(e, wire.MemSample) for e in read_recording(run.path))


def test_a_killed_collector_costs_the_proof_nothing(running, proved):
    run = running("sha256-chain:1", "--circuits", "4", "--policy", "sync-4k")
    collector = run.wait(lambda e: isinstance(e, wire.Hello) and e.source == "collector").pid
    run.wait(lambda e: isinstance(e, wire.StageBegan) and e.stage is Stage.PROVE)
    os.kill(collector, signal.SIGKILL)
    code, answer, err = run.answer()
    assert code == 0 and answer["verified"] is True
    assert "missing" in err and "segment 1" in err
    hellos = [e for e in read_recording(run.path) if isinstance(e, wire.Hello)]
    assert [e.segment for e in hellos if e.source == "collector"] == [0, 1]


def test_a_full_disk_costs_the_recording_and_not_the_proof():
    done = cuzktui("prove", "cubic", "--json", "--backend", "cpu", "--record", "/dev/full", timeout=200)
    answer = json.loads(done.stdout)
    assert done.returncode == 0 and answer["verified"] is True
    assert "No space left" in answer["recording_error"] and "/dev/full" in done.stderr


def test_an_unknown_circuit_fails_with_the_provers_own_sentence():
    done = cuzktui("prove", "nonsense:3", "--json", "--backend", "cpu")
    answer = json.loads(done.stdout)
    assert done.returncode == 1 and answer["verified"] is False and "nonsense" in answer["error"]


class Terminal(list):
    """Standard error that says it is a terminal, or not."""

    def __init__(self, tty: bool) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty

    def write(self, text: str) -> None:
        self.append(text)

    def flush(self) -> None:
        self.append("")

    @property
    def text(self) -> str:
        return "".join(self)


STEPS = [
    wire.JobSubmitted(t_ns=0, job_id="1", circuit="cubic", num_circuits=1, policy=Policy.SYNC_4K),
    wire.StageBegan(t_ns=0, job_id="1", stage=Stage.SYNTH),
    *(wire.Progress(t_ns=i, job_id="1", stage=Stage.SYNTH, done=i, total=100, unit="circuits") for i in range(1, 100)),
    wire.StageEnded(t_ns=250_000_000, job_id="1", stage=Stage.SYNTH),
    wire.Notice(t_ns=1, text="disk full", level="error"),
    wire.JobEnded(t_ns=2, job_id="1", outcome=Outcome.PROVED),
]


def test_without_a_terminal_progress_is_whole_lines_and_few():
    out = Terminal(tty=False)
    lines = ProgressLines(out)
    for event in STEPS:
        lines.apply(event)
    assert "\r" not in out.text and out.text.count("\n") == 3
    assert "synth" in out.text and "250.0 ms" in out.text and "error: disk full" in out.text


def test_on_a_terminal_one_line_changes_in_place():
    out = Terminal(tty=True)
    lines = ProgressLines(out)
    for event in STEPS:
        lines.apply(event)
    assert out.text.count("\n") == 3 and out.text.count("\r") > 50 and "99 %" in out.text


def test_quiet_says_nothing_but_faults():
    out = Terminal(tty=True)
    lines = ProgressLines(out, quiet=True)
    for event in STEPS:
        lines.apply(event)
    assert out.text == "error: disk full\n"
