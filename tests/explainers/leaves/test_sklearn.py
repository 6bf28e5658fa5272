"""Exact PFI and SAGE of scikit-learn's forests equal brute force, and say that they are exact."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import ensemble, tree
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from attributary_explainers import (
    InvalidParameterError,
    SklearnModel,
    batch_pfi,
    batch_sage,
    exact_sage,
    expected_pfi,
)
from attributary_explainers.batch import leaves

from . import brute

NAMES = ["a", "b", "c", "d"]
RNG = np.random.default_rng(4)
X = RNG.normal(size=(300, 4)).round(1)
X[:, 3] = RNG.integers(0, 5, 300)
HOLES = X.copy()
HOLES[::4, 1] = np.nan
HOLES[1::7, 0] = np.nan
NUMBER = X[:, 0] * X[:, 1] + (X[:, 3] == 2) + 0.1 * RNG.normal(size=300)
THREE = np.array(["low", "middle", "high"])[np.digitize(NUMBER, [-0.3, 0.5])]
TWO = NUMBER > 0.2
GROUPS = {"ad": ["a", "d"]}
N = 14


@pytest.fixture(autouse=True)
def by_one_thread():
    """Fit and predict by one thread: beside other processes, several mostly wait for one another."""
    with threadpool_limits(1, user_api="openmp"):
        yield


def regressors():
    yield tree.DecisionTreeRegressor(random_state=1), HOLES
    yield ensemble.RandomForestRegressor(4, random_state=1), HOLES
    yield ensemble.ExtraTreesRegressor(4, max_depth=3, random_state=1), X
    yield ensemble.GradientBoostingRegressor(n_estimators=5, random_state=1), X
    yield ensemble.HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3), HOLES
    yield ensemble.HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3, categorical_features=[3]), HOLES


def classifiers():
    yield tree.ExtraTreeClassifier(random_state=1), HOLES
    yield ensemble.RandomForestClassifier(4, random_state=1), HOLES
    yield ensemble.GradientBoostingClassifier(n_estimators=3, random_state=1), X
    yield ensemble.HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3, categorical_features=[3]), HOLES


def named(values):
    return [dict(zip(NAMES, row, strict=True)) for row in values.tolist()]


def values_of(result):
    return np.array(list(result.importance.values()))


FITTED = {}
"""Models of the lists above and what they predict, by model and target: all losses ask them for the same rows."""


def fitted(model, data, y, method="predict"):
    """A copy that has learnt, and its predictions: of rows that it was asked for before, what it said then."""
    if (id(model), id(y)) not in FITTED:
        made, known = clone(model).fit(data, y), {}

        def predict(rows):
            key = rows.tobytes()
            if key not in known:
                known[key] = getattr(made, method)(rows)
            return known[key]

        FITTED[id(model), id(y)] = made, predict
    return FITTED[id(model), id(y)]


def check(model, data, y, loss, predict, *, sums, classes=()):
    rows, labels = named(data[:N]), y[:N].tolist()
    wrapped = SklearnModel(model, features=NAMES)
    for groups, players in ((None, [[0], [1], [2], [3]]), (GROUPS, [[0, 3], [1], [2]])):
        found = batch_pfi(wrapped, rows, labels, loss=loss, groups=groups)
        assert found.exact
        assert found == expected_pfi(wrapped, rows, labels, loss=loss, groups=groups)
        expected = brute.pfi(predict, data[:N], np.array(labels), loss, players, classes)
        np.testing.assert_allclose(values_of(found), expected, rtol=1e-9, atol=1e-9)
        if loss == "zero_one":
            continue
        found = batch_sage(wrapped, rows, labels, loss=loss, groups=groups, n_samples=2)
        assert found.exact == sums
        if sums:
            assert found == exact_sage(wrapped, rows, labels, loss=loss, groups=groups)
            expected = brute.sage(predict, data[:N], np.array(labels), loss, players, classes)
            np.testing.assert_allclose(values_of(found), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize(("model", "data"), list(regressors()), ids=lambda value: type(value).__name__)
def test_regressors(model, data, loss):
    made, predict = fitted(model, data, NUMBER)
    check(made, data, NUMBER, loss, predict, sums=True)


@pytest.mark.parametrize("y", [pytest.param(TWO, marks=pytest.mark.long), THREE], ids=["two", "three"])
@pytest.mark.parametrize("loss", ["cross_entropy", "brier", "zero_one"])
@pytest.mark.parametrize(("model", "data"), list(classifiers()), ids=lambda value: type(value).__name__)
@pytest.mark.share(2, "model", "loss")
def test_classifiers(model, data, y, loss):
    made, predict = fitted(model, data, y, "predict_proba")
    sums = "Boosting" not in type(model).__name__
    check(made, data, y, loss, predict, sums=sums, classes=made.classes_.tolist())


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_boosting_of_a_logarithm(loss):
    y = np.exp(NUMBER)
    model = ensemble.HistGradientBoostingRegressor(loss=loss, max_iter=4).fit(X, y)
    check(model, X, y, "squared", model.predict, sums=False)


def test_the_exponential_loss_has_another_link():
    model = ensemble.GradientBoostingClassifier(loss="exponential", n_estimators=3).fit(X, TWO)
    check(model, X, TWO, "brier", model.predict_proba, sums=False, classes=[False, True])


@pytest.mark.parametrize("seed", range(3))
def test_a_label_that_the_model_does_not_know(seed):
    model = ensemble.RandomForestClassifier(3, max_depth=3, random_state=seed).fit(X, THREE)
    y = THREE.copy()
    y[3] = "other"
    for loss in ("cross_entropy", "brier", "zero_one"):
        check(model, X, y, loss, model.predict_proba, sums=True, classes=model.classes_.tolist())


def test_categories_of_a_data_frame_are_read_as_the_model_does():
    frame = pd.DataFrame(X, columns=NAMES).assign(d=pd.Categorical([f"shop {int(v)}" for v in X[:, 3]]))
    model = ensemble.HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3).fit(frame, NUMBER)
    few = frame.head(N)
    kinds = {"d": frame["d"].dtype}

    def predict(rows):
        made = pd.DataFrame(rows, columns=NAMES).astype({"a": float, "b": float, "c": float})
        return model.predict(made.astype(kinds))

    found = batch_pfi(model, few, NUMBER[:N], loss="squared", exact=True)
    table = few.to_numpy(dtype=object)
    expected = brute.pfi(predict, table, NUMBER[:N], "squared", [[0], [1], [2], [3]])
    np.testing.assert_allclose(values_of(found), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", [batch_pfi, batch_sage])
def test_the_model_is_asked_for_the_rows_themselves_alone(method):
    model = ensemble.RandomForestRegressor(3, random_state=1).fit(X, NUMBER)
    asked = []
    own = model.predict
    model.predict = lambda rows: asked.append(len(rows)) or own(rows)
    found = method(SklearnModel(model, features=NAMES), named(X[:20]), NUMBER[:20], loss="squared")
    assert found.exact
    assert asked == [20]


@pytest.mark.parametrize("method", [batch_pfi, batch_sage])
def test_exact_is_what_is_asked_for(method):
    model = SklearnModel(ensemble.RandomForestRegressor(3, max_depth=4, random_state=1).fit(X, NUMBER), features=NAMES)
    rows, y = named(X[:40]), NUMBER[:40].tolist()
    exact = method(model, rows, y, loss="squared", exact=True)
    assert exact == method(model, rows, y, loss="squared", seed=9)
    drawn = method(model, rows, y, loss="squared", exact=False, seed=9)
    assert exact.exact > drawn.exact
    assert exact.importance != drawn.importance
    with pytest.raises(InvalidParameterError, match="exact must be True, False or \"auto\", got 'no'"):
        method(model, rows, y, loss="squared", exact="no")
    with pytest.raises(InvalidParameterError, match="function is no forest that can be read"):
        method(lambda x: 1.0, rows, y, loss="squared", exact=True)
    with pytest.raises(InvalidParameterError, match=r"function of the user's .*exact for any model"):
        method(model, rows, y, loss=lambda y, p: 0.0, exact=True)


@pytest.mark.parametrize("method", [batch_pfi, batch_sage])
def test_what_is_dear_is_sampled(method, monkeypatch):
    model = SklearnModel(ensemble.RandomForestRegressor(3, max_depth=4, random_state=1).fit(X, NUMBER), features=NAMES)
    monkeypatch.setattr("attributary_explainers.batch.sampled.CHEAP_NS", 1.0)
    rows, y = named(X[:40]), NUMBER[:40].tolist()
    assert not method(model, rows, y, loss="squared", seed=1).exact
    assert method(model, rows, y, loss="squared", exact=True).exact


def test_leaves_that_give_other_predictions_are_not_used():
    model = ensemble.RandomForestRegressor(3, random_state=1).fit(X, NUMBER)
    model.predict = lambda rows: np.asarray(rows)[:, 0] * 2.0
    wrapped = SklearnModel(model, features=NAMES)
    rows, y = named(X[:12]), NUMBER[:12].tolist()
    with pytest.warns(Warning, match="leaves of SklearnModel give other predictions than the model"):
        found = expected_pfi(wrapped, rows, y, loss="squared")
    expected = brute.pfi(lambda rows: 2.0 * rows[:, 0], X[:12], NUMBER[:12], "squared", [[0], [1], [2], [3]])
    np.testing.assert_allclose(values_of(found), expected, rtol=1e-9, atol=1e-12)


def test_more_players_than_can_be_enumerated_are_refused_or_sampled():
    wide = np.random.default_rng(1).normal(size=(200, 20))
    names = [f"f{j}" for j in range(20)]
    forest = ensemble.ExtraTreesRegressor(5, random_state=1).fit(wide, wide.sum(axis=1))
    model = SklearnModel(forest, features=names)
    rows, y = [dict(zip(names, row, strict=True)) for row in wide[:10].tolist()], wide[:10].sum(axis=1)
    assert not batch_sage(model, rows, y, loss="squared").exact
    with pytest.raises(InvalidParameterError, match=r"it uses 20 features, and there are 2\^20 coalitions"):
        batch_sage(model, rows, y, loss="squared", exact=True)
    with pytest.raises(InvalidParameterError, match="max_features = 12"):
        exact_sage(model, rows, y, loss="squared")
    assert batch_pfi(model, rows, y, loss="squared").exact


def test_features_that_no_tree_splits_do_not_count():
    wide = np.hstack([X, np.zeros((300, 20))])
    names = [*NAMES, *(f"f{j}" for j in range(20))]
    model = ensemble.RandomForestRegressor(3, max_depth=4, random_state=1)
    model = SklearnModel(model.fit(wide, NUMBER), features=names)
    rows = [dict(zip(names, row, strict=True)) for row in wide[:N].tolist()]
    found = exact_sage(model, rows, NUMBER[:N], loss="squared")
    of_used = brute.sage(model.estimator.predict, wide[:N], NUMBER[:N], "squared", [[0], [1], [2], [3]])
    np.testing.assert_allclose(values_of(found), [*of_used, *[0.0] * 20], rtol=1e-9, atol=1e-12)


def test_leaves_that_cannot_be_read_are_said_to_be_so():
    model = ensemble.RandomForestRegressor(3, random_state=1).fit(X, NUMBER)
    del model.estimators_[0].tree_
    table = leaves.DataTable(SklearnModel(model, features=NAMES), [(x, 0.0) for x in named(X[:5])], "squared", None)
    with pytest.raises(leaves.NotExactError, match="could not be read: AttributeError"):
        leaves.leaf_table(table)
