"""A request becomes a workload here; a few circuits, keys and files are kept between jobs while they do not change."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from prover.backends import Backend
from prover.builtin import BuiltinWorkload
from prover.circuits.circuit import Circuit
from prover.circuits.registry import build
from prover.errors import BadFile
from prover.file_workload import FileWorkload
from prover.files.zkey import Zkey, read_zkey
from prover.key_file import KeyFile
from prover.keycache import KeyCache
from prover.keys import ProvingKey
from prover.run import Run
from prover.serve.request import JobRequest
from prover.workload import Workload

if TYPE_CHECKING:
    from prover.porep.circuit import StackedCircuit

KEPT_ZKEYS = 2
KEPT_CIRCUITS = 4
KEPT_KEY_FILES = 2
K = TypeVar("K")
V = TypeVar("V")
FileIdentity = tuple[str, int, int]
"""Path, time of the last change, size."""


class Workloads:
    """Used by the worker's thread only.

    Args:
        threads: what a workload may use.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._keys = KeyCache(threads=threads)
        self._circuits: OrderedDict[str, Circuit] = OrderedDict()
        self._zkeys: OrderedDict[FileIdentity, Zkey] = OrderedDict()
        self._key_files: OrderedDict[FileIdentity, KeyFile] = OrderedDict()
        self._stacked: dict[str, StackedCircuit] = {}

    def of(self, request: JobRequest, run: Run) -> Workload:
        """What a checked request asks to prove.

        Raises:
            ProverError: a file or a circuit is not what it should be.
        """
        if request.circuit:
            return self.builtin(request.circuit, request.num_circuits)
        if request.kind == "porep-c2":
            return self._porep(request, run)
        zkey = _kept(self._zkeys, _identity(request.zkey_path), lambda: read_zkey(request.zkey_path), KEPT_ZKEYS)
        return FileWorkload(
            request.title, zkey, request.wtns_path, num_circuits=request.num_circuits, threads=self._threads
        )

    def builtin(self, name: str, num_circuits: int) -> Workload:
        """A built-in circuit on its test key.

        Raises:
            UnknownCircuit: there is none of that name.
        """
        circuit = _kept(self._circuits, name, lambda: build(name), KEPT_CIRCUITS)
        return BuiltinWorkload(circuit, num_circuits, self._keys, threads=self._threads)

    def use(self, backend: Backend) -> None:
        """Test keys that do not exist yet are made on this backend."""
        self._keys.backend = backend

    def key_file(self, request: JobRequest, key: ProvingKey) -> str | None:
        """Where whoever wants to check a proof again finds its key."""
        given = request.zkey_path or request.key_path
        return given or (str(self._keys.path_of(key.circuit_hash)) if key.circuit_hash else None)

    def forget(self, key: ProvingKey) -> None:
        """Lets go of a key that was evicted; its file stays."""
        self._keys.forget(key)
        for ident in [ident for ident, zkey in self._zkeys.items() if zkey.key is key]:
            del self._zkeys[ident]

    def _porep(self, request: JobRequest, run: Run) -> Workload:
        """A PoRep job; an upstream client that knows its sector says so, and 0 says nothing."""
        from prover.porep.job import open_job

        path = request.key_path
        keys = _kept(self._key_files, _identity(path), lambda: KeyFile(path), KEPT_KEY_FILES) if path else self._keys
        return open_job(
            request.c1_path if request.c1 is None else request.c1, keys, run, miner_id=request.miner_id or None,
            sector_number=request.sector_number or None, threads=self._threads, circuits=self._stacked,
        )  # fmt: skip


def _kept(shelf: OrderedDict[K, V], ident: K, make: Callable[[], V], limit: int) -> V:
    """The value at hand, or a new one that is kept; the one not used for longest goes."""
    if ident not in shelf:
        shelf[ident] = make()
    shelf.move_to_end(ident)
    while len(shelf) > limit:
        shelf.popitem(last=False)
    return shelf[ident]


def _identity(path: str) -> FileIdentity:
    """A file, as long as nobody writes to it.

    Raises:
        BadFile: it cannot be looked at.
    """
    try:
        about = os.stat(path)
    except OSError as error:
        raise BadFile(path, "", error.strerror or str(error)) from error
    return path, about.st_mtime_ns, about.st_size
