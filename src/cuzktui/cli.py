"""The command line: each verb imports what it needs when it runs, so that help and refusals come at once.

Without a verb it is the live console; where that has no terminal, one headless demonstration proof.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from prover import __version__
from prover.errors import BadRequest, ProverError
from prover.gpu_list import parse_gpus
from prover.wire import Policy

DEMO_CIRCUIT, DEMO_CIRCUITS, DEMO_POLICY = "sha256-chain:8", 4, Policy.SYNC_4K.value
POLICIES = tuple(policy.value for policy in Policy)
GRAPHS = ("auto", "braille", "block", "ascii")
BACKENDS = ("auto", "cuda", "cpu", "reference")


def main(argv: list[str] | None = None) -> int:
    """Runs one command; returns its exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        own, command = _split_command(arguments)
        options = _parser().parse_args(own)
        options.command = command
        return options.run(options)
    except ProverError as error:
        print(f"cuzktui: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cuzktui", description="Console of a Groth16 proving host (BLS12-381), with a real prover inside.",
        epilog="Without a verb: the live console, or without a terminal one demonstration proof.",
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"cuzktui {__version__}")
    _add_console_options(parser)
    _add_porep(parser)
    parser.set_defaults(run=_console)
    verbs = parser.add_subparsers(metavar="VERB")
    _add_prove(verbs)
    _add_experiment(verbs)
    _add_record(verbs)
    _add_attach(verbs)
    _add_replay(verbs)
    _add_export(verbs)
    _add_report(verbs)
    _add_rest(verbs)
    return parser


def _add_console_options(parser: argparse.ArgumentParser) -> None:
    _add_session_options(parser)
    parser.add_argument("--keep-prover", action="store_true", help="the prover goes on when the console ends")
    parser.add_argument("--graph", choices=GRAPHS, default="auto", help="how curves are drawn")
    parser.add_argument("--ascii", dest="graph", action="store_const", const="ascii", help="the same as --graph ascii")
    parser.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")


def _add_session_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the recording there")
    parser.add_argument("--no-record", action="store_true", help="write no recording")
    parser.add_argument("--backend", choices=BACKENDS, default="auto", help="where the prover computes")
    parser.add_argument("--gpus", default="", metavar="LIST", help="GPUs of the prover, e.g. 0,2 (every one)")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of the prover")
    parser.add_argument("--socket", metavar="ADDRESS", help="use this prover (socket path or host:port), start none")


def _add_prove(verbs: argparse._SubParsersAction) -> None:
    parser = verbs.add_parser("prove", help="make one proof without a screen")
    parser.add_argument("circuit", nargs="?", default="", help="built-in circuit, e.g. sha256-chain:16")
    parser.add_argument("--circuits", type=int, default=1, metavar="K", help="circuits in the job (1)")
    parser.add_argument("--policy", choices=POLICIES, help="how host memory is given back (the prover's own: recycle)")
    parser.add_argument("--zkey", type=Path, metavar="FILE", help="prove this key's circuit, with --wtns")
    parser.add_argument("--wtns", type=Path, metavar="FILE", help="witness for --zkey")
    _add_porep(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--export", type=Path, metavar="FILE", help="write a trace too; its name says which kind")
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
    _add_session_options(parser)
    parser.set_defaults(run=_prove)


def _add_porep(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--c1", type=Path, metavar="FILE", help="prove the partitions of this PoRep C1 output")
    parser.add_argument("--key", type=Path, metavar="FILE", help="key for --c1: ours or .params (a test key)")


def _porep(options: argparse.Namespace) -> dict[str, str]:
    """The request's paths of a PoRep job; empty where none is named."""
    if options.key is not None and options.c1 is None:
        raise BadRequest("--key goes with --c1")
    named = (("c1_path", options.c1), ("key_path", options.key))
    for _, path in named:
        if path is not None and not path.is_file():
            raise BadRequest(f"{path}: there is no such file")
    return {name: str(path.absolute()) for name, path in named if path is not None}


def _add_experiment(verbs: argparse._SubParsersAction) -> None:
    parser = verbs.add_parser("experiment", help="the same job under each release policy, with medians and spread")
    parser.add_argument("circuit", help="built-in circuit, e.g. sha256-chain:16")
    parser.add_argument("--circuits", type=int, default=1, metavar="K", help="circuits in the job (1)")
    parser.add_argument("--policies", default=",".join(POLICIES), metavar="A,B", help="which ones (all five)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each (3)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write it too: .json, or Markdown")
    _add_session_options(parser)
    parser.set_defaults(run=_experiment)


def _add_record(verbs: argparse._SubParsersAction) -> None:
    parser = verbs.add_parser(
        "record", help="record processes, a prover or a command without a screen",
        usage="cuzktui record [--pid N ...] [--socket ADDRESS] [--log FILE ...] [-o FILE] [-- COMMAND ...]",
    )  # fmt: skip
    _add_targets(parser)
    parser.add_argument("--socket", metavar="ADDRESS", help="prover to follow: socket path or host:port")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the recording")
    parser.add_argument("--budget-bytes", type=int, metavar="N", help="disk budget of the recording; 0 for none")
    parser.add_argument("--no-thin", action="store_true", help="keep quiet stretches whole")
    parser.set_defaults(run=_record)


def _add_attach(verbs: argparse._SubParsersAction) -> None:
    parser = verbs.add_parser(
        "attach", help="watch a process, a prover or a command that this console did not start",
        usage="cuzktui attach [--pid N ...] [--socket ADDRESS] [--log FILE ...] [-- COMMAND ...]",
    )  # fmt: skip
    _add_targets(parser)
    _add_console_options(parser)
    parser.set_defaults(run=_attach)


def _add_targets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pid", type=int, action="append", default=[], help="process to watch; may be repeated")
    parser.add_argument("--log", type=Path, action="append", default=[], metavar="FILE", help="log file to follow")
    parser.add_argument(
        "--expect", default="", metavar="STACK",
        help="what it should hold, drawn as expectation: srs=47GB,partitions=10x16.7GB",
    )  # fmt: skip


def _add_replay(verbs: argparse._SubParsersAction) -> None:
    parser = verbs.add_parser("replay", help="show a recording as if it happened now")
    parser.add_argument("file", type=Path)
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help="recorded seconds a second; 0: at once")
    _add_console_options(parser)
    parser.set_defaults(run=_replay)


def _add_export(verbs: argparse._SubParsersAction) -> None:
    parser = verbs.add_parser("export", help="turn a recording into a trace or a table")
    parser.add_argument("file", type=Path)
    parser.add_argument("--format", choices=("chrome", "perfetto", "csv", "timing"), help="default: by the name of OUT")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT")
    parser.set_defaults(run=_export)


def _add_report(verbs: argparse._SubParsersAction) -> None:
    parser = verbs.add_parser("report", help="say what a recording shows, job by job")
    parser.add_argument("file", type=Path)
    parser.add_argument("--job", metavar="ID", help="only this job")
    parser.add_argument("--json", action="store_true", help="one JSON object a job, one a line")
    parser.set_defaults(run=_report)
    parser = verbs.add_parser("compare", help="two jobs side by side: of two recordings, or the last two of one")
    parser.add_argument("left", type=Path)
    parser.add_argument("right", type=Path, nargs="?")
    parser.add_argument("--job", metavar="ID", action="append", default=[], help="which job; again for the right one")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write it too: .json, or Markdown")
    parser.set_defaults(run=_compare)


def _add_rest(verbs: argparse._SubParsersAction) -> None:
    demo = verbs.add_parser("demo", help="replay the recorded run that comes with cuzktui")
    _add_console_options(demo)
    demo.set_defaults(run=_demo)
    doctor = verbs.add_parser("doctor", help="check what this host offers, with a remedy for each fault")
    doctor.set_defaults(run=_doctor)
    version = verbs.add_parser("version", help="print the version")
    version.set_defaults(run=lambda _options: print(f"cuzktui {__version__}") or 0)


def _console(options: argparse.Namespace) -> int:
    if options.command:
        raise BadRequest("a command after -- belongs to a verb: cuzktui attach -- COMMAND or cuzktui record -- COMMAND")
    if not sys.stdout.isatty():
        from cuzktui import headless

        request = headless.Request(DEMO_CIRCUIT, DEMO_CIRCUITS, DEMO_POLICY)
        return headless.prove(request, _spec(options, "headless"))
    from cuzktui import live

    return live.console(_spec(options, "console"), options, _porep(options))


def _attach(options: argparse.Namespace) -> int:
    if not (options.pid or options.socket or options.log or options.command):
        raise BadRequest("nothing to attach to: name --pid N, --socket ADDRESS, --log FILE or -- COMMAND")
    from cuzktui import live
    from cuzktui.sources.session import SessionSpec

    spec = SessionSpec(
        start_prover=False, address=options.socket or "", pids=tuple(options.pid), logs=tuple(options.log),
        command=tuple(options.command), record=_recording(options), expect=_expectation(options),
    )  # fmt: skip
    return live.console(spec, options)


def _replay(options: argparse.Namespace) -> int:
    from cuzktui import live

    return live.replay(options.file, options.speed, options)


def _demo(options: argparse.Namespace) -> int:
    from cuzktui import live

    return live.replay(live.demo_recording(), 1.0, options)


def _prove(options: argparse.Namespace) -> int:
    from cuzktui import headless

    files = {
        name: str(path.absolute()) for name, path in (("zkey_path", options.zkey), ("wtns_path", options.wtns)) if path
    }
    porep = _porep(options)
    if [bool(options.circuit), bool(files), bool(porep)].count(True) != 1 or len(files) == 1:
        raise BadRequest("name a built-in circuit (e.g. sha256-chain:16), --zkey FILE with --wtns FILE, or --c1 FILE")
    num_circuits = _circuits(options)
    if options.export:
        from cuzktui.export import SUFFIXES

        if options.export.suffix not in SUFFIXES:
            raise BadRequest(f"{options.export}: the name must end with one of {', '.join(SUFFIXES)}")
    request = headless.Request(options.circuit, num_circuits, options.policy, files | porep)
    return headless.prove(
        request, _spec(options, "headless"), as_json=options.json, export_to=options.export, quiet=options.quiet
    )


def _experiment(options: argparse.Namespace) -> int:
    policies = [name.strip() for name in options.policies.split(",") if name.strip()]
    unknown = [name for name in policies if name not in POLICIES]
    if unknown or not policies or len(set(policies)) != len(policies):
        raise BadRequest(f"--policies {options.policies}: each of {', '.join(POLICIES)} at most once")
    if not 1 <= options.repeat <= 1000:
        raise BadRequest(f"--repeat {options.repeat}: from 1 to 1000")
    from cuzktui import experiment, headless

    request = headless.Request(options.circuit, _circuits(options))
    return experiment.run(
        request, policies, options.repeat, _spec(options, "experiment"), as_json=options.json, output=options.output
    )


def _circuits(options: argparse.Namespace) -> int:
    if not 1 <= options.circuits <= 1 << 16:
        raise BadRequest(f"--circuits {options.circuits}: from 1 to 65536")
    return options.circuits


def _record(options: argparse.Namespace) -> int:
    from cuzktui import recording

    return recording.record(
        pids=tuple(options.pid), address=options.socket, logs=tuple(options.log), command=tuple(options.command),
        output=options.output, budget_bytes=options.budget_bytes, thin=not options.no_thin,
        expect=_expectation(options),
    )  # fmt: skip


def _export(options: argparse.Namespace) -> int:
    from cuzktui.collector.reading import read_recording
    from cuzktui.export import export

    size_bytes = export(read_recording(options.file), options.output, options.format or "")
    print(f"wrote {options.output} ({size_bytes} bytes)")
    return 0


def _report(options: argparse.Namespace) -> int:
    from cuzktui import reporting

    return reporting.report(options.file, options.job, options.json)


def _compare(options: argparse.Namespace) -> int:
    from cuzktui import reporting

    if len(options.job) > 2:
        raise BadRequest("--job names at most two jobs, left and right")
    return reporting.compare_jobs(options.left, options.right, tuple(options.job), options.json, options.output)


def _doctor(_options: argparse.Namespace) -> int:
    from cuzktui import doctor

    return doctor.run()


def _spec(options: argparse.Namespace, client: str):
    from cuzktui.sources.session import SessionSpec

    arguments = ["--backend", options.backend]
    if options.threads:
        arguments += ["--threads", str(options.threads)]
    if parse_gpus(options.gpus, options.backend):
        arguments += ["--gpus", options.gpus]
    return SessionSpec(
        start_prover=not options.socket, address=options.socket or "", record=_recording(options), client=client,
        prover_arguments=tuple(arguments), keep_prover=getattr(options, "keep_prover", False),
    )  # fmt: skip


def _expectation(options: argparse.Namespace) -> str:
    """The expected stack as written, once it can be read."""
    if options.expect:
        from cuzktui.analysis.expectation import parsed

        parsed(options.expect)
    return options.expect


def _recording(options: argparse.Namespace) -> Path | None:
    if options.no_record:
        return None
    if options.record is None:
        from cuzktui.sources.recordings import new_recording

        return new_recording()
    if options.record.exists() and not options.record.is_char_device():
        raise BadRequest(f"{options.record} exists already; a recording is never written over")
    return options.record


def _split_command(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What stands before `--`, and the command after it."""
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]
