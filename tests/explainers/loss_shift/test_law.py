"""The law of a window's positives against enumeration, closed forms and a general optimiser."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import hypergeom, nchypergeom_fisher

from attributary_explainers.loss_shift.law import (
    DIRECTIONS,
    Comparison,
    Recalibration,
    level_of,
    positives_in_window,
)


def table(n: list[float], expected: list[float], seen: list[float]) -> np.ndarray:
    return np.array([n, expected, seen], dtype=np.float64)


@pytest.mark.parametrize("odds", [0.05, 1.0, 7.0])
@pytest.mark.parametrize(("n_window", "positives", "n"), [(400, 300, 2000), (100, 1500, 2000), (900, 40, 100_000)])
def test_mean_and_variance_are_those_of_fishers_law(odds: float, n_window: int, positives: int, n: int) -> None:
    mean, variance = positives_in_window(
        np.array([math.log(odds)]), np.array([float(n_window)]), np.array([float(positives)]), np.array([float(n)])
    )
    exact = nchypergeom_fisher(n, positives, n_window, odds)
    assert mean[0] == pytest.approx(exact.mean(), rel=0.02, abs=0.3)
    assert variance[0] == pytest.approx(exact.var(), rel=0.1, abs=0.05)


def test_the_mean_solves_cornfields_equation_and_keeps_within_the_margins() -> None:
    rng = np.random.default_rng(1)
    n = rng.integers(2, 500, size=400).astype(float)
    n_window, positives = np.floor(rng.random((2, 400)) * (n + 1))
    log_odds = rng.normal(size=400) * 4.0
    mu, variance = positives_in_window(log_odds, n_window, positives, n)
    assert (mu >= np.maximum(0.0, n_window + positives - n) - 1e-9).all()
    assert (mu <= np.minimum(n_window, positives) + 1e-9).all()
    left, right = mu * (n - n_window - positives + mu), np.exp(log_odds) * (positives - mu) * (n_window - mu)
    assert np.allclose(left, right, rtol=1e-6, atol=1e-6 * n.max() ** 2)
    assert (variance >= 0.0).all()


@pytest.mark.parametrize(("n_window", "positives", "n"), [(200, 40, 4000), (2000, 30, 200_000), (500, 900, 2000)])
def test_the_tail_is_fishers_exact_one_on_the_safe_side(n_window: int, positives: int, n: int) -> None:
    start = n_window * positives / n
    for seen in range(int(start) + 4, min(positives, n_window, int(start) + 40), 3):
        window = table([n_window, 0], [start, 0], [seen, 0])
        before = table([n - n_window, 0], [start * (n - n_window) / n_window, 0], [positives - seen, 0])
        compared = Comparison.of(window, before)
        found = compared.strength(np.array([1.0, 1.0]))
        exact = -float(hypergeom.logsf(seen - 1, n, positives, n_window))
        if exact > 3.0:
            assert exact - 0.7 < found < 1.001 * exact + 0.05


def test_the_tail_of_many_bins_is_that_of_all_tables_on_the_safe_side() -> None:
    # Two bins, enumerated: the law of a weighted sum of two independent hypergeometric counts.
    window, before = table([60, 40], [6.0, 20.0], [14, 12]), table([300, 260], [30.0, 130.0], [30, 128])
    compared = Comparison.of(window, before)
    for direction in (np.array([1.0, 1.0]), np.array([1.0, -0.6]), np.array([0.3, -1.1])):
        seen = float(direction @ window[2])
        total = 0.0
        for a in range(45):
            for b in range(41):
                if direction @ [a, b] >= seen - 1e-9:
                    total += hypergeom.pmf(a, 360, 44, 60) * hypergeom.pmf(b, 300, 140, 40)
        assert -math.log(total) - 1.0 < compared.strength(direction) < -math.log(total) + 0.1


def test_rows_that_lie_elsewhere_in_a_bin_are_expected_to_come_as_often_as_predicted() -> None:
    before, window = table([4000, 4000], [800, 2000], [800, 2000]), table([400, 400], [120, 240], [120, 240])
    compared = Comparison.of(window, before)
    assert compared.mean == pytest.approx([120.0, 240.0], rel=0.02)
    assert compared.z(np.ones(2)) == pytest.approx(0.0, abs=0.3)


def test_directions_of_slope_do_not_move_with_the_level() -> None:
    rng = np.random.default_rng(2)
    p = np.linspace(0.05, 0.9, 12)
    n = rng.integers(100, 900, size=(2, 12)).astype(float)
    seen = rng.binomial(n.astype(int), p).astype(float)
    compared = Comparison.of(np.array([n[0], n[0] * p, seen[0]]), np.array([n[1], n[1] * p, seen[1]]))
    slope, up, down, one, minus = compared.directions()
    assert DIRECTIONS == ("slope", "slope and up", "slope and down", "up", "down")
    assert (compared.variance * slope).sum() == pytest.approx(0.0, abs=1e-9 * compared.variance.sum())
    assert (compared.variance * slope**2).sum() == pytest.approx(compared.variance.sum())
    assert (np.diff(slope) < 0.0).all()
    assert [up.tolist(), down.tolist()] == [(slope + one).tolist(), (slope - one).tolist()]
    assert minus.tolist() == [-1.0] * 12


def test_the_recalibration_is_the_most_likely_one() -> None:
    rng = np.random.default_rng(3)
    p = np.linspace(0.02, 0.9, 12)
    n = np.full(12, 400.0)
    x = np.log(p / (1.0 - p))
    seen = rng.binomial(400, 1.0 / (1.0 + np.exp(-0.6 * x - 0.4))).astype(float)
    fit = Recalibration.of(np.array([n, n * p, seen]))

    def cost(theta: np.ndarray) -> float:
        eta = theta[0] * (x - fit.centre) + theta[1]
        prior = 0.5 * ((theta[0] - 1.0) ** 2 + (theta[1] - fit.centre) ** 2)
        return float((n * np.logaddexp(0.0, eta) - seen * eta).sum()) + prior

    best = minimize(cost, [1.0, fit.centre], method="BFGS").x
    assert fit.theta == pytest.approx(best, abs=1e-4)
    steps = 1e-3 * np.eye(2)
    bend = [
        [(cost(best + a + b) - cost(best + a - b) - cost(best - a + b) + cost(best - a - b)) for a in steps]
        for b in steps
    ]
    assert fit.covariance == pytest.approx(np.linalg.inv(np.array(bend) / 4e-6), rel=1e-2)


def sure(n: int, slope: float, shift: float, seed: int) -> np.ndarray:
    """Return a table of a model whose logits mean slope * logit + shift."""
    rng = np.random.default_rng(seed)
    x = np.linspace(-3.0, 2.0, 12)
    rows = np.full(12, float(n))
    seen = rng.binomial(n, 1.0 / (1.0 + np.exp(-slope * x - shift)))
    return np.array([rows, rows / (1.0 + np.exp(-x)), seen.astype(float)])


def test_a_moved_base_rate_is_told_from_a_model_that_goes_too_far() -> None:
    before = sure(2000, 1.0, 0.0, 1)
    level = level_of(sure(400, 1.0, 0.7, 2), before)
    assert level.is_all
    assert level.shift == pytest.approx(0.7, abs=0.15)
    assert abs(level.z_slope) < 3.0
    worse = level_of(sure(400, 0.4, 0.0, 3), before)
    assert not worse.is_all
    assert worse.z_slope > 5.0
    same = level_of(sure(400, 1.0, 0.0, 4), before)
    assert abs(same.z) < 3.0
    assert same.expected == pytest.approx(sure(400, 1.0, 0.0, 4)[1].sum(), rel=0.05)


def test_labels_that_follow_predictions_more_closely_make_no_model_worse() -> None:
    before = sure(2000, 1.0, 0.0, 1)
    for seed in range(2, 12):
        better = level_of(sure(60, 1.5, 0.3, seed), before)
        assert better.z_slope < 1.0
        assert better.is_all


def test_predictions_that_move_while_labels_do_not_are_no_base_rate() -> None:
    before = sure(2000, 1.0, 0.0, 1)
    p = before[1] / before[0]
    rows = np.array([100, 100, 100, 200, 300, 500, 600, 700, 700, 700, 500, 400], dtype=np.float64)
    share = before[2].sum() / before[0].sum() * rows.sum() / (rows * p).sum()  # high predictions, as many positives
    assert not level_of(np.array([rows, rows * p, np.round(rows * p * share)]), before).is_all
