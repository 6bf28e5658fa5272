"""At every prefix of a short stream, iPFI and iSAGE equal the slow, obvious version on the same draws."""

import math
from itertools import chain

import numpy as np
import pytest
from river import base, compose, linear_model, naive_bayes, preprocessing
from river.datasets import synth

from attributary_explainers import (
    ConditionalImputer,
    ConditionalSampler,
    ConstantImputer,
    IncrementalPFI,
    IncrementalSAGE,
    make_reservoir,
)
from tests.explainers.naive import Naive, filled
from tests.explainers.oracles import smoothing_weights
from tests.explainers.stand_ins import Linear

N = 44
EXPLAINERS = {"pfi": IncrementalPFI, "sage": IncrementalSAGE}


def drifting_classes():
    first = synth.SEA(variant=0, seed=5).take(N // 2)
    return chain(first, synth.SEA(variant=2, seed=6).take(N // 2))


def numbers():
    for x, y in synth.Friedman(seed=7).take(N):
        yield {name: x[name] for name in list(x)[:5]}, y


def cross_entropy(y, prediction):
    return -math.log(min(max(prediction.get(y, 0.0), 1e-15), 1 - 1e-15))


def brier(y, prediction):
    return sum((p - (c == y)) ** 2 for c, p in {y: 0.0, **prediction}.items())


def zero_one(y, label):
    return float(label != y)


def slopes_of_cross_entropy(y, label, p):
    p = max(p, 1e-15)
    return (-1 / p, 1 / p**2) if label == y else (0.0, 0.0)


SLOPES = {
    "cross_entropy": slopes_of_cross_entropy,
    "brier": lambda y, label, p: (2 * (p - (label == y)), 2.0),
    "squared": lambda y, _label, p: (2 * (p - y), 2.0),
    "absolute": lambda y, _label, p: ((p > y) - (p < y), 0.0),
}
"""First and second derivative in one component of the prediction, by hand."""


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
SIZES = [("uniform", 0.05, 3, 10), ("geometric", 0.3, 1, 4), ("sliding_window", 0.1, 4, 7)]


def prediction_of(model):
    if isinstance(model, base.Classifier):
        return lambda x: model.predict_proba_one(x) or None
    return model.predict_one


def close(values, scale=1.0):
    # 1e-12, as sums of at most 50 terms in another order may differ by about 50 times 1e-16 of their size.
    return pytest.approx(values, rel=1e-12, abs=1e-12 * scale)


def check_every_prefix(explainer, naive, model, stream, scale=1.0):
    """Explain, compare all that is published, learn."""
    step = naive.pfi_step if explainer.name == "pfi" else naive.sage_step
    n = 0
    for x, y in stream:
        n += 1
        explainer.explain_one(x, y)
        step(x, y)
        if naive.increments:
            assert explainer.raw_importance == close(naive.raw(), scale)
            assert explainer.importance == close(naive.corrected(), scale)
        if len(naive.increments) > 1:
            # The root of a difference of sums: half of the digits are left where it is nearly 0.
            assert explainer.std_error == pytest.approx(naive.std_error(), rel=1e-7, abs=1e-6 * math.sqrt(scale))
        if explainer.name == "sage" and naive.increments:
            assert explainer.marginal_loss == close(naive.smoothed(naive.marginal_losses), scale)
            assert explainer.model_loss == close(naive.smoothed(naive.model_losses), scale)
        if hasattr(model, "learn_one"):
            model.learn_one(x, y)
    assert explainer.n_observations == len(naive.increments) == n - 1
    assert any(explainer.importance.values())


@pytest.mark.parametrize("how", ["paper", "default"])
@pytest.mark.parametrize(("kind", "alpha", "n_samples", "size"), SIZES)
@pytest.mark.parametrize(("make", "stream", "name", "loss"), CASES)
@pytest.mark.parametrize("method", list(EXPLAINERS))
def test_the_papers_estimator_and_the_default_equal_their_definition(
    method, make, stream, name, loss, kind, alpha, n_samples, size, how
):
    """By default draws are stratified, ordered anew at every step, and the bias is taken out by its formula (SAGE)."""
    model, own, written = make(), {}, {"sampling": "independent"}
    if how == "default":
        most_bias = 0.5 if name == "cross_entropy" else math.inf
        written = {"sampling": "stratified", "bias_correction": True, "most_bias": most_bias}
    else:
        own = {"sampling": "independent"} | ({} if method == "pfi" else {"bias_correction": False})
    both = {"alpha": alpha, "n_samples": n_samples, "seed": 11 if how == "paper" else 13}
    explainer = EXPLAINERS[method](model, loss=name, reservoir=make_reservoir(kind, size), **both, **own)
    naive = Naive(prediction_of(model), loss, kind=kind, size=size, slopes=SLOPES[name], **both, **written)
    check_every_prefix(explainer, naive, model, stream())


@pytest.mark.parametrize("sampling", ["independent", "stratified"])
@pytest.mark.parametrize("method", list(EXPLAINERS))
def test_labels_equal_the_definition(method, sampling):
    model = classifier()
    explainer = EXPLAINERS[method](model, loss="zero_one", alpha=0.02, n_samples=5, sampling=sampling, seed=12)

    def one_hot(x):
        label = model.predict_one(x)
        return None if label is None else {label: 1.0}

    def loss(y, prediction):
        return zero_one(y, max(prediction, key=prediction.__getitem__))

    naive = Naive(one_hot, loss, alpha=0.02, n_samples=5, kind="geometric", size=100, seed=12, sampling=sampling)
    check_every_prefix(explainer, naive, model, drifting_classes())


def mixed_stream(n=40, seed=1):
    """A category as sparse one-hot columns, ties, a feature that is often absent, one that is bound to another."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        a = int(rng.integers(3))
        x = {"a": a, "b": a + float(rng.normal(0.0, 0.1)), "c": float(rng.integers(2)), f"hot_{rng.integers(3)}": 1}
        if rng.random() < 0.5:
            x["d"] = float(rng.normal())
        yield x, float(x["b"] + rng.normal())


MODEL = Linear({"a": 1.0, "b": -2.0, "c": 3.0, "d": 0.5, "hot_0": 1.5, "hot_2": -1.0}, intercept=0.5)
GROUPS = {"hot": ["hot_0", "hot_1", "hot_2"], "cd": ["c", "d"]}


class Probabilities:
    """A model of probabilities that stands still."""

    def __call__(self, x):
        p = 1.0 / (1.0 + math.exp(-MODEL(x)))
        return {True: p, False: 1.0 - p}


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("sampling", ["independent", "stratified"])
@pytest.mark.parametrize("removal", ["interventional", "product", "observational-trees"])
@pytest.mark.parametrize("n_samples", [1, 2, 5])
@pytest.mark.parametrize("method", list(EXPLAINERS))
def test_every_removal_equals_its_definition(method, n_samples, removal, sampling, grouped):
    groups = GROUPS if grouped else None
    own = {} if method == "pfi" else {"n_permutations": 3}
    # River's trees are checked elsewhere: here both sides draw from the same, which split from 30 values on.
    samplers = [ConditionalSampler(leaf_size=20, grace_period=10, seed=4) for _ in range(2)]
    if removal == "observational-trees":
        how = {"removal": ConditionalImputer(make_reservoir("geometric", 8), samplers[0], sampling=sampling)}
    else:
        how = {"removal": removal, "sampling": sampling, "reservoir": make_reservoir("geometric", 8)}
    numeric = method == "pfi" or n_samples == 2
    model, loss, true_loss = (
        (MODEL, "squared", lambda y, p: (y - p) ** 2) if numeric else (Probabilities(), "cross_entropy", cross_entropy)
    )
    both = {"alpha": 0.1, "n_samples": n_samples, "groups": groups, "seed": 14, **own}
    explainer = EXPLAINERS[method](model, loss=loss, **how, **both)
    bias = {"bias_correction": True, "most_bias": 0.5 if loss == "cross_entropy" else math.inf}
    draws = {
        "removal": removal,
        "sampling": sampling,
        "sampler": samplers[1] if removal == "observational-trees" else None,
    }
    naive = Naive(model, true_loss, kind="geometric", size=8, slopes=SLOPES[loss], **bias, **draws, **both)
    stream = ((x, y if numeric else y > 1.0) for x, y in mixed_stream())
    check_every_prefix(explainer, naive, model, stream, scale=100.0)


@pytest.mark.parametrize("method", list(EXPLAINERS))
def test_removal_to_a_constant_equals_its_definition(method):
    # Nothing is drawn: one row per feature or coalition. What has no constant is taken away.
    constant = {"a": 1, "b": 0.25, "c": 0.0, "hot_0": 1}
    explainer = EXPLAINERS[method](MODEL, loss="squared", alpha=0.1, removal=ConstantImputer(constant), seed=15)
    rng, n = np.random.default_rng(15), 0
    naive = Naive(MODEL, lambda y, p: (y - p) ** 2, alpha=0.1, n_samples=1, kind="geometric", size=1, seed=0)
    for x, y in mixed_stream():
        explainer.explain_one(x, y)
        n += 1

        def loss(kept, x=x, y=y):
            return (y - MODEL({**{f: constant[f] for f in x if f in constant}, **{f: x[f] for f in kept}})) ** 2

        if method == "pfi":
            naive.increments.append({f: loss([g for g in x if g != f]) - loss(list(x)) for f in x})
        else:
            order = [list(x)[i] for i in rng.permutation(len(x))]
            naive.predictions.append(MODEL(x))
            mean = float(smoothing_weights(0.1, n) @ naive.predictions)
            losses = [(y - mean) ** 2, *(loss(order[: k + 1]) for k in range(len(x)))]
            naive.increments.append({f: losses[k] - losses[k + 1] for k, f in enumerate(order)})
        naive.history.append((n, {}))
        assert explainer.importance == close(naive.corrected(), scale=100.0)
        if n > 1:
            assert explainer.std_error == pytest.approx(naive.std_error(), rel=1e-7, abs=1e-5)
    assert explainer.n_observations == n
    assert explainer.n_skipped == 0


def test_the_naive_rows_leave_out_what_the_source_lacks():
    naive = Naive(MODEL, brier, alpha=0.1, n_samples=2, kind="geometric", size=2, seed=0)
    for x in ({"a": 1}, {"b": 2}):
        naive.reservoir.update(x, 0.0, naive.rng)
    rows = [filled(row) for row in naive.mixed(["a", "b"], 50)]
    assert [r for r in ({}, {"a": 1}, {"b": 2}, {"a": 1, "b": 2}) if r not in rows] == []
