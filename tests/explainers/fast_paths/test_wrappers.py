"""Models that wrap another one."""

from __future__ import annotations

import math
from numbers import Number

import pytest
from river import (
    bandit,
    compose,
    conf,
    drift,
    imblearn,
    linear_model,
    metrics,
    model_selection,
    multiclass,
    naive_bayes,
    optim,
    preprocessing,
    tree,
)

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
        imblearn.HardSamplingClassifier(naive_bayes.GaussianNB(), size=20, p=0.2, seed=1),
        drift.DriftRetrainingClassifier(naive_bayes.GaussianNB(), drift.binary.DDM(warm_start=10)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_wrapped_classifier_is_the_model(model):
    all_covered(model, blobs(N))


@pytest.mark.parametrize(
    "model",
    [
        imblearn.HardSamplingRegressor(linear(), size=20, p=0.2, seed=1),
        imblearn.ChebyshevUnderSampler(linear(), seed=1),
        imblearn.ChebyshevOverSampler(linear()),
        conf.RegressionJackknife(linear()),
        compose.TargetTransformRegressor(linear(), func=math.asinh, inverse_func=math.sinh),
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


def several(*rates):
    return [preprocessing.StandardScaler() | linear_model.LinearRegression(optim.SGD(rate)) for rate in rates]


def classifiers():
    return [
        naive_bayes.GaussianNB(),
        tree.HoeffdingTreeClassifier(grace_period=20),
        preprocessing.StandardScaler() | linear_model.SoftmaxRegression(optim.SGD(0.3)),
    ]


@pytest.mark.parametrize(
    "model",
    [
        model_selection.GreedyRegressor(several(0.05, 0.01, 0.1)),
        model_selection.BanditRegressor(
            several(0.05, 0.01, 0.1), metrics.MAE(), bandit.EpsilonGreedy(0.5, decay=0.001, burn_in=5, seed=1)
        ),
        model_selection.SuccessiveHalvingRegressor(several(0.05, 0.01, 0.1), metrics.MAE(), budget=300),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_best_of_several_regressors_answers(model):
    answered = set()
    all_covered(model, line(N), number=True, after=lambda _, model: answered.add(id(model.best_model)))
    assert len(answered) > 1


@pytest.mark.parametrize(
    "model",
    [
        model_selection.BanditClassifier(classifiers(), metrics.Accuracy(), bandit.UCB(0.5, burn_in=5, seed=1)),
        model_selection.SuccessiveHalvingClassifier(classifiers(), metrics.Accuracy(), budget=300),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_best_of_several_classifiers_answers(model):
    answered = set()
    # The evaluator of a model without a class has no column, as the model has no prediction.
    all_covered(model, blobs(N), after=lambda _, model: answered.add(id(model.best_model)))
    assert len(answered) > 1


@pytest.mark.parametrize("inverse", [lambda y: 1.0 / 0.0, lambda y: str(y)], ids=["raises", "text"])
def test_a_function_of_the_targets_that_fails_is_left_to_the_model(inverse):
    model = compose.TargetTransformRegressor(linear(), func=abs, inverse_func=inverse)
    refused("function of the targets", model, Schema(["a"]), to_predict=True)


def test_a_wrapped_model_without_probabilities():
    pairs = multiclass.OneVsOneClassifier(preprocessing.StandardScaler() | linear_model.LogisticRegression())
    all_covered(imblearn.RandomSampler(pairs, SHARES, seed=1), blobs(N), label=True)
    refused("no probabilities", drift.DriftRetrainingClassifier(pairs), Schema(["a"]))


def test_select_type_in_a_wrapped_model():
    inner = (compose.SelectType(Number) | preprocessing.StandardScaler()) | linear_model.LogisticRegression()
    sampled = imblearn.RandomSampler(inner, {True: 0.5, False: 0.5}, seed=1)
    all_covered(compose.Discard("new") | sampled, texts(N))
