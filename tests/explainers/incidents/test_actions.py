"""What to do, and whether now: no advice contradicts what is said beside it, over all that an incident can be."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest

from attributary_explainers import Effect, Incident, Incidents, Involved, LevelMoved
from attributary_explainers.incidents.incident import Advice, Mean, Severity, What
from tests.explainers.incidents.made import explained, loss_shift
from tests.explainers.incidents.test_words import BROKEN, KINDS, LIVES, RELIED, made

MOVED = Involved("age", moved=True, said="moved: its median was 41, is 58")
SETS: dict[str, tuple[Involved, ...]] = {
    "none": (), "relied": RELIED, "moved": (MOVED,), "broken": (BROKEN,), "broken and relied": (BROKEN, *RELIED),
    "moved and relied": (replace(MOVED, significant=True, delta=-0.1), *RELIED),
}  # fmt: skip
ACTIONS = re.compile(
    r"Act now: .+\.|Can wait until morning: .+\.|Nothing to do\.|Nothing to do yet: it is not confirmed\."
    r"|Nothing to do unless it stays worse\."
)
TECHNICAL = re.compile(r"nats|brier|log.?loss|entropy|zero_one|\bmean absolute error", re.IGNORECASE)


def every() -> list[Incident]:
    """Return incidents of every kind, also of those that no watch makes."""
    sides = get_args(What), LIVES, get_args(Severity), get_args(Advice), SETS.values(), KINDS.values()
    return [
        made(what, life, reason, effects, severity=severity, advice=advice, features=features)
        for what, (life, reason), severity, advice, features, effects in product(*sides)
    ]


def test_an_action_is_of_a_closed_list_and_is_now_where_it_is_open_and_critical() -> None:
    for one in every():
        action = one.action()
        assert ACTIONS.fullmatch(action)
        is_past = one.life == "withdrawn" or one.reason in ("returned", "replaced")
        assert action.startswith("Act now") == (one.severity == "critical" and one.life != "over" and not is_past)
        assert not (is_past and action != "Nothing to do.")
        sentence = one.sentence("bank")
        assert sentence.startswith(f"{one.headline('bank')}. {action} ")
        assert sentence.count("Act now") + sentence.count("Can wait") + sentence.count("Nothing to do") == 1
        assert not TECHNICAL.search(sentence)


def test_what_is_to_be_looked_at_is_what_is_said_to_be_wrong() -> None:
    for one in every():
        action, details = one.action(), one.details()
        if "check the source of" in action:
            named = [of.name for of in one.features if of.is_broken] or [of.name for of in one.features if of.moved]
            assert not named or f"check the source of {named[0]}" in action
        if one.advice == "look_at_labels":
            assert "It relies" not in details
        if "points at the labels" in details or "turned round" in details:
            assert "the labels" in action or action.startswith("Nothing")


@pytest.mark.parametrize(("name", "advice"), [("moved", "look_at_inputs"), ("still", "retrain")])
def test_a_learner_that_stays_worse_is_trained_again_only_where_no_feature_moved(name: str, advice: str) -> None:
    shift, incidents = loss_shift(5060, "worse", 5001), Incidents(learns=True)
    features = tuple(
        replace(one, moved=0.3 * (name == "moved" and one.name == "a")) for one in explained(shift, 6070).features
    )
    rng, found = np.random.default_rng(1), []
    for number in range(1, 9000):
        events = {5060: [shift], 6070: [replace(explained(shift, 6070), features=features)]}.get(number, [])
        loss = (0.4 if number > 5000 else 0.2) + 0.01 * float(rng.standard_normal())
        found += incidents.update(events, loss=loss, constant=0.5)
    assert (found[-1].what, found[-1].advice) == ("worse", advice)
    assert ("check the source of a; if its values are right, train it again" in found[-1].action()) == (name == "moved")


def test_a_model_that_is_wrong_where_it_was_right_has_its_labels_turned_round() -> None:
    """Of labels that are turned round the error rate is one less what it was, whatever the model."""
    for learns in (False, True):
        shift, incidents = loss_shift(5060, "worse", 5001), Incidents(learns=learns, measure="error rate")
        rng, found = np.random.default_rng(2), []
        for number in range(1, 9000):
            is_wrong = (rng.random() < 0.15) != (number > 5000)
            events = {5060: [shift], 6070: [explained(shift, 6070, "a", "b")]}.get(number, [])
            found += incidents.update(events, loss=0.1 + 0.8 * is_wrong, measured=float(is_wrong), constant=0.9)
        assert (found[-1].what, found[-1].advice) == ("worse", "look_at_labels")
        assert "check the labels" in found[-1].action()
        assert "It is wrong where it was right, as if labels were turned round." in found[-1].details()
    near = Effect("error rate", Mean(0.2, 0.02), None, Mean(0.79, 0.02))
    assert near.is_mirrored
    assert not replace(near, now=Mean(0.5, 0.02)).is_mirrored
    assert not replace(near, before=Mean(0.45, 0.02), now=Mean(0.55, 0.02)).is_mirrored, "of no use before, too"


@pytest.mark.parametrize(
    ("level", "said"),
    [
        (LevelMoved(True, 0.1, 0.098, 1.2, 0.041), "the share of True is 9.8 %, and was 4.10 % before"),
        (LevelMoved(None, 25.0, 31.2, 6.1, 24.1), "the target is 31.2 on average, and was 24.1 before"),
        (LevelMoved(None, 25.0, 31.2, 6.1), "the target is 31.2 on average"),
    ],
)
def test_both_values_of_a_level_are_said_and_kept(level: LevelMoved, said: str) -> None:
    measure: Any = "mean absolute error" if level.label is None else "error rate"
    shift, incidents = (
        replace(loss_shift(5060, "level", 5001), level=(level,)),
        Incidents(learns=False, measure=measure),
    )
    rng, found = np.random.default_rng(3), []
    for number in range(1, 7000):
        events = {5060: [shift], 6070: [explained(shift, 6070)]}.get(number, [])
        found += incidents.update(events, loss=0.2 + 0.01 * float(rng.standard_normal()), measured=0.2, constant=0.5)
        if number == 5500:
            incidents = Incidents.from_snapshot(incidents.snapshot())
    sure = found[-1]
    assert (sure.what, sure.life, sure.advice) == ("level", "confirmed", "shift_intercept")
    assert sure.action().startswith("Can wait until morning: add ")
    assert sure.details() == f"Since observation 5 001, {said}."
    share = sure.effects[-1]
    if level.label is not None:  # by the binomial distribution, of 256 labels
        assert share.now is not None
        assert share.now.half_width == pytest.approx(1.96 * np.sqrt(0.098 * 0.902 / 256))
