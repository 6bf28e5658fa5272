"""Grids of one feature: the predictions are those of the rows by themselves, to the last bit, and forests use it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from river import forest

from attributary_explainers.compiled import is_compiling
from attributary_explainers.fast_paths.trees import classifiers
from attributary_explainers.fast_paths.trees.routes import FINE, UNUSUAL
from attributary_explainers.models.function import model_function

from .test_changed_rows import CASES, QUICK
from .tree_cases import drifting

MORE: dict[str, Any] = {
    **CASES,
    "forest of adaptive leaves": (
        lambda: forest.ARFClassifier(n_models=4, seed=1, leaf_prediction="nba", **QUICK),
        drifting(120, "ab", numbers=3),
    ),
}


@pytest.mark.parametrize("case", MORE)
def test_the_predictions_are_those_of_the_rows_without_a_grid(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    came: list[int] = []
    kernel = classifiers.vote_grid_at_once
    monkeypatch.setattr(classifiers, "vote_grid_at_once", lambda *of: (came.append(kernel(*of) - 1), 1 + came[-1])[1])
    make, data = MORE[case]
    model, rng, rows, n = make(), np.random.default_rng(1), list[Any](), 0
    one, other = (model_function(model, "any") for _ in range(2))
    assert hasattr(one, "many")
    assert hasattr(other, "many")
    for i, (x, y) in enumerate(data):
        rows = [*rows[-6:], x]
        if i > 8 and all(row.keys() == x.keys() for row in rows):
            X = one.open_all([x, *rows]).encode_many([x, *rows])
            other.open_all([x, *rows]).encode_many([x, *rows])
            column, n_points, has_first = i % X.shape[1], int(rng.integers(1, 6)), i % 5 > 0
            grid = np.repeat(X[1:], n_points, axis=0)
            grid[:, column] = np.tile(rng.choice(X[:, column], n_points), len(rows))
            grid = np.concatenate([X[:1], grid]) if has_first else grid
            found, expected = one.predict(grid, grid=(column, n_points)).copy(), other.predict(grid)
            assert found.tobytes() == expected.tobytes()
            n += 1
        model.learn_one(x, y)
    assert n > 40
    if not is_compiling():
        assert set(came) <= {-1}, "kernels that read objects answer 0"
    elif case in ("forest", "majorities", "bag", "tree", "forest of adaptive leaves", "forest of categories in two"):
        assert came.count(FINE) > 0.4 * n, came
    elif case == "forest of categories":
        assert came.count(FINE) > 0
        assert came.count(UNUSUAL) == 1, "it is not tried again"
    else:
        assert not came


@pytest.mark.parametrize("case", ["forest", "bag"])
def test_rows_that_lack_a_feature_are_sent_down_as_others(case: str) -> None:
    make, data = MORE[case]
    model = make()
    one, other = (model_function(model, "any") for _ in range(2))
    for i, (x, y) in enumerate(data):
        if i > 60 and i % 2:
            whole: Any = [one.open(x), other.open(x)]  # type: ignore[attr-defined]
            X = np.repeat(whole[0].encode_many([x, x]), (1, 3), axis=0)
            X[1:, 0] = np.arange(3) - 1.0
            X[2:, 1] = np.nan
            found, expected = one.predict(X, grid=(0, 3)).copy(), other.predict(X)  # type: ignore[attr-defined]
            assert found.tobytes() == expected.tobytes()
        model.learn_one(x, y)
