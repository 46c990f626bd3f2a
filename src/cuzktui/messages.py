"""Messages between the parts of the console are facts in the past tense; the app alone answers them."""

from __future__ import annotations

from textual.message import Message


class KeyClicked(Message):
    """A key hint on the footer was clicked."""

    def __init__(self, action: str) -> None:
        super().__init__()
        self.action = action


class ChartZoomed(Message):
    """The wheel turned over the time axis; `steps` below zero asks for a shorter window."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps


class ChartPointed(Message):
    """A moment on the time axis was clicked; None takes the cursor away."""

    def __init__(self, t_ns: int | None) -> None:
        super().__init__()
        self.t_ns = t_ns


class JobPicked(Message):
    """A job in the strip was clicked."""

    def __init__(self, job_id: str) -> None:
        super().__init__()
        self.job_id = job_id


class LensDismissed(Message):
    """The gap lens was clicked away."""


class PanelFailed(Message):
    """A panel met something that it cannot draw."""

    def __init__(self, panel: str, fault: str) -> None:
        super().__init__()
        self.panel, self.fault = panel, fault
