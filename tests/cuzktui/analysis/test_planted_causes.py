"""A stranger plants causes one after another; watched only from outside, each is named and measured.

Accepted labels are a table: from outside a collection of garbage is a busy CPU, and small frees may give memory back or
may not. To another, unprivileged user the kernel does not say what a thread waits in, only that it waits (and whether
uninterruptibly, as for a disk). Lengths must be right within 5 % or 20 ms, the huge-page release within 5 % of its
bytes. A release that is claimed where none was planted fails at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from planting import ACCEPTED, GIVES_BACK, MS, WAITS, verdict, watched

from cuzktui.analysis.outside import Cause, stretches

NOBODY = 65534
ACCEPTED_UNPRIVILEGED = {
    **ACCEPTED,
    "sleep": {Cause.WAITING},
    "lock_wait": {Cause.WAITING},
    "disk_wait": {Cause.WAITING, Cause.DISK_WAIT},
}
NEEDS_PRIVILEGE = (Cause.SLEEPING, Cause.LOCK_WAIT, Cause.OTHER_WAIT)


def judged(accepted: Mapping[str, set[Cause]], uid: int | None = None) -> tuple[set[str], list[str]]:
    """Which of the plants were named and measured right in one run, and what was seen.

    False releases, wrong release sizes and kinds of wait that the watcher cannot have read fail at once.
    """
    view, plants = watched(list(accepted), uid)
    right, told = set(), []
    for plant in plants:
        good, seen = verdict(view, plant, accepted)
        told.append(f"{'right' if good else 'WRONG'}: {seen}")
        if good:
            right.add(plant.name)
        near = stretches(view, plant.begin_ns - 50 * MS, plant.end_ns + 50 * MS)
        releases = [s for s in near if s.cause is Cause.RELEASING]
        if plant.name not in GIVES_BACK:
            assert not releases, f"false release in {plant.name}: {releases}"
        if plant.name in ("munmap_4k", "malloc_trim"):
            assert sum(s.fall_bytes for s in releases) == pytest.approx(plant.size_bytes, rel=0.05), seen
        if uid is not None:
            assert not [s for s in near if s.cause in NEEDS_PRIVILEGE], seen
    return right, told


@pytest.mark.slow
def test_causes_planted_in_a_stranger_are_named_and_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine of ten; a second run is allowed, since a host that is busy with something else delays both sides."""
    monkeypatch.setenv("PLANTED_FOLDER", str(tmp_path))
    right, told = judged(ACCEPTED)
    if len(right) < 9:
        right, again = judged(ACCEPTED)
        told += again
    assert len(right) >= 9, "\n".join(told)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can watch as another user")
def test_another_user_sees_releases_and_that_threads_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watcher is nobody without capabilities, the stranger is root's: nine of ten, every wait and release among
    them."""
    monkeypatch.setenv("PLANTED_FOLDER", str(tmp_path))
    needed = {*WAITS, "munmap_4k", "munmap_huge", "malloc_trim"}
    right, told = judged(ACCEPTED_UNPRIVILEGED, NOBODY)
    if len(right) < 9 or not needed <= right:
        right, again = judged(ACCEPTED_UNPRIVILEGED, NOBODY)
        told += again
    assert len(right) >= 9 and needed <= right, "\n".join(told)
