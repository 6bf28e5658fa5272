"""A stranger's stream: rows without a prediction, infinite losses, models that fail, and what is refused."""

import math

import pytest
from river import linear_model, naive_bayes

from attributary_explainers import Alarm, ChangeExplainer, ChangeExplanation, InvalidParameterError, ModelError
from tests.explainers.stand_ins import HoldingALock
from tests.explainers.streams_of_change import Cells, bits, linear, regression, told, verdicts


def drifting(n=1600, seed=1):
    return list(bits(n, lambda x, t: x["a"] if t < 800 else x["b"], seed=seed))


def changed(model, stream, **parameters):
    change = ChangeExplainer(model, **{"window": 200, "importances": (), "seed": 1, **parameters})
    return change, told(change, model, stream)


def test_rows_without_a_prediction_are_as_if_they_had_not_come():
    plain, events = changed(Cells("abc", rate=0.05), drifting())
    model = Cells("abc", rate=0.05)
    change = ChangeExplainer(model, window=200, importances=(), seed=1)
    found = []
    for i, (x, y) in enumerate(drifting()):
        if i % 3 == 0:
            found += change.update({"a": 9}, y, None)
            found += change.update({"a": 9}, y, {0: math.nan, 1: 1.0})
        y_pred = model.predict_proba_one(x)
        model.learn_one(x, y)
        found += change.update(x, y, y_pred)
    assert [type(e) for e in found] == [type(e) for e in events]
    assert [e.losses for e in found if isinstance(e, ChangeExplanation)] == [
        e.losses for e in events if isinstance(e, ChangeExplanation)
    ]
    assert change.n_observations == plain.n_observations + 2 * len(range(0, 1600, 3))
    assert (plain.n_skipped, change.n_skipped) == (0, 2 * len(range(0, 1600, 3)))


def test_an_infinite_loss_is_left_out():
    model = linear()
    change = ChangeExplainer(model, window=200, importances=(), seed=1)
    found = []
    for t, (x, y) in enumerate(regression(3000, lambda t: (3.0, 0.0, 0.0) if t < 1500 else (0.0, 3.0, 0.0), seed=1)):
        y_pred = model.predict_one(x)
        model.learn_one(x, y)
        found += change.update(x, math.inf if t % 50 == 0 else y, y_pred)
    assert verdicts(found)[:1] == ["followed"]


class FailsWhenMixed(Cells):
    """Raises where a and b are what they never are together in the stream."""

    def predict_proba_one(self, x, **_):
        if x["a"] and x["b"]:
            raise ZeroDivisionError("a mixed row")
        return super().predict_proba_one(x)


def test_a_model_that_fails_on_mixed_rows_is_explained_without_importances():
    model = FailsWhenMixed("abc", rate=0.05)
    stream = [(x, y) for x, y in drifting(3200) if not (x["a"] and x["b"])]
    change, events = changed(model, stream, importances=("pfi",))
    explanation = next(e for e in events if isinstance(e, ChangeExplanation) and e.is_drift)
    assert explanation.importances == {}
    assert explanation.failure == "ZeroDivisionError: a mixed row"
    assert change.n_explained["followed"] >= 1


def test_labels_are_judged_as_well_as_probabilities():
    model = Cells("abc", rate=0.05)
    change = ChangeExplainer(model, window=200, importances=(), seed=1)
    found = []
    for x, y in drifting():
        y_pred = model.predict_one(x)
        model.learn_one(x, y)
        found += change.update(x, y, y_pred)
    assert verdicts(found)[:1] == ["followed"]
    assert isinstance(found[0], Alarm)


def test_a_target_that_is_no_number_is_said():
    change = ChangeExplainer(linear_model.LinearRegression(), window=50)
    with pytest.raises(ModelError, match="must be a number"):
        change.update({"a": 1.0}, "text", 1.0)


def test_a_prediction_that_is_no_number_is_said():
    change = ChangeExplainer(linear_model.LinearRegression(), window=20)
    with pytest.raises(ModelError, match="expected the model to predict a number, got 'a'"):
        change.update({"a": 1.0}, 1.0, "a")


def test_features_come_and_go():
    def stream():
        for t, (x, y) in enumerate(drifting(2400)):
            yield ({**x, "d": "text"} if t % 2 else {**x, "e": None}), y

    _, events = changed(Cells("abc", rate=0.05), stream(), importances=("pfi",))
    explanation = next(e for e in events if isinstance(e, ChangeExplanation) and e.is_drift)
    assert explanation.failure is None
    assert set(explanation.features) >= {"a", "b", "c"}


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"window": 19}, "window"),
        ({"threshold": -0.1}, "threshold"),
        ({"discrepancy": "paper"}, "discrepancy"),
        ({"distance": "x"}, "distance"),
        ({"signal": "x"}, "signal"),
        ({"margin": -1}, "margin"),
        ({"importances": ("pfi", "pfi")}, "importances"),
        ({"importances": ("mdi",)}, "importances"),
        ({"batch_size": 0}, "batch_size"),
        ({"detector": "x"}, "detector"),
        ({"detector": None, "watch_discrepancy": False}, "detector"),
    ],
)
def test_what_cannot_be_is_refused(parameters, named):
    with pytest.raises(InvalidParameterError) as error:
        ChangeExplainer(naive_bayes.GaussianNB(), **parameters)
    assert error.value.parameter == named


def test_a_model_that_cannot_be_copied_is_refused():
    with pytest.raises(ModelError):
        ChangeExplainer(HoldingALock(), loss="squared")
