"""A warm cache gives what a cold one gave, and an edited source anywhere below a kernel gives a new cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from prover.backends.cpu import jit as jit_module

PROGRAM = """
import hashlib
import numpy as np
from prover.backends.cpu import check, curve, field, msm, ntt, points
from prover.backends.cpu.workers import Workers
digest = hashlib.sha256()
scalars = field.powers(7, 300)
for generator in (points.g1_generator(), points.g2_generator()):
    several = np.stack([points.multiply(generator, k) for k in (3, 5, 0, 9, 1)] * 60)
    digest.update(msm.msm(several, scalars, threads=2, window=5).tobytes())
digest.update(ntt.ntt(field.powers(3, 1 << 14), threads=2, shift=5).tobytes())
inverses = scalars.copy()
field.fr_batch_inverse(inverses)
digest.update(inverses.tobytes())
hits = sum(sum(kernel.stats.cache_hits.values()) for kernel in (msm.fill_buckets, ntt._dit_long, points._multiply))
print(digest.hexdigest(), hits)
"""


def _run(folder: Path) -> list[str]:
    environment = os.environ | {"CUZKTUI_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout.split()


@pytest.mark.slow
def test_cold_and_warm_cache_agree(tmp_path: Path) -> None:
    cold, warm = _run(tmp_path), _run(tmp_path)
    assert cold[0] == warm[0]
    assert int(cold[1]) == 0 and int(warm[1]) == 5
    assert [entry.name for entry in tmp_path.iterdir()] == ["numba"]


def test_the_cache_folder_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUZKTUI_CACHE_DIR", str(tmp_path))
    assert jit_module.cache_root() == tmp_path / "numba"
    monkeypatch.delenv("CUZKTUI_CACHE_DIR")
    assert "cuzktui" in str(jit_module.cache_root())


def test_the_hash_covers_every_module_below_a_kernel() -> None:
    folder = Path(jit_module.__file__).parent
    names = {path.name for path in jit_module._closure(folder / "msm.py")}
    assert {"msm.py", "curve.py", "field.py", "ops.py", "limbs.py", "params.py", "digits.py"} <= names
    assert "ntt.py" not in names


@pytest.mark.parametrize("edited", ["limbs.py", "params.py"])
def test_an_edited_source_changes_the_hash(edited: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = Path(jit_module.__file__).parent / "msm.py"
    before = jit_module._source_hash.__wrapped__(module)
    assert jit_module._source_hash.__wrapped__(module) == before
    read = jit_module._read
    monkeypatch.setattr(jit_module, "_read", lambda path: read(path) + (b"# edited" if path.name == edited else b""))
    jit_module._imports.cache_clear()
    assert jit_module._source_hash.__wrapped__(module) != before
