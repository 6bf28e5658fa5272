"""Lets a state of a few bytes be one of several chunks."""

from __future__ import annotations

import pytest

from attributary_agents.state import store as state_store


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_store, "CHUNK_BYTES", 10)
