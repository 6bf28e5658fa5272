"""Streams as they are: features come, go and change places, predictions are missing or broken, dicts are reused."""

import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
from river import naive_bayes
from river.datasets import synth

from attributary_explainers import (
    REMOVAL_NAMES,
    RESERVOIR_NAMES,
    ChangeExplainer,
    IncrementalPFI,
    IncrementalSAGE,
    ModelFailureWarning,
    as_batch,
    make_reservoir,
)
from attributary_explainers.core.rows import Rows
from attributary_explainers.snapshots import restored
from tests.explainers.stand_ins import Linear, Recording

EXPLAINERS = [IncrementalPFI, IncrementalSAGE]
WEIGHTS = {"a": 1.0, "b": -2.0, "c": 0.5, "d": 3.0}


def ragged(n, seed=1):
    """Features in a random order, each there in two observations of three; now and then none."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        names = [name for name in rng.permutation(list(WEIGHTS)).tolist() if rng.random() < 2 / 3]
        yield {name: float(rng.normal()) for name in names}, float(rng.normal())


def all_finite(importance):
    return all(map(math.isfinite, importance.values()))


@pytest.mark.parametrize("removal", REMOVAL_NAMES)
@pytest.mark.parametrize("reservoir", RESERVOIR_NAMES)
@pytest.mark.parametrize("explainer", EXPLAINERS)
@pytest.mark.share(2, "explainer", "reservoir", "removal")
def test_features_come_and_go_and_change_places(explainer, reservoir, removal):
    storage = make_reservoir(reservoir, 7)
    explaining = explainer(
        Linear(WEIGHTS), loss="squared", alpha=0.05, n_samples=3, removal=removal, reservoir=storage, seed=1
    )
    n_empty = 0
    for x, y in ragged(300):
        n_empty += not x
        assert all_finite(explaining.explain_one(x, y))
    assert set(explaining.importance) == set(WEIGHTS)
    assert n_empty > 0
    assert explaining.skipped["no_features"] == n_empty
    # The first has nothing to draw from; observational removal waits for seven, of which one may be empty.
    stored = explaining.skipped["nothing_stored"]
    assert stored == 1 if removal != "observational" else 7 <= stored <= 13
    assert explaining.n_skipped == n_empty + stored
    assert explaining.n_observations == 300 - explaining.n_skipped


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_feature_that_has_vanished_fades_away(explainer):
    rng = np.random.default_rng(2)
    explaining = explainer(Linear(WEIGHTS), loss="squared", alpha=0.1, seed=2)
    for a, d in rng.normal(size=(60, 2)).tolist():
        explaining.explain_one({"a": a, "d": d}, a + 3.0 * d)
    at_first = explaining.raw_importance["d"]
    assert abs(at_first) > 1.0
    fading = []
    for n, a in enumerate(rng.normal(size=60).tolist(), start=1):
        fading.append(explaining.explain_one({"a": a}, a)["d"])
        # Absent, its increments are 0: what is left after n steps is (1 - alpha)^n of it.
        assert explaining.raw_importance["d"] == pytest.approx(at_first * 0.9**n, rel=1e-9)
    assert all(abs(later) < abs(earlier) for earlier, later in pairwise(fading))


def test_the_order_of_the_features_does_not_matter_to_a_deterministic_value():
    # One stored row and one draw: nothing is left to chance, whatever the order.
    def run(reverse):
        pfi = IncrementalPFI(Linear(WEIGHTS), loss="squared", n_samples=1, reservoir=make_reservoir("geometric", 1))
        for i in range(20):
            x = {name: math.sin(i + k) for k, name in enumerate(WEIGHTS)}
            pfi.explain_one(dict(reversed(x.items())) if reverse and i % 2 else x, 0.0)
        return pfi.importance

    assert run(False) == run(True)


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_model_that_has_not_learnt_is_not_explained_but_its_observations_are_kept(explainer):
    explaining = explainer(model := naive_bayes.GaussianNB(), loss="cross_entropy", seed=3)
    stream = list(synth.SEA(seed=3).take(12))
    for x, y in stream[:5]:
        assert explaining.explain_one(x, y) == {}
    assert (explaining.n_observations, explaining.n_skipped, explaining.reservoir.n_seen) == (0, 5, 5)
    for x, y in stream[5:]:
        model.learn_one(x, y)
        explaining.explain_one(x, y)
    assert (explaining.n_observations, explaining.n_skipped) == (7, 5)


class BrokenNow:
    """A regressor that at chosen calls answers what it should not."""

    def __init__(self, answer):
        self.answer, self.broken = answer, False

    def __call__(self, x):
        return self.answer if self.broken else x["a"] - x["b"]


@pytest.mark.parametrize("answer", [math.nan, math.inf, -math.inf, None])
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_broken_prediction_does_not_poison_the_importance(explainer, answer):
    model = BrokenNow(answer)
    explaining = explainer(model, loss="squared", alpha=0.1, seed=4)
    rng = np.random.default_rng(4)
    for number, (a, b) in enumerate(rng.normal(size=(60, 2)).tolist()):
        before = explaining.importance
        model.broken = number % 10 == 5
        after = explaining.explain_one({"a": a, "b": b}, 0.0)
        assert all_finite(after)
        if model.broken:
            assert after == before
    assert explaining.n_skipped == 1 + 6
    assert explaining.n_observations == 60 - 7
    if explainer is IncrementalSAGE:
        assert math.isfinite(explaining.marginal_loss)
        assert sum(after.values()) == pytest.approx(explaining.marginal_loss - explaining.model_loss, abs=1e-9)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_broken_loss_does_not_poison_the_importance_and_numpy_says_nothing_of_it(explainer, value):
    explaining = explainer(lambda x: x["a"], loss=lambda y, p: value if y == "broken" else abs(p), alpha=0.1, seed=6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(40):
            y = "broken" if i % 8 == 7 else "fine"
            assert all_finite(explaining.explain_one({"a": float(i % 5), "b": 0.0}, y))
    assert (dict(explaining.skipped), explaining.n_observations) == ({"nothing_stored": 1, "not_finite": 5}, 34)
    if explainer is IncrementalSAGE:
        assert math.isfinite(explaining.model_loss)
        assert math.isfinite(explaining.marginal_loss)


@pytest.mark.parametrize("reservoir", RESERVOIR_NAMES)
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_the_number_of_stored_rows_is_bounded(explainer, reservoir):
    explaining = explainer(lambda x: 0.0, loss="squared", n_samples=1, reservoir=make_reservoir(reservoir, 25), seed=11)
    sizes = []
    for i in range(500):
        explaining.explain_one({"a": i}, 0.0)
        stored = explaining.snapshot()["imputer"]["reservoir"]["rows"]
        assert len(explaining.reservoir) == len(Rows.from_snapshot(stored))
        sizes.append(len(explaining.reservoir))
    assert max(sizes) == sizes[-1] == 25


def test_the_change_explainer_holds_a_window_and_a_half_at_the_most():
    # The recent observations, and half a window of the first that came after the reference.
    model, K = naive_bayes.GaussianNB(), 40
    change = ChangeExplainer(model, window=K, threshold=0.0, detector_params={"delta": 0.5, "clock": 1}, seed=12)
    held = []
    for i, (x, _) in enumerate(synth.SEA(seed=12).take(600)):
        y_pred = model.predict_one(x)
        model.learn_one(x, (i // 80) % 2)  # labels that keep changing: alarm after alarm
        before = dict(x)
        change.update(x, (i // 80) % 2, y_pred)
        assert x == before
        snapshot = change.snapshot() if i % 10 == 0 else None
        if snapshot is not None:
            held.append(sum(len(snapshot["held"][name]["state"]["n"]) // 8 for name in ("_rows", "first")))
            assert len(snapshot["held"]["_waiting"]["n"]) // 8 < 32  # for one call of the reference
            assert len(restored(snapshot["held"]["_baseline"])) <= 4 * K
    assert change.n_alarms.total() > 0
    assert K < max(held) <= 1.5 * K


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_why_an_observation_was_skipped_is_counted(explainer):
    def model(x):
        if x.get("a") == "unknown":
            return None
        if x.get("a") == "raise":
            raise ValueError("raised")
        return float(x.get("a", 0.0))

    explaining = explainer(
        model, loss="squared", reservoir=make_reservoir("sliding_window", 1), missing="skip", n_samples=10, seed=20
    )
    stream = [
        ({"a": 1.0, "b": 0.0}, 0.0, "nothing_stored"),
        ({"a": 2.0, "b": 0.0}, 0.0, None),
        ({}, 0.0, "no_features"),
        ({"a": 2.0, "b": 0.0}, 0.0, None),
        ({"a": None, "b": 0.0}, 0.0, "missing"),
        ({"a": 2.0, "b": 0.0}, 0.0, None),
        ({"a": "unknown", "b": 0.0}, 0.0, "no_prediction"),
        ({"a": 3.0, "b": 0.0}, 0.0, "no_prediction"),  # the stored row is that of the one before
        ({"a": 3.0, "b": 0.0}, math.inf, "not_finite"),
        ({"a": "raise", "b": 0.0}, 0.0, "model_error"),
        ({"a": 3.0, "b": 0.0}, 0.0, None),  # what the model raised at is not stored
    ]
    expected: dict[str, int] = {}
    for x, y, reason in stream:
        if reason == "model_error" and "model_error" not in expected:
            with pytest.warns(ModelFailureWarning):
                explaining.explain_one(x, y)
        else:
            explaining.explain_one(x, y)
        if reason is not None:
            expected[reason] = expected.get(reason, 0) + 1
        assert dict(explaining.skipped) == expected, (x, y)
    assert explaining.n_skipped == sum(expected.values()) == 7
    assert explaining.n_observations == 4


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("removal", REMOVAL_NAMES)
@pytest.mark.parametrize("explainer", EXPLAINERS)
@pytest.mark.share(2, "explainer", "removal", "broken")
def test_broken_probabilities_now_and_then_neither_stop_nor_poison(explainer, removal, broken):
    # A NaN of its own every time, as calculations give it: one that is no other's `is`.
    rng = np.random.default_rng(19)

    def model(x):
        p = 1.0 / (1.0 + math.exp(-x["a"]))
        return {1: broken * 1.0, 0: 1.0 - p} if x["a"] < -1.0 else {1: p, 0: 1.0 - p}

    explaining = explainer(
        model, loss="brier", alpha=0.1, n_samples=2, removal=removal, reservoir=make_reservoir("geometric", 10), seed=19
    )
    for a, b in rng.normal(size=(300, 2)).tolist():
        assert all_finite(explaining.explain_one({"a": a, "b": b}, 1))
        if removal == "interventional" and explaining.imputer.keeps_predictions:
            # Every stored row can be drawn, and none twice as often.
            halves = explaining.imputer._halves.halves
            slots = [*halves.slots(0), *halves.slots(1)]
            assert sorted(slots) == list(range(len(explaining.reservoir)))
    assert explaining.n_observations > 30
    assert explaining.n_observations + explaining.n_skipped == 300


@pytest.mark.parametrize(("loss", "value"), [("squared", 1e100), ("absolute", 1.5e308)])
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_huge_but_finite_loss_does_not_stay_for_ever(explainer, loss, value):
    # The loss is finite, but the sum of two of them, or the square that a variance is made of, is not.
    explaining = explainer(lambda x: x["a"], loss=loss, alpha=0.3, n_samples=4, seed=20)
    for i in range(300):
        x = {"a": value if i == 5 else float(i % 3), "b": 0.0}
        assert all_finite(explaining.explain_one(x, 0.0))
    assert all_finite(explaining.importance)
    assert not any(math.isnan(error) for error in explaining.std_error.values())


@pytest.mark.parametrize("in_batches", [False, True])
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_the_prediction_is_asked_for_once_and_not_at_all_where_it_is_given(explainer, in_batches):
    model = Recording(1.0)
    of_rows = as_batch(lambda rows: list(map(model, rows))) if in_batches else model
    asked, given = (explainer(of_rows, loss="squared", n_samples=2, seed=22) for _ in range(2))
    for i in range(6):
        x = {"a": i, "b": -i}
        for explaining, y_pred in ((asked, None), (given, 1.0)):
            model.rows.clear()
            explaining.explain_one(x, 0.0, y_pred=y_pred)
            assert model.rows.count(x) == (y_pred is None)
            n_evaluations = (2 * 2 if explainer is IncrementalPFI else 2) if i else 0
            assert len(model.rows) == n_evaluations + (y_pred is None)


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_an_estimator_without_names_takes_the_order_of_the_stream_where_predictions_are_given(explainer):
    # Groups move features to other places in the rows that are made: the first row that an estimator sees decides.
    from sklearn.linear_model import LinearRegression

    table = np.random.default_rng(23).normal(size=(50, 3))
    estimator = LinearRegression().fit(table, table @ [1.0, -2.0, 4.0])
    rows = [dict(zip("abc", row, strict=True)) for row in table.tolist()]
    truth = explainer(Linear({"a": 1.0, "b": -2.0, "c": 4.0}), loss="squared", groups={"ca": ["c", "a"]}, seed=23)
    explaining = explainer(estimator, loss="squared", n_samples=truth.n_samples, groups={"ca": ["c", "a"]}, seed=23)
    for x in rows:
        expected = truth.explain_one(x, 0.0)
        found = explaining.explain_one(x, 0.0, y_pred=float(estimator.predict([list(x.values())])[0]))
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_mixture_with_an_infinite_loss_costs_an_explanation_and_no_mean():
    # The observation of 50 has a finite loss; mixed with the one before, the model predicts what has none. Both
    # observations of which such a mixture is made are skipped; what is predicted for themselves is a prediction.
    def model(x):
        return float(x["a"]) if x["a"] == x["b"] else 1e200

    window = make_reservoir("sliding_window", 1)
    sage = IncrementalSAGE(model, loss="squared", alpha=0.5, n_samples=2, reservoir=window, seed=1)
    for value in (0, 0, 0, 50, 0, 0):
        sage.explain_one({"a": value, "b": value}, 0.0)
    assert dict(sage.skipped) == {"nothing_stored": 1, "not_finite": 2}
    # Explained are the second, third and last. To the last the mean is 50 with the weight 4 of 1 + 2 + ... + 32.
    assert sage.marginal_loss == pytest.approx(4 * (50 * 8 / 63) ** 2 / 7, rel=1e-9)


def test_a_prediction_with_an_infinite_loss_does_not_stay_in_the_mean_prediction():
    sage = IncrementalSAGE(lambda x: x["a"], loss="squared", alpha=0.01, n_samples=1, seed=1)
    for a in (1.0, 2.0, 1e200, *[1.0] * 300):
        sage.explain_one({"a": a}, 0.0)
    # The huge row may be drawn while it is in the reservoir; with one feature no coalition draws at all.
    assert sage.n_skipped == 2, "the first observation, and the diverging one"
    assert sage.marginal_loss < 10.0
