"""Test keys of built-in circuits are made once a host and found again by circuit hash; a damaged one is made anew."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from pathlib import Path

import platformdirs

from prover.backends import Backend
from prover.errors import BadFile, Mismatch
from prover.files.container import open_key, write_key
from prover.keys import ProvingKey
from prover.r1cs.hash import circuit_hash
from prover.r1cs.matrices import R1cs
from prover.run import Run
from prover.setup import test_setup

KEPT_HASHES = 8


def cache_dir() -> Path:
    """``$CUZKTUI_CACHE_DIR`` or the user's cache folder."""
    override = os.environ.get("CUZKTUI_CACHE_DIR")
    return Path(override or platformdirs.user_cache_dir("cuzktui"))


class KeyCache:
    """Keys by circuit hash, on disk and, once opened, mapped."""

    def __init__(self, folder: Path | None = None, threads: int = 2) -> None:
        self.folder, self.threads = folder or cache_dir() / "keys", threads
        self.backend: Backend | None = None
        """Whose fixed-base multiplication a setup uses; the CPU's when None."""
        self._open: dict[bytes, ProvingKey] = {}
        self._hashed: OrderedDict[int, tuple[R1cs, bytes]] = OrderedDict()
        """Hashes of the circuits seen last, by identity: a large one takes seconds."""
        self._lock = threading.Lock()

    def key_for(self, r1cs: R1cs, run: Run) -> ProvingKey:
        """The cached key of this circuit, or a fresh test setup that is then cached.

        A full disk does not fail the job: the key then lives in memory only, and a notice says so.
        """
        digest = self._hash(r1cs)
        with self._lock:
            if digest not in self._open:
                self._open[digest] = self._load(digest, run) or self._make(r1cs, digest, run)
            return self._open[digest]

    def forget(self, key: ProvingKey) -> None:
        """Unmaps a key once nobody else holds it; its file stays."""
        with self._lock:
            self._open = {digest: known for digest, known in self._open.items() if known is not key}

    def path_of(self, digest: bytes) -> Path:
        return self.folder / f"{digest.hex()}.key"

    def _hash(self, r1cs: R1cs) -> bytes:
        known = self._hashed.get(id(r1cs))
        if known is None:
            known = self._hashed[id(r1cs)] = (r1cs, circuit_hash(r1cs))
            while len(self._hashed) > KEPT_HASHES:
                self._hashed.popitem(last=False)
        return known[1]

    def _load(self, digest: bytes, run: Run) -> ProvingKey | None:
        path = self.path_of(digest)
        if not path.exists():
            return None
        try:
            key = open_key(path)
            if key.circuit_hash != digest:
                raise Mismatch(f"{path}: holds the key of another circuit")
            return key
        except (BadFile, Mismatch, OSError) as error:
            run.notice(f"cached key not usable, made anew: {error}", "warning")
            return None

    def _make(self, r1cs: R1cs, digest: bytes, run: Run) -> ProvingKey:
        bases = self.backend.fixed_bases() if self.backend is not None else None
        key = test_setup(r1cs, run, threads=self.threads, bases=bases)
        path = self.path_of(digest)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_key(path, key)
            return open_key(path)
        except (BadFile, OSError) as error:
            run.notice(f"test key not cached ({error}); it stays in memory", "warning")
            return key
