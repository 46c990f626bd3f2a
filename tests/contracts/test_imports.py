"""What each package really loads, seen in a subprocess: import-linter reads the graph, this reads `sys.modules`."""

from __future__ import annotations

import subprocess
import sys

import pytest


def loaded_by(module: str) -> set[str]:
    code = f"import {module}, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("module", "never"),
    [
        ("prover", {"prover.errors", "numpy", "numba"}),
        ("prover.wire", {"numpy", "numba", "grpc", "textual", "cuzktui"}),
        ("prover.serve.server", {"numba", "cupy", "py_arkworks_bls12381", "textual"}),
        ("cuzktui.app", {"numba", "cupy", "pynvml", "grpc", "prover.backends", "prover.r1cs"}),
        ("cuzktui.collector", {"textual", "rich", "numba", "cupy"}),
        ("cuzktui.cli", {"textual", "rich", "grpc", "numba", "numpy"}),
    ],
)
def test_a_module_loads_nothing_it_should_not(module: str, never: set[str]):
    assert loaded_by(module) & never == set()
