"""Partial dependence against weighted means computed directly, where every row is asked."""

import math
import pickle

import numpy as np
import pytest
from river import anomaly, linear_model, naive_bayes, preprocessing, stats, tree
from river.datasets import synth

from attributary_explainers import IncrementalPDP
from attributary_explainers.errors import InvalidParameterError, ModelError, ModelFailureWarning, SnapshotError
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


def exact(model, rows, name, grid, alpha):
    """The weighted mean of what the model says now about every row."""
    weights = smoothing_weights(alpha, len(rows))
    weights = weights / weights.sum()
    return [sum(w * model({**row, name: g}) for w, row in zip(weights, rows, strict=True)) for g in grid]


@pytest.mark.parametrize("alpha", [0.001, 0.01, 0.3, 1.0])
def test_where_every_row_is_asked_it_is_the_weighted_mean(alpha):
    stream = coded_stream(400)
    pdp = IncrementalPDP(curved, ["a"], alpha=alpha, grid_size=5, seed=1)
    for n, x in enumerate(stream, start=1):
        assert n > 100 or pdp.explain_one(x) == pdp.pdp
        if n > 100:
            pdp.explain_one(x)
        if n % 40 == 0:  # a quarter of the block of 400 is asked, so that 40 are asked all
            grid, means = pdp.update()["a"]
            assert grid == [0, 1, 2, 3, 4]
            assert means == pytest.approx(exact(curved, stream[:n], "a", grid, alpha), abs=1e-11, rel=1e-11)
    assert (pdp.n_observations, pdp.n_skipped, pdp.n_missing) == (400, 0, {"a": 0})


def test_where_some_rows_are_asked_an_additive_model_loses_nothing():
    rng = np.random.default_rng(3)
    rows = [dict(zip("ab", pair, strict=True)) for pair in rng.normal(size=(1400, 2)).tolist()]
    model = Linear({"a": 3.0, "b": -2.0}, 5.0)
    pdp = IncrementalPDP(model, ["a"], alpha=0.01, seed=1)
    for x in rows:
        pdp.explain_one(x)
    grid, means = pdp.update()["a"]
    # Every row counts, though a quarter is asked: the others' part of the mean is known from h(x). What is left is that
    # a row is drawn by its weight, and the line between grid points ends at the outermost.
    assert means == pytest.approx(exact(model, rows, "a", grid, 0.01), abs=0.15)
    assert np.diff(means) / np.diff(grid) == pytest.approx(np.full(len(grid) - 1, 3.0), abs=1e-9)


class Changing:
    """A model whose factor is changed from outside."""

    def __init__(self):
        self.factor = 1.0

    def __call__(self, x):
        return self.factor * curved(x)


def test_the_means_are_carried_over_to_the_model_of_now():
    stream, model = coded_stream(90), Changing()
    pdp = IncrementalPDP(model, ["a"], alpha=0.01, grid_size=5)
    for n, x in enumerate(stream, start=1):
        pdp.explain_one(x)
        if n == 45:
            pdp.update()
    grid, _ = pdp.update()["a"]
    model.factor = -3.0
    # The lines are -3 times what they were, so that nothing is lost, whatever rows stand in the probe.
    before = np.array(exact(curved, stream, "a", grid, 0.01))
    assert pdp.update()["a"][1] == pytest.approx(-3.0 * before, abs=1e-11)


def test_the_means_are_carried_by_the_slope_of_the_answers_now_by_those_of_then():
    """The regression estimator, evaluated naively: between 0 for an unrelated model and 1 for the same one."""
    rng = np.random.default_rng(11)
    rows = [dict(zip("abc", row, strict=True)) for row in rng.normal(size=(300, 3)).tolist()]
    state = {"now": 0.0}

    def model(x):
        return x["a"] * (x["b"] + state["now"] * x["c"])

    pdp = IncrementalPDP(model, ["a"], window=100, grid_size=5, seed=1)
    for x in rows:
        pdp.explain_one(x)
    grid, before = pdp.update()["a"]
    probe = list(pdp._probe)
    assert pdp.update()["a"] == (grid, before)  # a model that has not changed adds exactly 0
    then = np.array([[model({**x, "a": g}) for g in grid] for x in probe])
    state["now"] = 0.8
    now = np.array([[model({**x, "a": g}) for g in grid] for x in probe])
    expected = []
    for i, mean in enumerate(before):
        slope, constant = np.polyfit(then[:, i], now[:, i], 1)
        expected.append(constant + slope * mean)
    assert pdp.update()["a"][1] == pytest.approx(expected, abs=1e-12)
    explained = np.corrcoef(then[:, 0], now[:, 0])[0, 1] ** 2  # alike at each grid point, as all lines pass through 0
    assert pdp._curves["a"].followed == pytest.approx(explained, abs=1e-9)


@pytest.mark.parametrize(("change", "lost"), [(0.0, 0.0), (1.0, 1.0)])
def test_more_rows_are_asked_of_a_model_that_forgets_them(change, lost):
    """Each block has a model of its own: nothing that it said before tells what it says now."""
    rng = np.random.default_rng(12)
    state = {"t": 0.0}

    def model(x):
        return math.sin(x["a"] + 1e4 * x["b"] * (1.0 + state["t"]))

    pdp = IncrementalPDP(model, ["a"], window=200, seed=1)
    asked = []
    for t in range(4000):
        state["t"] = change * (t // 100)
        before = pdp.n_evaluations
        pdp.explain_one({"a": float(rng.normal()), "b": float(rng.normal())})
        asked.append(pdp.n_evaluations - before)
    # The answers of a hundred rows are never quite unrelated, by chance alone.
    assert np.mean(asked[1000:]) == pytest.approx(2 + 10 * (1 + lost), rel=0.06)
    assert max(asked[1000:]) <= 200 * (1 + lost) + 40 + 1


def test_a_mean_that_hangs_on_few_rows_counts_for_few():
    """After a jump that has nothing to do with what was, the old mean is that of the probe's rows."""
    rng = np.random.default_rng(4)
    weights = {}
    for spread in (0.0, 1.0):
        model = Changing()
        pdp = IncrementalPDP(
            lambda x, m=model, s=spread: x["a"] + x["c" if s * (m.factor < 0) else "b"], ["a"], window=400, seed=1
        )
        for i, (a, b, c) in enumerate(rng.normal(size=(2400, 3)).tolist(), start=1):
            if i == 2001:
                model.factor = -1.0
            pdp.explain_one({"a": a, "b": b, "c": c})
        pdp.update()
        weights[spread] = pdp._curves["a"].weight
    full = -math.expm1(2400 * math.log1p(-0.001)) / 0.001  # the sum of the smoothing weights
    assert weights[0.0] == pytest.approx(full)
    assert 400 < weights[1.0] < 0.7 * full


def test_a_new_grid_is_evaluated_and_not_interpolated():
    rng = np.random.default_rng(5)
    pdp = IncrementalPDP(lambda x: float(x["a"] > 0) + math.sin(9 * x["a"]), ["a"], grid_size=8, window=40, seed=1)
    grids = set()
    for i in range(4000):  # the range moves on by its own width every 400 rows
        line = pdp.explain_one({"a": float(rng.uniform(i / 400, i / 400 + 1)) - 5.0}).get("a")
        if line is not None:
            grids.add(tuple(line[0]))
            assert line[1] == pytest.approx([float(a > 0) + math.sin(9 * a) for a in line[0]], abs=1e-9)
    assert len(grids) > 5


@pytest.mark.parametrize("values", ["normal", "rounded", "mostly zero", "huge", "two"])
def test_a_grid_stays_while_the_values_do(values):
    rng = np.random.default_rng(6)
    draw = {
        "normal": lambda: float(rng.normal()),
        "rounded": lambda: round(float(rng.normal()), 1),
        "mostly zero": lambda: max(float(rng.normal()), 0.0),
        "huge": lambda: int(rng.integers(10**6)) * 10**300,
        "two": lambda: int(rng.integers(2)),
    }[values]
    pdp = IncrementalPDP(lambda x: 1.0, ["a"], seed=1)
    grids = []
    for i in range(4000):
        line = pdp.explain_one({"a": draw()}).get("a")
        if i > 800 and (not grids or line[0] != grids[-1]):
            grids.append(line[0])
    assert len(grids) <= 2
    assert len(grids[-1]) == {"normal": 20, "huge": 20, "two": 2}.get(values, len(grids[-1]))
    assert grids[-1] == sorted(set(grids[-1]))


def test_the_grid_follows_a_shifted_range():
    rng = np.random.default_rng(3)
    pdp = IncrementalPDP(Linear({"a": 1.0}), window=100, grid_size=10, alpha=0.02, seed=1)
    for shift in (0.0, 1000.0, -1000.0):
        for _ in range(800):
            pdp.explain_one({"a": float(rng.uniform(shift, shift + 1))})
        grid, means = pdp.update()["a"]
        assert len(grid) == 10
        # Quantiles (i + 1/2) / 10 of 100 uniform values, of which a rank may be off by 0.2: the outermost may be old.
        assert grid[3:7] == pytest.approx([shift + (i + 0.5) / 10 for i in range(3, 7)], abs=0.4)
        assert means == pytest.approx(grid, abs=1e-9)


def test_categories_have_a_point_each_and_one_that_is_gone_makes_room():
    value = {"red": 1.0, "green": 2.0, True: 3.0, "blue": 4.0}
    pdp = IncrementalPDP(lambda x: value[x["c"]] + x["t"], ["c"], alpha=0.1, grid_size=3, window=4)
    seen = ["red", "green", "red", True, "red"]
    for t, c in enumerate(seen):
        pdp.explain_one({"c": c, "t": t})
        pdp.update()
    mean = smoothing_weights(0.1, 5) @ np.arange(5.0)
    assert dict(zip(*pdp.pdp["c"], strict=True)) == pytest.approx({"red": 1 + mean, "green": 2 + mean, True: 3 + mean})
    pdp.explain_one({"c": "blue", "t": 5})  # green is among the last four before it
    assert pdp.update()["c"][0] == ["red", "green", True]
    pdp.explain_one({"c": "blue", "t": 6})
    grid, means = pdp.update()["c"]
    assert grid == ["red", True, "blue"]
    mean = smoothing_weights(0.1, 7) @ np.arange(7.0)
    assert means == pytest.approx([1 + mean, 3 + mean, 4 + mean])


def test_forty_categories_do_not_chase_each_other():
    rng = np.random.default_rng(7)
    pdp = IncrementalPDP(lambda x: float(len(x["c"])), seed=1)
    grids = set()
    for i in range(3000):
        curves = pdp.explain_one({"c": f"category {rng.integers(40)}"})
        if i > 200:
            grids.add(tuple(curves["c"][0]))
    assert {len(grid) for grid in grids} == {20}
    assert len(grids) <= 2


def test_numbers_can_be_declared_categories():
    pdp = IncrementalPDP(Linear({"a": 1.0}), categorical=["a"], grid_size=4)
    for a in (7, 3, 5, 7, 9):
        pdp.explain_one({"a": a, "b": float(a)})
    assert pdp.update()["a"] == ([7, 3, 5, 9], pytest.approx([7.0, 3.0, 5.0, 9.0]))
    assert pdp.pdp["b"][0] == [3.0, 5.0, 7.0, 9.0]


@pytest.mark.parametrize("absent", [None, math.nan, math.inf, -math.inf, np.float64("nan"), 10**400, "text", [1], ()])
def test_what_is_no_value_is_skipped_and_counted(absent):
    stream = coded_stream(60)
    model = Recording(1.0)
    pdp, clean = (IncrementalPDP(model, ["a", "b"], grid_size=5, window=20, seed=1) for _ in range(2))
    for i, x in enumerate(stream):
        if i % 7 == 6:
            before = pdp.n_evaluations, len(model.rows)
            pdp.explain_one({"a": absent, "b": absent})
            assert len(model.rows) - before[1] == pdp.n_evaluations - before[0]
        pdp.explain_one(x), clean.explain_one(x)
    assert pdp.update() == clean.update()
    assert pdp.n_missing == {"a": 8, "b": 8}
    assert (pdp.n_observations, pdp.n_skipped) == (clean.n_observations, clean.n_skipped + 8)


def test_a_row_without_a_feature_is_left_out_of_its_curve_alone():
    rows = [{"a": i % 2, **({"b": i % 3} if i % 5 else {})} for i in range(30)]
    model = Linear({"a": 1.0, "b": 10.0})
    pdp = IncrementalPDP(model, alpha=0.05)
    for x in rows:
        pdp.explain_one(x)
    curves = pdp.update()
    assert pdp.n_missing == {"a": 0, "b": 5}  # b is known from the second observation on
    assert pdp.n_observations == 30
    assert curves["a"][1] == pytest.approx(exact(model, rows, "a", [0, 1], 0.05))
    weights = [w for w, row in zip(smoothing_weights(0.05, 30), rows, strict=True) if "b" in row]
    with_b = [row for row in rows if "b" in row]
    means = [np.average([model({**row, "b": g}) for row in with_b], weights=weights) for g in (0, 1, 2)]
    assert curves["b"][1] == pytest.approx(means)
    assert pdp.explain_one({})["a"] == pdp.pdp["a"]
    assert pdp.n_missing == {"a": 1, "b": 6}


@pytest.mark.parametrize("prediction", [None, math.nan, {}, {"x": math.inf, "y": 0.0}, 1e200])
def test_an_unusable_prediction_enters_no_curve(prediction):
    pdp = IncrementalPDP(Recording(prediction), grid_size=2)
    assert [pdp.explain_one({"a": i}) for i in range(5)] == [{}] * 5
    assert pdp.update() == {}
    assert (pdp.n_observations, pdp.n_skipped, pdp.n_missing) == (0, 5, {"a": 5})


def test_rows_on_which_the_model_raises_are_left_out():
    def model(x):
        if x["b"] == 3 and x["a"] == 1:
            raise ZeroDivisionError("of the model")
        return x["a"] + 10.0 * x["b"]

    rows = [{"a": 0, "b": i % 4} for i in range(40)]
    rows[1]["a"] = 1
    pdp = IncrementalPDP(model, ["a"])
    with pytest.warns(ModelFailureWarning, match="of the model"):
        [pdp.explain_one(x) for x in rows]
    grid, means = pdp.update()["a"]
    assert (pdp.n_observations, pdp.n_skipped, pdp.n_missing) == (40, 0, {"a": 10})
    # The ten rows with b = 3 are asked in vain: the slope is right, and the level that of h(x), which all rows have.
    assert grid == [0, 1]
    assert means[1] - means[0] == pytest.approx(1.0)
    assert means == pytest.approx(exact(lambda x: x["a"] + 10.0 * x["b"], rows, "a", grid, 0.001))


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
    grid, means = pdp.update()["a"]
    last = [model.predict_proba_one({**x, "a": g})[chosen] for g in grid]
    assert pdp.chosen_label == chosen
    assert means == pytest.approx(last, abs=1e-12)
    assert max(means) - min(means) > 0.1


@pytest.mark.parametrize("probabilities", [{"a": 0.5, "b": 0.3, "c": 0.2}, {"a": 0.5, 1: 0.5}])
def test_a_label_must_be_named_where_it_cannot_be_chosen(probabilities):
    pdp = IncrementalPDP(Recording(probabilities), grid_size=2)
    with pytest.raises(ModelError, match="name one of them as `label`"):
        pdp.explain_one({"x": 1.0})
    pdp = IncrementalPDP(Recording(probabilities), grid_size=2, label="a")
    for x in (1.0, 2.0):
        pdp.explain_one({"x": x})
    assert pdp.update() == {"x": ([1.0, 2.0], [0.5, 0.5])}


def test_a_class_that_the_model_does_not_know_yet_has_probability_0():
    probabilities = {"a": 1.0}
    pdp = IncrementalPDP(lambda x: dict(probabilities), label="late")
    for x in (1.0, 2.0):
        pdp.explain_one({"x": x})
    assert pdp.update()["x"][1] == [0.0, 0.0]
    probabilities.update(a=0.75, late=0.25)
    assert pdp.update()["x"][1] == [0.25, 0.25]


def test_a_prediction_that_is_given_is_not_asked_for():
    model = Recording(2.0)
    pdp = IncrementalPDP(model)
    pdp.explain_one({"a": 1.0}, y_pred=2.0)
    assert (model.rows, pdp.n_evaluations, pdp.n_observations) == ([], 0, 1)
    pdp.explain_one({"a": 1.0}, y_pred=math.nan)
    assert (model.rows, pdp.n_skipped) == ([], 1)


def test_lines_of_the_last_observations_average_to_the_curve():
    pdp = IncrementalPDP(curved, alpha=1.0, grid_size=5, n_ice=3)
    stream = coded_stream(30)
    for x in stream:
        pdp.explain_one(x)
    pdp.update()
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
@pytest.mark.parametrize("stop", [0, 3, 57, 91])
@pytest.mark.share(2, "kind", "stop")
def test_restored_and_continued_equals_never_stopped(kind, stop):
    model, n = KINDS[kind].clone(), 130
    rng = np.random.default_rng(5)
    rows = [{"a": float(a), "b": rng.integers(40), "c": "uvw"[i % 3]} for i, a in enumerate(rng.normal(size=n))]
    rows = rows if kind == "classifier" else [{"a": row["a"], "b": row["b"]} for row in rows]
    stopped = never = IncrementalPDP(model, grid_size=20, window=40, n_ice=2, alpha=0.05, seed=1)
    open_rounds = set()
    for i, x in enumerate(rows):
        x = {name: value.item() if isinstance(value, np.generic) else value for name, value in x.items()}
        if i == stop:
            snapshot = stopped.snapshot()
            open_rounds.add(snapshot["round"] is not None)
            assert strangers(snapshot) == []
            stopped = IncrementalPDP.from_snapshot(pickle.loads(pickle.dumps(snapshot)), model)
            frozen = pickle.dumps(snapshot)
        never.explain_one(x)
        if stopped is not never:
            stopped.explain_one(x)
        if i % 50 == 49:
            assert stopped.update() == never.update() or stopped is never
        assert repr((stopped.pdp, stopped.ice, stopped.n_missing)) == repr((never.pdp, never.ice, never.n_missing))
        model.learn_one(*((x,) if kind == "detector" else (x, i % 2)))
    assert stopped.snapshot() == never.snapshot()
    assert pickle.dumps(snapshot) == frozen  # shares nothing with the explainers that went on
    assert open_rounds == {stop == 91}  # one of them stops while questions are open


def test_a_snapshot_of_something_else_is_refused():
    snapshot = IncrementalPDP(curved, label="x", categorical=["c"]).snapshot()
    assert IncrementalPDP.from_snapshot(snapshot, curved).parameters == snapshot["parameters"]
    for wrong in ({**snapshot, "explainer": "pfi"}, {**snapshot, "format": 0}):
        with pytest.raises(SnapshotError):
            IncrementalPDP.from_snapshot(wrong, curved)


@pytest.mark.long
def test_memory_does_not_grow_with_the_stream():
    pdp = IncrementalPDP(Linear({"salary": 1e-5}), window=100, grid_size=4, n_ice=3)
    sizes = []
    for i, (x, _) in enumerate(synth.Agrawal(seed=1).take(10000), start=1):
        pdp.explain_one({**x, "id": f"{i:09}"})
        if i in (2000, 10000):
            sizes.append(len(pickle.dumps(pdp.snapshot())))
    assert sizes[1] < 1.02 * sizes[0]


def test_a_feature_that_vanishes_is_forgotten_also_while_it_is_asked_about():
    pdp = IncrementalPDP(lambda x: 1.0, alpha=0.5, window=400, grid_size=20)
    for i in range(2100):
        pdp.explain_one({"a": i % 30, **({"gone": i % 30} if i < 900 else {})})
        if i == 1990:
            assert set(pdp.pdp) == {"a", "gone"}
    assert set(pdp.update()) == {"a"}
    assert set(pdp.n_missing) == {"a"}


def test_nothing_given_is_kept_or_changed():
    model, stream = Recording(2.0), coded_stream(50)
    pdp = IncrementalPDP(model, ["a"], grid_size=5, window=8)
    for x in stream:
        before = dict(x)
        result = pdp.explain_one(x)
        assert x == before
        x["a"] = "spoilt"
        if result:
            result["a"][0].clear(), result["a"][1].append(9.0)
    assert pdp.update() == {"a": ([0, 1, 2, 3, 4], [2.0] * 5)}
    assert len(model.rows) == pdp.n_evaluations


def test_the_draws_come_from_the_seed():
    rng = np.random.default_rng(10)
    rows = [dict(zip("ab", pair, strict=True)) for pair in rng.normal(size=(900, 2)).tolist()]
    found = []
    for seed in (1, 1, 2):
        pdp = IncrementalPDP(curved, ["a"], seed=seed)
        for x in rows:
            pdp.explain_one(x)
        found.append(repr(pdp.update()))
    assert found[0] == found[1] != found[2]


WRONG = {"alpha": (0.0, 2), "grid_size": (1,), "window": (19,), "n_ice": (-1,), "features": "a", "categorical": "a"}


@pytest.mark.parametrize(("parameter", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_parameters_out_of_range_are_refused_by_name(parameter, value):
    with pytest.raises(InvalidParameterError, match=f"^{parameter} must be"):
        IncrementalPDP(curved, **{parameter: value})


def test_models_without_a_prediction_or_with_a_needless_label_are_refused():
    with pytest.raises(InvalidParameterError, match="label must be None"):
        IncrementalPDP(linear_model.LinearRegression(), label=1)
    for model in (stats.Mean(), preprocessing.StandardScaler(), 3.0):
        with pytest.raises(ModelError, match="cannot explain"):
            IncrementalPDP(model)


@pytest.mark.parametrize("nothing", [None, math.nan])
def test_a_first_row_may_have_nothing_in_the_feature(nothing):
    pdp = IncrementalPDP(lambda x: 2.0 * x.get("a", 0.0), ["a"], alpha=0.05, grid_size=4, seed=1)
    assert pdp.explain_one({"a": nothing, "b": 1.0}) == {}
    for i in range(200):
        pdp.explain_one({"a": i / 200.0, "b": 1.0})
    grid, means = pdp.update()["a"]
    assert means == pytest.approx([2.0 * point for point in grid])
    with pytest.raises(InvalidParameterError, match="features must be made of features that the rows have"):
        IncrementalPDP(lambda x: 0.0, ["a"]).explain_one({"b": nothing})
