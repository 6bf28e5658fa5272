"""Models without a fast path are explained by asking them row by row, and the reason is counted."""

from __future__ import annotations

import math
from typing import Any

import pytest
from river import compose, ensemble, linear_model, metrics, model_selection, multiclass, naive_bayes, preprocessing

from attributary_explainers import Explainers, IncrementalPFI

from .streams import blobs, line

LOGISTIC = preprocessing.StandardScaler() | linear_model.LogisticRegression()
LINEAR = preprocessing.StandardScaler() | linear_model.LinearRegression()
TWO = [naive_bayes.GaussianNB(), naive_bayes.BernoulliNB()]


@pytest.mark.parametrize(
    ("model", "is_regressor"),
    [
        (multiclass.OutputCodeClassifier(LOGISTIC, code_size=3, seed=1), False),
        (multiclass.OneVsRestClassifier(LOGISTIC), False),
        (multiclass.OneVsOneClassifier(LOGISTIC), False),
        (ensemble.VotingClassifier(TWO), False),
        (ensemble.StackingClassifier(TWO, linear_model.SoftmaxRegression()), False),
        (ensemble.BOLEClassifier(naive_bayes.GaussianNB(), n_models=2, seed=1), False),
        (ensemble.EWARegressor([LINEAR, linear_model.PARegressor()]), True),
        (compose.TargetTransformRegressor(LINEAR, func=math.asinh, inverse_func=math.sinh), True),
        (model_selection.GreedyRegressor([LINEAR, linear_model.PARegressor()]), True),
        (model_selection.SuccessiveHalvingClassifier(TWO, metrics.Accuracy(), budget=100), False),
        (preprocessing.LDA() | linear_model.SoftmaxRegression(), False),
    ],
    ids=lambda model: type(model).__name__,
)
def test_it_is_explained_by_asking_the_model(model: Any, is_regressor: bool) -> None:
    model = model.clone()
    explainers = Explainers(model, {"pfi": IncrementalPFI(model, n_samples=2, seed=1, alpha=0.05)})
    for x, y in line(60) if is_regressor else blobs(60, 3):
        explainers.predict(x)
        explainers.explain(y)
        model.learn_one(x, y)
    assert any(explainers.explainers["pfi"].importance.values())
    assert sum(explainers.paths.values()) > 0
    assert all("no fast path" in reason for reason in explainers.paths), explainers.paths
