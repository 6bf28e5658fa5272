"""An explanation is made in slices: what it says is what it would say at once, of what there was when it began."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from river import naive_bayes

from attributary_explainers import Alarm, ChangeExplainer, ChangeExplanation
from attributary_explainers.batch.slices import finish
from attributary_explainers.change import state
from attributary_explainers.change.measure import Measure
from attributary_explainers.losses.losses import as_loss
from tests.explainers.streams_of_change import Cells, bits, told

K = 200


def drifting(n=1600, at=800):
    rng = np.random.default_rng(7)
    for x, y in bits(n, lambda x, t: x["a"] if t < at else x["b"], seed=1):
        yield {name: value + float(rng.normal(0.0, 0.4)) for name, value in x.items()}, y


class Begun:
    """Records what explanations begin with, as it is then."""

    def __init__(self, monkeypatch):
        self.all = []
        begin = ChangeExplainer._explain

        def recording(change, told, old, new, rows, before=None):
            begin(change, told, old, new, rows, before)
            self.all.append(
                pickle.loads(pickle.dumps((old.model, new.model, list(rows), before, change._pending[-1].seed)))
            )

        monkeypatch.setattr(ChangeExplainer, "_explain", recording)


@pytest.fixture
def begun(monkeypatch):
    return Begun(monkeypatch)


def pairs(rows):
    return None if rows is None else [(row.x, row.y) for row in rows]


def at_once(begun, methods, margin=0.0):
    """The importances of an explanation, of one call."""
    old, new, rows, before, seed = begun
    measure = Measure(methods, as_loss("cross_entropy"), {}, 2, 3)
    return finish(measure.compare_steps(old, new, pairs(rows), seed, before=pairs(before), margin=margin))


PARAMETERS = {"importances": ("pfi", "sage"), "n_permutations": 2, "n_samples": 3, "loss": "cross_entropy", "seed": 1}


def test_a_drift_is_explained_as_at_once_by_a_model_that_learns_on(begun, monkeypatch):
    model = naive_bayes.GaussianNB()
    late = {}
    for size in (state.SLICE, 1):
        monkeypatch.setattr(state, "SLICE", size)
        model, begun.all[:] = naive_bayes.GaussianNB(), []
        change = ChangeExplainer(model, window=K, **PARAMETERS)
        events = told(change, model, drifting())
        explanation = next(event for event in events if isinstance(event, ChangeExplanation))
        assert explanation.importances == at_once(begun.all[0], PARAMETERS["importances"])
        alarm = next(event for event in events if isinstance(event, Alarm))
        late[size] = explanation.n_observations - alarm.due
    assert 1 < late[256] < late[1]
    assert late[1] <= K // 4 + 5, "slices are larger where there are many rows"


def test_versions_are_compared_as_at_once(begun):
    old, new = naive_bayes.GaussianNB(), naive_bayes.GaussianNB()
    for x, y in drifting(500):
        old.learn_one(x, y)
        new.learn_one({**x, "c": x["a"]}, y)
    stream = list(drifting(2 * K, at=0))
    change = ChangeExplainer(old, window=K, **PARAMETERS)
    change.new_version(pickle.loads(pickle.dumps(new)), "2")
    assert told(change, change.model, stream[:K]) == []
    (event, *_) = told(change, change.model, stream[K:])
    (one,) = begun.all
    margin = change.margin
    assert event.importances == at_once(one, PARAMETERS["importances"], margin)
    was_old, was_new, rows, _, _ = one
    said = [(was_old.predict_proba_one(row.x), was_new.predict_proba_one(row.x)) for row in rows]
    loss = change.loss_of_verdicts
    assert event.losses.reference_now.mean == pytest.approx(
        np.mean([loss(row.y, a) for row, (a, _) in zip(rows, said, strict=True)]), abs=1e-12
    )
    differ = np.mean([max(a, key=a.get) != max(b, key=b.get) for a, b in said])
    ones = sum(row.y for row in rows)
    assert event.discrepancy == pytest.approx(differ / (2 * ones * (K - ones) / (K * (K - 1))))
    assert (event.n_discrepancy, event.losses.model_now.n) == (K, K)


class Counting(Cells):
    """Counts the rows that all copies were asked about."""

    n_asked = 0

    def predict_proba_one(self, x, **_):
        Counting.n_asked += 1
        return super().predict_proba_one(x)


def test_no_observation_asks_about_more_rows_than_a_slice():
    model = Counting("abc", rate=0.05)
    change = ChangeExplainer(model, window=K, batch_size=1, seed=1)
    most, n_explained = 0, 0
    for x, y in bits(1600, lambda x, t: x["a"] if t < 800 else x["b"], seed=1):
        y_pred = model.predict_proba_one(x)
        model.learn_one(x, y)
        Counting.n_asked = 0
        is_explaining = bool(change._pending)
        n_explained += sum(isinstance(event, ChangeExplanation) for event in change.update(x, y, y_pred))
        if is_explaining:
            most = max(most, Counting.n_asked)
    assert n_explained
    assert 128 < most <= state.SLICE + 1


def under_way():
    """A change explainer with an explanation under way, and the observations that come next."""
    model = Cells("abc", rate=0.05)
    change = ChangeExplainer(model, window=K, version="1", seed=1)
    stream = list(bits(1600, lambda x, t: x["a"] if t < 800 else x["b"], seed=1))
    for t, row in enumerate(stream):
        told(change, model, [row])
        if change._pending:
            told(change, model, stream[t + 1 : t + 3])
            return change, stream[t + 3 :]
    raise AssertionError("no explanation was begun")


def test_it_can_be_asked_for_at_once_and_another_version_does_not_end_it():
    change, _ = under_way()
    assert change.is_examining
    (wanted,) = change.finish()
    assert isinstance(wanted, ChangeExplanation)
    assert wanted.verdict == "followed"
    assert not change.is_examining
    assert change.finish() == ()

    change, _ = under_way()
    (closed,) = change.close()
    assert closed == wanted

    change, rest = under_way()
    n = change.n_observations
    (alarm,) = change.new_version(other := Cells("abc", rate=0.05), "2")
    assert (alarm.route, alarm.version) == ("version", "2")
    (event,) = told(change, other, rest[: K // 2])
    assert event.n_observations > n
    assert replace(event, n_observations=n) == wanted
    assert event.version == "1"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_goes_on_with_it(copied):
    change, rest = under_way()
    other = copied(change)
    (wanted,), (found,) = (told(one, one.model, rest[:20]) for one in (change, other))
    assert found == wanted
    assert other.snapshot() == change.snapshot()


class FailsLater(Cells):
    """Raises from a number of rows on, all copies together."""

    n_left = 10**9

    def predict_proba_one(self, x, **_):
        FailsLater.n_left -= 1
        if FailsLater.n_left < 0:
            raise ZeroDivisionError("no more")
        return super().predict_proba_one(x)


def test_a_model_that_fails_in_the_middle_is_told_of_and_stops_nothing():
    FailsLater.n_left = 10**9
    old, new = FailsLater("abc"), Cells("abc", rate=0.05)
    change = ChangeExplainer(old, window=K, seed=1)
    change.new_version(new, "2")
    stream = list(bits(2 * K, lambda x, t: x["a"], seed=1))
    assert told(change, new, stream[: K + 3]) == []
    FailsLater.n_left = 300
    (event,) = told(change, new, stream[K + 3 :])
    assert event.failure == "ZeroDivisionError: no more"
    assert event.importances == {}
    assert change._pending == []
