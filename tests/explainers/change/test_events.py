"""The events' own arithmetic and their sentences, on numbers written by hand."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from attributary_explainers import Alarm, Estimate, InvalidParameterError, NotConfirmed, Onset
from tests.explainers.changes import LOSSES, change_of, explanation_of


def explanation(before, after, *, head=None, **changes):
    return explanation_of(change_of(before, after, **changes), **(head or {}))


BEFORE = {"salary": 0.30, "elevel": 0.01, "age": 0.20, "loan": 0.0}
AFTER = {"salary": 0.01, "elevel": 0.20, "age": 0.205, "loan": 0.001}
# 1.96 * hypot(0.01, 0.01) = 0.0277 stands after each plus-minus sign.
MOVED = "salary lost 0.29 ± 0.03 of its importance, elevel gained 0.19 ± 0.03; age, loan within noise"
SHORTCUTS = [
    *("loss", "features", "before", "after", "before_std_error", "after_std_error", "delta", "delta_std_error"),
    *("before_ranks", "after_ranks", "shift", "ndcg", "p_values"),
]
CHANGED = "the data changed (loss of the old model 0.31 -> 0.62), and the model has"
SINCE = "at 9 340 (9 328 to 9 351, noticed at 9 385)"


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ({"verdict": "followed"}, f"changed {SINCE}: {CHANGED} followed (0.44)"),
        ({"verdict": "harder"}, f"changed {SINCE}: {CHANGED} not gained on it (0.44)"),
        (
            {"verdict": "matured", "route": "check", "onset": None},
            "has matured since 300: the data are as they were (0.31, 0.62), and the model has learnt more (0.44)",
        ),
        (
            {"verdict": "degraded"},
            f"has become worse {SINCE}: it is worse (0.44) than the model of 300 (0.62) on the same observations",
        ),
        ({"verdict": "harder", "onset": None}, f"changed (noticed at 9 385): {CHANGED} not gained on it (0.44)"),
        (
            {"onset": Onset(9100, None, 9120), "pattern": "trend"},
            f"changed before 9 120 (noticed at 9 385): {CHANGED} followed (0.44); the data keep changing: this is told "
            f"once",
        ),
        (
            {"pattern": "recurring"},
            f"changed {SINCE}: {CHANGED} followed (0.44); the data go back to what they were: this is told once",
        ),
    ],
)
def test_the_sentence_word_for_word(head, said):
    assert explanation(BEFORE, AFTER, head=head).sentence("credit") == f"credit {said}; {MOVED}"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((None, None), "credit has a new version at 9 386 (discrepancy 0.52)"),
        (("7", "8"), "credit went from version 7 to version 8 at 9 386 (discrepancy 0.52)"),
        ((None, "8"), "credit went to version 8 at 9 386 (discrepancy 0.52)"),
        (("7", None), "credit has a new version at 9 386 (discrepancy 0.52)"),
    ],
)
def test_the_sentence_of_a_version_word_for_word(names, said):
    head = {"route": "version", "verdict": None, "version_before": names[0], "version": names[1], "onset": None}
    made = explanation(BEFORE, AFTER, head=head)
    assert made.sentence("credit") == f"{said}: its loss is lower (0.62 -> 0.44); {MOVED}"


@pytest.mark.parametrize(
    ("gain", "error", "said"),
    [
        (0.18, 0.02, "lower"),
        (-0.18, 0.02, "higher"),
        (0.10, 0.025, "about equal"),  # .062 of it is a tenth of the loss, and what is left is within noise
        (0.06, 0.0, "about equal"),
    ],
)
def test_losses_of_versions_differ_by_more_than_a_tenth_or_not_at_all(gain, error, said):
    losses = dataclasses.replace(LOSSES, gain=Estimate(gain, error, 500), reference_then=None)
    made = explanation(BEFORE, AFTER, head={"route": "version", "verdict": None, "losses": losses})
    assert f": its loss is {said} (" in made.sentence()


def test_the_scores_of_detectors_are_told_as_scores():
    scores = dataclasses.replace(LOSSES, loss="score")
    version = explanation(BEFORE, AFTER, head={"route": "version", "verdict": None, "losses": scores})
    assert ": its mean score is lower (0.62 -> 0.44); " in version.sentence()


SCORED = "the data changed (mean score of the old model 0.31 -> 0.62), and the model has"


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("followed", f"changed {SINCE}: {SCORED} followed: it takes them for usual (0.44)"),
        ("harder", f"changed {SINCE}: {SCORED} not followed: it takes them for no more usual (0.44)"),
        (
            "matured",
            "has matured since 300: the scores of the old model are as they were (0.31, 0.62), and its own are lower "
            "(0.44)",
        ),
        (
            "degraded",
            f"began to score higher {SINCE}: on the same observations its mean score is 0.44, and 0.62 by the model "
            "of 300",
        ),
    ],
)
def test_of_two_scores_no_sentence_says_that_one_is_worse(verdict, said):
    scores = dataclasses.replace(LOSSES, loss="score")
    made = explanation(BEFORE, AFTER, head={"verdict": verdict, "losses": scores})
    assert made.sentence("iso") == f"iso {said}; {MOVED}"


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ("easier", "the data look less strange than before"),
        ("degraded", "it scored higher than its reference and no longer does"),
        ("equal", "since then nothing has changed beyond noise"),
    ],
)
def test_what_is_not_confirmed_of_scores_is_said_of_scores(found, why):
    made = NotConfirmed(**about(), closes=9385, found=found, losses=dataclasses.replace(LOSSES, loss="score"))
    assert made.sentence("iso") == f"the alarm of iso at 9 385 is not confirmed: {why}"


def test_numbers_of_observations_are_the_caller_s_where_it_gives_one():
    said = explanation(BEFORE, AFTER).sentence("credit", 10_384 + 1000)
    assert said.startswith("credit changed at 10 340 (10 328 to 10 351, noticed at 10 385)")


def about(**more):
    made = explanation(BEFORE, AFTER)
    names = [f.name for f in dataclasses.fields(Alarm) if f.name != "due"]
    return {**{name: getattr(made, name) for name in names}, **more}


@pytest.mark.parametrize(
    ("signal", "why"),
    [
        ({"route": "detector"}, "its loss rose"),
        ({"route": "detector", "one_sided": False}, "its loss moved"),
        ({"route": "detector", "signal": "score"}, "its mean score rose"),
        ({"route": "discrepancy"}, "it has moved away from its reference"),
    ],
)
def test_an_alarm_says_that_it_is_examined(signal, why):
    alarm = Alarm(**about(**signal, n_observations=9385), due=10_385)
    assert alarm.sentence("credit") == f"credit may have changed at 9 385 ({why}): it is examined until 10 385"
    assert alarm.sentence("credit", 385).endswith("until 1 385")


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ("equal", "since then nothing has changed beyond noise"),
        ("easier", "the data have become easier"),
        ("matured", "the data are as they were, and the model is still learning"),
        ("degraded", "it looked worse than its reference and no longer does"),
        ("harder", "it is part of a change that was told"),
        (None, "the models cannot be compared"),
    ],
)
def test_what_is_not_confirmed_says_why(found, why):
    made = NotConfirmed(**about(), closes=9385, found=found)
    assert made.sentence("credit") == f"the alarm of credit at 9 385 is not confirmed: {why}"


def test_without_importances_there_is_a_verdict():
    made = dataclasses.replace(explanation(BEFORE, AFTER), importances={})
    assert made.sentence().endswith("has followed (0.44)")
    assert made.significant() == []
    with pytest.raises(InvalidParameterError):
        _ = made.delta
    failed = dataclasses.replace(made, failure="ZeroDivisionError: division by zero")
    assert failed.sentence().endswith("; no importances: ZeroDivisionError: division by zero")


def test_nothing_beyond_noise_names_nothing():
    assert explanation(BEFORE, BEFORE).sentence().endswith("; no feature's importance changed beyond noise")


def test_many_features_are_counted():
    names = [f"f{i}" for i in range(10)]
    before = dict.fromkeys(names, 0.1)
    after = {name: 0.1 + (0.1 * (i + 1) if i < 6 else 0.0) for i, name in enumerate(names)}
    said = explanation(before, after).sentence()
    assert "f5 gained 0.60 ± 0.03 of importance, f4 gained 0.50 ± 0.03" in said
    assert "2 more changed by less; f6, f7, f8, f9 within noise" in said


@pytest.mark.parametrize("name", SHORTCUTS)
def test_shortcuts_are_those_of_the_first_method(name):
    made = explanation(BEFORE, AFTER)
    assert getattr(made, name) == getattr(made.first, name)


@pytest.mark.parametrize("half", [0.0, math.nan, math.inf])
def test_without_an_interval_there_is_a_number_alone(half):
    errors = dict.fromkeys(BEFORE, half)
    made = explanation(BEFORE, AFTER, delta_std_error=errors)
    assert "±" not in made.sentence()


def test_only_followed_and_harder_are_drift():
    verdicts = ("followed", "harder", "matured", "degraded", None)
    assert [explanation(BEFORE, AFTER, head={"verdict": v}).is_drift for v in verdicts] == [True, True, *[False] * 3]


def test_the_bounds_of_an_estimate_hold_in_95_of_100():
    rng = np.random.default_rng(9)
    held = sum(e.low <= 2.0 <= e.high for e in (Estimate.of(rng.normal(2.0, 1.0, size=400)) for _ in range(2000)))
    assert held >= stats.binom.ppf(1e-6, 2000, 0.95)
