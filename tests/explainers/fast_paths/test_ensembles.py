"""Ensembles over members that have fast paths of their own."""

from __future__ import annotations

import numpy as np
import pytest
from river import compose, ensemble, linear_model, metrics, naive_bayes, optim, preprocessing, tree

from attributary_explainers.evaluation.evaluator import NotCoveredError
from attributary_explainers.evaluation.registry import make_evaluator, read_as_categories
from attributary_explainers.evaluation.schema import Schema

from .harness import follow
from .streams import blobs, line, texts

N = 120
NUMBERS, CATEGORIES = ("size", "constant"), ("colour", "door", "new")


def logistic():
    return preprocessing.StandardScaler() | linear_model.LogisticRegression(optim.SGD(0.1))


def linear():
    return preprocessing.StandardScaler() | linear_model.LinearRegression(optim.SGD(0.05))


def fully_covered(report, n=N):
    assert report.steps == n
    assert report.covered == n, report.reasons


def binary(n=N, d=4):
    return ((x, y == "a") for x, y in blobs(n, d, ("b", "a")))


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
        ensemble.BOLEClassifier,
    ],
)
@pytest.mark.parametrize("inner", [logistic, naive_bayes.GaussianNB])
def test_classifiers(kind, inner):
    stream = binary() if inner is logistic else blobs(N, 3)
    fully_covered(follow(kind(inner(), n_models=4, seed=1), stream, n_rows=4))


@pytest.mark.parametrize(
    "kind",
    [ensemble.ADWINBaggingClassifier, ensemble.LeveragingBaggingClassifier, ensemble.ADWINBoostingClassifier],
)
def test_members_that_are_exchanged_at_a_drift(kind):
    members = set()
    keep = []

    def after(_, model):
        keep.append(model.data[:])
        members.update(map(id, model.data))

    report = follow(kind(naive_bayes.GaussianNB(), n_models=3, seed=1), shifting(450), n_rows=3, after=after)
    fully_covered(report, 450)
    assert len(members) > 3


def test_boosting_where_no_member_has_a_weight():
    model = ensemble.BOLEClassifier(naive_bayes.GaussianNB(), n_models=3, seed=1, error_bound=0.0)
    fully_covered(follow(model, blobs(60)), 60)


@pytest.mark.parametrize("n_models", [2, 5])
def test_bagging_of_regressors(n_models):
    fully_covered(follow(ensemble.BaggingRegressor(linear(), n_models, seed=1), line(N), number=True))


def test_weighted_average_of_regressors():
    model = ensemble.EWARegressor([linear(), linear_model.PARegressor(), linear_model.LinearRegression()])
    fully_covered(follow(model, line(N), number=True))


@pytest.mark.parametrize("parameters", [{}, {"disable_weighted_vote": True}, {"training_method": "resampling"}])
def test_random_patches(parameters):
    model = ensemble.SRPClassifier(naive_bayes.GaussianNB(), n_models=4, seed=1, **parameters)
    fully_covered(follow(model, blobs(N, 5), n_rows=6))


@pytest.mark.parametrize("method", ["mean", "median"])
@pytest.mark.parametrize("parameters", [{"disable_weighted_vote": False}, {}, {"metric": metrics.R2()}])
def test_random_patches_of_regressors(method, parameters):
    if "metric" in parameters:
        parameters = {**parameters, "disable_weighted_vote": False}
    model = ensemble.SRPRegressor(linear(), n_models=3, seed=1, aggregation_method=method, **parameters)
    fully_covered(follow(model, line(N // 2), number=True, n_rows=6), N // 2)


def test_patches_whose_features_change_at_a_drift():
    model = ensemble.SRPClassifier(naive_bayes.GaussianNB(), n_models=3, seed=1)
    seen = set()

    def after(_, model):
        seen.update((i, tuple(member.features)) for i, member in enumerate(model))

    fully_covered(follow(model, ((x, y) for x, y in shifting(450)), n_rows=3, after=after), 450)
    assert len(seen) > 3


def test_patches_whose_features_are_exchanged_are_seen():
    def meddle(step, model):
        model.data[step % 2].features = ["x0"] if step % 3 else ["x1", "x2"]

    model = ensemble.SRPClassifier(naive_bayes.GaussianNB(), n_models=2, seed=1)
    fully_covered(follow(model, blobs(40), after=meddle), 40)


def test_members_with_categories():
    encoder = compose.Select(*CATEGORIES) | preprocessing.OneHotEncoder()
    scaler = compose.Select(*NUMBERS) | preprocessing.StandardScaler()
    model = ensemble.BaggingClassifier((scaler + encoder) | linear_model.LogisticRegression(), 3, seed=1)
    assert read_as_categories(model) == set(CATEGORIES)
    fully_covered(follow(model, texts(N // 2)), N // 2)


def test_an_ensemble_of_ensembles_behind_a_scaler():
    inner = ensemble.BaggingClassifier(naive_bayes.GaussianNB(), 2, seed=1)
    model = preprocessing.StandardScaler() | ensemble.AdaBoostClassifier(inner, 2, seed=2)
    fully_covered(follow(model, blobs(100)), 100)


def test_a_row_without_votes_stays_as_it_is():
    model = ensemble.BaggingClassifier(naive_bayes.GaussianNB(), 2, seed=1)
    schema = Schema(["a"])
    evaluator = make_evaluator(model, schema)
    assert evaluator.predict(np.zeros((3, 1))).shape == (3, 0)
    assert evaluator.labels == ()
    patches = ensemble.SRPClassifier(naive_bayes.GaussianNB(), seed=1)
    state = patches._rng.getstate()
    assert make_evaluator(patches, schema).predict(np.zeros((3, 1))).shape == (3, 0)
    assert patches._rng.getstate() == state
    assert not patches.models


def test_refusals():
    schema = Schema(["a"])
    voting = ensemble.VotingClassifier([linear_model.LogisticRegression(), naive_bayes.GaussianNB()])
    stacking = ensemble.StackingClassifier([naive_bayes.GaussianNB()] * 2, linear_model.LogisticRegression())
    for model in (voting, stacking):
        with pytest.raises(NotCoveredError, match="no fast path"):
            make_evaluator(model, schema)
    imputed = preprocessing.StatImputer() | linear_model.LogisticRegression()
    with pytest.raises(NotCoveredError, match="StatImputer"):
        make_evaluator(ensemble.BaggingClassifier(imputed, 2), schema)
    unseen = preprocessing.MinMaxScaler() | linear_model.LogisticRegression()
    with pytest.raises(NotCoveredError, match="no prediction"):
        make_evaluator(ensemble.BaggingClassifier(unseen, 2), schema).predict(np.zeros((1, 1)))
    patches = ensemble.SRPClassifier(naive_bayes.GaussianNB(), 2, seed=1)
    patches.data.append(tree.HoeffdingTreeClassifier())
    with pytest.raises(NotCoveredError, match="HoeffdingTreeClassifier"):
        make_evaluator(patches, schema)
