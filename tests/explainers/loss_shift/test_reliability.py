"""Which outcomes of a classifier are watched, and what is predicted of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attributary_explainers.loss_shift.reliability import HIT, ReliabilityRoute
from attributary_explainers.loss_shift.tables import N_FIRST


def begun(p: dict[Any, float]) -> ReliabilityRoute:
    """Return a route whose first rows all had these predictions."""
    route, labels = ReliabilityRoute(1e6), list(p)
    for i in range(N_FIRST):
        route.update(labels[i % len(labels)], p, i + 1)
    return route


def test_of_two_classes_the_rarer_one_is_watched() -> None:
    route = begun({"fraud": 0.1, "fine": 0.9})
    assert route.outcomes == ["fraud"]
    assert route._pair("fraud", {"fraud": 0.2, "fine": 0.8}) == ("fraud", "fine", pytest.approx(0.2))


def test_of_more_classes_pairs_are_watched_and_what_is_predicted_of_others_is_nothing_to_them() -> None:
    route = begun({"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.05, "e": 0.03, "f": 0.02})
    assert route.outcomes == [HIT, "b", "c", "d", "e"]
    y_pred = {"a": 0.1, "b": 0.15, "c": 0.05, "d": 0.6, "e": 0.1}
    assert route._pair(HIT, y_pred) == ("d", "b", pytest.approx(0.8))
    assert route._pair("b", y_pred) == ("b", "a", pytest.approx(0.6))
    assert route._pair("e", {"a": 0.0, "b": 1.0}) == ("e", "a", 0.5)
    for table, n in zip(route._tables, [2 / 6, 2 / 6, 2 / 6, 2 / 6, 2 / 6], strict=True):
        assert sum(table.n_events) == pytest.approx(n * N_FIRST, abs=2)


def test_one_class_alone_and_a_class_that_comes_later_are_no_reason_to_fail() -> None:
    route = begun({"only": 1.0})
    for i in range(2000):
        assert not route.update("only" if i % 3 else "other", {"only": 0.7, "other": 0.3}, N_FIRST + 1 + i)
    assert not route.update(None, {"only": 1.0}, 3000)
    assert not route.update(float("nan"), {"only": 1.0}, 3001)
    assert not route.update("only", {}, 3002)
    assert not route.update("only", {"only": float("inf")}, 3003)


def test_what_has_no_label_or_no_prediction_counts_for_nothing() -> None:
    route = ReliabilityRoute(1e6)
    for y, y_pred in ((None, {0: 1.0}), (0, None), (0, {}), (float("nan"), {0: 1.0}), (0, {0: float("nan"), 1: 1.0})):
        assert not route.update(y, y_pred, 1)
    assert route.waits_for == ("labelled observations", 0, N_FIRST)


def test_figures_of_the_loss_are_those_of_all_rows() -> None:
    rng = np.random.default_rng(1)
    route, losses = ReliabilityRoute(1e6), []
    for i in range(3000):
        p = float(rng.uniform(0.05, 0.95))
        y = bool(rng.random() < p)
        losses.append(-np.log(p if y else 1.0 - p))
        route.update(y, {True: p, False: 1.0 - p}, i + 1)
    n, total, squares = route._tables[0].now.books[:3]
    assert total == pytest.approx(sum(losses[: int(n)]))
    assert squares == pytest.approx(sum(one**2 for one in losses[: int(n)]))
    excess = route.excess()
    assert excess is not None
    assert excess.low < 0.0 < excess.high
    assert excess.before == pytest.approx(0.0, abs=0.1)


def test_an_outcome_that_had_not_come_before_a_shift_does_not_end_it() -> None:
    rng = np.random.default_rng(2)
    route, events = ReliabilityRoute(1e6), []
    for i in range(12_000):
        # From row 4000 on the labels of a and b are swapped in a third of the rows; c comes from row 6000 on alone, and
        # is predicted worse from row 9000 on.
        of_c = 0.05 if i >= 6000 else 1e-9
        p = np.array([0.7, 0.3]) * (1.0 - of_c) if rng.random() < 0.5 else np.array([0.3, 0.7]) * (1.0 - of_c)
        y = "c" if rng.random() < (of_c if i < 9000 else 0.5) else "ab"[int(rng.random() >= p[0] / p.sum())]
        if i >= 4000 and y != "c" and rng.random() < 0.33:
            y = "b" if y == "a" else "a"
        events += route.update(y, {"a": p[0], "b": p[1], "c": of_c}, i + 1)
    assert [type(event).__name__ for event in events] == ["LossShift"]
    assert 4000 < events[0].observation < 5000
    assert route.open is not None
