"""Streams as they are: features come, go and change places, predictions are missing or broken, dicts are reused."""

import math
from itertools import pairwise

import numpy as np
import pytest
from river import naive_bayes
from river.datasets import synth

from attributary_explainers import RESERVOIR_NAMES, ChangeExplainer, IncrementalPFI, IncrementalSAGE, make_reservoir
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


@pytest.mark.parametrize("reservoir", RESERVOIR_NAMES)
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_features_come_and_go_and_change_places(explainer, reservoir):
    explaining = explainer(Linear(WEIGHTS), loss="squared", alpha=0.05, reservoir=make_reservoir(reservoir, 7), seed=1)
    n_empty = 0
    for x, y in ragged(300):
        n_empty += not x
        assert all_finite(explaining.explain_one(x, y))
    assert set(explaining.importance) == set(WEIGHTS)
    assert n_empty > 0
    assert explaining.n_skipped == n_empty + 1  # the first has nothing to draw from, the empty nothing to remove
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
    assert (explaining.n_observations, explaining.n_skipped, len(explaining.reservoir)) == (0, 5, 5)
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


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_prediction_broken_for_some_replacements_only_skips_the_observation(explainer):
    # Finite at every observation, infinite at mixtures: rows that never occurred together.
    def model(x):
        return math.inf if x["a"] != x["b"] else float(x["a"])

    explaining = explainer(model, loss="squared", alpha=0.1, seed=5)
    for i in range(20):
        explaining.explain_one({"a": i % 3, "b": i % 3}, 0.0)
    assert explaining.n_observations + explaining.n_skipped == 20
    assert explaining.n_skipped > 1
    assert all_finite(explaining.importance)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_broken_loss_does_not_poison_the_importance(explainer, value):
    explaining = explainer(lambda x: x["a"], loss=lambda y, p: value if y == "broken" else abs(p), alpha=0.1, seed=6)
    for i in range(40):
        y = "broken" if i % 8 == 7 else "fine"
        assert all_finite(explaining.explain_one({"a": float(i % 5), "b": 0.0}, y))
    assert (explaining.n_skipped, explaining.n_observations) == (1 + 5, 34)
    if explainer is IncrementalSAGE:
        assert math.isfinite(explaining.model_loss)
        assert math.isfinite(explaining.marginal_loss)


@pytest.mark.parametrize("target", [math.nan, math.inf])
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_broken_target_does_not_poison_the_importance(explainer, target):
    explaining = explainer(Linear(WEIGHTS), loss="squared", alpha=0.1, seed=7)
    for i in range(20):
        assert all_finite(explaining.explain_one({"a": float(i), "b": 1.0}, target if i == 10 else 0.0))
    assert explaining.n_skipped == 2


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_diverging_regressor_does_not_stop_the_stream(explainer):
    # Finite predictions whose squared error is not: skipped like any other infinite loss.
    explaining = explainer(lambda x: x["a"], loss="squared", seed=8)
    for value in (1.0, 2.0, 1e200, -1e200, 3.0, 1.0):
        assert all_finite(explaining.explain_one({"a": value, "b": 0.0}, 0.0))
    assert explaining.n_observations + explaining.n_skipped == 6


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_the_callers_observation_is_never_changed_and_never_kept(explainer):
    explaining = explainer(Recording(), loss="squared", groups={"g": ["a", "b"]}, seed=9)
    x = {}
    for i in range(30):
        x.clear()
        x.update(a=i, b=i, c=i)
        explaining.explain_one(x, 0.0)
        assert x == {"a": i, "b": i, "c": i}
        assert list(x) == ["a", "b", "c"]
    assert all(row is not x for row in explaining.reservoir.rows)
    assert [row["a"] for row in explaining.reservoir.rows] == list(range(30))


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_the_returned_importance_is_the_callers_own(explainer):
    explaining = explainer(Linear(WEIGHTS), loss="squared", seed=10)
    for x, y in ragged(20, seed=10):
        importance = explaining.explain_one(x, y)
        kept = dict(importance)
        importance.clear()
        assert explaining.importance == kept


@pytest.mark.parametrize("reservoir", RESERVOIR_NAMES)
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_the_number_of_stored_rows_is_bounded(explainer, reservoir):
    explaining = explainer(lambda x: 0.0, loss="squared", n_samples=1, reservoir=make_reservoir(reservoir, 25), seed=11)
    sizes = []
    for i in range(500):
        explaining.explain_one({"a": i}, 0.0)
        sizes.append(len(explaining.snapshot()["reservoir"]["rows"]))
    assert max(sizes) == sizes[-1] == 25


def test_the_change_explainer_holds_two_windows_at_the_most():
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
            held.append(len(snapshot["collecting"] or []) + len((snapshot["reference"] or {"data": []})["data"]))
    assert change.n_alarms > 1
    assert K < max(held) <= 2 * K


def test_a_prediction_with_an_infinite_loss_does_not_stay_in_the_mean_prediction():
    sage = IncrementalSAGE(lambda x: x["a"], loss="squared", alpha=0.01, n_samples=1, seed=1)
    for a in (1.0, 2.0, 1e200, *[1.0] * 300):
        sage.explain_one({"a": a}, 0.0)
    # The huge row may be drawn while it is in the reservoir; with one feature no coalition draws at all.
    assert sage.n_skipped == 2, "the first observation, and the diverging one"
    assert sage.marginal_loss < 10.0
