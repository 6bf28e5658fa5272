"""At every prefix of a short stream, iPFI and iSAGE equal the slow, obvious version on the same draws."""

import math
from itertools import chain

import numpy as np
import pytest
from river import base, compose, linear_model, naive_bayes, preprocessing
from river.datasets import synth

from attributary_explainers import (
    RESERVOIR_NAMES,
    ConditionalImputer,
    ConditionalSampler,
    ConstantImputer,
    IncrementalPFI,
    IncrementalSAGE,
    make_reservoir,
)
from tests.explainers.naive import Naive, NaiveReservoir, filled, permutation
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


def squared(y, p):
    return (y - p) ** 2


def zero_one(y, label):
    return float(label != y)


def classifier():
    return naive_bayes.GaussianNB()


def regressor():
    return compose.Pipeline(preprocessing.StandardScaler(), linear_model.LinearRegression())


CASES = [
    (classifier, drifting_classes, "cross_entropy", cross_entropy),
    (classifier, drifting_classes, "brier", brier),
    (regressor, numbers, "squared", squared),
    (regressor, numbers, "absolute", lambda y, p: abs(y - p)),
]
KINDS = {
    "uniform": (10, None, None),
    "geometric": (4, None, None),
    "sliding_window": (7, None, None),
    "lagged": (7, 5, 20),
    "long gap": (4, 200, 12),
}
"""Size, gap and reach. Behind the long gap is half of what has been seen."""
SIZES = [
    *[("geometric", 0.3, 1), ("lagged", 0.05, 2)],
    *(
        pytest.param(*case, marks=pytest.mark.long)
        for case in (("uniform", 0.05, 3), ("sliding_window", 0.1, 4), ("lagged", 0.3, 5), ("long gap", 0.1, 3))
    ),
]


def reservoirs(kind):
    """The reservoir, and the naive one."""
    name, (size, gap, reach) = kind if kind in RESERVOIR_NAMES else "lagged", KINDS[kind]
    return make_reservoir(name, size, gap, reach), NaiveReservoir(name, size, gap or 0, reach or 0)


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
            # The root of a sum of squared differences: half of the digits are left where they are nearly 0.
            assert explainer.std_error == pytest.approx(naive.std_error(), rel=1e-7, abs=1e-6 * math.sqrt(scale))
            assert explainer.half_width == pytest.approx(naive.half_width(), rel=1e-7, abs=1e-5 * math.sqrt(scale))
        if explainer.name == "sage" and naive.increments:
            assert explainer.marginal_loss == close(naive.smoothed(naive.marginal_losses), scale)
            assert explainer.model_loss == close(naive.smoothed(naive.model_losses), scale)
        if hasattr(model, "learn_one"):
            model.learn_one(x, y)
    assert explainer.n_observations == len(naive.increments) == n - 1
    assert any(explainer.importance.values())


@pytest.mark.parametrize("how", ["paper", "default"])
@pytest.mark.parametrize(("kind", "alpha", "n_samples"), SIZES)
@pytest.mark.parametrize(("make", "stream", "name", "loss"), CASES)
@pytest.mark.parametrize("method", list(EXPLAINERS))
def test_the_papers_estimator_and_the_default_equal_their_definition(
    method, make, stream, name, loss, kind, alpha, n_samples, how
):
    """By default draws are stratified, ordered anew at every step, and the bias is taken out by two halves (SAGE)."""
    model, own, written = make(), {}, {"sampling": "independent"}
    if how == "default":
        most_bias = 0.5 if name == "cross_entropy" else math.inf
        written = {"sampling": "stratified", "bias_correction": True, "most_bias": most_bias}
    else:
        own = {"sampling": "independent"} | ({} if method == "pfi" else {"bias_correction": False})
    both = {"alpha": alpha, "n_samples": n_samples, "seed": 11 if how == "paper" else 13}
    reservoir, naive_reservoir = reservoirs(kind)
    explainer = EXPLAINERS[method](model, loss=name, reservoir=reservoir, **both, **own)
    naive = Naive(prediction_of(model), loss, reservoir=naive_reservoir, **both, **written)
    check_every_prefix(explainer, naive, model, stream())


@pytest.mark.parametrize("sampling", ["independent", "stratified"])
@pytest.mark.parametrize("method", list(EXPLAINERS))
def test_labels_equal_the_definition(method, sampling):
    model = classifier()
    # The default reservoir: its reach is three windows.
    explainer = EXPLAINERS[method](model, loss="zero_one", alpha=0.02, n_samples=5, sampling=sampling, seed=12)

    def one_hot(x):
        label = model.predict_one(x)
        return None if label is None else {label: 1.0}

    def loss(y, prediction):
        return zero_one(y, max(prediction, key=prediction.__getitem__))

    reservoir = NaiveReservoir("lagged", 100, gap=200, reach=150)
    how = {"sampling": sampling, "bias_correction": True, "is_smooth": False}
    naive = Naive(one_hot, loss, alpha=0.02, n_samples=5, reservoir=reservoir, seed=12, **how)
    check_every_prefix(explainer, naive, model, drifting_classes())


@pytest.mark.parametrize("method", list(EXPLAINERS))
def test_costs_equal_the_definition(method):
    model = classifier()
    costs = {"false_negative": 9, "false_positive": 1}
    explainer = EXPLAINERS[method](model, loss={"cost": costs}, alpha=0.02, n_samples=5, seed=12)

    def loss(y, prediction):
        decided = prediction.get(True, 0.0) >= 0.1
        return 0.0 if decided == y else 9.0 if y else 1.0

    reservoir = NaiveReservoir("lagged", 100, gap=200, reach=150)
    how = {"sampling": "stratified", "bias_correction": True, "is_smooth": False}
    naive = Naive(prediction_of(model), loss, alpha=0.02, n_samples=5, reservoir=reservoir, seed=12, **how)
    check_every_prefix(explainer, naive, model, drifting_classes(), scale=9.0)


@pytest.mark.parametrize("kind", ["geometric", "lagged"])
@pytest.mark.parametrize("method", list(EXPLAINERS))
def test_observations_passed_over_are_stored_and_stood_for(method, kind):
    model, rng = classifier(), np.random.default_rng(16)
    reservoir, naive_reservoir = reservoirs(kind)
    both = {"alpha": 0.05, "n_samples": 4, "seed": 17}
    explainer = EXPLAINERS[method](model, loss="brier", reservoir=reservoir, **both)
    how = {"sampling": "stratified", "bias_correction": True}
    naive = Naive(prediction_of(model), brier, reservoir=naive_reservoir, **both, **how)
    step = naive.pfi_step if method == "pfi" else naive.sage_step
    for n, (x, y) in enumerate(drifting_classes()):
        if n > 0 and rng.random() < 0.4:
            explainer.pass_over(x)
            naive.pass_over(x)
        else:
            explainer.explain_one(x, y)
            step(x, y)
        if len(naive.increments) > 1:
            assert explainer.raw_importance == close(naive.raw())
            assert explainer.importance == close(naive.corrected())
            assert explainer.std_error == pytest.approx(naive.std_error(), rel=1e-7, abs=1e-6)
            assert explainer.half_width == pytest.approx(naive.half_width(), rel=1e-7, abs=1e-5)
        if method == "sage" and naive.increments:
            assert explainer.marginal_loss == close(naive.smoothed(naive.marginal_losses))
        model.learn_one(x, y)
    assert explainer.n_observations == len(naive.increments) > 22
    assert sum(naive.times) > len(naive.times) + 10


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
@pytest.mark.parametrize(
    ("n_samples", "kind"),
    [(2, "lagged"), (5, "long gap"), *(pytest.param(n, "geometric", marks=pytest.mark.long) for n in (1, 5))],
)
@pytest.mark.parametrize("method", list(EXPLAINERS))
def test_every_removal_equals_its_definition(method, n_samples, kind, removal, sampling, grouped):
    groups = GROUPS if grouped else None
    own = {} if method == "pfi" else {"n_permutations": 3}
    reservoir, naive_reservoir = reservoirs(kind)
    # River's trees are checked elsewhere: here both sides draw from the same, which split from 30 values on.
    samplers = [ConditionalSampler(leaf_size=20, grace_period=10, seed=4) for _ in range(2)]
    if removal == "observational-trees":
        how = {"removal": ConditionalImputer(reservoir, samplers[0], sampling=sampling)}
    else:
        how = {"removal": removal, "sampling": sampling, "reservoir": reservoir}
    numeric = method == "pfi" or n_samples == 2
    model, loss, true_loss = (
        (MODEL, "squared", squared) if numeric else (Probabilities(), "cross_entropy", cross_entropy)
    )
    both = {"alpha": 0.1, "n_samples": n_samples, "groups": groups, "seed": 14, **own}
    explainer = EXPLAINERS[method](model, loss=loss, **how, **both)
    bias = {"bias_correction": True, "most_bias": 0.5 if loss == "cross_entropy" else math.inf}
    draws = {
        "removal": removal,
        "sampling": sampling,
        "sampler": samplers[1] if removal == "observational-trees" else None,
    }
    naive = Naive(model, true_loss, reservoir=naive_reservoir, **bias, **draws, **both)
    stream = ((x, y if numeric else y > 1.0) for x, y in mixed_stream())
    check_every_prefix(explainer, naive, model, stream, scale=100.0)


@pytest.mark.parametrize("method", list(EXPLAINERS))
def test_removal_to_a_constant_equals_its_definition(method):
    # Nothing is drawn: one row per feature or coalition. What has no constant is taken away.
    constant = {"a": 1, "b": 0.25, "c": 0.0, "hot_0": 1}
    explainer = EXPLAINERS[method](MODEL, loss="squared", alpha=0.1, removal=ConstantImputer(constant), seed=15)
    rng, n = np.random.default_rng(15), 0
    # Nothing is stored: the mean prediction includes the one for the observation, as the paper's.
    reservoir = NaiveReservoir("geometric", 1)
    naive = Naive(MODEL, squared, alpha=0.1, n_samples=1, reservoir=reservoir, seed=0, bias_correction=True)
    for x, y in mixed_stream():
        explainer.explain_one(x, y)
        n += 1

        def loss(kept, x=x, y=y):
            return squared(y, MODEL({**{f: constant[f] for f in x if f in constant}, **{f: x[f] for f in kept}}))

        if method == "pfi":
            naive.add({f: loss([g for g in x if g != f]) - loss(list(x)) for f in x})
        else:
            order = [list(x)[i] for i in permutation(len(x), rng)]
            losses = [naive.loss_of_mean_prediction(x, y), *(loss(order[: k + 1]) for k in range(len(x)))]
            naive.add({f: losses[k] - losses[k + 1] for k, f in enumerate(order)})
        naive.finish(x)
        assert explainer.importance == close(naive.corrected(), scale=100.0)
        if n > 1:
            assert explainer.std_error == pytest.approx(naive.std_error(), rel=1e-7, abs=1e-5)
    assert explainer.n_observations == n
    assert explainer.n_skipped == 0


def test_the_naive_rows_leave_out_what_the_source_lacks():
    naive = Naive(MODEL, brier, alpha=0.1, n_samples=2, reservoir=NaiveReservoir("geometric", 2), seed=0)
    for x in ({"a": 1}, {"b": 2}):
        naive.reservoir.update(x, 0.0, naive.rng)
    rows = [filled(row) for row in naive.mixed(["a", "b"], 50)]
    assert [r for r in ({}, {"a": 1}, {"b": 2}, {"a": 1, "b": 2}) if r not in rows] == []
