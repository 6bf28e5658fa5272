"""Estimates and verdicts against closed forms, and the loss that they rest on."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import anomaly, linear_model, naive_bayes

from attributary_explainers import Estimate, Losses
from attributary_explainers.change.verdicts import loss_of_verdicts, losses_of
from attributary_explainers.losses.losses import as_loss

VALUES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=70)


def naive_error(values):
    n, found = len(values), []
    for size in {1, int(math.sqrt(n)), n // 8} - {0}:
        blocks = [statistics.fmean(values[i : i + size]) for i in range(0, n - size + 1, size)]
        if size == 1 or len(blocks) > 3:
            found.append(statistics.stdev(blocks) / math.sqrt(len(blocks)))
    return max(found)


@given(VALUES)
def test_an_estimate_has_the_largest_error_of_rows_and_blocks(values):
    found = Estimate.of(values)
    assert found.mean == pytest.approx(statistics.fmean(values), abs=1e-9)
    assert found.std_error == pytest.approx(naive_error(values), rel=1e-6, abs=1e-9)
    assert found.n == len(values)


def test_of_dependent_values_the_error_is_not_that_of_independent_ones():
    # AR(1) with coefficient .9: the variance of a mean is (1 + .9) / (1 - .9) times that of independent values.
    rng = np.random.default_rng(3)
    means, errors = [], []
    for _ in range(200):
        v = np.zeros(2000)
        for t, e in enumerate(rng.normal(size=2000)):
            v[t] = 0.9 * v[t - 1] + e
        found = Estimate.of(v)
        means.append(found.mean)
        errors.append(found.std_error)
    assert 0.8 < statistics.fmean(errors) / statistics.stdev(means) < 1.3


@pytest.mark.parametrize("values", [[], [1.0]])
def test_of_fewer_than_two_values_nothing_is_certain(values):
    found = Estimate.of(values)
    assert (found.std_error, found.sign(), found.n) == (math.inf, 0, len(values))


def made(worsened, gain):
    """Losses with these differences, each with the error .1."""
    then, now = Estimate(1.0, 0.08, 100), Estimate(1.0 + worsened, 0.06, 100)
    return Losses("brier", "", 2.0, then, now, Estimate(now.mean - gain, 0.1, 50), Estimate(gain, 0.1, 50))


@pytest.mark.parametrize(
    ("worsened", "gain", "verdict"),
    [
        (0.31, 0.31, "followed"),
        (0.29, 0.31, "matured"),
        (-0.31, 0.31, "matured"),
        (0.31, 0.29, "harder"),
        (0.31, -0.29, "harder"),
        (0.29, -0.29, "equal"),
        (-0.31, 0.0, "easier"),
        (0.31, -0.31, "degraded"),
        (0.0, -0.31, "degraded"),
        (-0.31, -0.31, "degraded"),
    ],
)
def test_the_verdict_is_that_of_the_two_signs(worsened, gain, verdict):
    found = made(worsened, gain)
    assert found.verdict == verdict
    assert found.worsened.std_error == pytest.approx(0.1)
    assert found.is_doubtful == (gain < -0.2)


def test_losses_pair_the_later_rows():
    rng = np.random.default_rng(1)
    then, reference, model = rng.random(60).tolist(), rng.random(50), rng.random(20)
    found = losses_of(as_loss("brier"), then, reference, model)
    assert found.gain.mean == pytest.approx(statistics.fmean(reference[30:]) - statistics.fmean(model))
    assert found.gain.std_error == pytest.approx(naive_error((reference[30:] - model).tolist()))
    assert found.worsened.mean == pytest.approx(statistics.fmean(reference) - statistics.fmean(then))
    assert (found.reference_then.n, found.reference_now.n, found.model_now.n) == (60, 50, 20)


@pytest.mark.parametrize(
    ("model", "loss", "name"),
    [
        (naive_bayes.GaussianNB(), None, "brier"),
        (naive_bayes.GaussianNB(), "cross_entropy", "brier"),
        (naive_bayes.GaussianNB(), "zero_one", "brier"),
        (linear_model.Perceptron(), "zero_one", "brier"),
        (linear_model.LinearRegression(), None, "absolute"),
        (linear_model.LinearRegression(), "squared", "absolute"),
        (anomaly.HalfSpaceTrees(), None, "score"),
        (lambda x: 1, "zero_one", "zero_one"),
        (lambda x: {1: 1.0}, "cross_entropy", "brier"),
        (lambda x: 1.0, "squared", "absolute"),
    ],
)
def test_verdicts_rest_on_a_loss_in_which_single_observations_weigh_little(model, loss, name):
    assert loss_of_verdicts(model, loss).name == name


def test_a_loss_of_the_user_s_own_stays():
    def dear(y, p):
        return 10.0 * (1.0 - p.get(y, 0.0))

    assert loss_of_verdicts(naive_bayes.GaussianNB(), dear).function is dear
