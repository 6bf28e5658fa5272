"""Fixtures of the tests of a worker."""

from __future__ import annotations

import pytest

from attributary_agents.worker import checkpoint as checkpointing
from attributary_agents.worker import restore as restoring_module


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every slice be of one model."""
    monkeypatch.setattr(checkpointing, "ENCODE_S", 0.0)
    monkeypatch.setattr(checkpointing, "WRITES_TOGETHER", 1)
    monkeypatch.setattr(restoring_module, "RESTORE_S", 0.0)
