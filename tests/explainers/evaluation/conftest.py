"""Keeps what one test has said or been warned of from the next one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from attributary_explainers.errors import (
    FastPathFaultWarning,
    NaivePathWarning,
    UntestedRiverWarning,
)
from attributary_explainers.evaluation import function as functions
from attributary_explainers.evaluation.function import is_newer_than_tested


@pytest.fixture(autouse=True)
def unsaid(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets this process say again what it has said."""
    monkeypatch.setattr(functions, "_said", set())
    is_newer_than_tested.cache_clear()
    yield
    is_newer_than_tested.cache_clear()


@pytest.fixture(autouse=True)
def no_other_warnings() -> Iterator[None]:
    """Every warning that a test does not expect is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", NaivePathWarning)
        warnings.simplefilter("error", FastPathFaultWarning)
        warnings.simplefilter("error", UntestedRiverWarning)
        yield
