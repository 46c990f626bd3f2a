"""Progress without a screen: plain lines on standard error, one that changes in place where that is a terminal."""

from __future__ import annotations

from typing import TextIO

from prover import wire
from prover.wire import Stage


class ProgressLines:
    """Tells of one job and of the prover's own work while events come.

    Args:
        out: where to.
        quiet: says nothing but warnings and errors.
    """

    def __init__(self, out: TextIO, quiet: bool = False) -> None:
        self._out, self._quiet = out, quiet
        self._tty = out.isatty()
        self.hushed = False
        """Set when the session is being ended: that its processes end is no news then."""
        self._began_ns: dict[Stage, int] = {}
        self._changing = False
        self._jobs: set[str] = set()
        self._told: dict[tuple[Stage, str], int] = {}

    def apply(self, event: wire.Event) -> None:
        if self.hushed:
            return
        match event:
            case wire.Notice(text=text, level=level) if not self._quiet or level != "info":
                self.line(text if level == "info" else f"{level}: {text}")
            case wire.ProcessEnded(pid=pid, reason=reason, stage=stage):
                self.line(f"prover (pid {pid}) {reason}" + (f" in stage {stage}" if stage else ""))
            case _ if self._quiet:
                return
            case wire.JobSubmitted(circuit=circuit, num_circuits=count, policy=policy, job_id=job_id):
                if job_id not in self._jobs:
                    self._jobs.add(job_id)
                    self.line(f"job {job_id}: {circuit} x {count}, {policy}")
            case wire.StageBegan(stage=stage, circuit=None):
                self._began_ns[stage] = event.t_ns
                if stage in (*wire.TOP_STAGES, Stage.COMPILE):
                    self._change(stage.value)
            case wire.StageEnded(stage=stage, circuit=None) if stage in (*wire.TOP_STAGES, Stage.COMPILE):
                took_ms = (event.t_ns - self._began_ns.get(stage, event.t_ns)) / 1e6
                if took_ms >= 1 or not event.ok:
                    self.line(f"{stage.value:8} {took_ms:10.1f} ms" + ("" if event.ok else "  failed"))
            case wire.Progress(stage=stage, done=done, total=total, what=what, unit=unit) if total:
                self._progress(stage, done, total, what or unit)
            case wire.InnerEnded(inner_ns=inner_ns):
                self._change(f"computed in {inner_ns / 1e6:.1f} ms, giving memory back")

    def line(self, text: str) -> None:
        """A line that stays."""
        if self._changing:
            self._out.write("\r\x1b[K")
            self._changing = False
        self._out.write(text + "\n")
        self._out.flush()

    def _change(self, text: str) -> None:
        """A line that the next one replaces; nothing where lines cannot be replaced."""
        if self._tty:
            self._out.write("\r\x1b[K" + text[:100])
            self._out.flush()
            self._changing = True

    def _progress(self, stage: Stage, done: int, total: int, what: str) -> None:
        percent = 100 * done // total
        if self._tty:
            self._change(f"{stage.value:8} {percent:3} %  {done}/{total} {what}")
            return
        # Without a terminal a line a quarter of a long stage is enough to see that it lives.
        if stage in (Stage.COMPILE, Stage.SETUP) and percent // 25 > self._told.get((stage, what), 0):
            self._told[stage, what] = percent // 25
            self.line(f"{stage.value:8} {percent:3} %  {done}/{total} {what}")
