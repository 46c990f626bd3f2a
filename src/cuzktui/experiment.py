"""The same job under each release policy, in turn and more than once, so that what differs is the policy alone.

The first job warms kernels, keys and page tables up and does not count. Policies take turns within each round, and each
round begins with another one, so that a drift of the machine meets all of them alike.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from cuzktui.analysis.trials import as_dict, markdown, tabulate, turns
from cuzktui.headless import Received, Request, Stopped, run_job, stoppable
from cuzktui.progress import ProgressLines
from cuzktui.sources.session import Session, SessionSpec
from prover.errors import BadRequest


def run(
    request: Request, policies: Sequence[str], repeat: int, spec: SessionSpec, *, as_json: bool, output: Path | None
) -> int:
    """Runs the experiment and prints its table; returns the exit code.

    Raises:
        BadRequest: a job was refused or failed, or the output cannot be written.
        ProverDied: the prover ended before its job.
    """
    lines = ProgressLines(sys.stderr, quiet=True)
    runs: list[tuple[str, dict[str, object]]] = []
    order = turns(policies, repeat)
    try:
        with stoppable():
            session = Session(spec)
            try:
                received = Received(lines.apply)
                session.start(received.add)
                for number, policy in enumerate([order[0], *order]):
                    what = "warm-up" if number == 0 else f"{number} of {len(order)}"
                    answer = _one(session, received, request, policy)
                    gap_ms, outer_ms = answer["gap_ms"], answer["outer_ms"]
                    lines.line(f"{what:10} {policy:11} gap {gap_ms:9.1f} ms  prove {outer_ms:9.0f} ms")
                    if number:
                        runs.append((policy, answer))
            finally:
                lines.hushed = True
                session.stop()
    except Stopped as stopped:
        lines.line(str(stopped))
        return 128 + stopped.number
    text = markdown(request.circuit, request.num_circuits, repeat, tabulate(runs))
    data_json = json.dumps(as_dict(request.circuit, request.num_circuits, repeat, runs))
    if output:
        from cuzktui.export.atomic import write_atomic

        write_atomic(output, (data_json if output.suffix == ".json" else text).encode())
    print(data_json if as_json else text)
    return 0


def _one(session: Session, received: Received, request: Request, policy: str) -> dict[str, object]:
    from cuzktui.analysis import analyse_job

    job_id = run_job(session, received, Request(request.circuit, request.num_circuits, policy, request.files))
    answer = analyse_job(received.events, job_id).as_dict()
    if not answer["verified"]:
        raise BadRequest(f"{request.circuit} under {policy}: {answer['error'] or answer['outcome']}")
    return answer | {"proof_hex": ""}
