"""Evaluators that are not taken where the core is plain Python are tested there, too."""

from __future__ import annotations

import pytest

from attributary_explainers.fast_paths import linear, neighbours


@pytest.fixture(autouse=True)
def taken_uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (linear, neighbours):
        monkeypatch.setattr(module, "is_compiled", lambda: True)
