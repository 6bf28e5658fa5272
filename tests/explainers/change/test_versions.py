"""Another model in the place of the present one: compared on what neither has learnt, on equal terms."""

from typing import ClassVar

import pytest
from river import dummy, linear_model

from attributary_explainers import Alarm, ChangeExplainer, ChangeExplanation, ModelError, NotConfirmed
from tests.explainers.stand_ins import HoldingALock
from tests.explainers.streams_of_change import Cells, bits

K = 200


class Asked:
    """Predicts one of the features, and keeps a copy of every row that it was asked about."""

    rows: ClassVar[dict[str, list[dict]]] = {}

    def __init__(self, feature):
        self.feature = feature

    def __call__(self, x):
        Asked.rows.setdefault(self.feature, []).append(dict(x))
        return x[self.feature]

    def learn_one(self, x, y):
        """Learns nothing."""


def feed(change, model, stream):
    found = []
    predict = getattr(model, "predict_proba_one", model)
    for x, y in stream:
        y_pred = predict(x)
        model.learn_one(x, y)
        found += change.update(x, y, y_pred)
    return found


def stream(n, seed=1):
    return list(bits(n, lambda x, t: x["a"], seed=seed, flips=0.1))


def test_the_comparison_comes_with_the_rows_that_neither_has_learnt():
    Asked.rows.clear()
    old, new = Asked("a"), Asked("b")
    change = ChangeExplainer(old, window=K, loss="zero_one", version="1", seed=1)
    feed(change, old, stream(2 * K))
    (alarm,) = change.new_version(new, "2")
    assert (alarm.route, alarm.n_observations, alarm.due) == ("version", 2 * K, 3 * K)
    assert alarm.sentence("m") == (
        "m went from version 1 to version 2 at 401: the two are compared on what neither has learnt, until 600"
    )
    Asked.rows.clear()
    fresh = stream(K, seed=2)
    assert feed(change, new, fresh) == []
    (explanation,) = change.finish()  # at once: without more observations there are no more slices
    assert (explanation.n_observations, explanation.closes, explanation.verdict) == (3 * K, 2 * K, None)
    assert (explanation.version_before, explanation.version) == ("1", "2")
    assert explanation.first.n_observations == explanation.n_discrepancy == K
    rows = [x for x, _ in fresh]
    assert all(x in Asked.rows["a"] for x in rows)
    # The share of rows in which a and b differ, over that of pairs of targets that differ.
    differ = sum(x["a"] != x["b"] for x in rows) / K
    ones = sum(y for _, y in fresh)
    assert explanation.discrepancy == pytest.approx(differ / (2 * ones * (K - ones) / (K * (K - 1))))
    errors = [sum(x[f] != y for x, y in fresh) / K for f in "ab"]
    assert explanation.losses.reference_now.mean == pytest.approx(errors[0])
    assert explanation.losses.model_now.mean == pytest.approx(errors[1])
    assert explanation.losses.reference_then is None
    assert explanation.losses.worsened is None
    assert explanation.significant() == ["a"]
    assert "its loss is higher" in explanation.sentence("m")


def test_a_feature_within_the_margin_is_not_named():
    old, new = Cells("ab"), Cells("ab")
    for model, flips in ((old, 0.10), (new, 0.13)):
        for x, y in bits(3000, lambda x, t: x["a"], seed=3, flips=flips):
            model.learn_one(x, y)
    named = {}
    for margin in (0.0, 0.15):
        change = ChangeExplainer(old, window=K, margin=margin, seed=1)
        change.new_version(new)
        model = new
        feed(change, model, stream(K, seed=5))
        (explanation,) = change.finish()
        total = max(sum(explanation.before.values()), sum(explanation.after.values()))
        assert explanation.first.margin == pytest.approx(margin * total, rel=0.05)
        named[margin] = explanation.significant()
    assert named[0.15] == []


def test_a_version_that_comes_before_the_comparison_closes_it():
    old = Cells("ab")
    change = ChangeExplainer(old, window=K, seed=1)
    feed(change, old, stream(2 * K))
    change.new_version(second := Cells("ab"), "2")
    feed(change, second, stream(K // 2, seed=3))
    closed, alarm = change.new_version(third := Cells("ab"), "3")
    assert isinstance(closed, NotConfirmed)
    assert isinstance(alarm, Alarm)
    assert (closed.closes, closed.found, alarm.n_observations) == (2 * K, "replaced", 2 * K + K // 2)
    events = [*feed(change, third, stream(K, seed=4)), *change.finish()]
    assert [e.closes for e in events if isinstance(e, ChangeExplanation)] == [2 * K + K // 2]


def test_an_alarm_that_is_examined_is_closed_by_another_version():
    model = Cells("abc", rate=0.05)
    change = ChangeExplainer(model, window=K, importances=(), seed=1)
    events = feed(change, model, list(bits(1000, lambda x, t: x["a"] if t < 800 else x["b"], seed=6)))
    assert [type(e) for e in events][-1] is Alarm
    closed, _ = change.new_version(Cells("abc"), "2")
    assert (closed.found, closed.closes) == ("replaced", events[-1].n_observations)
    assert closed.sentence("m").endswith("is not confirmed: another version has taken over")


def test_without_an_explanation_the_model_is_only_replaced():
    model = Cells("ab")
    change = ChangeExplainer(model, window=K, seed=1)
    feed(change, model, stream(2 * K))
    assert change.new_version(Cells("ab"), "2", explain=False) == ()
    assert (change.version, change.reference_observation) == ("2", 2 * K)
    assert feed(change, change.model, stream(K, seed=2)) == []


def test_versions_that_cannot_be_compared_are_closed():
    def nothing(x):
        return None

    change = ChangeExplainer(nothing, window=K, loss="zero_one", seed=1)
    change.new_version(new := Asked("a"), "2")
    assert feed(change, new, stream(K)) == []
    (closed,) = feed(change, new, stream(2))  # 128 rows of both with each observation
    assert isinstance(closed, NotConfirmed)
    assert (closed.found, closed.closes, closed.losses) == (None, 0, None)


@pytest.mark.parametrize("model", [linear_model.LinearRegression(), HoldingALock(), object()])
def test_a_version_that_cannot_be_explained_is_refused_and_the_present_one_stays(model):
    present = Cells("ab")
    change = ChangeExplainer(present, window=K, seed=1)
    with pytest.raises(ModelError):
        change.new_version(model, "2")
    assert (change.model, change.version) == (present, None)


def test_a_version_of_another_kind_of_classifier_is_no_problem():
    present = dummy.NoChangeClassifier()
    change = ChangeExplainer(present, window=K, seed=1)
    change.new_version(new := Cells("ab"), "2")
    feed(change, new, stream(K))
    (closed,) = change.finish()
    assert (closed.closes, closed.found) == (0, None)  # it had not learnt, and predicted nothing
