"""A proof on the screen is checked again by the prover's command line, in a process of its own, from bytes alone."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from cuzktui import format as fmt
from cuzktui.model.snapshot import JobView
from prover.errors import BadRequest
from prover.run import now

PROOF_BYTES = 192
PATIENCE_S = 60.0


def verify_job(job: JobView) -> str:
    """Checks every proof of a job against its key file and its public inputs; returns the sentence to show.

    Raises:
        BadRequest: a proof does not hold, or what is needed to check it is not there.
    """
    key = job.metrics.get("key_file")
    if not isinstance(key, str) or not Path(key).is_file():
        raise BadRequest(f"{job.job_id}: its key file is not known here; the prover verified it when it was made")
    try:
        proofs = bytes.fromhex(job.proof_hex)
    except ValueError as error:
        raise BadRequest(f"{job.job_id}: its proof is not hexadecimal") from error
    if not proofs or len(proofs) % PROOF_BYTES or len(proofs) // PROOF_BYTES != len(job.public_inputs):
        raise BadRequest(f"{job.job_id}: {len(proofs)} proof bytes for {len(job.public_inputs)} sets of public inputs")
    begin_ns = now()
    with tempfile.TemporaryDirectory(prefix="cuzktui-verify-") as folder:
        for index, inputs in enumerate(job.public_inputs):
            proof, public = Path(folder, "proof.bin"), Path(folder, "public.json")
            proof.write_bytes(proofs[index * PROOF_BYTES : (index + 1) * PROOF_BYTES])
            public.write_text(json.dumps(list(inputs)))
            _check(job.job_id, index, key, proof, public)
    count = len(job.public_inputs)
    took = fmt.duration(now() - begin_ns)
    return f"{job.job_id}: {count} proof{'s' if count != 1 else ''} valid, checked again in {took} by another process"


def _check(job_id: str, index: int, key: str, proof: Path, public: Path) -> None:
    command = [sys.executable, "-m", "prover", "verify", "--vk", key, "--proof", str(proof), "--public", str(public)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise BadRequest(f"{job_id}: checking proof {index} took longer than {PATIENCE_S:.0f} s") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise BadRequest(f"{job_id}: proof {index} is not valid: {said[-1] if said else 'no reason given'}")
