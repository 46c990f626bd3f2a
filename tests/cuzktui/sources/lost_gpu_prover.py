"""The real service over a real backend that goes by a card's name, and is lost in the second job of its process."""

from __future__ import annotations

import sys

from prover.backends import select
from prover.backends.cpu.backend import CpuBackend
from prover.backends.cuda.failures import DeviceLost
from prover.cli import main

CPU = select.make_backend


class Card(CpuBackend):
    name = "cuda"

    def __init__(self) -> None:
        super().__init__(1)
        self.lost = ""
        self.jobs = 0

    @property
    def devices(self):
        return () if self.lost else ("cuda:0 Test",)

    @devices.setter
    def devices(self, _told):
        """A CPU would be called otherwise."""

    def prep_msm(self, key, assignments, scope, run):
        self.jobs += 1
        if self.jobs == 2:
            error = DeviceLost("cuda:0 Test", "cudaErrorIllegalAddress")
            self.lost = error.ever_after
            raise error
        return super().prep_msm(key, assignments, scope, run)


def make(name, threads, *where):
    return CPU(name, threads, *where) if name == "cpu" else (Card(), "")


if __name__ == "__main__":
    select.make_backend = make
    sys.exit(main())
