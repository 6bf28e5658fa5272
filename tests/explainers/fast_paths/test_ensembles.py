"""Ensembles over members that have fast paths of their own."""

from __future__ import annotations

import numpy as np
import pytest
from river import compose, ensemble, linear_model, metrics, naive_bayes, optim, preprocessing, tree

from attributary_explainers.evaluation.registry import make_evaluator, read_as_categories
from attributary_explainers.evaluation.schema import Schema
from attributary_explainers.fast_paths.trees import TreeRegressors

from .harness import all_covered, refused
from .streams import binary, blobs, line, texts

N = 120
NUMBERS, CATEGORIES = ("size", "constant"), ("colour", "door", "new")


def logistic():
    return preprocessing.StandardScaler() | linear_model.LogisticRegression(optim.SGD(0.1))


def linear():
    return preprocessing.StandardScaler() | linear_model.LinearRegression(optim.SGD(0.05))


def shifting(n=N):
    """Labels that turn around twice: detectors alarm, and members are exchanged."""
    for i, (x, y) in enumerate(blobs(n, 3, ("b", "a"), seed=4)):
        yield x, (y == "a") != (n // 3 < i < 2 * n // 3)


@pytest.mark.parametrize(
    "kind",
    [
        ensemble.BaggingClassifier,
        ensemble.ADWINBaggingClassifier,
        ensemble.LeveragingBaggingClassifier,
        ensemble.AdaBoostClassifier,
        ensemble.ADWINBoostingClassifier,
    ],
)
@pytest.mark.parametrize("inner", [logistic, naive_bayes.GaussianNB])
@pytest.mark.share(2, "kind", "inner")
def test_an_ensemble_of_classifiers_is_the_model(kind, inner):
    all_covered(kind(inner(), n_models=4, seed=1), binary(N) if inner is logistic else blobs(N, 3), n_rows=4)


@pytest.mark.parametrize(
    "kind",
    [
        ensemble.ADWINBaggingClassifier,
        ensemble.LeveragingBaggingClassifier,
        ensemble.ADWINBoostingClassifier,
        ensemble.SRPClassifier,
    ],
)
def test_members_that_are_exchanged_at_a_drift_are_seen(kind):
    members, keep = set(), []

    def after(_, model):
        keep.append(model.data[:])  # so that no address is used again
        of_patches = kind is ensemble.SRPClassifier
        members.update((i, *one.features) if of_patches else id(one) for i, one in enumerate(model.data))

    all_covered(kind(naive_bayes.GaussianNB(), n_models=3, seed=1), shifting(450), n_rows=3, after=after)
    assert len(members) > 3


@pytest.mark.parametrize(
    "model",
    [
        ensemble.BaggingRegressor(linear(), 2, seed=1),
        ensemble.BaggingRegressor(linear(), 5, seed=1),
        ensemble.BaggingRegressor(tree.HoeffdingTreeRegressor(grace_period=20), 3, seed=1),
        ensemble.BaggingRegressor(tree.HoeffdingAdaptiveTreeRegressor(grace_period=20, seed=1), 2, seed=1),
    ],
)
def test_an_ensemble_of_regressors_is_the_model(model):
    all_covered(model, line(N), number=True)
    has_trees = type(model) is ensemble.BaggingRegressor and "Tree" in type(model.model).__name__
    path = make_evaluator(model, Schema(["x0", "x1"]))
    assert isinstance(path, TreeRegressors) == has_trees


@pytest.mark.parametrize("parameters", [{}, {"disable_weighted_vote": True}, {"training_method": "resampling"}])
def test_random_patches_of_classifiers_are_the_model(parameters):
    model = ensemble.SRPClassifier(naive_bayes.GaussianNB(), n_models=4, seed=1, **parameters)
    all_covered(model, blobs(N, 5), n_rows=6)


@pytest.mark.parametrize("method", ["mean", "median"])
@pytest.mark.parametrize(
    "parameters", [{"disable_weighted_vote": False}, {}, {"metric": metrics.R2(), "disable_weighted_vote": False}]
)
def test_random_patches_of_regressors_are_the_model(method, parameters):
    model = ensemble.SRPRegressor(linear(), n_models=3, seed=1, aggregation_method=method, **parameters)
    all_covered(model, line(N // 2), number=True, n_rows=6)


def test_patches_whose_features_are_exchanged_are_seen():
    def meddle(step, model):
        model.data[step % 2].features = ["x0"] if step % 3 else ["x1", "x2"]

    all_covered(ensemble.SRPClassifier(naive_bayes.GaussianNB(), n_models=2, seed=1), blobs(40), after=meddle)


def test_members_with_categories():
    encoder = compose.Select(*CATEGORIES) | preprocessing.OneHotEncoder()
    scaler = compose.Select(*NUMBERS) | preprocessing.StandardScaler()
    model = ensemble.BaggingClassifier((scaler + encoder) | linear_model.LogisticRegression(), 3, seed=1)
    assert read_as_categories(model) == set(CATEGORIES)
    all_covered(model, texts(N // 2))


def test_an_ensemble_of_ensembles_behind_a_scaler():
    inner = ensemble.BaggingClassifier(naive_bayes.GaussianNB(), 2, seed=1)
    all_covered(preprocessing.StandardScaler() | ensemble.AdaBoostClassifier(inner, 2, seed=2), blobs(100))


def test_a_row_without_votes_stays_as_it_is():
    X, schema = np.zeros((3, 1)), Schema(["a"])
    evaluator = make_evaluator(ensemble.BaggingClassifier(naive_bayes.GaussianNB(), 2, seed=1), schema)
    assert evaluator.predict(X).shape == (3, 0)
    assert evaluator.labels == ()
    patches = ensemble.SRPClassifier(naive_bayes.GaussianNB(), seed=1)
    state = patches._rng.getstate()
    assert make_evaluator(patches, schema).predict(X).shape == (3, 0)
    assert patches._rng.getstate() == state
    assert not patches.models


def test_ensembles_that_are_not_covered_are_refused():
    schema = Schema(["a"])
    encoded = preprocessing.LDA() | linear_model.LogisticRegression()
    refused("LDA", ensemble.BaggingClassifier(encoded, 2), schema)
    unseen = preprocessing.MinMaxScaler() | linear_model.LogisticRegression()
    refused("no prediction", ensemble.BaggingClassifier(unseen, 2), schema, to_predict=True)
    patches = ensemble.SRPClassifier(naive_bayes.GaussianNB(), 2, seed=1)
    patches.data.append(tree.HoeffdingTreeClassifier())
    refused("HoeffdingTreeClassifier", patches, schema)
