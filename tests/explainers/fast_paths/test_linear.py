"""Linear models without a pipeline."""

from __future__ import annotations

import numpy as np
import pytest
from river import linear_model, optim, preprocessing

from attributary_explainers.evaluation.evaluator import NotCoveredError
from attributary_explainers.evaluation.registry import make_evaluator
from attributary_explainers.evaluation.schema import Schema
from attributary_explainers.fast_paths.linear import LinearEvaluator
from attributary_explainers.models.function import model_function

from .harness import all_covered, learnt, predicted, refused
from .streams import binary, blobs, line

N = 300


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
    ids=lambda model: type(model).__name__,
)
def test_a_binary_classifier_is_the_model(model):
    all_covered(model, binary(N))


@pytest.mark.parametrize(
    "model",
    [
        linear_model.LinearRegression(),
        linear_model.LinearRegression(optim.Adam(0.1), loss=optim.losses.Huber(), intercept_lr=0.1),
        linear_model.PARegressor(),
        linear_model.BayesianLinearRegression(),
        linear_model.BayesianLinearRegression(smoothing=0.9),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_linear_regressor_is_the_model(model):
    all_covered(model, line(N), number=True)


@pytest.mark.parametrize("labels", [("b", "a", "c"), (2, 0, 1), (True, False)])
def test_softmax_with_a_class_that_comes_late(labels):
    all_covered(linear_model.SoftmaxRegression(optim.SGD(0.1)), blobs(N, labels=labels))


def test_softmax_whose_sums_are_not_finite_is_asked_itself():
    model = learnt(linear_model.SoftmaxRegression(), [({"a": 1.0}, label) for label in "bca" * 5])
    for weights in model.weights.values():
        weights["a"] = 1e300 if weights["a"] > 0 else -1e300
    assert any(p != p for p in model.predict_proba_one({"a": 1e15}).values())
    with pytest.raises(NotCoveredError, match="a sum is not finite"):
        predicted(model, [{"a": 1e15}])


def test_softmax_gives_labels_in_their_order():
    model = learnt(linear_model.SoftmaxRegression(), [({"a": 1.0}, label) for label in "bca"])
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
    all_covered(linear_model.LogisticRegression(), binary(N, d), n_rows=20)


def test_features_whose_names_are_numbers_and_text():
    stream = (({0: x["x0"], "b": x["x1"], 2.5: x["x2"]}, y) for x, y in binary(100))
    all_covered(linear_model.LogisticRegression(), stream)


def test_probabilities_are_cut_where_river_cuts_them():
    model = learnt(linear_model.LogisticRegression(intercept_init=0.0), [({"a": 1.0}, True)])
    rows = [{"a": score / model._weights["a"]} for score in (-31.0, -30.0, -29.9, 0.0, 29.9, 30.0, 31.0)]
    found = predicted(model, rows)
    expected = [[p[False], p[True]] for p in map(model.predict_proba_one, rows)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)
    assert found[0, 1] == 0.0
    assert found[-1, 1] == 1.0
    assert 0.0 < found[2, 1] < 1e-12


def test_a_model_that_has_learnt_more_features_than_a_row_has():
    model = learnt(linear_model.LogisticRegression(), binary(50, 5))
    row = {"x0": 0.5, "unknown": 9.0}
    assert predicted(model, [row])[0, 1] == pytest.approx(model.predict_proba_one(row)[True], abs=1e-15)
    assert "unknown" not in model._weights


def test_a_weight_and_a_statistic_that_are_taken_out():
    def meddle(step, model):
        scaler, weights = model["StandardScaler"], model["LogisticRegression"]._weights
        if step % 10 == 3:
            weights.pop("x0")
        if step % 10 == 5:  # as many as before
            weights.pop("x1")
            weights["other"] = 1.0
        if step % 10 == 7:
            scaler.vars.pop("x2")
        if step % 10 == 8:
            scaler.means = type(scaler.means)(float, {"x0": 0.25})
        if step % 10 == 9:
            scaler.vars["x1"] = np.float64(0.3)

    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    all_covered(model, binary(60), after=meddle, fresh_every=1)


@pytest.mark.parametrize(
    "scaler", [preprocessing.MinMaxScaler, preprocessing.StandardScaler, preprocessing.MaxAbsScaler]
)
@pytest.mark.parametrize(
    ("model", "number"),
    [
        (linear_model.PARegressor, True),
        (linear_model.PAClassifier, False),
        (linear_model.ALMAClassifier, False),
        (linear_model.BayesianLinearRegression, True),
        (linear_model.SoftmaxRegression, False),
    ],
)
def test_a_feature_that_neither_scaler_nor_model_has_seen_is_left_out(scaler, model, number):
    """The first of these scalers makes it NaN, which the model does not read."""
    model = scaler() | model()
    function = model_function(model, "number" if number else "probabilities")
    for i, (x, y) in enumerate(line(40) if number else binary(40)):
        row = {**x, f"new {i // 10}": 1.5}
        model.learn_one(x, y)
        own = model.predict_one(row) if number else model.predict_proba_one(row)
        (found,) = function.many([row])
        assert found == pytest.approx(own, abs=1e-12)
    assert function.counts == {"fast": 40}


def test_linear_models_that_are_not_covered_are_refused():
    with pytest.raises(NotCoveredError, match="categories"):
        LinearEvaluator(linear_model.LogisticRegression(), Schema(["a", "b"], ["b"]))

    class Other(linear_model.LogisticRegression):
        pass

    refused("no fast path", Other(), Schema(["a"]))
    refused("link", linear_model.LinearRegression(loss=optim.losses.Poisson()), Schema(["a"]), to_predict=True)
