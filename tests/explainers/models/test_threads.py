"""Estimators with threads of their own are asked about few rows by one."""

from __future__ import annotations

import threading
from typing import Any

import joblib
import lightgbm
import numpy as np
import pytest
import threadpoolctl
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV

from attributary_explainers import SklearnModel
from attributary_explainers.models.function import model_function
from attributary_explainers.models.threads import FEW

RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(200, 3)), RNG.integers(0, 4, 200)
NAMES = ["a", "b", "c"]


def openmp() -> set[int]:
    return {one["num_threads"] for one in threadpoolctl.threadpool_info() if one["user_api"] == "openmp"}


class Noting(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Notes by which threads it is asked."""

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Noting:
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X: Any) -> Any:
        jobs = (joblib.delayed(threading.get_ident)() for _ in range(8))
        self.threads_ = set(joblib.Parallel(n_jobs=self.n_jobs, require="sharedmem")(jobs))
        self.openmp_ = openmp()
        return np.zeros(len(X))


def searched() -> tuple[Any, Any]:
    search = GridSearchCV(Noting(n_jobs=3), {}, cv=2).fit(X, Y)
    return search, search.best_estimator_


def alone() -> tuple[Any, Any]:
    model = Noting(n_jobs=3).fit(X, Y)
    return model, model


@pytest.mark.parametrize("made", [alone, searched])
@pytest.mark.parametrize(("n_rows", "is_one"), [(2, True), (FEW, True), (FEW + 1, False)])
def test_few_rows_are_asked_for_by_one_thread_and_many_by_as_many_as_it_has(
    made: Any, n_rows: int, is_one: bool
) -> None:
    model, noting = made()
    ask = model_function(SklearnModel(model, features=NAMES), "number").many
    with threadpoolctl.threadpool_limits(3, user_api="openmp"):
        ask([dict.fromkeys(NAMES, 0.0)] * n_rows)
        assert openmp() == {3}
    assert (noting.threads_ == {threading.get_ident()}, noting.openmp_ == {1}) == (is_one, is_one)


def test_a_forest_with_jobs_gives_the_bytes_of_one_without() -> None:
    rows = [dict(zip(NAMES, row, strict=True)) for row in X[:50].tolist()]
    forests = (RandomForestClassifier(n_estimators=15, random_state=1, n_jobs=jobs).fit(X, Y) for jobs in (None, 4))
    one, four = (model_function(SklearnModel(forest, features=NAMES), "probabilities").many(rows) for forest in forests)
    assert one == four


def test_boosted_trees_of_lightgbm_get_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    model = lightgbm.LGBMClassifier(n_estimators=3, n_jobs=2, verbose=-1).fit(X, Y)
    given: list[int] = []
    predict = lightgbm.Booster.predict

    def spied(*args: Any, **more: Any) -> Any:
        given.append(more["num_threads"])
        return predict(*args, **more)

    monkeypatch.setattr(lightgbm.Booster, "predict", spied)
    ask = model_function(SklearnModel(model, features=NAMES), "probabilities").many
    for n_rows in (1, FEW, FEW + 1):
        ask([dict.fromkeys(NAMES, 0.0)] * n_rows)
    assert given == [1, 1, 2]
