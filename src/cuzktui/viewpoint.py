"""How the operator looks at the stream: window, cursor, hold, lens. Pure: no widget, no clock but the snapshot's."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cuzktui.model.snapshot import Lens, Snapshot
from cuzktui.widgets.axis import NICE_S, window_for

SHORTEST_AUTO_S = 10
LONGEST_AUTO_S = 600
IDLE_AUTO_S = 60
"""Once no job runs, the automatic window grows by no more than this."""


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """Each method gives the viewpoint after one act of the operator."""

    span_s: int | None = None
    """Window chosen by zooming; None is automatic."""
    end_ns: int | None = None
    """Right edge chosen by scrolling; None follows the newest event."""
    cursor_ns: int | None = None
    frozen: Snapshot | None = None
    job_id: str = ""
    """A job picked from the list; empty follows the running or newest one."""
    closed_lens_ns: int = 0
    """Begin of the newest lens that was closed; a later one opens by itself."""

    def window_s(self, snapshot: Snapshot, first_job: str = "") -> int:
        """Length of the time axis: as zoomed, else what holds the job from its request until now.

        Args:
            first_job: the first of several jobs that are to be seen together.
        """
        if self.span_s is not None:
            return self.span_s
        job = snapshot.find_job(self.job_id) if self.job_id else snapshot.job
        first = (snapshot.find_job(first_job) if first_job and not self.job_id else None) or job
        if job is None or first is None:
            return window_for(min(max(snapshot.elapsed_ns, SHORTEST_AUTO_S * 10**9), IDLE_AUTO_S * 10**9))
        until_ns = self.end_ns or snapshot.t_ns
        is_idle = job.is_done and self.end_ns is None
        longest_ns = IDLE_AUTO_S * 10**9 + (job.ended_ns or 0) - first.first_ns if is_idle else LONGEST_AUTO_S * 10**9
        wanted_ns = int((until_ns - first.first_ns) * 1.05)
        return max(SHORTEST_AUTO_S, window_for(min(longest_ns, wanted_ns)))

    def right_edge_ns(self, snapshot: Snapshot) -> int:
        return snapshot.t_ns if self.end_ns is None else min(self.end_ns, snapshot.t_ns)

    def lens(self, snapshot: Snapshot) -> Lens | None:
        """The lens to show: of the picked job, else the newest one, unless it was closed."""
        if self.job_id:
            found = next((lens for lens in reversed(snapshot.lenses) if lens.job_id == self.job_id), None)
            return found if found is not None and found.begin_ns != self.closed_lens_ns else None
        newest = snapshot.lens
        return newest if newest is not None and newest.begin_ns > self.closed_lens_ns else None

    def scrolled(self, snapshot: Snapshot, steps: int) -> Viewpoint:
        """The window moved by eighths of its length; at the newest event it follows again."""
        step_ns = self.window_s(snapshot) * 10**9 // 8
        end_ns = self.right_edge_ns(snapshot) + steps * step_ns
        if end_ns >= snapshot.t_ns:
            return replace(self, end_ns=None)
        span_s = self.window_s(snapshot)
        return replace(self, end_ns=max(end_ns, snapshot.first_ns + step_ns), span_s=span_s)

    def zoomed(self, snapshot: Snapshot, steps: int) -> Viewpoint:
        """The next longer or shorter window; it stays where the cursor or the right edge is."""
        span_s = self.window_s(snapshot)
        at = min(range(len(NICE_S)), key=lambda k: abs(NICE_S[k] - span_s))
        span_s = NICE_S[min(len(NICE_S) - 1, max(0, at + steps))]
        if self.cursor_ns is None:
            return replace(self, span_s=span_s)
        end_ns = self.cursor_ns + span_s * 10**9 // 2
        return replace(self, span_s=span_s, end_ns=None if end_ns >= snapshot.t_ns else end_ns)

    def live(self) -> Viewpoint:
        """Back to the newest event with the automatic window."""
        return Viewpoint(closed_lens_ns=self.closed_lens_ns)

    def held(self, snapshot: Snapshot) -> Viewpoint:
        """The picture held as it is, or let go."""
        return replace(self, frozen=None if self.frozen is not None else snapshot)

    def pointed(self, t_ns: int | None) -> Viewpoint:
        return replace(self, cursor_ns=None if t_ns == self.cursor_ns else t_ns)

    def toggled_lens(self, snapshot: Snapshot) -> Viewpoint:
        """The lens closed, or the newest one opened again."""
        shown = self.lens(snapshot)
        if shown is not None:
            return replace(self, closed_lens_ns=shown.begin_ns)
        return replace(self, closed_lens_ns=0) if snapshot.lenses else self

    def picked(self, snapshot: Snapshot, job_id: str) -> Viewpoint:
        """A job brought into the picture; picking it again goes back to the newest."""
        job = snapshot.find_job(job_id)
        if job is None or job_id == self.job_id:
            return self.live()
        if job.ended_ns is None:
            return replace(self.live(), job_id=job_id)
        margin_ns = max(10**9, job.length_ns(snapshot.t_ns) // 12)
        end_ns = min(job.ended_ns + margin_ns, snapshot.t_ns)
        span_s = max(5, window_for(end_ns - job.first_ns + margin_ns // 2))
        return replace(self, job_id=job_id, end_ns=end_ns, span_s=span_s, cursor_ns=None, closed_lens_ns=0)
