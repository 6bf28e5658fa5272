"""Importance of scikit-learn estimators and of callables of many rows, against answers known on paper.

Every warning is an error here, as in test_models_sklearn.
"""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from attributary_explainers import (
    ChangeExplainer,
    IncrementalPDP,
    IncrementalPFI,
    IncrementalSAGE,
    exact_sage,
    expected_pfi,
)
from attributary_explainers.models.batch import as_batch
from attributary_explainers.models.sklearn import SklearnModel
from tests.explainers.oracles import FEATURES, POINTS, exact_pfi_of_pairs, medium_or_large, small_and_red

pytestmark = pytest.mark.filterwarnings("error")

NAMES = ["a", "b", "c"]
WEIGHTS = {"a": 2.0, "b": -3.0, "c": 0.0}


def weighted(x):
    return 1.0 + sum(weight * x[name] for name, weight in WEIGHTS.items())


def normal_rows(n, seed=2):
    return [dict(zip(NAMES, row, strict=True)) for row in np.random.default_rng(seed).normal(size=(n, 3)).tolist()]


def linear_models():
    """The same function three times: without names, named by the caller, fitted on a frame."""
    rows = normal_rows(10)
    table, targets = [[x[name] for name in NAMES] for x in rows], list(map(weighted, rows))
    return {
        "array": LinearRegression().fit(table, targets),
        "named": SklearnModel(LinearRegression().fit(table, targets), NAMES),
        "frame": LinearRegression().fit(pd.DataFrame(table, columns=NAMES), targets),
        "scaled": make_pipeline(StandardScaler(), LinearRegression()).fit(pd.DataFrame(table, columns=NAMES), targets),
        "batch": as_batch(lambda table: table @ np.array([2.0, -3.0, 0.0]) + 1.0, features=NAMES),
    }


@pytest.mark.parametrize(("name", "model"), linear_models().items())
def test_pfi_of_a_linear_model_is_twice_the_squared_weight_times_the_variance(name, model):
    rows = normal_rows(14, seed=3)
    found = expected_pfi(model, [(x, weighted(x)) for x in rows], loss="squared").importance
    for feature, weight in WEIGHTS.items():  # over all pairs n != m: exact with the divisor N - 1
        variance = np.var([x[feature] for x in rows], ddof=1)
        assert found[feature] == pytest.approx(2.0 * weight**2 * variance, abs=1e-9)


@pytest.mark.parametrize(("name", "model"), linear_models().items())
def test_sage_of_a_linear_model_of_independent_features_is_the_squared_weight_times_the_variance(name, model):
    rows = [dict(zip(NAMES, values, strict=True)) for values in product((-1.0, 0.0, 2.0), (0.0, 1.0), (0.0, 3.0))]
    found = exact_sage(model, [(x, weighted(x)) for x in rows], loss="squared").importance
    for feature, weight in WEIGHTS.items():
        assert found[feature] == pytest.approx(weight**2 * np.var([x[feature] for x in rows]), abs=1e-9)


@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
@pytest.mark.parametrize(("name", "model"), linear_models().items())
def test_an_estimator_is_explained_as_its_formula_is(explainer, name, model):
    estimated = explainer(model, loss="squared", n_samples=4, groups={"both": ["b", "c"]}, seed=6)
    by_formula = explainer(weighted, loss="squared", n_samples=4, groups={"both": ["b", "c"]}, seed=6)
    for x in normal_rows(40, seed=5):
        estimated.explain_one(x, 0.0)
        by_formula.explain_one(x, 0.0)
        assert estimated.importance == pytest.approx(by_formula.importance, rel=1e-9, abs=1e-9)
    assert estimated.n_observations == 39


@pytest.mark.parametrize("concept", [small_and_red, medium_or_large])
@pytest.mark.parametrize(
    "make",
    [lambda: SVC(C=1e6, gamma=2.0), lambda: GradientBoostingClassifier(random_state=1)],
    ids=["support vectors", "boosting"],
)
def test_a_classifier_that_has_learnt_a_concept_has_its_exact_importance(concept, make):
    table, labels = [[x[f] for f in FEATURES] for x in POINTS], list(map(concept, POINTS))
    estimator = make().fit(table, labels)
    assert estimator.predict(table).tolist() == labels
    found = expected_pfi(estimator, list(zip(POINTS, labels, strict=True)), loss="zero_one").importance
    assert found == pytest.approx(exact_pfi_of_pairs(concept), abs=1e-12)


@pytest.mark.parametrize(
    ("estimator", "loss"),
    [
        (RandomForestRegressor(n_estimators=10, random_state=1), "squared"),
        (GradientBoostingRegressor(n_estimators=10, random_state=1), "squared"),
        (IsolationForest(n_estimators=20, random_state=1), "score"),
    ],
    ids=lambda case: case if isinstance(case, str) else type(case).__name__,
)
def test_a_feature_that_no_tree_can_split_on_has_no_importance(estimator, loss):
    rows = normal_rows(200)
    table = [[x["a"], x["b"], 5.0] for x in rows]  # c was always the same
    estimator.fit(*([table] if loss == "score" else [table, [10.0 * x["a"] for x in rows]]))
    pfi = IncrementalPFI(estimator, n_samples=3, alpha=0.05, seed=3)
    for x in rows[:40]:
        pfi.explain_one(x, 10.0 * x["a"])
    assert (pfi.loss.name, pfi.importance["c"]) == (loss, 0.0)
    if loss == "squared":
        assert pfi.importance["a"] > 10.0 > abs(pfi.importance["b"])
    else:
        assert pfi.importance["a"] != 0.0
    exact = exact_sage(estimator, [(x, 10.0 * x["a"]) for x in rows[:5]])
    assert exact.importance["c"] == pytest.approx(0.0, abs=1e-9)


def test_a_pipeline_over_strings_has_the_importance_of_the_rule_that_it_learnt():
    values = product((1, 2), ("red", "green", "blue"), "xy")
    rows = [{"size": size, "colour": colour, "shape": shape} for size, colour, shape in values]
    labels = ["yes" if row["colour"] == "red" else "no" for row in rows]
    columns = ColumnTransformer(
        [("nominal", OneHotEncoder(), ["colour", "shape"]), ("number", "passthrough", ["size"])]
    )
    estimator = make_pipeline(columns, LogisticRegression(C=1e3)).fit(pd.DataFrame(rows), labels)
    found = expected_pfi(estimator, list(zip(rows, labels, strict=True)), loss="zero_one").importance
    # The label changes where exactly one of two colours is red: 2 * 1/3 * 2/3 over all pairs, 12/11 of it over n != m.
    assert found == pytest.approx({"size": 0.0, "colour": 4 / 9 * 12 / 11, "shape": 0.0}, abs=1e-12)
    pfi = IncrementalPFI(estimator, loss="zero_one", alpha=0.01, n_samples=5, seed=2)
    rng = np.random.default_rng(2)
    for i in rng.integers(len(rows), size=150).tolist():
        pfi.explain_one(rows[i], labels[i])
    assert pfi.importance["size"] == pfi.importance["shape"] == 0.0
    assert pfi.importance["colour"] == pytest.approx(4 / 9, abs=0.15)


def test_the_other_explainers_take_estimators_too():
    rows = normal_rows(60)
    table = pd.DataFrame(rows)
    regressor = LinearRegression().fit(table, list(map(weighted, rows)))
    pdp = IncrementalPDP(regressor, features=["a"], grid_size=2, alpha=0.5)
    for x in rows:
        pdp.explain_one(x)
    grid, means = pdp.update()["a"]
    assert (means[1] - means[0]) / (grid[1] - grid[0]) == pytest.approx(WEIGHTS["a"])  # a line of that slope

    classifier = SGDClassifier(random_state=1)
    classifier.partial_fit(table.to_numpy(), [x["a"] > 0 for x in rows], classes=[False, True])
    change = ChangeExplainer(classifier, window=20, seed=1)
    for x in rows[:20]:
        change.update(x, x["a"] > 0, bool(classifier.predict([list(x.values())])[0]))
    assert (change.loss.name, change.loss_of_verdicts.name) == ("expected_zero_one", "zero_one")
    assert change.reference_observation == 20
    classifier.partial_fit(-table.to_numpy(), [x["a"] > 0 for x in rows])
    restored = ChangeExplainer.from_snapshot(change.snapshot(), classifier)
    for x in rows[20:30]:
        y_pred = bool(classifier.predict([list(x.values())])[0])
        change.update(x, x["a"] > 0, y_pred)
        restored.update(x, x["a"] > 0, y_pred)
    assert restored.discrepancy == change.discrepancy
