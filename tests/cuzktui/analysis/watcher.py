"""The watching side of the planted causes: statm every 4 ms, CPU and threads every 20 ms, as any user.

`python watcher.py PID UID` becomes that user after its imports, without groups and without capabilities, prints
`READY` and its effective capabilities, samples until stdin closes, then writes event lines to stdout.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from cuzktui.collector.proc import CpuReader, StatmReader
from prover import wire
from prover.run import now

MEMORY_STEP_S, CPU_STEP_NS = 0.004, 20_000_000


def sample(pid: int, done: threading.Event, events: list[wire.Event]) -> None:
    memory, cpu, cpu_due_ns = StatmReader(pid), CpuReader(pid), 0
    while not done.wait(MEMORY_STEP_S):
        t_ns, reading = now(), memory.read()
        if reading is not None:
            events.append(wire.MemSample(t_ns=t_ns, pid=pid, resident_bytes=reading[0], shared_bytes=reading[1]))
        if t_ns >= cpu_due_ns:
            cpu_due_ns = t_ns + CPU_STEP_NS
            told = cpu.read()
            if told is not None:
                events.append(told)
    memory.close()
    cpu.close()


def capabilities() -> str:
    """The effective set in hex."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("CapEff:"))


def main(pid: int, uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    print("READY", capabilities(), flush=True)
    done: threading.Event = threading.Event()
    events: list[wire.Event] = []
    sampler = threading.Thread(target=sample, args=(pid, done, events))
    sampler.start()
    sys.stdin.readline()
    done.set()
    sampler.join()
    sys.stdout.buffer.write(b"".join(map(wire.encode, events)))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
