"""A reader finds the old file or the new one, whole; a writer that fails leaves the folder as it was."""

from __future__ import annotations

import os
import resource
import signal
import stat
from pathlib import Path

import pytest

from prover.errors import BadFile
from prover.files.atomic import atomic_writer, write_bytes


def test_file_appears_only_when_the_block_has_ended(tmp_path: Path) -> None:
    target = tmp_path / "key"
    with atomic_writer(target) as out:
        out.write(b"half")
        out.flush()
        assert not target.exists()
        out.write(b" and half")
    assert target.read_bytes() == b"half and half"
    assert os.listdir(tmp_path) == ["key"]


def test_failure_keeps_the_old_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "key"
    target.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), atomic_writer(target) as out:
        out.write(b"new")
        _ = 1 // 0
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["key"]


def test_full_disk_is_a_bad_file_and_leaves_nothing(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises(BadFile, match="cannot be written"):
            write_bytes(tmp_path / "key", bytes(1 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(tmp_path) == []


def test_missing_folder_is_a_bad_file(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="cannot be written"):
        write_bytes(tmp_path / "absent" / "key", b"")


def test_mode_follows_the_umask_and_a_link_keeps_its_target(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    link.symlink_to(real)
    write_bytes(link, b"new")
    assert link.is_symlink() and real.read_bytes() == b"new"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(real.stat().st_mode) == 0o666 & ~umask


def test_device_receives_the_bytes_and_is_not_replaced() -> None:
    write_bytes("/dev/null", b"gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
