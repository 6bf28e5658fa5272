"""Linear models without a pipeline."""

from __future__ import annotations

import numpy as np
import pytest
from river import linear_model, optim

from attributary_explainers.evaluation.evaluator import NotCoveredError
from attributary_explainers.evaluation.registry import make_evaluator
from attributary_explainers.evaluation.schema import Schema
from attributary_explainers.fast_paths.pipelines.linear import LinearEvaluator

from .harness import follow
from .streams import blobs, line

N = 300


def binary(n, d=4):
    return ((x, y == "a") for x, y in blobs(n, d, ("b", "a")))


@pytest.mark.parametrize(
    "model",
    [
        linear_model.LogisticRegression(),
        linear_model.LogisticRegression(optim.Adam(0.1), l2=0.01, intercept_init=0.5),
        linear_model.LogisticRegression(loss=optim.losses.Hinge(), initializer=optim.initializers.Constant(2.0)),
        linear_model.LogisticRegression(loss=optim.losses.BinaryFocalLoss(), l1=0.001),
        linear_model.Perceptron(),
        linear_model.PAClassifier(),
        linear_model.PAClassifier(learn_intercept=False, mode=2),
        linear_model.ALMAClassifier(),
    ],
    ids=lambda model: f"{type(model).__name__}",
)
def test_a_binary_classifier(model):
    report = follow(model, binary(N))
    assert report.covered == report.steps == N


@pytest.mark.parametrize(
    "model",
    [
        linear_model.LinearRegression(),
        linear_model.LinearRegression(optim.Adam(0.1), loss=optim.losses.Huber(), intercept_lr=0.1),
        linear_model.PARegressor(),
        linear_model.BayesianLinearRegression(),
        linear_model.BayesianLinearRegression(smoothing=0.9),
    ],
    ids=lambda model: f"{type(model).__name__}",
)
def test_a_regressor(model):
    report = follow(model, line(N), number=True)
    assert report.covered == report.steps == N


@pytest.mark.parametrize("labels", [("b", "a", "c"), (2, 0, 1), (True, False)])
def test_softmax_with_a_class_that_comes_late(labels):
    report = follow(linear_model.SoftmaxRegression(optim.SGD(0.1)), blobs(N, labels=labels))
    assert report.covered == report.steps == N


def test_labels_are_sorted():
    model = linear_model.SoftmaxRegression()
    for label in ("b", "c", "a"):
        model.learn_one({"a": 1.0}, label)
    evaluator = make_evaluator(model, Schema(["a"]))
    evaluator.predict(np.ones((1, 1)))
    assert evaluator.labels == ("a", "b", "c")


def test_bayesian_regression_that_has_not_predicted_since_it_learnt():
    model = linear_model.BayesianLinearRegression()
    evaluator = make_evaluator(model, Schema(["a"]))
    for value in (1.0, 2.0):
        model.learn_one({"a": value}, 3.0 * value)
        found = evaluator.predict(np.ones((1, 1)))[0, 0]
        assert model._m_dirty
        assert found == pytest.approx(model.predict_one({"a": 1.0}), abs=1e-15)


@pytest.mark.parametrize("d", [1, 30])
def test_one_feature_and_thirty(d):
    report = follow(linear_model.LogisticRegression(), binary(N, d), n_rows=20)
    assert report.covered == report.steps


def test_features_whose_names_are_numbers_and_text():
    stream = (({0: x["x0"], "b": x["x1"], 2.5: x["x2"]}, y) for x, y in binary(100))
    report = follow(linear_model.LogisticRegression(), stream)
    assert report.covered == report.steps


def test_probabilities_are_cut_where_river_cuts_them():
    model = linear_model.LogisticRegression(intercept_init=0.0)
    model.learn_one({"a": 1.0}, True)
    weight = model._weights["a"]
    rows = [{"a": score / weight} for score in (-31.0, -30.0, -29.9, 0.0, 29.9, 30.0, 31.0)]
    schema = Schema(["a"])
    found = make_evaluator(model, schema).predict(schema.encode_many(rows))
    expected = [[p[False], p[True]] for p in map(model.predict_proba_one, rows)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)
    assert found[0, 1] == 0.0
    assert found[-1, 1] == 1.0
    assert 0.0 < found[2, 1] < 1e-12


def test_a_model_that_has_learnt_more_features_than_a_row_has():
    model = linear_model.LogisticRegression()
    for x, y in binary(50, 5):
        model.learn_one(x, y)
    schema = Schema(["x0", "unknown"])
    row = {"x0": 0.5, "unknown": 9.0}
    found = make_evaluator(model, schema).predict(schema.encode_many([row]))
    assert found[0, 1] == pytest.approx(model.predict_proba_one(row)[True], abs=1e-15)
    assert "unknown" not in model._weights


def test_refusals():
    schema = Schema(["a", "b"], ["b"])
    with pytest.raises(NotCoveredError, match="categories"):
        LinearEvaluator(linear_model.LogisticRegression(), schema)

    class Other(linear_model.LogisticRegression):
        pass

    with pytest.raises(NotCoveredError, match="no fast path"):
        make_evaluator(Other(), Schema(["a"]))
    model = linear_model.LinearRegression(loss=optim.losses.Poisson())
    with pytest.raises(NotCoveredError, match="link"):
        make_evaluator(model, Schema(["a"])).predict(np.zeros((1, 1)))
