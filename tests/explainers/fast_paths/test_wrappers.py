"""Models that wrap another one."""

from __future__ import annotations

from numbers import Number

import pytest
from river import compose, drift, imblearn, linear_model, naive_bayes, optim, preprocessing

from attributary_explainers.evaluation.registry import make_evaluator, read_as_categories
from attributary_explainers.evaluation.schema import Schema

from .harness import all_covered, refused
from .streams import blobs, line, texts

N = 200
SHARES = {"a": 0.5, "b": 0.3, "c": 0.2}


def linear():
    return preprocessing.StandardScaler() | linear_model.LinearRegression(optim.SGD(0.05))


@pytest.mark.parametrize(
    "model",
    [
        imblearn.RandomUnderSampler(naive_bayes.GaussianNB(), SHARES, seed=1),
        imblearn.RandomOverSampler(naive_bayes.GaussianNB(), SHARES, seed=1),
        imblearn.RandomSampler(naive_bayes.GaussianNB(), SHARES, seed=1),
        drift.DriftRetrainingClassifier(naive_bayes.GaussianNB(), drift.binary.DDM(warm_start=10)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_wrapped_classifier_is_the_model(model):
    all_covered(model, blobs(N))


@pytest.mark.parametrize(
    "model",
    [
        preprocessing.PredClipper(linear(), -1.0, 3.0),
        preprocessing.TargetStandardScaler(linear()),
        preprocessing.TargetMinMaxScaler(linear()),
        preprocessing.StandardScaler() | preprocessing.TargetStandardScaler(linear_model.LinearRegression()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_wrapped_regressor_is_the_model(model):
    all_covered(model, line(N), number=True, copy_every=50)


def test_a_wrapped_model_that_is_exchanged_is_seen():
    def meddle(step, model):
        if step == 50:
            model.classifier = naive_bayes.GaussianNB()

    all_covered(imblearn.RandomSampler(naive_bayes.GaussianNB(), SHARES, seed=1), blobs(N), after=meddle)


def test_categories_of_the_wrapped_model():
    encoded = preprocessing.OneHotEncoder(categories={"door": {1}}) | linear_model.LogisticRegression()
    assert read_as_categories(imblearn.RandomSampler(encoded, {True: 1.0})) == {"door"}


def test_another_scale_of_the_targets_is_refused():
    model = preprocessing.TargetStandardScaler(linear_model.LinearRegression())
    make_evaluator(model, Schema(["a"]))
    model.inverse_func = abs
    refused("another function", model, Schema(["a"]))


def test_select_type_in_a_wrapped_model():
    inner = (compose.SelectType(Number) | preprocessing.StandardScaler()) | linear_model.LogisticRegression()
    sampled = imblearn.RandomSampler(inner, {True: 0.5, False: 0.5}, seed=1)
    all_covered(compose.Discard("new") | sampled, texts(N))
