"""Where events come from: a live session, a recording, a test. The console knows only `Source`."""

from cuzktui.sources.base import Emit, Source

__all__ = ["Emit", "Source"]
