"""Partial dependence against the exact curve, on streams on which an interpolated grid or an old model is far off."""

import numpy as np
import pytest
from benchmarks.calibration.dependence import measure_one

CHEAP = (
    "two-step staircase",
    "damped sine",
    "logistic of Cauchy",
    "nine letters, one late",
    "drifting range",
    "dependent feature",
    "a fifth is missing",
    "model jumps",
)


@pytest.mark.parametrize("name", CHEAP)
def test_the_largest_error_is_two_percent_of_the_range(name):
    errors = [measure_one(name, seed, read_at=(4000, 6000))[0] for seed in (1, 2)]
    assert np.mean(errors) <= 2.0
    assert np.max(errors) <= 4.0


@pytest.mark.long
@pytest.mark.parametrize("name", ["interaction, lognormal", "model grows", "ARFRegressor", "class of GaussianNB"])
def test_so_it_is_where_lines_cross_and_models_learn(name):
    errors = [measure_one(name, seed, read_at=(4000, 6000))[0] for seed in range(1, 5)]
    assert np.mean(errors) <= 2.0
    assert np.max(errors) <= 4.0
