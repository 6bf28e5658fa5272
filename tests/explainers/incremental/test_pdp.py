"""Partial dependence against weighted means computed directly, on grids whose points are known."""

import math
import pickle

import numpy as np
import pytest
from river import anomaly, linear_model, naive_bayes, preprocessing, stats, tree
from river.datasets import synth

from attributary_explainers.errors import InvalidParameterError, ModelError, SnapshotError
from attributary_explainers.incremental.pdp import IncrementalPDP
from tests.explainers.oracles import smoothing_weights
from tests.explainers.plain_data import strangers
from tests.explainers.stand_ins import Linear, Recording


def curved(x):
    return x["a"] ** 2 * (1 + x["b"]) - x["b"]


def coded_stream(n, n_codes=5, seed=1):
    """`a` of few values, all of them there among the first ten; `b` normal."""
    rng = np.random.default_rng(seed)
    codes = [*range(n_codes), *rng.integers(n_codes, size=n).tolist()]
    return [{"a": code, "b": float(rng.normal())} for code in codes[:n]]


@pytest.mark.parametrize("alpha", [0.01, 0.3, 1.0])
def test_on_a_fixed_grid_it_is_the_weighted_mean(alpha):
    stream = coded_stream(400)
    pdp = IncrementalPDP(curved, ["a"], alpha=alpha, grid_size=5)
    assert [pdp.explain_one(x) for x in stream[:4]] == [{}] * 4  # the fifth value makes the grid
    for n, x in enumerate(stream[4:], start=1):
        grid, means = pdp.explain_one(x)["a"]
        assert grid == [0, 1, 2, 3, 4]
        if n in (1, 2, 7, 396):
            weights = smoothing_weights(alpha, n)
            rows = stream[4 : 4 + n]
            weights = weights / weights.sum()
            exact = [sum(w * curved({**row, "a": g}) for w, row in zip(weights, rows, strict=True)) for g in grid]
            assert means == pytest.approx(exact, abs=1e-12, rel=1e-12)
    assert (pdp.n_observations, pdp.n_skipped, pdp.n_missing) == (396, 4, {"a": 0})


def test_a_linear_model_has_a_line_with_its_slope_also_where_the_grid_moves_inwards():
    rng = np.random.default_rng(2)
    wide, narrow = [-10.0, -3.0, 4.0, 10.0], rng.uniform(-3.0, 4.0, size=200).tolist()
    pdp = IncrementalPDP(Linear({"a": 3.0, "b": -2.0}, 5.0), ["a"], alpha=0.05, grid_size=4, window=20)
    grids = set()
    for a in [*(wide * 8), *narrow[:20]]:
        pdp.explain_one({"a": a, "b": float(rng.normal(10))})
        if pdp.pdp:
            grid, means = pdp.pdp["a"]
            grids.add(tuple(grid))
            assert np.diff(means) / np.diff(grid) == pytest.approx(np.full(3, 3.0), abs=1e-9)
    assert len(grids) == 2  # made anew when 52 values were there, of the last 20
    assert set(grid) <= set(narrow)


def test_a_moved_grid_interpolates_inside_and_starts_anew_outside():
    rest = iter(range(1000))
    pdp = IncrementalPDP(lambda x: x["a"] ** 2 + x["t"], ["a"], alpha=0.1, grid_size=3, window=3)
    for a in (0, 4, 6, 0, 4):
        pdp.explain_one({"a": a, "t": next(rest)})
    assert pdp.pdp["a"][0] == [0, 4, 6]
    before = dict(zip(*pdp.pdp["a"], strict=True))
    weights = smoothing_weights(0.1, 3)
    mean_t = weights @ [2, 3, 4]
    assert before == pytest.approx({0: mean_t, 4: 16 + mean_t, 6: 36 + mean_t}, abs=1e-12)
    pdp.explain_one({"a": 3, "t": next(rest)})  # 6 values: the grid is made of the last three
    grid, means = pdp.pdp["a"]
    assert grid == [0, 3, 4]
    after = smoothing_weights(0.1, 4)
    rate = after[-1]
    # 3 lies between 0 and 4: 12 by interpolation where the curve has 9, and then one observation of 9.
    assert means[1] == pytest.approx((1 - rate) * (12 + mean_t) + rate * (9 + 5), abs=1e-12)
    assert means[2] == pytest.approx(16 + after @ [2, 3, 4, 5], abs=1e-12)
    for a in (3, 8, 9):
        pdp.explain_one({"a": a, "t": next(rest)})
    grid, means = pdp.pdp["a"]
    assert grid == [3, 8, 9]
    assert means[1:] == pytest.approx([64 + 8, 81 + 8], abs=1e-12)  # nothing but the last observation, t = 8


def test_the_grid_follows_a_shifted_range():
    rng = np.random.default_rng(3)
    pdp = IncrementalPDP(Linear({"a": 1.0}), window=100, grid_size=10)
    for shift in (0.0, 1000.0, -1000.0):
        for _ in range(300):
            pdp.explain_one({"a": float(rng.uniform(shift, shift + 1))})
        grid, means = pdp.pdp["a"]
        assert len(grid) == 10
        # Quantiles (i + 1/2) / 10 of 100 uniform values: standard error at most 0.05.
        assert grid == pytest.approx([shift + (i + 0.5) / 10 for i in range(10)], abs=0.2)
        assert means == pytest.approx(grid, abs=1e-9)


def test_categories_have_a_point_each_and_the_oldest_makes_room():
    value = {"red": 1.0, "green": 2.0, True: 3.0, "blue": 4.0}
    pdp = IncrementalPDP(lambda x: value[x["c"]] + x["t"], ["c"], alpha=0.1, grid_size=3)
    for t, c in enumerate(["red", "green", "red", True, "red"]):
        pdp.explain_one({"c": c, "t": t})
    all_weights = smoothing_weights(0.1, 5)
    means = {"red": 1 + all_weights @ range(5), "green": 2 + smoothing_weights(0.1, 4) @ range(1, 5)}
    means[True] = 3 + smoothing_weights(0.1, 2) @ [3, 4]
    assert dict(zip(*pdp.pdp["c"], strict=True)) == pytest.approx(means, abs=1e-12)
    pdp.explain_one({"c": "blue", "t": 7})
    grid, after = pdp.pdp["c"]
    assert grid == ["red", True, "blue"]  # green was seen longest ago
    assert after[2] == pytest.approx(4.0 + 7, abs=1e-12)


def test_numbers_can_be_declared_categories():
    pdp = IncrementalPDP(Linear({"a": 1.0}), categorical=["a"], grid_size=3)
    for a in (7, 3, 5, 7, 9):
        pdp.explain_one({"a": a, "b": float(a)})
    assert pdp.pdp["a"] == ([7, 5, 9], [7.0, 5.0, 9.0])
    assert pdp.pdp["b"][0] == [3.0, 5.0, 7.0]


@pytest.mark.parametrize("absent", [None, math.nan, math.inf, -math.inf, np.float64("nan"), 10**400, "text", [1], ()])
def test_what_is_no_value_is_skipped_and_counted(absent):
    stream = coded_stream(60)
    model = Recording(1.0)
    pdp, clean = (IncrementalPDP(model, ["a", "b"], grid_size=5) for _ in range(2))
    for i, x in enumerate(stream):
        if i % 7 == 6:
            seen = len(model.rows)
            assert pdp.explain_one({"a": absent, "b": absent}) == clean.pdp
            assert len(model.rows) == seen
        assert pdp.explain_one(x) == clean.explain_one(x)
    assert pdp.n_missing == {"a": 8, "b": 8}
    assert (pdp.n_observations, pdp.n_skipped) == (clean.n_observations, clean.n_skipped + 8)


def test_a_feature_that_is_absent_leaves_the_other_curves_alone():
    pdp = IncrementalPDP(Linear({"a": 1.0, "b": 1.0}), grid_size=2)
    for i in range(10):
        pdp.explain_one({"a": i % 2, **({"b": 5} if i % 5 else {})})
    assert pdp.n_missing == {"a": 0, "b": 1}  # b is known from the second observation on
    assert pdp.n_observations == 9
    assert pdp.explain_one({})["a"] == pdp.pdp["a"]
    assert pdp.n_missing == {"a": 1, "b": 2}


@pytest.mark.parametrize("prediction", [None, math.nan, {}, {"x": math.inf, "y": 0.0}])
def test_an_unusable_prediction_enters_no_curve(prediction):
    pdp = IncrementalPDP(Recording(prediction), grid_size=2)
    assert [pdp.explain_one({"a": i}) for i in range(5)] == [{}] * 5
    assert (pdp.n_observations, pdp.n_skipped, pdp.n_missing) == (0, 5, {"a": 4})


@pytest.mark.parametrize(
    ("classes", "label", "chosen"), [((False, True), None, True), ((0, 1), 0, 0), (("no", "yes"), None, "yes")]
)
def test_a_classifier_gives_the_probability_of_one_class(classes, label, chosen):
    model = naive_bayes.GaussianNB()
    pdp = IncrementalPDP(model, ["a"], label=label, grid_size=5, alpha=1.0)
    for i, x in enumerate(coded_stream(100)):
        pdp.explain_one(x)
        if i < 99:
            model.learn_one(x, classes[x["a"] > 2] if i > 10 else classes[1])
    grid, means = pdp.pdp["a"]
    exact = [model.predict_proba_one({**x, "a": g})[chosen] for g in grid]
    assert means == pytest.approx(exact, abs=1e-15)
    assert max(means) - min(means) > 0.1


@pytest.mark.parametrize("probabilities", [{"a": 0.5, "b": 0.3, "c": 0.2}, {"a": 0.5, 1: 0.5}])
def test_a_label_must_be_named_where_it_cannot_be_chosen(probabilities):
    stream = [{"x": 1.0}, {"x": 2.0}]
    pdp = IncrementalPDP(Recording(probabilities), grid_size=2)
    with pytest.raises(ModelError, match="name one of them as `label`"):
        [pdp.explain_one(x) for x in stream]
    pdp = IncrementalPDP(Recording(probabilities), grid_size=2, label="a")
    assert [pdp.explain_one(x) for x in stream][-1] == {"x": ([1.0, 2.0], [0.5, 0.5])}


def test_lines_of_the_last_observations_average_to_the_curve():
    pdp = IncrementalPDP(curved, alpha=1.0, grid_size=5, n_ice=3)
    stream = coded_stream(30)
    for x in stream:
        pdp.explain_one(x)
    for x, (grid, line) in zip(stream[-3:], pdp.ice["a"], strict=True):
        assert grid == [0, 1, 2, 3, 4]
        assert line == [curved({**x, "a": g}) for g in grid]
    assert pdp.ice["a"][-1][1] == pytest.approx(pdp.pdp["a"][1], abs=1e-12)
    assert IncrementalPDP(curved, ["a"]).ice == {}


KINDS = {
    "classifier": tree.HoeffdingTreeClassifier(grace_period=20),
    "regressor": preprocessing.StandardScaler() | linear_model.LinearRegression(),
    "detector": anomaly.HalfSpaceTrees(n_trees=2, height=3, window_size=20, seed=1),
}


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("stop", [0, 3, 57])
def test_restored_and_continued_equals_never_stopped(kind, stop):
    model, n = KINDS[kind].clone(), 130
    rng = np.random.default_rng(5)
    rows = [{"a": float(a), "b": rng.integers(40), "c": "uvw"[i % 3]} for i, a in enumerate(rng.normal(size=n))]
    rows = rows if kind == "classifier" else [{"a": row["a"], "b": row["b"]} for row in rows]
    stopped = never = IncrementalPDP(model, grid_size=4, window=20, n_ice=2, alpha=0.05)
    for i, x in enumerate(rows):
        if i == stop:
            snapshot = stopped.snapshot()
            assert strangers(snapshot) == []
            stopped = IncrementalPDP.from_snapshot(pickle.loads(pickle.dumps(snapshot)), model)
            frozen = pickle.dumps(snapshot)
        never.explain_one(x)
        if stopped is not never:
            stopped.explain_one(x)
        assert repr((stopped.pdp, stopped.ice, stopped.n_missing)) == repr((never.pdp, never.ice, never.n_missing))
        model.learn_one(*((x,) if kind == "detector" else (x, i % 2)))
    assert stopped.snapshot() == never.snapshot()
    assert pickle.dumps(snapshot) == frozen  # shares nothing with the explainers that went on


def test_a_snapshot_of_something_else_is_refused():
    snapshot = IncrementalPDP(curved, label="x", categorical=["c"]).snapshot()
    assert IncrementalPDP.from_snapshot(snapshot, curved).parameters == snapshot["parameters"]
    for wrong in ({**snapshot, "explainer": "pfi"}, {**snapshot, "format": 0}):
        with pytest.raises(SnapshotError):
            IncrementalPDP.from_snapshot(wrong, curved)


def test_memory_does_not_grow_with_the_stream():
    pdp = IncrementalPDP(Linear({"salary": 1e-5}), window=100, grid_size=4, n_ice=3)
    sizes = []
    for i, (x, _) in enumerate(synth.Agrawal(seed=1).take(10000), start=1):
        pdp.explain_one({**x, "id": f"{i:09}"})
        if i in (2000, 10000):
            sizes.append(len(pickle.dumps(pdp.snapshot())))
    assert sizes[1] < 1.02 * sizes[0]


def test_nothing_given_is_kept_or_changed_and_the_cost_is_bounded():
    model, stream = Recording(2.0), coded_stream(50)
    pdp = IncrementalPDP(model, ["a"], grid_size=5)
    for x in stream:
        before = dict(x)
        result = pdp.explain_one(x)
        assert x == before
        if result:
            result["a"][0].clear(), result["a"][1].append(9.0)
    assert pdp.pdp == {"a": ([0, 1, 2, 3, 4], [2.0] * 5)}
    assert len(model.rows) == 46 * 5


WRONG = {"alpha": (0.0, 2), "grid_size": (1,), "window": (9,), "n_ice": (-1,), "features": "a", "categorical": "a"}


@pytest.mark.parametrize(("parameter", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_parameters_out_of_range_are_refused_by_name(parameter, value):
    with pytest.raises(InvalidParameterError, match=f"^{parameter} must be"):
        IncrementalPDP(curved, **{parameter: value})


def test_models_without_a_prediction_or_with_a_needless_label_are_refused():
    with pytest.raises(InvalidParameterError, match="label must be None"):
        IncrementalPDP(linear_model.LinearRegression(), label=1)
    for model in (stats.Mean(), preprocessing.StandardScaler(), 3.0):
        with pytest.raises(ModelError, match="callable"):
            IncrementalPDP(model)
