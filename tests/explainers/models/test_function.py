"""Which output of which model a loss reads, and what is refused before the first observation."""

import math

import pytest
from river import anomaly, linear_model, naive_bayes, preprocessing, stats

from attributary_explainers import (
    IncrementalPFI,
    IncrementalSAGE,
    InvalidParameterError,
    ModelError,
    as_batch,
    as_loss,
    is_usable,
    model_function,
    resolve_loss,
)

X = {"a": 1.0, "b": -2.0}


@pytest.mark.parametrize("model", [lambda x: 0.0, as_batch(len)])
@pytest.mark.parametrize("use", [lambda model: resolve_loss(model, None), IncrementalPFI])
def test_a_callable_must_name_its_loss(model, use):
    with pytest.raises(ModelError, match="name a loss"):
        use(model)


@pytest.mark.parametrize("output", ["probabilities", "label"])
def test_a_classifier_that_has_not_learnt_has_no_prediction(output):
    assert model_function(naive_bayes.GaussianNB(), output)(X) is None


@pytest.mark.parametrize(
    ("model", "loss", "advice"),
    [
        (naive_bayes.GaussianNB(), "squared", "brier, cross_entropy, expected_zero_one or zero_one"),
        (naive_bayes.GaussianNB(), "score", "brier, cross_entropy, expected_zero_one or zero_one"),
        (linear_model.LinearRegression(), "cross_entropy", "absolute or squared"),
        (linear_model.LinearRegression(), "zero_one", "absolute or squared"),
        (anomaly.HalfSpaceTrees(), "brier", "score"),
        (stats.Mean(), "squared", "callable"),
        (preprocessing.StandardScaler(), "squared", "put a classifier or a regressor behind it"),
        (3.0, "squared", "callable"),
    ],
)
@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
def test_a_loss_that_the_model_cannot_serve_is_refused_at_construction(explainer, model, loss, advice):
    with pytest.raises(ModelError, match=advice):
        explainer(model, loss=loss)


@pytest.mark.parametrize(
    ("output", "prediction"),
    [("probabilities", 0.7), ("probabilities", "red"), ("number", "red"), ("number", {"red": 1.0}), ("any", "red")],
)
def test_a_callables_unusable_answer_is_named(output, prediction):
    with pytest.raises(ModelError) as caught:
        model_function(lambda x: prediction, output)(X)
    assert repr(prediction) in str(caught.value)


@pytest.mark.parametrize("prediction", [0.0, -3, 1e308, {"a": 0.5, "b": 0.5}, {None: 1.0}])
def test_finite_predictions_are_usable(prediction):
    assert is_usable(prediction)


@pytest.mark.parametrize(
    # An empty dict is what River's predict_proba_one gives before the first observation; callers hand it in as y_pred.
    "prediction",
    [None, math.nan, math.inf, -math.inf, {"a": math.nan}, {"a": 1.0, "b": math.inf}, {}],
)
def test_missing_and_infinite_predictions_are_not_usable(prediction):
    assert not is_usable(prediction)


def test_a_prediction_handed_in_empty_counts_as_none():
    model = naive_bayes.GaussianNB()
    sage = IncrementalSAGE(model, loss="cross_entropy", seed=1)
    for i in range(3):
        sage.explain_one({"a": float(i)}, "red", y_pred=model.predict_proba_one({"a": float(i)}))
    assert (sage.n_observations, sage.n_skipped, sage.model_loss) == (0, 3, None)


@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("alpha", 0.0),
        ("alpha", 1.5),
        ("alpha", math.nan),
        ("alpha", True),
        ("alpha", "0.1"),
        ("n_samples", 0),
        ("n_samples", 2.0),
        ("n_samples", True),
        ("groups", {"g": []}),
        ("groups", {"g": "abc"}),
        ("groups", {"g": ["a"], "h": ["b", "a"]}),
        ("groups", {"a": ["a", "b"]}),
        ("groups", {"g": ["a"], "a": ["b"]}),
        ("loss", "hinge"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(explainer, parameter, value):
    parameters = {"loss": "squared", parameter: value}
    with pytest.raises(InvalidParameterError) as caught:
        explainer(lambda x: 0.0, **parameters)
    assert caught.value.parameter == parameter
    assert str(caught.value).startswith(f"{parameter} must be ")


def test_a_callable_loss_over_a_classifier_reads_its_probabilities():
    assert resolve_loss(naive_bayes.GaussianNB(), lambda y, p: 0.0).output == "probabilities"
    assert resolve_loss(linear_model.LinearRegression(), lambda y, p: 0.0).output == "number"
    assert as_loss(lambda y, p: 0.0).name == "<lambda>"
