"""A program that writes events, followed by the real sampler until it ends: both tellings, in time order."""

from __future__ import annotations

import select
import subprocess
from collections.abc import Mapping

from cuzktui.collector.memory import MemorySampler
from cuzktui.collector.proc import CpuReader
from prover import wire
from prover.run import now


def sampled(command: list[str], environ: Mapping[str, str] | None = None) -> list[wire.Event]:
    """The program's event lines and the readings of its memory and CPU."""
    samples: list[wire.Event] = []
    sampler = MemorySampler(samples.append)
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) as child:
        assert child.stdout is not None
        sampler.start()
        sampler.watch(child.pid)
        sampler.warm(now() + 60_000_000_000)
        cpu = CpuReader(child.pid)
        while not select.select([child.stdout], [], [], 0.1)[0]:
            told = cpu.read()
            if told is not None:
                samples.append(told)
        events = [event for line in child.stdout if (event := wire.decode(line)) is not None]
    sampler.stop()
    cpu.close()
    return sorted([*events, *samples], key=lambda event: event.t_ns)
