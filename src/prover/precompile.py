"""On a cold cache a second process compiles synthesis and setup while the first compiles the backend.

numba compiles one function at a time in a process, so only a second process uses a second core. It fills the cache on
disk and hands nothing back: whether it succeeds, fails or is killed, the first process finds what is there and
compiles the rest.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prover.run import Run, silent
from prover.wire import Stage

WAIT_S = 0.2


@contextmanager
def beside(run: Run, with_setup: bool) -> Iterator[None]:
    """Compiles in a second process while the body runs; waits for it at the end. Does nothing on a warm cache."""
    marker = _marker(with_setup)
    if marker.exists() or len(os.sched_getaffinity(0)) < 2:
        yield
        return
    command = [sys.executable, "-m", "prover.precompile", str(os.getpid()), *(["--setup"] if with_setup else [])]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
        while child.poll() is None:
            run.check()
            run.progress(Stage.COMPILE, 99, 100, "percent", what="synthesis and setup, in a second process")
            try:
                child.wait(WAIT_S)
            except subprocess.TimeoutExpired:
                continue
    finally:
        child.kill()
        child.wait()
    if child.returncode == 0:
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()


def warm_up_setup(run: Run) -> None:
    """Compiles what a test setup needs, on the smallest circuit."""
    from prover.circuits.registry import build
    from prover.setup import test_setup

    run.progress(Stage.COMPILE, 0, 1, what="test setup")
    test_setup(build("cubic").r1cs, silent(), threads=1)


def _marker(with_setup: bool) -> Path:
    """Exists once the second process has filled the cache for exactly these sources."""
    from prover.backends.cpu.jit import cache_root

    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    return cache_root() / f"compiled-{digest.hexdigest()[:20]}{'-setup' if with_setup else ''}"


def main() -> None:
    """`python -m prover.precompile OWNER_PID [--setup]`: ends with its owner."""
    from prover.circuits.warm import warm_up
    from prover.serve.owner import call_when_gone

    call_when_gone(int(sys.argv[1]), lambda: os._exit(1))
    warm_up(silent())
    if "--setup" in sys.argv:
        warm_up_setup(silent())


if __name__ == "__main__":
    main()
