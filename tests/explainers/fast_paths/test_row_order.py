"""Rows in another order: whatever it is, the predictions are the same to the last bit, and those of walks use it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from river import forest, preprocessing, tree

from attributary_explainers.fast_paths.trees import classifiers, votes
from attributary_explainers.imputers.requests import WalkShape
from attributary_explainers.incremental import batching, steady
from attributary_explainers.incremental.batching import _order_of, order_of
from attributary_explainers.models.function import model_function

from .test_changed_rows import CASES, QUICK, explainers_of
from .tree_cases import drifting

MORE: dict[str, Any] = {
    **CASES,
    "scaled forest": (
        lambda: preprocessing.StandardScaler() | forest.ARFClassifier(n_models=3, seed=1, **QUICK),
        drifting(120, numbers=8),
    ),
    "adaptive forest": (
        lambda: forest.ARFClassifier(n_models=4, seed=1, leaf_prediction="nba", split_criterion="gini", **QUICK),
        drifting(120, "abcd", numbers=5, categories=3),
    ),
    "scaled targets": (
        lambda: preprocessing.TargetStandardScaler(forest.ARFRegressor(n_models=3, seed=1)),
        CASES["regressors"][1],
    ),
}


@pytest.mark.parametrize("case", MORE)
def test_the_predictions_are_the_same_in_any_order(case: str) -> None:
    make, data = MORE[case]
    model, rng, n = make(), np.random.default_rng(1), 0
    functions = [model_function(model, "any") for _ in range(2)]
    rows: list[Any] = []
    for x, y in data:
        rows = [*rows[-8:], x]
        same = [row for row in rows if row.keys() == x.keys()]
        if len(same) == len(rows) and all(hasattr(function, "many") for function in functions):
            X = functions[0].open_all([x, *rows]).encode_many([x, *rows])  # type: ignore[attr-defined]
            functions[1].open_all([x, *rows]).encode_many([x, *rows])  # type: ignore[attr-defined]
            order = np.array([0, *1 + rng.permutation(len(rows))])
            found = [functions[0].predict(X).copy(), functions[1].predict(X, order).copy()]  # type: ignore[attr-defined]
            assert found[0].tobytes() == found[1].tobytes()
            n += 1
        model.learn_one(x, y)
    assert n > 40


@pytest.mark.parametrize("case", ["forest", "forest of categories", "bag", "regressors", "scaled forest"])
def test_the_explanations_are_those_of_rows_in_the_order_in_which_they_were_made(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, data = MORE[case]
    used: list[bool] = []

    def explained() -> list[Any]:
        model, found = make(), []
        explainers = explainers_of(model)
        for x, y in data:
            found.append((explainers.predict(x), explainers.explain(y)))
            model.learn_one(x, y)
        return found

    for module in (batching, steady):
        monkeypatch.setattr(module, "order_of", lambda of: (used.append(order_of(of) is not None), order_of(of))[1])
    ordered = explained()
    assert sum(used) > 50
    for module in (batching, steady):
        monkeypatch.setattr(module, "order_of", lambda of: None)
    assert explained() == ordered


def test_in_the_order_of_a_walk_one_player_changes_from_one_row_to_the_next() -> None:
    n_orders, k, m = 2, 5, 3
    rng = np.random.default_rng(2)
    orders = [rng.permutation(k) for _ in range(n_orders)]
    x, drawn = np.zeros(k), 1.0 + rng.random((m, k))
    rows = [x]
    for order in orders:
        for size in range(1, k):
            for row in drawn:
                mixed = row.copy()
                mixed[order[:size]] = x[order[:size]]
                rows.append(mixed)
    shape = WalkShape(n_orders, k - 1, m)
    found = _order_of((shape, 4, None, shape))
    assert found is not None
    size = len(rows)
    assert sorted(found.tolist()) == list(range(2 * size + 3))
    assert found[0] == 0
    assert found[size : size + 4].tolist() == list(range(size, size + 4))
    assert (found[size + 4 :] == found[1:size] + size + 3).all(), "the second walks, as the first ones"
    changes = [int((rows[one] != rows[other]).sum()) for one, other in pairwise(found[:size].tolist())]
    assert changes.count(1) == n_orders * m * (k - 2), "all steps but those to another draw"


def test_rows_that_are_in_the_best_order_have_none() -> None:
    assert _order_of((WalkShape(1, 4, 1),)) is None
    assert _order_of((WalkShape(3, 1, 5), 7)) is None
    assert _order_of((12, None)) is None
    assert order_of(["nothing_stored"]) is None


def test_rows_of_several_trees_alone_are_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the compiled code does with the order is asked of its source."""
    taken: list[int] = []
    in_order = votes.in_order
    monkeypatch.setattr(votes, "in_order", lambda X, order: (taken.append(len(order)), in_order(X, order))[1])
    monkeypatch.setattr(classifiers, "classify", getattr(votes.classify, "py_func", votes.classify))
    monkeypatch.setattr(classifiers, "classify_at_once", lambda *_: 0)
    for model, expected in ((tree.HoeffdingTreeClassifier(), set()), (forest.ARFClassifier(n_models=2, seed=1), {4})):
        for x, y in drifting(40, numbers=3):
            model.learn_one(x, y)
        function: Any = model_function(model, "any")
        rows = [x for x, _ in drifting(4, numbers=3)]
        X = function.open_all(rows).encode_many(rows)
        taken.clear()
        function.predict(X, np.array([0, 3, 1, 2]))
        assert set(taken) == expected
