"""compute-sanitizer over every kernel at small sizes; says why where it cannot run.

Usage: python benchmarks/gpu_sanitizer.py
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOOLS = ("memcheck", "racecheck")
PARTS = ["ntt:9,12", "g1:9/6", "g2:7/5", "witness:9"]
FLAGS = {"memcheck": ("--report-api-errors", "no")}
"""Looking a kernel up by name asks one module after another; their refusals are no errors of memory."""
TIME_LIMIT_S = 120


def main() -> int:
    runtime = f"kernel {platform.release()}, {platform.machine()}"
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        print(f"skipped: compute-sanitizer is not on the PATH ({runtime})")
        return 0
    print(f"{sanitizer} on {runtime}")
    failed = 0
    for tool in TOOLS:
        with tempfile.TemporaryDirectory() as out:
            command = [
                sanitizer, "--tool", tool, "--error-exitcode", "9", "--print-limit", "20", *FLAGS.get(tool, ()),
                sys.executable, str(Path(__file__).with_name("gpu_session.py")), *PARTS, "--seed", "1",
                "--most-repeats", "1", "--out", out,
            ]  # fmt: skip
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
            except subprocess.TimeoutExpired:
                print(f"{tool}: not finished in {TIME_LIMIT_S} s")
                failed += 1
                continue
        lines = [line for line in done.stdout.splitlines() if "=====" in line]
        unsupported = any("Device not supported" in line or "not supported" in line for line in lines)
        print(f"{tool}: exit {done.returncode}{' (not supported here)' if unsupported else ''}")
        print("\n".join(lines[-12:]))
        if done.returncode and not unsupported:
            print((done.stdout + done.stderr)[-1500:])
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
