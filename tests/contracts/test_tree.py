"""The tree keeps its own rules: short files, a stated invariant in each, generated code that is current."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GENERATED = ("_pb2.py", "_pb2_grpc.py", "_pb2.pyi")
SOURCES = sorted(
    path
    for folder in ("src", "kernels", "tests", "benchmarks", "screenshots")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".cu", ".cuh", ".hpp", ".cpp", ".tcss", ".mjs"}
    and not path.name.endswith(GENERATED)
    and "node_modules" not in path.parts
)


def test_no_file_is_above_400_lines():
    assert {str(p.relative_to(ROOT)): n for p in SOURCES if (n := len(p.read_text().splitlines())) > 400} == {}


def test_every_module_states_its_invariant_first():
    silent = [
        str(p.relative_to(ROOT))
        for p in SOURCES
        if p.suffix == ".py" and p.read_text().strip() and not ast.get_docstring(ast.parse(p.read_text()))
    ]
    assert silent == []


@pytest.mark.parametrize("name", ["console", "proving"])
def test_generated_grpc_code_is_current(name: str, tmp_path: Path):
    command = [
        sys.executable, "-m", "grpc_tools.protoc", "-I", str(ROOT / "src"), f"--python_out={tmp_path}",
        f"--grpc_python_out={tmp_path}", f"--pyi_out={tmp_path}", f"prover/proto/{name}.proto",
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=60)
    for suffix in GENERATED:
        committed = ROOT / "src/prover/proto" / f"{name}{suffix}"
        assert committed.read_text() == (tmp_path / "prover/proto" / committed.name).read_text(), "run `make proto`"
