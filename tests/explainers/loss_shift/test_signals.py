"""Calibration and signals against enumeration, closed forms and a general optimiser."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from attributary_explainers.loss_shift.signal.base import N_CALIBRATION, N_UNTAUGHT
from attributary_explainers.loss_shift.signal.calibration import Calibration, clipped, entropies
from attributary_explainers.loss_shift.signal.classes import ClassSignals
from attributary_explainers.loss_shift.signal.numbers import NumberSignals


def population(n: int, k: int, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of k classes, and classes drawn from them."""
    rng = np.random.default_rng(seed)
    p = softmax(rng.normal(size=(n, k)) * 1.5, axis=1)
    return p, (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("steep", [1.0, 2.0, 0.5])
def test_the_calibration_is_the_most_likely_one(k: int, steep: float) -> None:
    p, y = population(4000, k)
    told = clipped(softmax(steep * np.log(p), axis=1))
    found = Calibration.of(told, y)

    def cost(theta: np.ndarray) -> float:
        q = softmax(theta[0] * np.log(told) + theta[1:], axis=1)
        return float(-np.log(q[np.arange(len(y)), y]).sum() + 2.0 * ((theta - np.eye(k + 1)[0]) ** 2).sum())

    best = minimize(cost, np.r_[1.0, np.zeros(k)], method="BFGS").x
    assert found.temperature == pytest.approx(best[0], abs=2e-3)
    assert found.bias - found.bias.mean() == pytest.approx(best[1:] - best[1:].mean(), abs=5e-3)
    assert found.temperature == pytest.approx(1.0 / steep, rel=0.1)


def test_what_was_lost_beyond_expectation_is_learnt_by_how_sure_the_model_was() -> None:
    rng = np.random.default_rng(4)
    p = rng.uniform(0.02, 0.98, 40_000)
    truth = np.where(p > 0.6, 0.6, p)  # sure ones are wrong more often than they say: no temperature mends that
    y = (rng.random(len(p)) < truth).astype(int)
    found = Calibration.of(np.column_stack([1 - p, p]), y)
    q = found(np.column_stack([1 - p, p]))
    t = truth[:, None] * [-1.0, 1.0] + [1.0, 0.0]
    exact = (-t * np.log(q)).sum(axis=1) - entropies(q)
    near = (p > 0.88) & (p < 0.97)
    assert found.expected_excess(q)[near].mean() == pytest.approx(exact[near].mean(), abs=0.02)
    assert abs(exact[near].mean()) > 0.04


@pytest.mark.parametrize("k", [2, 3, 5])
def test_signals_have_mean_0_under_the_calibrated_probabilities(k: int) -> None:
    p, y = population(N_CALIBRATION, k)
    signals = filled(p, y)
    q = signals._calibration(p[:50])
    expected_excess = signals._calibration.expected_excess(q)
    means = np.zeros((50, signals.n_columns))
    for label in range(k):  # enumerate the labels, each with its probability
        of = signals._of_probabilities(p[:50], np.full(50, label))
        means += q[:, [label]] * of
    names = signals.names
    assert means[:, names.index("excess")] == pytest.approx(-expected_excess, abs=1e-9)
    assert means[:, names.index("slope")] == pytest.approx(0.0, abs=1e-9)
    for j in (j for j, name in enumerate(names) if name == "level"):
        assert means[:, j] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("k", [2, 4])
def test_the_slope_does_not_move_with_the_base_rate_to_first_order(k: int) -> None:
    p, y = population(N_CALIBRATION, k)
    signals = filled(p, y)
    calibration = signals._calibration
    q = calibration(p)
    column, moves = signals.names.index("slope"), []
    for size in (0.0, 0.02, 0.04):
        moved = softmax(np.log(q) + size * np.arange(k), axis=1)
        mean = sum(
            float((moved[:, label] * signals._of_probabilities(p, np.full(len(p), label))[:, column]).mean())
            for label in range(k)
        )
        moves.append(mean)
    # Twice the shift moves it four times as far: what is left is of second order.
    assert abs(moves[1]) < 1e-3
    assert abs(moves[2] - moves[0]) < 6.0 * abs(moves[1] - moves[0]) + 1e-9
    turned = softmax(0.9 * np.log(q), axis=1)
    overreach = sum(
        float((turned[:, label] * signals._of_probabilities(p, np.full(len(p), label))[:, column]).mean())
        for label in range(k)
    )
    assert overreach > 0.01


def test_the_excess_is_the_log_loss_less_its_expectation() -> None:
    p, y = population(N_CALIBRATION, 2)
    signals = filled(p, y)
    q = signals._calibration(p)
    rows = signals._of_probabilities(p, y)
    loss = [-math.log(max(p[i, y[i]], 1e-3)) for i in range(len(y))]
    assert rows[:, 0] == pytest.approx(loss, abs=1e-3)
    own = -(q * np.log(q)).sum(axis=1)
    excess = -np.log(q[np.arange(len(y)), y]) - own - signals._calibration.expected_excess(q)
    assert rows[:, 1] == pytest.approx(excess)


def filled(p: np.ndarray, y: np.ndarray) -> ClassSignals:
    """Return signals that have been calibrated by these observations."""
    signals = ClassSignals(learns=False, has_probabilities=True)
    for row, label in zip(p.tolist(), y.tolist(), strict=True):
        assert signals.add(label, dict(enumerate(row)))
    assert signals.take() is None
    assert signals.names[:3] == ("loss", "excess", "slope")
    return signals


def test_labels_have_a_loss_and_levels() -> None:
    signals = ClassSignals(learns=False, has_probabilities=False)
    rng = np.random.default_rng(1)
    for label in rng.choice(["a", "b", "c"], size=N_UNTAUGHT).tolist():
        signals.add(label, label)
    assert signals.take() is None
    for y, told in (("a", "a"), ("b", {"a": 1.0}), ("c", "d")):
        assert signals.add(y, told)
    rows = signals.take()
    assert rows is not None
    assert signals.names == ("loss", "level", "level", "level")
    assert rows[:, 0].tolist() == [0.0, 1.0, 1.0]
    levels = dict(zip(signals.labels, rows[:, 1:4].T.tolist(), strict=True))
    assert levels == {"a": [0.0, -1.0, 0.0], "b": [0.0, 1.0, 0.0], "c": [0.0, 0.0, 1.0]}


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_signals_of_numbers_have_no_unit(scale: float) -> None:
    rng = np.random.default_rng(6)
    signals = NumberSignals(learns=False)
    y_pred = rng.normal(size=N_CALIBRATION)
    y = y_pred + rng.normal(size=N_CALIBRATION)
    for a, b in zip((scale * y).tolist(), (scale * y_pred).tolist(), strict=True):
        signals.add(a, b)
    assert signals.take() is None
    signals.add(5.0 * scale, 1.0 * scale)
    rows = signals.take()
    assert rows is not None
    unit = abs(y - y_pred).mean()
    assert rows[0, 0] == pytest.approx(4.0 / unit)
    assert signals.value(0, float(rows[0, 0])) == pytest.approx(4.0 * scale)
    assert rows[0, 2] == pytest.approx(min(4.0 / unit, 4.0))


@pytest.mark.parametrize(
    ("y", "y_pred"),
    [(None, {0: 1.0}), (0, None), (0, {}), (math.nan, {0: 1.0}), (0, {0: math.nan, 1: 1.0}), (0, {0: math.inf})],
)
def test_what_has_no_label_or_no_prediction_counts_for_nothing(y: Any, y_pred: Any) -> None:
    signals = ClassSignals(learns=False, has_probabilities=True)
    assert not signals.add(y, y_pred)
    assert signals.n == 0


@pytest.mark.parametrize(("y", "y_pred"), [(None, 1.0), ("x", 1.0), (1.0, None), (math.nan, 1.0), (1.0, math.inf)])
def test_what_is_no_number_counts_for_nothing(y: Any, y_pred: Any) -> None:
    signals = NumberSignals(learns=False)
    assert not signals.add(y, y_pred)
    assert signals.n == 0


def test_the_order_in_which_classes_are_predicted_says_nothing() -> None:
    p, y = population(20, 3)
    one, other = (ClassSignals(learns=True, has_probabilities=True) for _ in range(2))
    for row, label in zip(p.tolist(), y.tolist(), strict=True):
        pairs = list(enumerate(row))
        assert one.add(label, dict(pairs))
        assert other.add(label, dict(pairs if other.n == 0 else pairs[::-1]))
    assert one.snapshot() == other.snapshot()


def test_a_class_that_comes_later_costs_most() -> None:
    p, y = population(N_CALIBRATION, 2)
    signals = filled(p, y)
    signals.add("new", {0: 0.5, 1: 0.5})
    signals.add(1, {0: 0.2, 1: 0.7, "new": 0.1})
    rows = signals.take()
    assert rows is not None
    assert rows[0, 0] == pytest.approx(-math.log(1e-3), abs=2e-3)
    assert np.isfinite(rows).all()
