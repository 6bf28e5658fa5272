"""What holds for iSAGE exactly, on every stream and at every step."""

import math
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import compose, linear_model, naive_bayes, preprocessing
from river.datasets import synth

from attributary_explainers import (
    REMOVAL_NAMES,
    RESERVOIR_NAMES,
    SAMPLING_NAMES,
    ConstantImputer,
    IncrementalSAGE,
    make_reservoir,
)
from tests.explainers.stand_ins import Linear

IDENTITY = 1e-9  # both sides are the same sum in another order


def assert_efficient(sage, importance, scale=1.0):
    if sage.n_observations:
        improvement = sage.marginal_loss - sage.model_loss
        assert abs(math.fsum(importance.values()) - improvement) <= IDENTITY * max(scale, 1.0)


def drifting_classes():
    return chain(synth.SEA(variant=0, seed=1).take(250), synth.SEA(variant=3, seed=2).take(250))


def drifting_numbers():
    return synth.FriedmanDrift(drift_type="gra", position=(150, 300), seed=3, transition_window=50).take(450)


@pytest.mark.parametrize("loss", ["cross_entropy", "brier", "zero_one"])
@pytest.mark.parametrize("reservoir", RESERVOIR_NAMES)
@pytest.mark.share(2, "reservoir", "loss")
def test_importances_sum_to_the_improvement_of_a_learning_classifier(loss, reservoir):
    model = naive_bayes.GaussianNB()
    sage = IncrementalSAGE(model, loss=loss, alpha=0.02, n_samples=2, reservoir=make_reservoir(reservoir, 20), seed=1)
    for x, y in drifting_classes():
        assert_efficient(sage, sage.explain_one(x, y))
        model.learn_one(x, y)
    assert sage.n_observations == 499
    assert any(abs(v) > 0.01 for v in sage.importance.values())


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_importances_sum_to_the_improvement_of_a_learning_regressor(loss):
    model = compose.Pipeline(preprocessing.StandardScaler(), linear_model.LinearRegression())
    sage = IncrementalSAGE(model, loss=loss, alpha=0.02, n_samples=3, seed=2)
    for x, y in drifting_numbers():
        # Losses reach some hundreds here: the identity is to 1e-9 of their size.
        assert_efficient(sage, sage.explain_one(x, y), scale=1e3)
        model.learn_one(x, y)
    assert sage.n_observations == 449
    assert sage.marginal_loss > sage.model_loss > 0.0


values = st.floats(-10.0, 10.0)
rows = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


@settings(max_examples=120, deadline=None)
@given(
    stream=st.lists(st.tuples(rows, values), min_size=2, max_size=25),
    weights=st.fixed_dictionaries(dict.fromkeys("abcd", values)),
    alpha=st.floats(0.001, 1.0),
    n_samples=st.integers(1, 5),
    size=st.integers(1, 5),
    groups=st.sampled_from([None, {"ab": ["a", "b"]}, {"all": ["a", "b", "c", "d"]}, {"zz": ["z"], "da": ["d", "a"]}]),
    kind=st.sampled_from(RESERVOIR_NAMES),
    removal=st.sampled_from([*REMOVAL_NAMES, "constant"]),
    sampling=st.sampled_from(SAMPLING_NAMES),
    loss=st.sampled_from(["squared", "absolute", "score", lambda y, p: abs(y - p) ** 1.5]),
    n_permutations=st.integers(1, 3),
    bias_correction=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_efficiency_holds_on_any_stream(stream, weights, kind, size, removal, sampling, **parameters):
    constant = ConstantImputer({"a": 0.5, "c": -2.0})
    how = {"removal": removal, "sampling": sampling, "reservoir": make_reservoir(kind, size)}
    sage = IncrementalSAGE(Linear(weights), **({"removal": constant} if removal == "constant" else how), **parameters)
    sage.know_names()  # the group `zz` is of a feature that never comes
    for x, y in stream:
        # Predictions reach 400 and losses 410^2; what has been forgotten leaves rounding of that size.
        assert_efficient(sage, sage.explain_one(x, y), scale=410.0**2)


labels = st.sampled_from(["red", 1, None, (2, 3)])


@settings(max_examples=40, deadline=None)
@given(
    stream=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), labels), min_size=2, max_size=25),
    alpha=st.floats(0.001, 1.0),
    loss=st.sampled_from(["cross_entropy", "brier"]),
    n_samples=st.integers(1, 5),
    removal=st.sampled_from(REMOVAL_NAMES),
    n_permutations=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
def test_efficiency_holds_for_probabilities_of_any_labels(stream, **parameters):
    def model(x):
        return {"red": x["a"] * x["b"], 1: x["a"] * (1 - x["b"]), None: 1 - x["a"]}

    sage = IncrementalSAGE(model, **parameters)
    sage.explain_one({"a": 0.5, "b": 0.5}, "red")  # a first label of another type than every class would be refused
    for a, b, y in stream:
        # One loss is 34.5 at the most.
        assert_efficient(sage, sage.explain_one({"a": a, "b": b}, y), scale=35.0)


def test_importance_is_linear_in_the_loss():
    def one(y, p):
        return (y - p) ** 2

    def two(y, p):
        return abs(y - p)

    def both(y, p):
        return 3.0 * one(y, p) - 0.5 * two(y, p)

    rng = np.random.default_rng(4)
    model = Linear({"a": 1.0, "b": -2.0, "c": 0.5})
    explainers = [IncrementalSAGE(model, loss=loss, alpha=0.05, n_samples=2, seed=4) for loss in (one, two, both)]
    for *features, noise in rng.normal(size=(80, 4)).tolist():
        x = dict(zip("abc", features, strict=True))
        first, second, combined = (e.explain_one(x, model(x) + noise) for e in explainers)
        for name in combined:
            # The same draws: equal up to rounding.
            assert combined[name] == pytest.approx(3.0 * first[name] - 0.5 * second[name], rel=1e-9, abs=1e-12)
    assert set(combined) == set("abc")


def test_the_mean_prediction_starts_at_the_first_prediction():
    # A constant model is its own mean from the first step on. Begun at 0 the mean would be 1 at the first step.
    sage = IncrementalSAGE(lambda x: 1000.0, loss="squared", alpha=0.001, seed=5)
    for i in range(50):
        importance = sage.explain_one({"a": i, "b": -i}, 990.0)
        if i:
            # 1e-9: the mean of 1000 is rounded to 1e-13 at each of 50 steps, its squared error to twenty times that.
            assert sage.marginal_loss == pytest.approx(100.0, abs=1e-9)
            assert sage.model_loss == pytest.approx(100.0, abs=1e-9)
            assert list(importance.values()) == pytest.approx([0.0, 0.0], abs=1e-9)


def marginal_losses(sage, stream):
    """The loss of the mean prediction at each of the explained observations, taken out of its smoothed mean."""
    found, before, total = [], 0.0, 0.0
    for value in stream:
        sage.explain_one({"a": value}, 0.0)
        if sage.n_observations:
            weight = total * (1.0 - sage.alpha)
            total = weight + sage.alpha
            found.append((sage.marginal_loss * total - before * weight) / sage.alpha)
            before = sage.marginal_loss
    return found


def test_the_mean_prediction_of_the_paper_includes_the_observation_itself():
    # Weights 1, 2, 4, ... from the first observation on, which is stored and not explained.
    sage = IncrementalSAGE(
        lambda x: x["a"], loss="squared", alpha=0.5, n_samples=1, reservoir=make_reservoir("geometric", 3), seed=6
    )
    means = [(100 + 2 * 2) / 3, (100 + 2 * 2 + 4 * 5) / 7, (100 + 2 * 2 + 4 * 5 + 8 * 1) / 15]
    assert marginal_losses(sage, [100.0, 2.0, 5.0, 1.0]) == pytest.approx([mean**2 for mean in means], rel=1e-9)


def test_the_mean_prediction_is_as_old_as_what_is_drawn_and_its_noise_is_taken_off():
    sage = IncrementalSAGE(lambda x: x["a"], loss="squared", alpha=0.5, n_samples=1, seed=6)
    # Half of what has been seen is behind the gap: 100; 100; 100 and 2.
    # The mean is smoothed twice: twice that of rate .25 (3/7 and 4/7) less that of .5 (1/3 and 2/3).
    once, slow = (100 + 2 * 2) / 3, (3 * 100 + 4 * 2) / 7
    spread = ((100 - once) ** 2 + 2 * (2 - once) ** 2) / 3
    q, twice = (1 + 4) / 9, ((6 / 7 - 1 / 3) ** 2 + (8 / 7 - 2 / 3) ** 2)
    losses = [100.0**2, 100.0**2, (2 * slow - once) ** 2 - spread / (1 - q) * twice]
    assert marginal_losses(sage, [100.0, 2.0, 5.0, 1.0]) == pytest.approx(losses, rel=1e-9)


def test_the_last_coalition_is_the_prediction_itself():
    # A single feature is always last, so no draw is evaluated: all rows that the model sees are the stream's own.
    seen = []
    sage = IncrementalSAGE(lambda x: seen.append(dict(x)) or x["a"], loss="squared", n_samples=5, seed=7)
    stream = [{"a": float(i)} for i in range(20)]
    for x in stream:
        sage.explain_one(x, 0.0)
    assert seen == stream
