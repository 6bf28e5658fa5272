"""At every prefix of a short stream, iPFI and iSAGE equal the slow, obvious version on the same draws."""

import math
from itertools import chain

import pytest
from river import base, compose, linear_model, naive_bayes, preprocessing
from river.datasets import synth

from attributary_explainers import IncrementalPFI, IncrementalSAGE, make_reservoir
from tests.explainers.naive import Naive

N = 90


def drifting_classes():
    first = synth.SEA(variant=0, seed=5).take(N // 2)
    return chain(first, synth.SEA(variant=2, seed=6).take(N // 2))


def numbers():
    return synth.Friedman(seed=7).take(N)


def cross_entropy(y, prediction):
    return -math.log(min(max(prediction.get(y, 0.0), 1e-15), 1 - 1e-15))


def brier(y, prediction):
    return sum((p - (c == y)) ** 2 for c, p in {y: 0.0, **prediction}.items())


def zero_one(y, label):
    return float(label != y)


def classifier():
    return naive_bayes.GaussianNB()


def regressor():
    return compose.Pipeline(preprocessing.StandardScaler(), linear_model.LinearRegression())


CASES = [
    (classifier, drifting_classes, "cross_entropy", cross_entropy),
    (classifier, drifting_classes, "brier", brier),
    (regressor, numbers, "squared", lambda y, p: (y - p) ** 2),
    (regressor, numbers, "absolute", lambda y, p: abs(y - p)),
]


def prediction_of(model):
    if isinstance(model, base.Classifier):
        return lambda x: model.predict_proba_one(x) or None
    return model.predict_one


def close(values):
    # 1e-12, as sums of at most 90 terms in another order may differ by about 90 times 1e-16 of their size.
    return pytest.approx(values, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("kind", ["uniform", "geometric"])
@pytest.mark.parametrize(("make", "stream", "name", "loss"), CASES)
@pytest.mark.parametrize(("alpha", "n_samples", "size"), [(0.05, 3, 10), (0.3, 1, 4)])
def test_pfi_equals_its_definition_at_every_prefix(make, stream, name, loss, kind, alpha, n_samples, size):
    model = make()
    explainer = IncrementalPFI(
        model, loss=name, alpha=alpha, n_samples=n_samples, reservoir=make_reservoir(kind, size), seed=11
    )
    naive = Naive(prediction_of(model), loss, alpha=alpha, n_samples=n_samples, kind=kind, size=size, seed=11)
    for x, y in stream():
        explainer.explain_one(x, y)
        naive.pfi_step(x, y)
        if naive.increments:
            assert explainer.raw_importance == close(naive.raw())
            assert explainer.importance == close(naive.corrected())
        model.learn_one(x, y)
    assert explainer.n_observations == len(naive.increments) == N - 1


def test_pfi_of_labels_equals_its_definition_at_every_prefix():
    model = classifier()
    explainer = IncrementalPFI(model, loss="zero_one", alpha=0.02, n_samples=5, seed=12)
    naive = Naive(model.predict_one, zero_one, alpha=0.02, n_samples=5, kind="geometric", size=100, seed=12)
    for x, y in drifting_classes():
        explainer.explain_one(x, y)
        naive.pfi_step(x, y)
        if naive.increments:
            assert explainer.importance == close(naive.corrected())
        model.learn_one(x, y)
    assert any(explainer.importance.values())


@pytest.mark.parametrize("kind", ["uniform", "geometric"])
@pytest.mark.parametrize(("make", "stream", "name", "loss"), CASES)
@pytest.mark.parametrize(("alpha", "n_samples", "size"), [(0.05, 3, 10), (0.3, 1, 4)])
def test_sage_equals_its_definition_at_every_prefix(make, stream, name, loss, kind, alpha, n_samples, size):
    model = make()
    explainer = IncrementalSAGE(
        model, loss=name, alpha=alpha, n_samples=n_samples, reservoir=make_reservoir(kind, size), seed=13
    )
    naive = Naive(prediction_of(model), loss, alpha=alpha, n_samples=n_samples, kind=kind, size=size, seed=13)
    for x, y in stream():
        explainer.explain_one(x, y)
        naive.sage_step(x, y)
        if naive.increments:
            assert explainer.importance == close(naive.corrected())
            assert explainer.raw_importance == close(naive.raw())
            assert explainer.marginal_loss == close(naive.smoothed(naive.marginal_losses))
            assert explainer.model_loss == close(naive.smoothed(naive.model_losses))
        model.learn_one(x, y)
    assert explainer.n_observations == len(naive.increments) == N - 1


@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.5])
def test_theorem_2_raw_is_corrected_times_one_minus_the_decay(explainer, alpha):
    model = classifier()
    explaining = explainer(model, loss="brier", alpha=alpha, n_samples=1, seed=14)
    for x, y in drifting_classes():
        explaining.explain_one(x, y)
        model.learn_one(x, y)
        n = explaining.n_observations
        factor = 1.0 - (1.0 - alpha) ** n
        for name, value in explaining.importance.items():
            assert explaining.raw_importance[name] == pytest.approx(factor * value, rel=1e-12, abs=1e-15)
    assert n == N - 1


@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
def test_a_prediction_handed_in_changes_nothing(explainer):
    model = classifier()
    one = explainer(model, loss="brier", alpha=0.1, seed=15)
    two = explainer(model, loss="brier", alpha=0.1, seed=15)
    for x, y in drifting_classes():
        assert one.explain_one(x, y) == two.explain_one(x, y, y_pred=model.predict_proba_one(x) or None)
        model.learn_one(x, y)
    assert one.n_observations == two.n_observations == N - 1
