"""A cached kernel is never older than any source it was compiled from: its cache directory is named by their hash.

numba keys its cache by the file of the cached function alone, so an edited helper module would leave stale machine
code behind. Here the directory carries a hash over the function's module, everything of this package that it imports
(transitively), the numba and llvmlite versions and the CPU.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba
import platformdirs
from numba import types
from numba.core import config as numba_config

from prover.backends.cpu.aging import mark_used

_PACKAGE_ROOT = Path(__file__).resolve().parents[3]


def cache_root() -> Path:
    """Where compiled kernels are kept: ``$CUZKTUI_CACHE_DIR/numba`` or the user's cache folder."""
    override = os.environ.get("CUZKTUI_CACHE_DIR")
    return Path(override or platformdirs.user_cache_dir("cuzktui")) / "numba"


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorates a kernel: ``njit(nogil=True, cache=True, error_model="numpy")`` with a cache that cannot go stale.

    Args:
        options: further options of ``numba.njit``.
    """
    if function is None:
        return lambda f: jit(f, **options)
    settings: Any = {"nogil": True, "cache": True, "error_model": "numpy"} | options
    config: Any = numba_config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(_used(cache_root() / _source_hash(Path(function.__code__.co_filename).resolve())))
    try:
        return _without_literals(numba.njit(**settings)(function))
    finally:
        config.CACHE_DIR = before


def _without_literals(kernel: Any) -> Any:
    """Compiles one version for all integers where numba would compile another for each literal argument of a caller.

    Measured: a third of the cold compile of the curve kernels.
    """
    resolve = kernel.get_call_template
    kernel.get_call_template = lambda args, kws: resolve(
        tuple(types.unliteral(arg) for arg in args), {name: types.unliteral(arg) for name, arg in kws.items()}
    )
    return kernel


@functools.cache
def _used(folder: Path) -> Path:
    mark_used(folder, time.time_ns())
    return folder


@functools.cache
def _source_hash(path: Path) -> str:
    digest = hashlib.sha256()
    for part in (numba.__version__, llvmlite.__version__, llvmlite.binding.get_host_cpu_name()):
        digest.update(part.encode() + b"\0")
    for source in sorted(_closure(path)):
        digest.update(source.name.encode() + b"\0" + _read(source) + b"\0")
    return digest.hexdigest()[:20]


def _closure(path: Path) -> set[Path]:
    """The module and all modules of this package that it imports, directly or not."""
    seen: set[Path] = set()
    todo = [path]
    while todo:
        source = todo.pop()
        if source not in seen:
            seen.add(source)
            todo.extend(_imports(source))
    return seen


@functools.cache
def _read(path: Path) -> bytes:
    return path.read_bytes()


@functools.cache
def _imports(path: Path) -> tuple[Path, ...]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(_read(path))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    ours = (name.split(".") for name in names if name.startswith("prover."))
    files = (_PACKAGE_ROOT.joinpath(*parts).with_suffix(".py") for parts in ours)
    return tuple(file for file in files if file.is_file())
