"""What a change explainer tells of streams whose truth is known, and that it tells nothing of the others."""

import pickle

import numpy as np
import pytest
from river import linear_model, neighbors, preprocessing

from attributary_explainers import Alarm, ChangeExplainer, ChangeExplanation, NotConfirmed
from tests.explainers.streams_of_change import Cells, bits, linear, regression, told, verdicts

PLAIN = (3.0, 2.0, -1.0)


def reversed_at(at):
    return lambda t: PLAIN if t < at else (-3.0, 2.0, -1.0)


@pytest.mark.parametrize("scale", [0.01, pytest.param(1.0, marks=pytest.mark.long), 1e3, 1e6])
def test_a_reversed_coefficient_is_one_event_at_any_scale(scale):
    found = []
    for unit in (1.0, scale):
        model = linear()
        change = ChangeExplainer(model, window=500, seed=1)
        events = told(change, model, regression(6000, reversed_at(3000), seed=5, scale=unit))
        found.append([(type(e), e.n_observations, getattr(e, "onset", None)) for e in events])
        alarm, explanation = events
        assert (type(alarm), type(explanation)) == (Alarm, ChangeExplanation)
        assert 3000 < alarm.n_observations <= 3200
        assert explanation.closes == alarm.n_observations == explanation.n_detected
        assert alarm.due == alarm.n_observations + 500
        # For each model 250 rows as they came, and three times 250 mixed ones, 256 with an observation at most.
        assert explanation.n_observations == alarm.due + 8
        assert explanation.is_drift
        assert explanation.onset.low <= 3001 <= explanation.onset.high
        # PFI of a linear model under squared loss is 2 c² Var(x): of a the same before and after, whatever its sign.
        for importance, errors in (
            (explanation.before, explanation.before_std_error),
            (explanation.after, explanation.after_std_error),
        ):
            for name, c in zip("abc", PLAIN, strict=True):
                exact = 2 * c * c * (4 / 3) * unit * unit
                assert abs(importance[name] - exact) < 4 * errors[name] + 0.2 * exact  # it still learns
        # In units of the targets' spread: |6 a| over the mean distance of two targets.
        assert explanation.discrepancy == pytest.approx(1.1, abs=0.4)
    assert found[0] == found[1]


@pytest.mark.parametrize("scale", [pytest.param(0.01, marks=pytest.mark.long), 1e6])
def test_a_settled_regression_is_told_nothing_of(scale):
    model = linear()
    change = ChangeExplainer(model, window=500, importances=(), seed=1)
    assert verdicts(told(change, model, regression(20_000, lambda t: PLAIN, seed=6, scale=scale))) == []


def test_a_trend_is_told_twice_at_most():
    model = linear()
    change = ChangeExplainer(model, window=500, importances=(), seed=1)
    rows = ((x, y + 0.001 * t) for t, (x, y) in enumerate(regression(25_000, lambda t: PLAIN, seed=7)))
    events = told(change, model, rows)
    explanations = [e for e in events if isinstance(e, ChangeExplanation)]
    assert [e.pattern for e in explanations] == [None, "trend"]
    assert change.pattern == "trend"
    # Alarms of what is part of the pattern are not told, and none of the others is left open.
    closed = [e.closes for e in events if not isinstance(e, Alarm)]
    assert [e.n_observations for e in events if isinstance(e, Alarm)] == closed


@pytest.mark.long
@pytest.mark.parametrize("period", [1440, 7200])
def test_a_season_is_told_twice_at_most(period):
    def season(t):
        return (3.0 * np.sin(2 * np.pi * t / period), 2.0, -1.0)

    model = linear()
    change = ChangeExplainer(model, importances=(), seed=1)
    explanations = [
        e for e in told(change, model, regression(8 * period, season, seed=8)) if isinstance(e, ChangeExplanation)
    ]
    assert len(explanations) <= 2
    assert "trend" not in [e.pattern for e in explanations]


def test_a_large_change_is_told_in_spite_of_a_pattern():
    def coefficients(t):
        # A square wave of 2, and at last a change of 12.
        return (3.0, 2.0 if (t // 2000) % 2 else 0.0, -1.0) if t < 17_000 else (-3.0, 2.0, 11.0)

    model = linear(0.02)
    change = ChangeExplainer(model, window=500, importances=(), seed=1)
    events = told(change, model, regression(19_000, coefficients, seed=9, noise=0.5))
    explanations = [e for e in events if isinstance(e, ChangeExplanation)]
    assert [e.pattern for e in explanations] == [None, "recurring", "trend"] or explanations[-1].n_detected > 17_000
    assert len(explanations) == 3
    assert explanations[-1].onset.low <= 17_001 <= explanations[-1].onset.high


def rule_then(first, then, at):
    return lambda x, t: x[first] if t < at else x[then]


@pytest.mark.parametrize(
    ("rate", "verdict"), [(0.03, "followed"), (0.00001, "harder")], ids=["a model that follows", "a slow model"]
)
def test_other_labels_are_drift_whether_the_model_follows_or_not(rate, verdict):
    model = Cells(rate=0.03)
    for x, y in bits(3000, lambda x, t: x["a"], seed=1):
        model.learn_one(x, y)
    model.rate = rate
    change = ChangeExplainer(model, window=500, seed=1)
    events = told(change, model, bits(6000, rule_then("a", "b", 3000), seed=2))
    assert verdicts(events)[:1] == [verdict]
    assert 3000 < next(e for e in events if isinstance(e, Alarm)).n_observations < 3200
    explanation = next(e for e in events if isinstance(e, ChangeExplanation))
    if verdict == "followed":
        # Brier: the importance of a, which the rule was, is now that of b.
        assert set(explanation.significant()) == {"a", "b"}
        assert explanation.delta["b"] > 0
    assert explanation.losses.worsened.low > 0


def test_a_model_that_does_not_learn_is_told_that_its_data_are_harder_once():
    model = Cells(rate=0.03)
    for x, y in bits(3000, lambda x, t: x["a"], seed=1):
        model.learn_one(x, y)
    model.rate = 0.0
    change = ChangeExplainer(model, window=500, seed=1)
    noisy = (
        (x, y ^ int(t >= 3000 and u < 0.3))
        for t, ((x, y), u) in enumerate(
            zip(bits(12_000, lambda x, t: x["a"], seed=3), np.random.default_rng(3).random(12_000), strict=True)
        )
    )
    explanations = [e for e in told(change, model, noisy) if isinstance(e, ChangeExplanation)]
    assert [e.verdict for e in explanations] == ["harder"]
    assert explanations[0].discrepancy == 0.0
    assert explanations[0].significant() == ["a"]
    assert explanations[0].delta["a"] < 0
    assert explanations[0].onset.low <= 3001 <= explanations[0].onset.high


def test_learning_is_told_as_matured_once_it_has_settled_and_alarms_nobody():
    # A cell has to be seen many times: the model learns for thousands of observations.
    model = Cells(rate=0.001)
    change = ChangeExplainer(model, window=500, distance="probability", seed=1)
    events = told(change, model, bits(12_000, lambda x, t: x["a"] ^ x["b"], seed=4))
    assert [e for e in verdicts(events) if e != "matured"] == []
    matured = [e for e in events if isinstance(e, ChangeExplanation)]
    assert 1 <= len(matured) <= 2
    assert (matured[0].route, matured[0].closes, matured[0].onset) == ("check", None, None)
    assert set(matured[0].significant()) == {"a", "b"}
    assert matured[0].losses.gain.low > 0


def test_a_model_that_is_damaged_for_good_is_degraded_once():
    model = Cells("abc", rate=0.01)
    change = ChangeExplainer(model, window=500, importances=(), seed=1)
    stream = list(bits(12_000, lambda x, t: x["a"], seed=5))
    events = told(change, model, stream[:4000])
    model.rate = 0.0
    model.cells = {key: list(reversed(cell)) for key, cell in model.cells.items()}  # a served copy gone wrong
    events += told(change, model, stream[4000:])
    assert verdicts(events) == ["degraded"]
    (explanation,) = (e for e in events if isinstance(e, ChangeExplanation))
    assert explanation.n_observations <= 4000 + 200 + 2 * 500
    assert explanation.losses.gain.high < 0


def test_a_passing_damage_is_a_doubt_that_is_not_confirmed():
    model = Cells("abc", rate=0.01)
    change = ChangeExplainer(model, window=500, importances=(), seed=1)
    stream = list(bits(8000, lambda x, t: x["a"], seed=5))
    events = told(change, model, stream[:4000])
    kept = pickle.loads(pickle.dumps(model.cells))
    rate, model.rate = model.rate, 0.0
    model.cells = {key: list(reversed(cell)) for key, cell in model.cells.items()}
    events += told(change, model, stream[4000:4700])
    model.cells, model.rate = kept, rate
    events += told(change, model, stream[4700:])
    assert verdicts(events) == []
    assert next(e.found for e in events if isinstance(e, NotConfirmed)) in ("degraded", "equal")


def test_a_model_that_memorises_is_told_nothing_of():
    model = neighbors.KNNClassifier(3, engine=neighbors.LazySearch(window_size=300))
    change = ChangeExplainer(model, window=300, importances=(), seed=1)
    rng = np.random.default_rng(6)
    xs, flips = rng.normal(size=(3000, 3)), rng.random(3000) < 0.15
    stream = [
        (dict(zip("abc", x.tolist(), strict=True)), int((x[0] + x[1] > 0) ^ bool(f)))
        for x, f in zip(xs, flips, strict=True)
    ]
    assert verdicts(told(change, model, stream)) == []


def test_forty_classes_are_no_other_case():
    def stream(n, seed, shift):
        rng = np.random.default_rng(seed)
        for t, (cell, u, other) in enumerate(
            zip(rng.integers(40, size=n), rng.random(n), rng.integers(40, size=n), strict=True)
        ):
            y = (int(cell) + (shift if t >= n // 2 else 0)) % 40
            yield {"cell": int(cell), "b": int(u < 0.5)}, int(other) if u < 0.2 else y

    for shift, expected in ((0, []), (1, ["followed"])):
        model = Cells(("cell",), rate=0.1, n_classes=40)
        for x, y in stream(4000, 1, 0):
            model.learn_one(x, y)
        change = ChangeExplainer(model, window=500, seed=1)
        events = told(change, model, stream(6000, 2, shift))
        assert [v for v in verdicts(events) if v != "matured"] == expected


def test_without_the_discrepancy_slow_change_is_not_told_and_with_it_it_is():
    def slowly(t):
        return (3.0 - 6.0 * min(max(t - 3000, 0) / 9000, 1.0), 2.0, -1.0)

    model = linear()
    both = [
        ChangeExplainer(model, window=500, detector=None, importances=(), seed=1),
        ChangeExplainer(model, window=500, watch_discrepancy=False, importances=(), seed=1),
    ]
    events = [[], []]
    for x, y in regression(14_000, slowly, seed=10):
        y_pred = model.predict_one(x)
        model.learn_one(x, y)
        for change, of in zip(both, events, strict=True):
            of += change.update(x, y, y_pred)
    assert verdicts(events[0])
    assert {e.route for e in events[0]} - {"check"} == {"discrepancy"}
    assert verdicts(events[1]) == []


def test_a_model_that_learnt_on_for_a_while_and_stopped_is_told_that_its_data_are_harder():
    """It is a little better than its reference, and so a little worse once labels are turned round."""
    rng = np.random.default_rng(0)
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    change = ChangeExplainer(model, importances=(), seed=1)
    events = []
    for t in range(9000):
        x = dict(zip("ab", rng.normal(size=2).tolist(), strict=True))
        y = bool(x["a"] + 0.5 * x["b"] + 0.3 * rng.normal() > 0) ^ (t >= 6000)
        y_pred = model.predict_proba_one(x)
        if t < 4000:
            model.learn_one(x, y)
        events += change.update(x, y, y_pred)
    alarm, explanation = events
    assert 6000 < alarm.n_observations < 6100
    assert (explanation.verdict, explanation.closes) == ("harder", alarm.n_observations)


@pytest.mark.parametrize("at", [1100, 1300, 1700])
def test_a_change_soon_after_the_first_reference_is_told_as_a_change(at):
    rng = np.random.default_rng(3)
    model = preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)
    change = ChangeExplainer(model, seed=1)
    events = []
    for t in range(6000):
        x = dict(zip("abcd", rng.normal(size=4).tolist(), strict=True))
        y = 5000.0 + 1000.0 * (2 * x["a" if t < at else "d"] + x["b"] + 0.5 * x["c"]) + 300.0 * rng.normal()
        y_pred = model.predict_one(x)
        model.learn_one(x, y)
        events += change.update(x, y, y_pred)
    alarm, explanation = events
    assert at < alarm.n_observations < at + 100
    assert explanation.verdict == "followed"
    assert explanation.onset.low <= at + 1 <= explanation.onset.high
    assert set(explanation.significant()) == {"a", "d"}


@pytest.mark.long
def test_a_model_that_sways_because_it_learns_at_a_constant_rate_is_not_degraded():
    events = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        model = preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)
        change = ChangeExplainer(model, importances=(), seed=1)
        for _ in range(20_000):
            x = dict(zip("abcd", rng.normal(size=4).tolist(), strict=True))
            y = 5000.0 + 1000.0 * (2 * x["a"] + x["b"] + 0.5 * x["c"]) + 2000.0 * rng.normal()
            y_pred = model.predict_one(x)
            model.learn_one(x, y)
            events += change.update(x, y, y_pred)
    assert verdicts(events) == []
