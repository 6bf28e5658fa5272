"""Kernels of losses, coalitions and walks equal a naive evaluation, prediction by prediction."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attributary_explainers import as_loss
from attributary_explainers.incremental import kernels
from attributary_explainers.incremental.coalitions import coalition_losses
from attributary_explainers.losses.kernels import OF_THE_USER, are_finite
from attributary_explainers.predictions import GivenPredictions
from attributary_explainers.smoothing.influence import RowInfluence

LARGEST = 1e150
LOSSES: dict[str, Any] = {
    "cross_entropy": as_loss("cross_entropy"),
    "clipped": as_loss("cross_entropy", epsilon=0.2),
    "brier": as_loss("brier"),
    "absolute": as_loss("absolute"),
    "squared": as_loss("squared"),
    "score": as_loss("score"),
}


def predictions_of(loss: Any, rows: int, rng: np.random.Generator) -> list[Any]:
    """Predictions of which some are certain, some equal the first one, and not all name the same classes."""
    if loss.output == "number":
        found: list[Any] = (rng.normal(size=rows) * 3.0).tolist()
    else:
        found = [dict(zip("cab", row, strict=True)) for row in rng.dirichlet(np.full(3, 0.5), size=rows).tolist()]
        found = [{"a": 1.0} if rng.random() < 0.2 else row for row in found]
    return [found[0] if rng.random() < 0.2 else row for row in found]


def target_of(loss: Any, rng: np.random.Generator) -> Any:
    """A label or number; sometimes a label that no prediction names."""
    return float(rng.normal()) * 3.0 if loss.output == "number" else ["a", "b", "c", "never seen"][rng.integers(4)]


@pytest.mark.parametrize("name", list(LOSSES))
def test_losses_and_their_growth_are_those_of_each_prediction(name: str) -> None:
    loss, rng = LOSSES[name], np.random.default_rng(1)
    for _ in range(60):
        k, n, start = (int(v) for v in rng.integers(1, 6, size=3))
        predictions, y = predictions_of(loss, start + k * n + 2, rng), target_of(loss, rng)
        one_by_one = np.array([loss(y, prediction) for prediction in predictions])
        found = loss.of(y, GivenPredictions(predictions, start), k * n)
        expected = np.array([one_by_one[0], *one_by_one[start : start + k * n]])
        assert found.tolist() == pytest.approx(expected.tolist(), abs=1e-14)
        parts, increments = np.full((k, n), 7.0), np.full(k, 7.0)
        assert kernels.growth(found, LARGEST, parts, increments)
        assert np.abs(parts - (expected[1:].reshape(k, n) - expected[0])).max() <= 1e-13 * max(
            1.0, np.abs(expected).max()
        )
        assert increments.tolist() == pytest.approx(parts.mean(axis=1).tolist(), rel=1e-13, abs=1e-13)
        # Exactly 0 where a draw changes nothing.
        same = [prediction == predictions[0] for prediction in predictions[start : start + k * n]]
        assert all(parts.ravel()[same] == 0.0)


@pytest.mark.parametrize("name", list(LOSSES))
def test_a_loss_of_the_users_own_is_evaluated_as_the_one_that_it_equals(name: str) -> None:
    loss, rng = LOSSES[name], np.random.default_rng(5)
    own = replace(loss, name="own")
    assert own.code == OF_THE_USER != loss.code
    for variance in (None, 0.0, 0.01, 1.0):
        for n in (1, 2, 3, 4, 5, 10):
            size, start = int(rng.integers(1, 6)), int(rng.integers(1, 4))
            predictions, y = GivenPredictions(predictions_of(loss, start + size * n, rng), start), target_of(loss, rng)
            known, called = (coalition_losses(one, y, predictions, size, n, variance) for one in (loss, own))
            assert known is not None
            assert called is not None
            for field in ("plain", "losses", "influence"):
                close = pytest.approx(getattr(called, field), rel=1e-12, abs=1e-12)
                assert getattr(known, field) == close, (field, n, variance)
            assert known.influence.shape == (size, n if n > 1 else 0)
            losses = [one.of(y, predictions, size * n).tolist() for one in (loss, own)]
            assert losses[0] == pytest.approx(losses[1], rel=1e-13)


def test_what_is_no_prediction() -> None:
    for bad in (math.nan, math.inf, -math.inf):
        for row in range(8):
            P = np.full((8, 2), 0.5)
            P[row, row % 2] = bad
            inside = row == 0 or 2 <= row < 6
            assert are_finite(P, 2, 6) == (not inside)
            predictions = GivenPredictions([dict(enumerate(of_row)) for of_row in P.tolist()], 2)
            assert (as_loss("brier").of(0, predictions, 4) is None) == inside
            assert (as_loss("zero_one").of(0, predictions, 4) is None) == inside
    assert not are_finite(np.zeros((4, 0)), 1, 4)
    assert are_finite(np.zeros((4, 1)), 1, 4)
    for other in (None, {"a": 1.0}, {}):
        assert as_loss("squared").of(0.0, GivenPredictions([1.0, other]), 1) is None
    for other in (None, 1.0):
        assert as_loss("brier").of("a", GivenPredictions([{"a": 1.0}, other]), 1) is None


@pytest.mark.parametrize("order", [[1e160, 1.0, 2.0], [1.0, 1e160, 2.0], [1.0, 2.0, 1e160], [1.0, math.nan, 2.0]])
def test_what_is_too_large_to_be_represented(order: list[float]) -> None:
    assert not kernels.growth(np.array([0.0, *order]), LARGEST, np.zeros((3, 1)), np.zeros(3))
    losses, none = np.array(order[:2]), np.zeros((2, 0))
    fine = kernels.walk(np.array([[0, 1, 2]]), 0.0, order[2], losses, none, LARGEST, np.zeros(3), np.zeros((3, 0)))
    assert not fine


@pytest.mark.parametrize("n_orders", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_walk_credits_each_player_with_its_steps(k: int, n_orders: int) -> None:
    rng, n, size = np.random.default_rng([k, n_orders]), 3, n_orders * (k - 1)
    orders = np.array([rng.permutation(k) for _ in range(n_orders)])
    losses, influence = rng.normal(size=size), rng.normal(size=(size, n))
    increments, parts = np.full(k, 7.0), np.full((k, n), 7.0)
    assert kernels.walk(orders, 1.5, 0.25, losses, influence, LARGEST, increments, parts)
    expected, moved = np.zeros(k), np.zeros((k, n))
    for order, inner, swings in zip(
        orders, losses.reshape(n_orders, k - 1), influence.reshape(n_orders, k - 1, n), strict=True
    ):
        along = [1.5, *inner, 0.25]
        # Both ends of the walk are of no draw.
        by_draw = [np.zeros(n), *swings, np.zeros(n)]
        for step, player in enumerate(order):
            expected[player] += (along[step] - along[step + 1]) / n_orders
            moved[player] += (by_draw[step] - by_draw[step + 1]) / n_orders
    assert increments.tolist() == pytest.approx(expected.tolist(), abs=1e-14)
    assert sum(increments) == pytest.approx(1.25, abs=1e-12)
    assert parts == pytest.approx(expected[:, None] + moved, abs=1e-13)


def test_the_room_of_forgotten_names_stays_in_one_order_of_memory() -> None:
    """Another order would be compiled for anew, in the middle of a stream."""
    influence = RowInfluence(4)
    influence.grow(6)
    influence.select(np.array([0, 2, 5]))
    assert influence.table.flags.c_contiguous
    influence.grow(4)
    assert influence.table.flags.c_contiguous
