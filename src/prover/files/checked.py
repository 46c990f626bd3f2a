"""A file whose points were checked is remembered by its digest on this host: checked once, not once a run.

The record lives in the user's cache folder, not in the file: a file cannot vouch for itself.
"""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import platformdirs

DIGEST_BYTES = 32
CHUNK_BYTES = 16 << 20
"""Hashed as one piece by one thread; big enough that the GIL is out of the way."""


def digest_of(parts: list[memoryview], threads: int = 2) -> bytes:
    """BLAKE2b-256 over the BLAKE2b-256 digests of 16 MiB chunks of each part, in order; chunks run on threads."""
    chunks = [part[i : i + CHUNK_BYTES] for part in parts for i in range(0, len(part), CHUNK_BYTES)]
    outer = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        outer.update(len(part).to_bytes(8, "little"))
    if len(chunks) <= 1:
        for chunk in chunks:
            outer.update(_chunk_digest(chunk))
    else:
        with ThreadPoolExecutor(threads) as pool:
            for digest in pool.map(_chunk_digest, chunks):
                outer.update(digest)
    return outer.digest()


def is_checked(digest: bytes) -> bool:
    """Whether the points of the file with this digest were checked on this host."""
    return (_folder() / digest.hex()).is_file()


def record_checked(digest: bytes) -> None:
    """Remembers it; where the cache folder cannot be written the next run checks again."""
    with suppress(OSError):
        _folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        (_folder() / digest.hex()).touch()


def _chunk_digest(chunk: memoryview) -> bytes:
    return hashlib.blake2b(chunk, digest_size=DIGEST_BYTES).digest()


def _folder() -> Path:
    override = os.environ.get("CUZKTUI_CACHE_DIR")
    return Path(override or platformdirs.user_cache_dir("cuzktui")) / "checked"
