"""Losses, coalitions and walks equal a naive evaluation, prediction by prediction."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from attributary_explainers import as_loss
from attributary_explainers.core import losses as core
from attributary_explainers.core.losses import BRIER, NOT_IN_CORE, SCORE, are_finite
from attributary_explainers.incremental.sage import SageIncrements, sage_increments_of
from attributary_explainers.predictions import GivenPredictions

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


NO_PARTS = np.empty((1, 0))


@pytest.mark.parametrize("name", list(LOSSES))
def test_losses_and_their_growth_are_those_of_each_prediction(name: str) -> None:
    loss, rng = LOSSES[name], np.random.default_rng(1)
    for _ in range(60):
        k, n, start = (int(v) for v in rng.integers(1, 6, size=3))
        given, y = predictions_of(loss, start + k * n + 2, rng), target_of(loss, rng)
        losses = np.array([loss(y, prediction) for prediction in (given[0], *given[start : start + k * n])])
        expected, largest = losses[1:].reshape(k, n) - losses[0], max(1.0, np.abs(losses).max())
        predictions = GivenPredictions(given, start)
        arguments = loss.arguments(y, predictions, k * n)
        increments = np.full(k, 7.0)
        find = core.Increments()
        assert find.pfi_increments(predictions.array, start, k * n, *arguments, LARGEST, increments) == core.DONE
        met = find.model_loss, find.low, find.high
        assert met == pytest.approx((losses[0], losses.min(), losses.max()), abs=1e-13)
        assert np.abs(increments - expected.mean(axis=1)).max() <= 1e-13 * largest
        # Exactly 0 where no draw changes anything.
        same = [prediction == given[0] for prediction in given[start : start + k * n]]
        assert all(increments[np.reshape(same, (k, n)).all(axis=1)] == 0.0)


@pytest.mark.parametrize("name", list(LOSSES))
def test_a_loss_of_the_users_own_is_walked_as_the_one_that_it_equals(name: str) -> None:
    loss, rng = LOSSES[name], np.random.default_rng(5)
    own = replace(loss, name="own")
    assert own.code == NOT_IN_CORE != loss.code
    for halves, with_parts in product((False, True), repeat=2):
        for n in (1, 2, 3, 4, 5, 10):
            k, start = int(rng.integers(1, 6)), int(rng.integers(1, 4))
            orders = np.array([rng.permutation(k) for _ in range(2)])
            y, given = target_of(loss, rng), predictions_of(loss, start + 2 * (k - 1) * n, rng)
            predictions = GivenPredictions(given, start)
            known, called = (
                sage_increments_of(one, y, predictions, orders, n, 1.5, 0.25, in_halves=halves, with_parts=with_parts)
                for one in (loss, own)
            )
            assert isinstance(known, SageIncrements)
            assert isinstance(called, SageIncrements)
            assert known.increments == pytest.approx(called.increments, rel=1e-12, abs=1e-12), (n, halves)
            assert known.parts == pytest.approx(called.parts, rel=1e-12, abs=1e-12), (n, halves)
            assert known.parts.shape == (k, n if with_parts and n > 1 and k > 1 else 0)
            losses = [1.5, 0.25, *called.losses]
            assert list(known.losses) == pytest.approx([min(losses), max(losses)], rel=1e-13)


def test_what_is_no_prediction() -> None:
    for bad in (math.nan, math.inf, -math.inf):
        for row in range(8):
            P = np.full((8, 2), 0.5)
            P[row, row % 2] = bad
            inside = row == 0 or 2 <= row < 6
            assert are_finite(P, 2, 6) == (not inside)
            status = core.Increments().pfi_increments(P, 2, 4, BRIER, 0.1, 0, 0.0, LARGEST, np.zeros(2))
            assert status == (core.NO_PREDICTION if inside else core.DONE)
    assert not are_finite(np.zeros((4, 0)), 1, 4)
    assert are_finite(np.zeros((4, 1)), 1, 4)
    orders = np.array([[0, 1]])
    for other in (None, {"a": 1.0}, {}):
        assert (
            sage_increments_of(
                as_loss("squared"), 0.0, GivenPredictions([1.0, other]), orders, 1, 1.0, 1.0, in_halves=True
            )
            == "no_prediction"
        )
    for other in (None, 1.0):
        given = GivenPredictions([{"a": 1.0}, other])
        assert sage_increments_of(as_loss("brier"), "a", given, orders, 1, 1.0, 1.0, in_halves=True) == "no_prediction"


@pytest.mark.parametrize("order", [[1e160, 1.0, 2.0], [1.0, 1e160, 2.0], [1.0, 2.0, 1e160], [1.0, math.nan, 2.0]])
def test_what_is_too_large_to_be_represented(order: list[float]) -> None:
    if not any(map(math.isnan, order)):
        P = np.array([[0.0], *([value] for value in order)])
        assert core.Increments().pfi_increments(P, 1, 3, SCORE, 0.0, 0, 0.0, LARGEST, np.zeros(3)) == core.NOT_FINITE
    losses, none = np.array(order[:2]), np.zeros((2, 0))
    found = core.increments_of_losses(
        np.array([[0, 1, 2]]), 0.0, order[2], losses, none, LARGEST, np.zeros(3), np.zeros((3, 0))
    )
    assert found == core.NOT_FINITE


@pytest.mark.parametrize("n_orders", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_walk_credits_each_player_with_its_steps(k: int, n_orders: int) -> None:
    rng, n, size = np.random.default_rng([k, n_orders]), 3, n_orders * (k - 1)
    orders = np.array([rng.permutation(k) for _ in range(n_orders)])
    losses, influence = rng.normal(size=size), rng.normal(size=(size, n))
    increments, parts = np.full(k, 7.0), np.full((k, n), 7.0)
    assert core.increments_of_losses(orders, 1.5, 0.25, losses, influence, LARGEST, increments, parts) == core.DONE
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


@pytest.mark.parametrize("name", list(LOSSES))
def test_the_walk_to_the_model_ends_with_its_own_loss(name: str) -> None:
    loss, rng = LOSSES[name], np.random.default_rng(3)
    for t in range(60):
        k, n, n_orders = int(rng.integers(2, 6)), 2 + t % 3, 1 + t % 2
        given, y = predictions_of(loss, 1 + n_orders * k * n, rng), target_of(loss, rng)
        predictions, orders = GivenPredictions(given), np.array([rng.permutation(k) for _ in range(n_orders)])
        arguments, increments, array = loss.arguments(y, predictions, n_orders * k * n), np.empty(k), predictions.array
        model_loss = loss(y, given[0])
        walk = sage_increments_of(loss, y, predictions, orders, n, 1.5, model_loss, in_halves=True)
        assert isinstance(walk, SageIncrements)
        find, way = core.Increments(), (1, n, *arguments, loss.is_smooth, loss.most_bias, orders)
        assert find.sage_increments(array, *way, 1.5, math.nan, LARGEST, increments, NO_PARTS) == core.DONE
        assert (find.low, find.high, find.model_loss) == pytest.approx((*walk.losses, model_loss), abs=1e-13)
        assert increments == pytest.approx(walk.increments, abs=1e-13)
        assert (
            find.sage_increments(array * math.nan, *way, 1.5, math.nan, LARGEST, increments, NO_PARTS)
            == core.NO_PREDICTION
        )
        assert find.sage_increments(array, *way, 1.5, math.nan, 0.0, increments, NO_PARTS) == core.NOT_FINITE
