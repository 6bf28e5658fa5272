"""Partial dependence against the exact curve, on streams on which an interpolated grid or an old model is far off."""

import math
import random

import numpy as np
import pytest
from benchmarks.calibration.dependence import STREAMS, Bayes, ForestRegressor, measure_one
from river import forest, linear_model, preprocessing, tree
from river.datasets import synth

from attributary_explainers import IncrementalPDP

CHEAP = (
    "two-step staircase",
    "damped sine",
    "logistic of Cauchy",
    "nine letters, one late",
    "drifting range",
    "dependent feature",
    "a fifth is missing",
    "model jumps",
)


CROSSING = ("interaction, lognormal", "model grows")
LEARNT = ("ARFRegressor", "class of GaussianNB", "class of ARFClassifier")


def errors_of_two(stream):
    """The largest errors at two readings of two explainers that see the same learner: learning is what is dear."""
    both = [IncrementalPDP(stream.model, ["a"], label=stream.label, seed=seed) for seed in (1, 2)]
    errors = []
    for n in range(1, 5001):
        x = stream.row()
        for one in both:
            one.explain_one(x)
            if n in (4000, 5000):
                grid, means = one.update()["a"]
                exact = stream.exact(grid)
                errors.append(float(np.abs(np.array(means) - exact).max() / np.ptp(exact)) * 100.0)
        stream.learn(x)
    return errors


@pytest.mark.parametrize("name", CHEAP)
def test_the_largest_error_is_two_percent_of_the_range(name):
    errors = [measure_one(name, seed, read_at=(4000, 6000))[0] for seed in (1, 2)]
    assert np.mean(errors) <= 2.0
    assert np.max(errors) <= 4.0


@pytest.mark.long
@pytest.mark.parametrize("name", CROSSING)
def test_so_it_is_where_lines_cross(name):
    errors = [measure_one(name, seed, read_at=(4000, 6000))[0] for seed in (1, 2)]
    assert np.mean(errors) <= 2.0
    assert np.max(errors) <= 4.0


@pytest.mark.long
@pytest.mark.parametrize("name", LEARNT)
def test_so_it_is_where_models_learn(name):
    errors = errors_of_two(STREAMS[name](1))
    assert len(errors) == 4
    assert np.mean(errors) <= 2.0
    assert np.max(errors) <= 4.0


class AdaptiveTree(Bayes):
    """One tree that learns three classes, and grows branches anew."""

    def __init__(self, seed):
        super().__init__(seed)
        self.model = tree.HoeffdingAdaptiveTreeClassifier(grace_period=100, seed=seed)


class SmallForest(ForestRegressor):
    """Three trees learn a valley whose depth depends on another feature; features are skewed and one says nothing."""

    def __init__(self, seed):
        super().__init__(seed)
        self.model = forest.ARFRegressor(n_models=3, seed=seed)

    def made(self, rng):
        return dict(zip("abcd", rng.gamma(2.0, 0.5, size=4).tolist(), strict=True))

    def target(self, x):
        return (x["a"] - 1.0) ** 2 * (1.0 + 0.5 * x["b"]) + x["c"] + 0.3 * self.rng.normal()


@pytest.mark.long
@pytest.mark.parametrize("stream", [AdaptiveTree, SmallForest])
def test_so_it_is_of_learners_that_the_benchmark_does_not_have(stream):
    errors = errors_of_two(stream(1))
    assert np.mean(errors) <= 2.0
    assert np.max(errors) <= 4.0


@pytest.mark.parametrize("kind", ["numbers", "with gaps", "with text"])
def test_batches_of_a_fast_path_give_the_curves_of_the_model_asked_row_by_row(kind):
    def seen(i, x):
        if kind == "with gaps" and i % 7 == 3:
            return {name: value for name, value in x.items() if name != ("age", "loan")[i % 2]}
        return {**x, "car": f"c{x['car']}"} if kind == "with text" else x

    stream = [(seen(i, x), y) for i, (x, y) in enumerate(synth.Agrawal(2, seed=4).take(500))]
    model = tree.HoeffdingTreeClassifier(grace_period=50, delta=0.1)
    fast, naive = (IncrementalPDP(model, window=100, grid_size=10, seed=2, n_ice=3) for _ in range(2))
    naive._function._faulty = True
    for x, y in stream:
        fast.explain_one(x)
        naive.explain_one(x)
        model.learn_one(x, y)
    told, expected = fast.update(), naive.update()
    assert fast._function.n_evaluated > 100
    assert naive._function.n_evaluated == 0 < naive._function.n_naive
    assert told.keys() == expected.keys() == stream[0][0].keys()
    for name, (grid, means) in told.items():
        assert grid == expected[name][0]
        assert means == pytest.approx(expected[name][1], abs=1e-11)
    assert max(max(means) - min(means) for _, means in told.values()) > 0.1
    assert (fast.n_missing, fast.n_evaluations) == (naive.n_missing, naive.n_evaluations)
    for name, lines in fast.ice.items():
        for (_, line), (_, other) in zip(lines, naive.ice[name], strict=True):
            assert line == pytest.approx(other, abs=1e-12)


@pytest.mark.parametrize("nothing", [None, math.nan])
def test_a_value_that_is_missing_is_missing_from_its_own_curve_alone(nothing):
    """The model is asked without it, as explainers of importances ask it: most of River's raise on None."""
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    pdp, rng = IncrementalPDP(model, alpha=0.01, seed=1), random.Random(1)
    for n in range(200):
        x = {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1)}
        pdp.explain_one({**x, "b": nothing} if n % 2 else x)
        model.learn_one(x, x["a"] > 0)
    assert pdp.n_missing == {"a": 0, "b": 100}
    assert pdp.n_skipped == 0
    assert len(pdp.pdp["a"][0]) > 5


@pytest.mark.long
def test_the_questions_are_spread_over_the_observations():
    rng = np.random.default_rng(8)
    n_features = 30
    pdp = IncrementalPDP(lambda x: float(sum(x.values())), seed=1)
    asked = []
    for _ in range(3200):
        before = pdp.n_evaluations
        pdp.explain_one(dict(enumerate(rng.normal(size=n_features).tolist())))
        asked.append(pdp.n_evaluations - before)
    later = asked[1600:]
    per_block = 400 * 20 * n_features + 800  # 200 probe rows and 200 new ones at 20 points, and the block itself
    assert max(later) <= 1.1 * per_block / 800 + 40 + 1
    assert np.mean(later) == pytest.approx(per_block / 800 + 1, rel=0.05)
    pdp = IncrementalPDP(lambda x: float(x[0]), seed=1)
    asked = []
    for _ in range(1600):
        before = pdp.n_evaluations
        pdp.explain_one({0: float(rng.normal())})
        asked.append(pdp.n_evaluations - before)
    assert max(asked) <= 200 + 40 + 1  # a row more, of two grids where one is new
    assert np.median(asked) == 1  # most observations ask nothing but their own prediction


@pytest.mark.long
def test_reading_often_costs_no_accuracy():
    rng = np.random.default_rng(9)
    pdp = IncrementalPDP(lambda x: x["a"] * (1 + 0.5 * x["b"]), ["a"], alpha=0.005, seed=1)
    for a, b in rng.normal(size=(600, 2)).tolist():
        pdp.explain_one({"a": a, "b": b})
        pdp.update()
    assert pdp._curves["a"].weight == pytest.approx(-math.expm1(600 * math.log1p(-0.005)) / 0.005, rel=0.02)
    grid, means = pdp.pdp["a"]
    assert np.polyfit(grid, means, 1)[0] == pytest.approx(1.0, abs=0.15)  # sd of the slope is 0.5 * sqrt(0.0025)
