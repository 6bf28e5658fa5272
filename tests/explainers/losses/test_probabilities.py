"""Probabilities that are none are refused wherever they are read, in one line."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import linear_model, naive_bayes

from attributary_explainers import (
    ChangeExplainer,
    IncrementalPDP,
    IncrementalPFI,
    IncrementalSAGE,
    LossMonitor,
    Monitor,
    ProbabilityError,
    Quality,
    as_batch,
    batch_pfi,
    model_function,
)
from attributary_explainers.monitor.mismatch import as_output
from attributary_explainers.predictions import check_probabilities
from attributary_topics import InvalidRecordError

TOO_MANY = "the model's probabilities sum to 1000, not to 1: divide them by their sum before the model returns them"
NEGATIVE = "the model predicts a probability of -0.25, not one from 0 to 1: let it return probabilities, which sum to 1"
BAD: dict[str, tuple[dict[Any, float], str]] = {
    "a sum of 1000": ({False: 400.0, True: 600.0}, TOO_MANY),
    "below 0": ({False: -0.25, True: 1.25}, NEGATIVE),
    "one of two classes": ({True: 0.75}, TOO_MANY.replace("1000", "0.75")),
    "zeros": ({False: 0.0, True: 0.0}, TOO_MANY.replace("1000", "0")),
    "a little": ({False: 0.5, True: 0.500002}, TOO_MANY.replace("1000", "1.000002")),
}
X = {"a": 1.0, "b": 2.0}


class Says:
    """Predicts what it is told to."""

    def __init__(self, said: dict[Any, float]) -> None:
        self.said = said

    def predict_proba_one(self, x: dict[str, Any]) -> dict[Any, float]:
        return dict(self.said)


def explained(explainer: Any, **given: Any) -> None:
    for _ in range(2):  # the first has nothing to draw from
        explainer.explain_one(dict(X), True, **given)


GOOD = {False: 0.5, True: 0.5}
READERS: dict[str, Callable[[Any], Any]] = {
    "function": lambda said: model_function(Says(said), "probabilities")(X),
    "callable": lambda said: model_function(lambda x: said, "any")(X),
    "pfi": lambda said: explained(IncrementalPFI(Says(said), seed=1)),
    "sage": lambda said: explained(IncrementalSAGE(Says(said), loss="cross_entropy", seed=1)),
    "pdp": lambda said: explained(IncrementalPDP(Says(said), seed=1)),
    "many rows": lambda said: explained(
        IncrementalPFI(as_batch(lambda rows: [said] * len(rows)), loss="brier", seed=1)
    ),
    "batch": lambda said: batch_pfi(Says(said), [X, X], [True, False], seed=1),
    "pfi, given": lambda said: explained(IncrementalPFI(Says(GOOD), seed=1), y_pred=said),
    "pfi, passed over": lambda said: IncrementalPFI(Says(GOOD), seed=1).pass_over(dict(X), said),
    "pdp, given": lambda said: explained(IncrementalPDP(Says(GOOD), seed=1), y_pred=said),
    "change": lambda said: ChangeExplainer(Says(GOOD), seed=1).update(X, True, said),
    "loss watch": lambda said: LossMonitor(learns=False).update(X, True, said),
    "quality": lambda said: Quality(["accuracy", "roc_auc"]).update(True, said),
    "monitor": lambda said: Monitor(in_background=False, on_error="raise").add("m", Says(said)).observe("m", X, True),
    "answer": lambda said: Monitor(in_background=False).add("m", Says(said)).predict_proba("m", X),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_probability_is_refused_in_one_line(reader: str, bad: str) -> None:
    said, message = BAD[bad]
    with pytest.raises(ProbabilityError, match=f"^{re.escape(message)}$"):
        READERS[reader](said)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "said", [GOOD, {True: 1.0}, {False: Fraction(1, 3), True: Fraction(2, 3)}, {False: 0.5, True: 0.5 + 9e-7}]
)
def test_what_is_one_is_taken(reader: str, said: dict[Any, Any]) -> None:
    READERS[reader](said)


@given(st.lists(st.floats(-0.5, 1.5) | st.sampled_from([math.nan, math.inf]), max_size=5))
def test_the_rule_is_that_of_a_sum_and_of_bounds(values: list[float]) -> None:
    is_probability = not values or (
        abs(math.fsum(values) - 1.0) <= 1e-6 and all(-1e-6 <= p <= 1 + 1e-5 for p in values)
    )
    try:
        check_probabilities(dict(enumerate(values)))
    except ProbabilityError:
        assert not is_probability
    else:
        assert is_probability or not np.isfinite(values).all(), "what is not finite is no prediction, as it was"


def test_an_observation_that_is_refused_changes_nothing() -> None:
    one, other = (LossMonitor(learns=False) for _ in range(2))
    quality, twin = (Quality(["roc_auc", "cross_entropy"], alpha=0.1) for _ in range(2))
    for i in range(20):
        for bad, _ in BAD.values():
            with pytest.raises(ProbabilityError):
                one.update(X, True, bad)
            with pytest.raises(ProbabilityError):
                quality.update(True, bad)
        for watch in (one, other):
            watch.update(X, i % 2 == 0, {False: 0.3, True: 0.7})
        for figures in (quality, twin):
            figures.update(i % 2 == 0, {False: 0.3, True: 0.7})
    assert one.snapshot() == other.snapshot()
    assert quality.snapshot() == twin.snapshot()


def test_what_reads_the_label_alone_takes_votes() -> None:
    votes = {"no": 3, "yes": 9}
    assert model_function(lambda x: votes, "label")(X) == {"yes": 1.0}
    Quality(["accuracy", "f1"]).update("yes", votes)
    LossMonitor(output="label", learns=False).update(X, "yes", votes)


def test_a_river_model_that_knows_nothing_yet_is_taken() -> None:
    for model in (naive_bayes.GaussianNB(), linear_model.LogisticRegression()):
        monitor = Monitor(in_background=False, on_error="raise").add("m", model, learn=True)
        for i in range(30):
            monitor.observe("m", {"a": float(i % 3), "b": 1.0}, i < 1 or i % 3 == 0)
        assert monitor.importances("m")["pfi"]


def test_a_monitor_tells_it_once_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="attributary_explainers.monitor")
    model = Says(GOOD)
    monitor = Monitor(in_background=False).add("m", model, change=None)
    for said in (GOOD, BAD["a sum of 1000"][0], BAD["a sum of 1000"][0], GOOD):
        model.said = said
        monitor.observe("m", X, True)
    (told,) = [one.getMessage() for one in caplog.records if one.name.startswith("attributary_explainers.monitor")]
    assert told.startswith(f"model m: an observation is not taken (model_failed): {TOO_MANY}")
    (watched,) = monitor._models.values()
    assert (watched.n_observations, watched.failures) == (2, {"model_failed": 2})


def test_logged_probabilities_that_are_none_make_a_dead_letter() -> None:
    assert as_output({"true": 0.75, "false": 0.25}, True, "probabilities") == {True: 0.75, False: 0.25}
    with pytest.raises(InvalidRecordError, match="none below 0, which sum to 1") as caught:
        as_output({"true": 75, "false": 25}, True, "probabilities")
    assert caught.value.reason == "wrong_prediction"


def test_logged_probabilities_that_were_rounded_are_divided_by_their_sum() -> None:
    assert as_output({"a": 0.333, "b": 0.333, "c": 0.333}, "a", "probabilities") == pytest.approx(
        dict.fromkeys("abc", 1.0 / 3.0), abs=1e-12
    )
    exact = {"a": 0.25, "b": 0.75}
    assert as_output(exact, "a", "probabilities") == exact
