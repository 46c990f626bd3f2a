"""Recordings without a name stay out of the user's folder."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def own_state_folder(tmp_path, monkeypatch):
    """A state folder of the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
