"""Conclusions that cannot be drawn yet, what is refused, and what a change costs in evaluations."""

import contextlib
import math

import pytest
from river import linear_model

from attributary_explainers import ChangeExplainer, InvalidParameterError, ModelError
from tests.explainers.naive_change import KINDS, PAPER, Scheduled, found_in, learn, observations, scripted
from tests.explainers.stand_ins import HoldingALock, Linear

K = 10


class Failing:
    """Predicts a; raises, or predicts nothing, where the feature `bad` is there."""

    def __init__(self, error=None):
        self.error, self.n_learnt = error, 0

    def __call__(self, x):
        if "bad" not in x:
            return x["a"]
        if self.error is not None:
            raise self.error
        return None

    def learn_one(self, x, y):
        self.n_learnt += 1


@pytest.mark.parametrize("window", [10, 40])
def test_without_a_prediction_for_a_row_it_is_tried_again_when_some_rows_have_gone(monkeypatch, window):
    model = Failing()
    change = scripted(monkeypatch, model, window=window)
    stream = [({"a": n % 2, "b": 0, **({"bad": 1} if n == 3 else {})}, n % 2) for n in range(1, 4 * window)]
    taken = []
    for n, _ in enumerate(learn(change, model, stream), start=1):
        assert change.is_collecting == (change.reference is None)
        if change.reference is not None and not taken:
            taken.append(n)
    # Row 3 is among the last `window` until window + 3; tried at window, then every window // 10.
    step = window // 10
    assert taken == [next(n for n in range(window, 4 * window, step) if n >= window + 3)]


def test_with_an_infinite_loss_it_is_tried_again(monkeypatch):
    model = Failing()
    change = scripted(monkeypatch, model, loss="squared", distance="number", signal="loss", window=20)
    for n in range(1, 31):
        x = {"a": float(n), "b": 0.0}
        change.update(x, math.inf if n == 4 else 1.0, x["a"])
        assert (change.reference is not None) == (n >= 24)
    assert change.reference_observation == 24


def test_what_the_model_raises_is_let_through_and_tried_again_later(monkeypatch):
    model = Failing(error=OSError("gone"))
    change = scripted(monkeypatch, model, window=20, **PAPER)
    raised = []
    for n in range(1, 31):
        x = {"a": n % 2, "b": 0, **({"bad": 1} if n == 5 else {})}
        try:
            change.update(x, n % 2, n % 2)
        except OSError:
            raised.append(n)
            assert change.is_collecting
            assert change.n_observations == n
    assert raised == [20, 22, 24]
    assert change.reference_observation == 26


@pytest.mark.parametrize("row", ["infinite loss", "no prediction", "raises"])
def test_one_bad_row_after_the_reference_does_not_end_the_explainer(monkeypatch, row):
    model = Failing(OSError("gone") if row == "raises" else None)
    change = scripted(
        monkeypatch, model, [8, 40], loss="squared", distance="number", signal="loss", threshold=0.3, **PAPER
    )
    for n in range(1, 12 * K):
        # The row whose prediction the caller could not have either.
        x = {"a": float(n % 2), "b": 0.0, **({"bad": 1} if n == K + 2 and row != "infinite loss" else {})}
        y = math.inf if n == K + 2 and row == "infinite loss" else 1.0
        if n == K + 7:
            change.model = Linear({"a": 1.0}, intercept=5.0)  # from now on it predicts 5 more
        with contextlib.suppress(OSError):
            change.update(x, y, None if "bad" in x else x["a"])
    assert (change.n_explained, change.is_collecting) == (1, False)


def test_a_detector_gets_no_infinite_loss(monkeypatch):
    model = Failing()
    change = scripted(monkeypatch, model, loss="squared", distance="number", signal="loss")
    for n in range(K + 5):
        change.update({"a": float(n), "b": 0.0}, math.inf if n == K + 2 else 1.0, float(n))
    assert change.detectors[0].fed == [(1.0 - n) ** 2 for n in (10, 11, 13, 14)]
    assert change.n_discrepancy == 5


@pytest.mark.parametrize("y_pred", [None, {}])
def test_observations_without_a_prediction_feed_neither_detector_nor_discrepancy(monkeypatch, y_pred):
    model = Scheduled((0, "a"))
    change = scripted(monkeypatch, model)
    found_in(change, model, observations(K + 2))
    change.update({"a": 1, "b": 0}, 1, y_pred)
    assert len(change.detectors[0].fed) == change.n_discrepancy == 2
    assert change.n_observations == K + 3


@pytest.mark.parametrize("parameters", [{"signal": "zero_one"}, {"distance": "label"}, {"distance": "probability"}])
def test_a_setting_that_a_regressor_cannot_serve_is_refused_at_construction(parameters):
    with pytest.raises(ModelError):
        ChangeExplainer(linear_model.LinearRegression(), **parameters)


def test_a_model_that_cannot_be_copied_is_refused_at_construction():
    with pytest.raises(ModelError, match="cannot save"):
        ChangeExplainer(HoldingALock(), loss="squared")


def test_a_lambda_is_its_own_copy_until_it_has_to_be_saved():
    change = ChangeExplainer(lambda x: x["a"], loss="squared", window=2)
    for i in range(3):
        change.update({"a": float(i)}, 1.0, float(i))
    assert change.reference is not None
    with pytest.raises(ModelError, match="cannot save"):
        change.snapshot()


class Counted(Scheduled):
    """Counts its evaluations, its copies' included."""

    def __call__(self, x):
        EVALUATIONS.append(self.n_learnt)
        return super().__call__(x)


EVALUATIONS = []


@pytest.mark.parametrize(("importances", "per_model"), [((), K), (("pfi",), 3 * K), (("sage",), None)])
def test_an_observation_and_a_conclusion_cost_the_documented_evaluations(monkeypatch, importances, per_model):
    """One evaluation of the reference per observation; 4 K for the discrepancy; per model (1 + d) K for PFI."""
    model = Counted((0, "a"), (K + 1, "not a"))
    change = scripted(monkeypatch, model, [5], threshold=0.3, importances=importances, **PAPER)
    cost = []
    for x, y in observations(K + 5 + K + 5):
        y_pred = KINDS[model.kind](x)
        model.learn_one(x, y)
        EVALUATIONS.clear()
        explanation = change.update(x, y, y_pred)
        cost.append(len(EVALUATIONS))
        if explanation is not None:
            assert explanation.importances.keys() == set(importances)
    end = K + 5 + K - 1
    if per_model is None:
        # Predictions, and m rows for each of the d - 1 coalitions of an observation; m is 4.
        per_model = K + 4 * K
    assert cost[: K - 1] == [0] * (K - 1)
    assert cost[K - 1] == per_model
    assert cost[end - 1] == 1 + 4 * K + 2 * per_model
    rest = [c for n, c in enumerate(cost, start=1) if n > K and n != end]
    assert rest == [1] * len(rest)
    assert (change.n_explained, change.reference.keys()) == (1, set(importances))


def test_without_importances_a_change_is_declared_and_nothing_else(monkeypatch):
    model = Scheduled((0, "a"), (K + 1, "not a"))
    change = scripted(monkeypatch, model, [5], threshold=0.3, importances=())
    ((_, explanation),) = found_in(change, model, observations(40)).items()
    assert (explanation.importances, explanation.cause, explanation.discrepancy) == ({}, None, 1.0)
    assert explanation.sentence() == "the model changed at 24 (discrepancy 1.00 > 0.30)"
    with pytest.raises(InvalidParameterError, match="importances"):
        explanation.delta  # noqa: B018  # it is the reading that is refused
