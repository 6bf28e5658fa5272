"""River's trees whose leaves predict alike for all rows are read; of others the model itself is asked."""

from __future__ import annotations

import random

import numpy as np
import pytest
from river import ensemble, forest, tree

from attributary_explainers import batch_pfi, batch_sage
from attributary_explainers.batch.leaves import leaf_table
from attributary_explainers.batch.tables import DataTable
from attributary_explainers.leaves.forest import NotExactError

from . import brute
from .test_sklearn import values_of

QUICK = {"grace_period": 40, "delta": 0.05}
MAJORITY = {**QUICK, "leaf_prediction": "mc"}
AVERAGE = {**QUICK, "leaf_prediction": "mean", "aggregation_method": "mean"}
NAMES = ["a", "b", "c", "d"]
N = 12


def learnt(model, *, numbers, labels=("low", "middle", "high")):
    rng, rows = random.Random(3), []
    for _ in range(800):
        x = {"a": rng.random(), "b": rng.gauss(0, 1), "c": rng.choice("uvw"), "d": rng.choice([1, 2, 3])}
        if numbers:
            x["c"] = float("uvw".index(x["c"]))
        value = 2 * x["a"] + (x["c"] in ("u", 0.0)) * x["b"] + 0.5 * (x["d"] == 2)
        y = value + rng.gauss(0, 0.1) if numbers else labels[(value > 0.7) + (value > 1.5)]
        model.learn_one(x, y)
        rows.append((x, y))
    return rows[-N:]


@pytest.mark.parametrize(
    "model",
    [
        tree.HoeffdingTreeClassifier(**MAJORITY, nominal_attributes=["c", "d"]),
        tree.HoeffdingTreeClassifier(**MAJORITY, binary_split=True),
        tree.ExtremelyFastDecisionTreeClassifier(**MAJORITY),
        forest.ARFClassifier(3, seed=1, **MAJORITY),
        ensemble.LeveragingBaggingClassifier(tree.HoeffdingTreeClassifier(**MAJORITY), 3, seed=1),
    ],
    ids=["multiway", "binary", "fast", "forest", "bag"],
)
@pytest.mark.parametrize(
    ("labels", "loss"),
    [
        (["low", "middle", "high"], "cross_entropy"),
        (["low", "middle", "high"], "zero_one"),
        (["low", "high", "high"], "brier"),
        (["low", "high", "high"], "zero_one"),
    ],
    ids=["three-cross_entropy", "three-zero_one", "two-brier", "two-zero_one"],
)
@pytest.mark.share(2, "model", "labels")
def test_classifiers(model, labels, loss):
    model = model.clone()
    data = learnt(model, numbers=False, labels=labels)
    classes = sorted(set(labels))

    def predict(rows):
        given = [dict(zip(NAMES, row, strict=True)) for row in rows.tolist()]
        if loss == "zero_one":
            return np.array([[model.predict_one(x) == c for c in classes] for x in given], dtype=float)
        found = [model.predict_proba_one(x) for x in given]
        return np.array([[p.get(c, 0.0) for c in classes] for p in found])

    check(model, data, loss, predict, classes)


@pytest.mark.parametrize(
    "model",
    [
        tree.HoeffdingTreeRegressor(**QUICK, leaf_prediction="mean"),
        tree.HoeffdingTreeRegressor(
            **QUICK, leaf_prediction="mean", splitter=tree.splitter.QOSplitter(0.5, allow_multiway_splits=True)
        ),
        forest.ARFRegressor(3, seed=1, **AVERAGE),
        forest.ARFRegressor(3, seed=1, **AVERAGE, disable_weighted_vote=True),
    ],
    ids=["tree", "multiway", "weighted", "unweighted"],
)
def test_regressors(model):
    data = learnt(model, numbers=True)

    def predict(rows):
        return np.array([model.predict_one(dict(zip(NAMES, row, strict=True))) for row in rows.tolist()])

    check(model, data, "absolute", predict, ())


def check(model, data, loss, predict, classes):
    table = np.array([list(x.values()) for x, _ in data], dtype=object)
    y = np.array([y for _, y in data])
    players = [[0], [1], [2], [3]]
    found = batch_pfi(model, data, loss=loss, exact=True)
    expected = brute.pfi(predict, table, y, loss, players, classes)
    assert expected[0] > 0.0
    np.testing.assert_allclose(values_of(found), expected, rtol=1e-9, atol=1e-9)
    if loss == "zero_one":
        return
    found = batch_sage(model, data, loss=loss, exact=True)
    expected = brute.sage(predict, table, y, loss, players, classes)
    np.testing.assert_allclose(values_of(found), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("model", "numbers", "reason"),
    [
        (tree.HoeffdingTreeClassifier(**QUICK, leaf_prediction="nb"), False, "naive Bayes in a leaf"),
        (tree.HoeffdingTreeRegressor(**QUICK, leaf_prediction="model"), True, "the model of a leaf"),
        (forest.ARFRegressor(3, seed=1, aggregation_method="median"), True, "a median of trees"),
        (
            tree.HoeffdingAdaptiveTreeClassifier(**MAJORITY, seed=1),
            False,
            "AdaptiveTreeClassifier is no forest",
        ),
    ],
    ids=["bayes", "model", "median", "adaptive"],
)
def test_what_depends_on_the_row_is_asked_of_the_model(model, numbers, reason):
    data = learnt(model, numbers=numbers)
    loss = "squared" if numbers else "brier"
    with pytest.raises(NotExactError, match=reason):
        leaf_table(DataTable(model, data, loss, None))
    assert not batch_pfi(model, data, loss=loss, seed=1).exact


def test_rows_of_different_features_are_asked_of_the_model():
    model = tree.HoeffdingTreeClassifier(**MAJORITY)
    (x, y), *others = learnt(model, numbers=False)
    data = [(x, y), *others, ({"a": 0.5, "b": 0.1}, "low")]
    with pytest.raises(NotExactError, match="different features"):
        leaf_table(DataTable(model, data, "brier", None))
