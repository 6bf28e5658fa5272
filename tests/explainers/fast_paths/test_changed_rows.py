"""Rows by what changes: whatever the model, the predictions are those of the rows written down, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from river import ensemble, forest, linear_model, preprocessing, tree

from attributary_explainers import Explainers, IncrementalPFI, IncrementalSAGE
from attributary_explainers.evaluation.changed_rows import ChangedRows, OneReplaced, Walked
from attributary_explainers.evaluation.evaluator import Evaluator
from attributary_explainers.fast_paths.trees import classifiers
from attributary_explainers.imputers import requests
from attributary_explainers.incremental import batching

from .tree_cases import drifting, growing_numbers

QUICK: dict[str, Any] = {"grace_period": 20, "delta": 0.05}

CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "forest": (lambda: forest.ARFClassifier(n_models=5, seed=1, **QUICK), drifting(130, "abc", numbers=9)),
    "forest of categories": (
        lambda: forest.ARFClassifier(n_models=3, seed=1, **QUICK),
        drifting(120, numbers=6, categories=5),
    ),
    "forest of categories in two": (
        lambda: forest.ARFClassifier(n_models=3, seed=1, binary_split=True, **QUICK),
        drifting(120, numbers=6, categories=5),
    ),
    "majorities": (
        lambda: forest.ARFClassifier(n_models=3, seed=1, leaf_prediction="mc", **QUICK),
        drifting(120, numbers=8),
    ),
    "bag": (
        lambda: ensemble.LeveragingBaggingClassifier(tree.HoeffdingTreeClassifier(**QUICK), n_models=3, seed=1),
        drifting(120, numbers=8),
    ),
    "tree": (lambda: tree.HoeffdingTreeClassifier(**QUICK), drifting(120, numbers=8)),
    "tree with alternates": (lambda: tree.HoeffdingAdaptiveTreeClassifier(**QUICK, seed=1), drifting(120, numbers=8)),
    "regressors": (lambda: forest.ARFRegressor(n_models=3, seed=1), growing_numbers(60, features=8)),
    "linear": (
        lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        drifting(60, numbers=8),
    ),
}


def explainers_of(model: Any) -> Explainers:
    return Explainers(
        model,
        {
            "pfi": IncrementalPFI(model, n_samples=3, seed=1, alpha=0.02),
            "independent": IncrementalPFI(model, n_samples=3, seed=2, alpha=0.02, sampling="independent"),
            "sage": IncrementalSAGE(model, n_samples=4, seed=3, alpha=0.02, n_permutations=2),
            "given": IncrementalSAGE(model, n_samples=2, seed=3, alpha=0.02, removal="product"),
        },
    )


def importances(case: str, large: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], Explainers]:
    """All importances and predictions, where requests of so many numbers are not written down."""
    monkeypatch.setattr(requests, "LARGE", large)
    monkeypatch.setattr(batching, "LARGE", large)
    make, data = CASES[case]
    model = make()
    explainers = explainers_of(model)
    found = []
    for x, y in data:
        y_pred = explainers.predict(x)
        found.append((y_pred, explainers.explain(y)))
        model.learn_one(x, y)
    return found, explainers


@pytest.mark.parametrize("case", CASES)
def test_the_importances_are_those_of_rows_written_down(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[ChangedRows] = []
    ask = Evaluator.predict_changed
    monkeypatch.setattr("attributary_explainers.evaluation.evaluator._AT_ONCE", 100)
    monkeypatch.setattr(Evaluator, "predict_changed", lambda self, rows: (calls.append(rows), ask(self, rows))[1])
    found, changed = importances(case, 0, monkeypatch)
    written, plain = importances(case, 1 << 60, monkeypatch)
    assert found == written
    assert changed.paths == plain.paths
    assert changed.paths["fast"] > 50
    few = case not in ("tree with alternates", "regressors", "linear")
    assert (not calls) == few, "only those write down some at a time"


@pytest.mark.parametrize("case", ["forest", "tree"])
def test_nodes_that_have_changed_meanwhile_are_compared_with_the_live_ones(case: str) -> None:
    """The trees learn much between two calls, so that most of what is met was never seen."""
    make, data = CASES[case]
    model = make()
    pfi = IncrementalPFI(model, n_samples=1, seed=1)
    rng = np.random.default_rng(1)
    for i, (x, y) in enumerate(data * 6):
        pfi.explain_one(x, y) if i in (0, 3) else None
        model.learn_one(x, y)
        if i % 150 != 149:
            continue
        function: Any = pfi._function
        schema, row = function.encode(x)
        others = schema.encode_many([z for z, _ in data[i % 100 :][:60]])
        evaluator = function._current()
        orders = np.array([rng.permutation(len(schema)) for _ in range(2)])
        columns = np.arange(len(schema))
        for rows in (Walked(row, orders, others), OneReplaced(row, columns, np.ascontiguousarray(others.T))):
            found = evaluator.predict_changed(rows).copy()
            X = np.empty((1 + rows.n_rows, len(schema)))
            rows.write(np.arange(1 + rows.n_rows), X)
            assert (found == evaluator.predict(X)).all()
            assert (X[0] == row).all()
            assert (X[-1] == rows.row(rows.n_rows)).all()


def test_a_fault_is_found_and_the_model_itself_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "LARGE", 0)
    monkeypatch.setattr(batching, "LARGE", 0)
    vote = classifiers.vote_replaced

    def wrongly(*given: Any) -> int:
        status = vote(*given)
        given[-1][:] **= 2
        return status

    monkeypatch.setattr(classifiers, "vote_replaced", wrongly)
    make, data = CASES["forest"]
    model = make()
    pfi = IncrementalPFI(model, n_samples=2, seed=1)

    def run() -> None:
        for x, y in data[:60]:
            pfi.explain_one(x, y)
            model.learn_one(x, y)

    with pytest.warns(match="the fast path of ARFClassifier gives"):
        run()
    assert pfi.n_observations == 59, "that observation too is explained, by the model itself"
