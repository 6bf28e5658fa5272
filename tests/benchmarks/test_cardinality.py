"""A small version of `make cardinality`: a scrape over HTTP stays within the limits, and nothing is lost uncounted."""

from __future__ import annotations

import pytest
from benchmarks.cardinality import __main__ as command
from benchmarks.cardinality.fleet import UNLIMITED, config_of, filled
from benchmarks.cardinality.measure import profile, scrape

MODELS, FEATURES = 40, 30
WITH_OTHERS = 3 * 10 + 2
"""Series of a model's features where ten of them are shown: three of each, and two sums of the others."""
RESERVED = 5 * 10 + 2
"""The same with the two of each feature that are there once its shifts are watched."""


@pytest.mark.parametrize(
    ("limits", "models", "of_features"),
    [
        pytest.param({"max_features": 10, "max_models": 25}, 25, 25 * WITH_OTHERS, marks=pytest.mark.long),
        ({"max_features": 10, "max_series": 10 * RESERVED + 5}, 10, 10 * WITH_OTHERS),
        pytest.param(UNLIMITED, MODELS, MODELS * FEATURES * 3, marks=pytest.mark.long),
    ],
)
def test_series_stay_within_the_limits(limits: dict[str, int], models: int, of_features: int) -> None:
    view = filled(config_of(MODELS), FEATURES, 4)
    config = config_of(MODELS, limits)
    found = scrape(config, view, 2)
    assert (found.models, found.of_features, found.dropped) == (models, of_features, MODELS - models)
    assert found.series > found.of_features
    assert found.bytes > 50 * found.series
    # A quarter of the models leaves with its partition: there is room for as many of those that were dropped.
    left = len(view.partitions[3].partition.models)
    del view.partitions[3]
    rest = scrape(config, view, 1)
    assert rest.models == min(models, MODELS - left)
    assert rest.models + rest.dropped == MODELS - left


def test_the_command_says_whether_the_limits_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--models", "6", "--features", "25", "--observations", "3", "--scrapes", "1"]) == 0
    said = capsys.readouterr().out
    assert "6 models of 25 features" in said
    assert "holds: at most 200 models and 10000 series" in said


def test_the_profile_names_functions() -> None:
    config = config_of(2)
    lines = profile(config, filled(config, 5, 3), 3)
    assert len(lines) == 3
    assert all(" calls " in line for line in lines)
