"""What the console costs: start to screen, CPU of drawing a run at its own pace, and how soon a key is answered.

    python benchmarks/console_cost.py [RECORDING] [--size 160x48] [--seconds 20]

Runs the real console in a pseudo-terminal over a replay; CPU is read from /proc: a busy machine changes wall only.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import select
import signal
import statistics
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

DEMO = Path(__file__).parents[1] / "src" / "cuzktui" / "demo" / "run.jsonl"
TICKS_HZ = os.sysconf("SC_CLK_TCK")


class Screen:
    """A console in a pseudo-terminal, its output counted and kept."""

    def __init__(self, arguments: list[str], width: int, height: int) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        environ = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cuzktui", *arguments], stdin=slave, stdout=slave, stderr=slave, env=environ,
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.output = bytearray()
        self.last_s = self.began
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            if select.select([self.master], [], [], 1.0)[0]:
                try:
                    data = os.read(self.master, 1 << 16)
                except OSError:
                    return
                self.output += data
                self.last_s = time.monotonic()

    def wait_for(self, pattern: bytes, begin: int = 0, timeout_s: float = 30.0) -> float:
        """Seconds since the epoch of `time.monotonic` at which the pattern had been written after `begin`."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if re.search(pattern, bytes(self.output[begin:])):
                return time.monotonic()
            time.sleep(0.001)
        raise SystemExit(f"the console never wrote {pattern!r}")

    def drawing_pid(self) -> int:
        """The process that draws: the child of the supervisor."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def press(self, key: bytes, answered: bytes) -> float:
        """Milliseconds until the screen answered a key."""
        begin, at = len(self.output), time.monotonic()
        os.write(self.master, key)
        return (self.wait_for(answered, begin) - at) * 1000

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_HZ


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording", type=Path, nargs="?", default=DEMO)
    parser.add_argument("--size", default="160x48")
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    width, height = (int(v) for v in arguments.size.split("x"))
    starts, start_cpu = [], []
    for _ in range(5):
        shown = Screen(["replay", str(arguments.recording)], width, height)
        starts.append(shown.wait_for(b"memory") - shown.began)
        start_cpu.append(cpu_s(shown.drawing_pid()))
        shown.end()
    shown = Screen(["replay", str(arguments.recording)], width, height)
    shown.wait_for(b"memory")
    pid = shown.drawing_pid()
    time.sleep(1.0)
    cpu_before, bytes_before, at = cpu_s(pid), len(shown.output), time.monotonic()
    time.sleep(arguments.seconds)
    wall = time.monotonic() - at
    percent = 100 * (cpu_s(pid) - cpu_before) / wall
    written = (len(shown.output) - bytes_before) / wall
    answers = []
    for _ in range(10):
        answers.append(shown.press(b" ", b"FROZEN"))
        shown.press(b" ", b"REPLAY")
    shown.end()
    print(
        json.dumps(
            {
                "size": arguments.size, "recording": arguments.recording.name, "cores": os.cpu_count(),
                "load_1min": os.getloadavg()[0],
                "screen_after_s": {"median": round(statistics.median(starts), 2), "all": [round(s, 2) for s in starts]},
                "screen_cpu_s": round(statistics.median(start_cpu), 2),
                "drawing_cpu_percent": round(percent, 1), "over_s": round(wall, 1),
                "terminal_bytes_per_s": round(written),
                "key_answered_ms": {"median": round(statistics.median(answers), 1), "worst": round(max(answers), 1)},
            },
            indent=1,
        )
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
