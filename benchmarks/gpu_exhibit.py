"""The exhibit: a job with more than 37 GB of host buffers under each release policy, through service and collector.

Usage: python benchmarks/gpu_exhibit.py run --out FOLDER       on the GPU host: jobs, recordings, cost of being watched
       python benchmarks/gpu_exhibit.py pairs --out FOLDER     on the GPU host: the cost of being watched alone
       python benchmarks/gpu_exhibit.py report FOLDER          anywhere: results/gpu_exhibit.json and its Markdown
       python benchmarks/gpu_exhibit.py excerpt FILE JOB... -o OUT    a small recording of some jobs
Policies take turns within a round, each round beginning with the next one; `recycle` comes last. The first job warms
up, the first of `recycle` fills the pool: neither counts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import watched_pairs
from gpu_porep import machine, say

from cuzktui.analysis import analyse
from cuzktui.analysis.report import report_of
from cuzktui.analysis.trials import Spread, said, turns
from cuzktui.collector.excerpt import excerpt
from cuzktui.collector.reading import read_recording
from cuzktui.headless import Received, Request, run_job
from cuzktui.sources.session import Session, SessionSpec
from prover import wire

RESULTS = Path(__file__).parent / "results"
POLICIES = ("sync-4k", "async-4k", "sync-huge", "async-huge", "recycle")
RAW, PAIRS = "exhibit.jsonl", "pairs.json"
COLUMNS = (
    ("page-fault s", "fault_s", 2), ("synth s", "synth_s", 2), ("inner s", "inner_s", 3), ("outer s", "outer_s", 3),
    ("gap ms", "gap_ms", 2), ("release GB/s", "release_GB_per_s", 1), ("peak GB", "peak_GB", 2),
)  # fmt: skip


# --- on the GPU host ---
def run(options: argparse.Namespace) -> None:
    out: Path = options.out
    facts: dict[str, object] = {"machine": machine(), "circuit": options.circuit, "circuits": options.circuits}
    say(json.dumps(facts["machine"]))
    doctor = subprocess.run(
        [sys.executable, "-m", "cuzktui", "doctor"], check=False, capture_output=True, text=True, timeout=60
    )
    facts["doctor"] = doctor.stdout.splitlines() + doctor.stderr.splitlines()[-3:]
    say(doctor.stdout)
    if options.key_in_memory:
        # A file where the folder of test keys belongs: keys stay in the prover's memory.
        cache = Path(os.environ["CUZKTUI_CACHE_DIR"])
        cache.mkdir(parents=True, exist_ok=True)
        (cache / "keys").touch()
    arguments = ("--backend", options.backend, "--pool-bytes", options.pool)
    session = Session(SessionSpec(record=out / RAW, prover_arguments=arguments, client="experiment"))
    received = Received(lambda _event: None)
    policies = options.policies.split(",")
    fresh = [policy for policy in policies if policy != "recycle"]
    order = [(fresh[0], False), *((policy, True) for policy in turns(fresh, options.rounds))]
    if len(fresh) < len(policies):
        # Last, since what it leaves in the pool would spare the huge policies their page faults; its first fills it.
        order += [("recycle", number > 0) for number in range(options.rounds + 1)]
    jobs: list[dict[str, object]] = []
    facts["jobs"] = jobs
    longest_s = 0.0
    try:
        session.start(received.add)
        for number, (policy, counts) in enumerate(order):
            if time.monotonic() + longest_s > options.until:
                say("no time for", len(order) - number, "more jobs")
                break
            began = time.monotonic()
            begin = len(received.events)
            job_id = run_job(session, received, Request(options.circuit, options.circuits, policy))
            end = next(e for e in received.events[begin:] if isinstance(e, wire.JobEnded) and e.job_id == job_id)
            took_s = time.monotonic() - began
            longest_s = max(longest_s, took_s) if number else 0.0
            metrics = {k: v for k, v in end.metrics.items() if str(k).endswith("_ms")}
            jobs.append({"job_id": job_id, "policy": policy, "counts": counts, "verified": end.verified})
            say(number, policy, f"{took_s:.1f} s", end.outcome, end.error, json.dumps(metrics))
            (out / "exhibit_facts.json").write_text(json.dumps(facts, indent=1))
            if not end.verified:
                break
    finally:
        last_words = session.last_words()
        session.stop()
        (out / f"{RAW}.gz").write_bytes(gzip.compress((out / RAW).read_bytes(), 6))
        (out / RAW).unlink()
    say("prover's last words:", last_words)
    if options.pairs:
        facts["watched"] = watch_cost(options, facts["machine"])
    (out / "exhibit_facts.json").write_text(json.dumps(facts, indent=1))


def pairs(options: argparse.Namespace) -> None:
    """What being watched costs, alone: `pairs.json` in the folder, the machine first."""
    options.out.mkdir(parents=True, exist_ok=True)
    told = machine()
    say(json.dumps(told))
    facts = watch_cost(options, told)
    say(json.dumps({name: value for name, value in facts.items() if name != "raw"}))


def watch_cost(options: argparse.Namespace, told: dict[str, object]) -> dict[str, object]:
    """The same small job again and again on one prover, in pairs: with a collector and without."""

    def after_pair(facts: dict[str, object]) -> None:
        say(watched_pairs.line(facts))
        watched_pairs.write(options.out / PAIRS, told, facts)

    job = watched_pairs.Job(
        options.pair_circuit, options.pair_circuits, pairs=options.pairs, until_s=options.pairs_until
    )
    serve = [sys.executable, "-m", "prover", "serve", "--backend", options.backend, "--pool-bytes", options.pool]
    return watched_pairs.measure(serve, job, [], after_pair)


# --- anywhere ---
def events_of(path: Path) -> list[wire.Event]:
    if path.suffix != ".gz":
        return list(read_recording(path))
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / path.stem
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        return list(read_recording(plain))


def report(options: argparse.Namespace) -> None:
    facts = json.loads((options.folder / "exhibit_facts.json").read_text())
    events = events_of(options.folder / f"{RAW}.gz")
    snapshot = analyse(events)
    rows: list[dict[str, object]] = []
    for job in facts["jobs"]:
        view = snapshot.find_job(job["job_id"])
        assert view is not None
        figures = report_of(snapshot, view).as_dict()
        rows.append(job | measured(events, job["job_id"], figures))
    counted = [row for row in rows if row["counts"]]
    table: dict[str, dict[str, object]] = {}
    for policy in dict.fromkeys(str(row["policy"]) for row in counted):
        mine = [row for row in counted if row["policy"] == policy]
        spreads = {name: Spread.of([float(v) for r in mine if (v := r[name]) is not None]) for _, name, _ in COLUMNS}
        table[policy] = {"runs": len(mine)} | {
            name: s and {"median": s.median, "least": s.least, "most": s.most} for name, s in spreads.items()
        }
    result = {
        "machine": facts["machine"], "circuit": facts["circuit"], "circuits": facts["circuits"],
        "host_buffers_bytes": max(int(row["buffers_bytes"]) for row in rows), "policies": table, "runs": rows,
        "watched": watched(options.folder, facts), "nvml": nvml(events), "doctor": facts["doctor"],
        "notes": options.note,
    }  # fmt: skip
    (RESULTS / "gpu_exhibit.json").write_text(json.dumps(result, indent=1) + "\n")
    (RESULTS / "gpu_exhibit.md").write_text(markdown(result))
    print(markdown(result))


def watched(folder: Path, facts: dict[str, object]) -> object:
    """What being watched costs: measured with the exhibit, or alone; the pairs of all visits (pairs*.json) as one."""
    visits = [json.loads(path.read_text()) for path in sorted(folder.glob("pairs*.json"))]
    if not visits:
        return facts.get("watched")
    raw = [pair for visit in visits for pair in visit["raw"]]
    told = watched_pairs.summary([pair["watched"] for pair in raw], [pair["alone"] for pair in raw])
    each = [{"machine": v["machine"], "wall_ms": v["watched_over_alone"]["wall_ms"]} for v in visits]
    return {"job": visits[0]["job"] | {"pairs": len(raw)}, "visits": each} | told


def measured(events: list[wire.Event], job_id: str, figures: dict[str, object]) -> dict[str, object]:
    """One job's row. Page-fault time is the prover's system CPU time in synthesis: faults and page locks."""
    buffers = [e for e in events if isinstance(e, wire.BufferAllocated) and e.job_id == job_id]
    host = {e.buffer_id: e.size_bytes for e in buffers if e.place is not wire.Place.DEVICE}
    back = [e for e in events if isinstance(e, wire.BufferReleased) and e.buffer_id in host and e.how == "munmap"]
    busy_ns = sum(e.t_ns - e.begin_ns for e in back)
    stages = [e for e in events if isinstance(e, wire.StageBegan | wire.StageEnded) and e.job_id == job_id]
    synth = [e.t_ns for e in stages if e.stage is wire.Stage.SYNTH]
    cpu = [e for e in events if isinstance(e, wire.CpuSample) and synth[0] <= e.t_ns <= synth[1]]

    def seconds(name: str) -> float | None:
        value = figures[f"{name}_ms"]
        return round(float(value) / 1e3, 4) if isinstance(value, int | float) else None

    return {
        "fault_s": round((cpu[-1].system_ns - cpu[0].system_ns) / 1e9, 2) if cpu else None,
        "minor_faults": cpu[-1].minor_faults - cpu[0].minor_faults if cpu else None,
        "synth_s": seconds("synth"), "inner_s": seconds("inner"), "outer_s": seconds("outer"),
        "gap_ms": figures["gap_ms"],
        "total_s": seconds("total"), "buffers_bytes": sum(host.values()),
        "release_GB_per_s": round(sum(e.size_bytes for e in back) / busy_ns, 2) if busy_ns else None,
        "peak_GB": round(float(str(figures["peak_rss_bytes"])) / 1e9, 3),
        "predicted_peak_GB": round(float(str(figures["peak_predicted_bytes"])) / 1e9, 3),
        "gap_explained_percent": figures["gap_explained_percent"], "finding": figures["finding"],
    }  # fmt: skip


def nvml(events: list[wire.Event]) -> dict[str, object]:
    """What the driver's library gave, and how often."""
    samples = [e for e in events if isinstance(e, wire.GpuSample)]
    names = ("util_percent", "power_w", "temperature_c", "sm_mhz", "mem_used_bytes", "process_bytes",
             "pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s")  # fmt: skip
    read = {name: [v for e in samples if (v := getattr(e, name)) is not None] for name in names}
    return {"samples": len(samples)} | {
        name: {"read": len(v), "least": min(v), "median": statistics.median(v), "most": max(v)} if v else {"read": 0}
        for name, v in read.items()
    }


def markdown(result: dict) -> str:
    lines = [
        f"# {result['circuit']} × {result['circuits']}: {result['host_buffers_bytes'] / 1e9:.1f} GB of host buffers "
        "under each release policy", "",
        f"{result['machine']['gpu']}, {result['machine']['cores']} cores of {result['machine']['cpu']}, kernel "
        f"{result['machine']['kernel']}. Median, least and most in brackets. Page-fault time is the system CPU time of "
        "the prover during synthesis (faults and page locks, all threads).", "",
        "| policy | runs | " + " | ".join(title for title, _, _ in COLUMNS) + " |",
        "|---|---:|" + "---:|" * len(COLUMNS),
    ]  # fmt: skip
    for policy, row in result["policies"].items():
        cells = [said(Spread(**row[name]) if row[name] else None, 1, digits) for _, name, digits in COLUMNS]
        lines.append(f"| {policy} | {row['runs']} | " + " | ".join(cells) + " |")
    if (result["watched"] or {}).get("watched_over_alone"):
        job, wall = result["watched"]["job"], result["watched"]["watched_over_alone"]["wall_ms"]
        low, high = wall["ratio_95"] or (math.nan, math.nan)
        lines += ["", f"Watched against unwatched, {wall['pairs']} pairs of {job['circuit']} × {job['circuits']}: "
                  f"ratio {wall['ratio']:.4f} (95 %: {low:.4f} to {high:.4f}); the collector takes "
                  f"{result['watched']['collector_core_percent']:.1f} % of a core."]  # fmt: skip
    return "\n".join([*lines, *(line for note in result["notes"] for line in ("", note)), ""])


def cut(options: argparse.Namespace) -> None:
    lines = b"".join(wire.encode(event) for event in excerpt(events_of(options.recording), options.job))
    options.output.write_bytes(lines)
    print(options.output, len(lines), "bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(required=True)
    on_host = verbs.add_parser("run")
    on_host.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    on_host.add_argument("--backend", default="cuda")
    on_host.add_argument("--circuit", default="sha256-chain:550")
    on_host.add_argument("--circuits", type=int, default=18)
    on_host.add_argument("--policies", default=",".join(POLICIES))
    on_host.add_argument("--rounds", type=int, default=3)
    on_host.add_argument("--pool", default="48GiB")
    on_host.add_argument("--key-in-memory", action="store_true", help="needs CUZKTUI_CACHE_DIR")
    on_host.add_argument("--seconds", type=float, default=3600, help="no job begins that would end later")
    on_host.set_defaults(run=run)
    alone = verbs.add_parser("pairs")
    alone.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    alone.add_argument("--backend", default="cuda")
    alone.add_argument("--pool", default="16GiB", help="must hold every buffer of a job")
    alone.set_defaults(run=pairs, seconds=0)
    for verb, count in ((on_host, 0), (alone, 40)):
        verb.add_argument("--pairs", type=int, default=count, help="of jobs watched and not; 0: none")
        verb.add_argument("--pair-circuit", default="sha256-chain:160")
        verb.add_argument("--pair-circuits", type=int, default=10)
        verb.add_argument("--pairs-seconds", type=float, default=3600, help="no pair begins later")
    told = verbs.add_parser("report")
    told.add_argument("folder", type=Path)
    told.add_argument("--note", action="append", default=[], help="a sentence that belongs under the table")
    told.set_defaults(run=report)
    small = verbs.add_parser("excerpt")
    small.add_argument("recording", type=Path)
    small.add_argument("job", nargs="+")
    small.add_argument("-o", "--output", type=Path, required=True)
    small.set_defaults(run=cut)
    options = parser.parse_args()
    if options.run in (run, pairs):
        options.until = time.monotonic() + options.seconds
        options.pairs_until = time.monotonic() + options.seconds + options.pairs_seconds
    options.run(options)


if __name__ == "__main__":
    main()
