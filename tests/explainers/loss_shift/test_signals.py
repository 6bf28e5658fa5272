"""Signals against enumeration and closed forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from attributary_explainers.loss_shift.signals import N_GAUGED, N_UNTAUGHT, ClassSignals, NumberSignals


def population(n: int, k: int, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of k classes, and classes drawn from them."""
    rng = np.random.default_rng(seed)
    p = softmax(rng.normal(size=(n, k)) * 1.5, axis=1)
    return p, (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1)


def test_signals_of_a_learner_have_mean_0_under_its_own_probabilities() -> None:
    p, _ = population(50, 3)
    signals = ClassSignals(learns=True, has_probabilities=True)
    for row in population(N_UNTAUGHT, 3)[0].tolist():
        signals.add(int(np.argmax(row)), dict(enumerate(row)))
    assert signals.take() is None
    assert signals.names == ("loss", "excess", "slope", "level", "level", "level")
    means = np.zeros((50, len(signals.names)))
    for label in range(3):  # enumerate the labels, each with its probability
        rows = signals._of_probabilities(p, np.full(50, label))
        means += p[:, [label]] * rows[:, : len(signals.names)]
        assert rows[:, 0].tolist() == (p.argmax(axis=1) != label).astype(float).tolist()
    assert means[:, 1] == pytest.approx(0.0, abs=1e-9)
    inside = ((p > 0.01) & (p < 0.99)).all(axis=1)
    assert means[inside, 3:] == pytest.approx(0.0, abs=1e-9)


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
    y_pred = rng.normal(size=N_GAUGED)
    y = y_pred + rng.normal(size=N_GAUGED)
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


def test_a_class_that_comes_later_is_wrong() -> None:
    p, y = population(N_UNTAUGHT, 2)
    signals = ClassSignals(learns=True, has_probabilities=True)
    for row, label in zip(p.tolist(), y.tolist(), strict=True):
        signals.add(label, dict(enumerate(row)))
    assert signals.take() is None
    signals.add("new", {0: 0.5, 1: 0.5})
    signals.add(1, {0: 0.2, 1: 0.7, "new": 0.1})
    rows = signals.take()
    assert rows is not None
    assert rows[:, 0].tolist() == [1.0, 0.0]
    assert np.isfinite(rows).all()
