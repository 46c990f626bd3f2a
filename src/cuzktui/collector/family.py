"""A started command is followed into its children: `npx`, a shell or `time` only wait while another process works."""

from __future__ import annotations

import os

MAX_MEMBERS = 32
"""A command that starts more at a time is a build, not a prover; the rest is not followed."""
LOOKS = 4
"""A process has its id before its parent lists it: so many looks later, even a starved parent does."""


class Family:
    """The living descendants of one process, itself included.

    Args:
        pid: the process that was started.
        root: where `/proc` is; another directory in tests.
    """

    def __init__(self, pid: int, root: str = "") -> None:
        self._root = root
        self.members = {pid}
        self.parents: set[int] = set()
        """Members that have started others: most of them only wait for those."""
        self._newest, self._looks = "", 0
        """The id that the host gave out last, and how often descendants were looked for since."""

    def newcomers(self) -> list[int]:
        """Descendants that were not known before; from now on they are members.

        Once nobody on the host has started anything for `LOOKS` calls, no list is read.
        """
        newest = _newest(f"{self._root}/proc/loadavg")
        self._looks = self._looks + 1 if newest and newest == self._newest else 0
        self._newest = newest
        if self._looks >= LOOKS:
            return []
        found: list[int] = []
        waiting = list(self.members)
        while waiting and len(self.members) < MAX_MEMBERS:
            member = waiting.pop()
            for child in _children(f"{self._root}/proc/{member}/task"):
                if child not in self.members and len(self.members) < MAX_MEMBERS:
                    self.members.add(child)
                    self.parents.add(member)
                    found.append(child)
                    waiting.append(child)
        return found

    def left(self, pid: int) -> None:
        """A member has ended."""
        self.members.discard(pid)
        self.parents.discard(pid)


def _newest(loadavg: str) -> str:
    """The id given out last; empty where the kernel does not say (a sandbox may say 0 at any time)."""
    try:
        with open(loadavg, encoding="ascii") as file:
            newest = file.read(256).rpartition(" ")[2].strip()
    except OSError:
        return ""
    return newest if newest != "0" else ""


def _children(tasks: str) -> list[int]:
    """Children of every thread of a process; none where the kernel keeps no such list."""
    found: list[int] = []
    try:
        for thread in os.listdir(tasks):
            with open(f"{tasks}/{thread}/children", "rb") as file:
                found += [int(word) for word in file.read(8192).split() if word.isdigit()]
    except OSError:
        pass
    return found
