"""A started command is followed into its children: `npx`, a shell or `time` only wait while another process works."""

from __future__ import annotations

import os

MAX_MEMBERS = 32
"""A command that starts more at a time is a build, not a prover; the rest is not followed."""


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

    def newcomers(self) -> list[int]:
        """Descendants that were not known before; from now on they are members."""
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
