"""A warm cache gives what a cold one gave, and an edited source anywhere below a kernel gives a new cache."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prover.backends.cpu import aging
from prover.backends.cpu import jit as jit_module
from prover.backends.cpu.aging import UNUSED_NS

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


def _run(folder: Path, program: str = PROGRAM) -> list[str]:
    environment = os.environ | {"CUZKTUI_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout.split()


RACE = """
import sys, time
import numpy as np
from pathlib import Path
from prover.backends.cpu import field
from prover.backends.cpu.aging import UNUSED_NS, prune
from prover.backends.cpu.jit import cache_root
values = field.powers(7, 8)
gone = prune(cache_root(), time.time_ns() + UNUSED_NS + 10**12)
field.fr_batch_inverse(values)
print(len(gone), len(list(cache_root().iterdir())), sum(field._batch_inverse.stats.cache_misses.values()))
"""


def test_kernels_nobody_used_for_thirty_days_are_deleted_and_used_ones_stay(tmp_path: Path) -> None:
    now_ns = time.time_ns()
    for name in ("old", "used", "new"):
        (tmp_path / name / "msm").mkdir(parents=True)
        (tmp_path / name / "msm" / "kernel.nbc").write_bytes(b"code")
    (tmp_path / "compiled-old").touch()
    for name in ("old", "used", "compiled-old"):
        os.utime(tmp_path / name, ns=(0, now_ns - UNUSED_NS - 10**9))
    aging.mark_used(tmp_path / "used", now_ns)
    aging.mark_used(tmp_path / "missing", now_ns)
    assert aging.prune(tmp_path, now_ns) == ["compiled-old", "old"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["new", "used"]
    assert aging.prune(tmp_path / "missing", now_ns) == []


def test_only_the_link_is_deleted_where_a_link_lies_in_the_cache(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "link").symlink_to(kept)
    assert aging.prune(tmp_path / "numba", time.time_ns() + UNUSED_NS + 10**12) == ["link"]
    assert (kept / "file").exists()


@pytest.mark.slow
def test_a_process_whose_kernels_are_deleted_under_it_goes_on(tmp_path: Path) -> None:
    deleted, left, compiled = map(int, _run(tmp_path, RACE))
    assert deleted > 0 and left > 0 and compiled == 1


def test_a_process_that_loads_kernels_marks_them_used(tmp_path: Path) -> None:
    program = "from prover.backends.cpu import field; print(field.powers(7, 2))"
    _run(tmp_path, program)
    folders = list((tmp_path / "numba").iterdir())
    for folder in folders:
        os.utime(folder, ns=(0, 0))
    _run(tmp_path, program)
    assert folders and all(time.time_ns() - folder.stat().st_mtime_ns < 300 * 10**9 for folder in folders)


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
