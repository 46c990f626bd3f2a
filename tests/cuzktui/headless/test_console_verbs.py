"""Every command without a screen: what it prints, what it refuses and with which code."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from cli_support import cuzktui

from prover import __version__, wire

HELLO = wire.Hello(t_ns=10**9, unix_ns=0, source="collector", pid=1, host="here")


def recording(path, *events: wire.Event):
    path.write_bytes(b"".join(wire.encode(event) for event in (HELLO, *events)))
    return path


def test_the_version_comes_at_once():
    begin = time.process_time()
    done = cuzktui("version")
    assert done.stdout == f"cuzktui {__version__}\n" and done.returncode == 0
    assert time.process_time() - begin < 1


def test_help_imports_neither_a_screen_nor_a_prover_nor_grpc():
    code = (
        "import sys\nfrom cuzktui.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "bad = [m for m in ('textual', 'grpc', 'numba', 'numpy', 'cupy', 'pynvml') if m in sys.modules]\n"
        "sys.exit(f'imported {bad}' if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("arguments", "words"), [
    (["prove"], "name a built-in circuit"),
    (["prove", "cubic", "--zkey", "a", "--wtns", "b"], "name a built-in circuit"),
    (["prove", "--zkey", "a"], "name a built-in circuit"),
    (["prove", "--key", "k"], "--key goes with --c1"),
    (["prove", "--c1", "no-such-c1.json"], "no-such-c1.json: there is no such file"),
    (["prove", "cubic", "--circuits", "0"], "--circuits 0"),
    (["prove", "cubic", "--circuits", "x"], "invalid int"),
    (["prove", "cubic", "--policy", "sideways"], "sideways"),
    (["prove", "cubic", "--gpus", "0,0"], "named twice"),
    (["prove", "cubic", "--export", "trace.doc"], ".json"),
    (["replay", "/no/such.jsonl"], "no such recording"),
    (["replay", "/etc/hostname"], "line 1"),
    (["replay", "/etc/hostname", "--speed", "-1"], "--speed"),
    (["export", "/no/such.jsonl", "-o", "x.json"], "no such recording"),
    (["export", "/etc/hostname", "-o", "x.json"], "line 1"),
    (["report", "/no/such.jsonl"], "no such recording"),
    (["record"], "nothing to record"),
    (["record", "--pid", "4194304"], "cannot be watched"),
    (["record", "--", "/no/such/program"], "cannot be started"),
    (["attach"], "nothing to attach to"),
    (["--", "sleep", "1"], "belongs to a verb"),
    (["dance"], "dance"),
])  # fmt: skip
def test_bad_input_is_one_line_on_standard_error_and_exit_code_2(tmp_path, arguments, words):
    done = cuzktui(*arguments, cwd=tmp_path, timeout=30)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == "" and not (tmp_path / "x.json").exists()


def test_a_full_screen_is_refused_without_a_terminal_with_a_way_out(tmp_path):
    run = recording(tmp_path / "run.jsonl")
    for arguments in (["replay", run], ["attach", "--pid", "1"]):
        done = cuzktui(*arguments, timeout=30)
        assert done.returncode == 2 and "not a terminal" in done.stderr and "--json" in done.stderr


def test_a_recording_is_never_written_over(tmp_path):
    run = recording(tmp_path / "run.jsonl")
    before = run.read_bytes()
    for arguments in (["prove", "cubic", "--record", run], ["record", "-o", run, "--", "true"]):
        done = cuzktui(*arguments, timeout=30)
        assert done.returncode == 2 and "never written over" in done.stderr
    assert run.read_bytes() == before


def test_a_command_is_recorded_to_its_end(tmp_path):
    run = tmp_path / "run.jsonl"
    code = "import time; x = bytearray(50_000_000); time.sleep(0.4); raise SystemExit(5)"
    done = cuzktui("record", "-o", run, "--", sys.executable, "-c", code, timeout=30)
    assert done.returncode == 0 and "exited with code 5" in done.stderr
    events = [wire.decode(line) for line in run.read_bytes().splitlines()]
    peak = max(e.resident_bytes for e in events if isinstance(e, wire.MemSample))
    assert peak > 50_000_000
    assert [e.exit_code for e in events if isinstance(e, wire.ProcessEnded)] == [5]


def test_the_lines_a_daemon_prints_are_recorded_with_their_figures(tmp_path):
    run, log = tmp_path / "run.jsonl", tmp_path / "cuzk.log"
    line = "CUZK_TIMING: async_dealloc_ms=412\\n"
    code = f"import time; time.sleep(1); open({str(log)!r}, 'a').write('{line}'); time.sleep(0.5)"
    done = cuzktui("record", "--log", log, "-o", run, "--", sys.executable, "-c", code, timeout=30)
    assert done.returncode == 0
    lines = [e for e in map(wire.decode, run.read_bytes().splitlines()) if isinstance(e, wire.LogLine)]
    assert [e.fields["async_dealloc_ms"] for e in lines] == ["412"]


def test_a_full_disk_while_recording_is_said_and_is_a_failure():
    done = cuzktui("record", "-o", "/dev/full", "--", "sleep", "30", timeout=20)
    assert done.returncode == 1 and "No space left" in done.stderr


@pytest.mark.parametrize("name", ["out.json", "out.csv", "out.txt"])
def test_a_recording_is_exported_by_the_name_of_its_target(tmp_path, name):
    job = wire.JobSubmitted(t_ns=2 * 10**9, job_id="1", circuit="cubic", num_circuits=1, policy=wire.Policy.RECYCLE)
    run = recording(tmp_path / "run.jsonl", job, wire.JobEnded(t_ns=3 * 10**9, job_id="1", outcome="failed"))
    done = cuzktui("export", run, "-o", tmp_path / name, timeout=60)
    assert done.returncode == 0 and name in done.stdout
    assert (tmp_path / name).exists()
    if name.endswith(".json"):
        assert json.loads((tmp_path / name).read_text())["traceEvents"]


def test_a_report_names_every_job_and_refuses_an_unknown_one(tmp_path):
    job = wire.JobSubmitted(t_ns=2 * 10**9, job_id="j1", circuit="cubic", num_circuits=1, policy=wire.Policy.RECYCLE)
    end = wire.JobEnded(t_ns=3 * 10**9, job_id="j1", outcome="failed", error="no luck")
    run = recording(tmp_path / "run.jsonl", job, end)
    assert "no luck" in cuzktui("report", run).stdout
    assert json.loads(cuzktui("report", run, "--json").stdout)["job_id"] == "j1"
    unknown = cuzktui("report", run, "--job", "j2")
    assert unknown.returncode == 2 and "no job j2" in unknown.stderr


def test_the_doctor_finds_this_host_fit():
    done = cuzktui("doctor", timeout=60)
    assert done.returncode == 0, done.stdout
    for what in ("python", "gpu", "memory", "cgroup", "recordings", "terminal"):
        assert what in done.stdout


def test_the_doctor_names_every_card_and_what_hides_some(monkeypatch):
    from cuzktui import doctor
    from cuzktui.collector import nvml

    class Two:
        devices, note = ("NVIDIA H200", "NVIDIA L4"), ""

        def __init__(self, *_arguments): ...
        def start(self): ...
        def wait_verdict(self, timeout_s): ...
        def stop(self): ...

    monkeypatch.setattr(nvml, "GpuSampler", Two)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    told = {check.what: check for check in doctor.all_checks() if check.what.startswith("gpu")}
    assert told["gpu 0"].text == "NVIDIA H200" and told["gpu 1"].text == "NVIDIA L4"
    assert told["gpu"].level == "note" and "CUDA_VISIBLE_DEVICES=1" in told["gpu"].text


def test_the_console_passes_the_choice_of_cards_on_to_its_prover():
    from cuzktui.cli import _parser, _spec

    def passed(*words: str) -> tuple[str, ...]:
        return _spec(_parser().parse_args(["prove", "cubic", "--no-record", *words]), "test").prover_arguments

    assert passed("--gpus", "0,2") == ("--backend", "auto", "--gpus", "0,2")
    assert passed() == passed("--gpus", "all") == ("--backend", "auto")


def test_a_prover_that_does_not_answer_is_an_error_of_its_own(tmp_path, monkeypatch):
    from cuzktui import headless
    from cuzktui.sources.session import SessionSpec

    monkeypatch.setattr(headless, "START_PATIENCE_S", 0.5)
    spec = SessionSpec(start_prover=False, address=str(tmp_path / "none.sock"))
    assert headless.prove(headless.Request("cubic"), spec, as_json=True) == 3
