"""Incidents as a monitor and a worker say them: whose numbers, what is measured, what is kept, and until when."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from river import anomaly, linear_model, naive_bayes

from attributary_explainers import Loss, resolve_loss
from attributary_explainers.change.verdicts import Onset
from attributary_explainers.incidents.findings import Finding
from attributary_explainers.incidents.incident import Involved
from attributary_explainers.monitor.incident_events import (
    back_incidents,
    ended_incidents,
    incident_events,
    version_incidents,
)
from attributary_explainers.monitor.incident_watch import IncidentWatch, new_incident_watch
from attributary_explainers.monitor.settings import Settings
from attributary_explainers.monitor.state import ModelCounts
from attributary_topics import ChangeDetails, IncidentEvent, Source, encode_json, event_id, event_time
from tests.explainers.incidents.made import alarm, explanation, nothing

WINDOW = 100
Script = dict[int, list[Any]]
"""What watches report, by the number of the model's observation; with a pair, the second is the explanation."""

DETAILS = ChangeDetails(
    model_version_before="1", model_version="1", verdict="followed", route="detector", observation=720,
    detected_at=600, reference_at=300, onset=None, pattern=None, detector=None, window=WINDOW, discrepancy=0.3,
    threshold=0.2, n_discrepancy=50, distance="label", scale="relative", losses=None, importances={},
)  # fmt: skip
SETTINGS = Settings(learn=True, loss="brier", change={"window": WINDOW}, alpha=0.1)


@dataclass
class Model:
    """What events of incidents read of a model."""

    incident_watch: IncidentWatch | None
    settings: Settings = SETTINGS
    model: Any = None
    model_id: str = "bank"
    version: str = "1"
    n_observations: int = 0
    counts: ModelCounts = field(default_factory=ModelCounts)

    @property
    def loss(self) -> Loss:
        return resolve_loss(self.model, self.settings.scored_loss)


def of_classes(n_before: int = 0, **settings: Any) -> Model:
    chosen, model = Settings(**{**vars(SETTINGS), **settings}), naive_bayes.GaussianNB()
    return Model(new_incident_watch(chosen, model), chosen, model, n_observations=n_before)


def of_numbers() -> Model:
    chosen = Settings(learn=True, loss="squared", change={"window": WINDOW}, alpha=0.1, watch_inputs=False)
    model = linear_model.LinearRegression()
    return Model(new_incident_watch(chosen, model), chosen, model)


def source(number: int) -> Source:
    return Source("t", 0, number - 1)


Of = Callable[[int], tuple[Any, Any]]
"""Label and prediction of an observation, by its number."""


def errs(share: float) -> Of:
    """Return the label and the prediction of each observation, wrong in this share of them, evenly."""
    return lambda number: (int(number * share) == int((number - 1) * share), {True: 0.9, False: 0.1})


WELL = errs(0.1)


def run(state: Any, until: int, script: Script | None = None, of: Of = WELL) -> list[IncidentEvent]:
    """Take observations until this one; return the events of incidents."""
    found: list[IncidentEvent] = []
    for number in range(state.n_observations + 1, until + 1):
        state.n_observations = number
        for one in (script or {}).get(number, []):
            state.incident_watch.note(*one if isinstance(one, tuple) else (one,))
        y, y_pred = of(number)
        losses = (None, None) if y is None else (state.loss(y, y_pred), 0.5)
        x = {"a": random.Random(number).random()}
        found += incident_events(state, x, y, y_pred, losses, source(number), 1000 * number, 0)
    return found


def followed(began: int, verdict: str = "followed") -> Script:
    """An alarm and its explanation, as a change explainer says them that counts from `began`."""
    told = explanation(720, verdict, 600, Onset(590, 580, 600))
    return {began + 600: [alarm(600)], began + 720: [(told, DETAILS)]}


@pytest.mark.parametrize("began", [0, 5000])
def test_numbers_are_the_model_s_also_where_the_watch_began_later(began: int) -> None:
    state = of_classes(began)
    first, confirmed = run(state, began + 750, followed(began))
    assert (first.observation, first.since.observation, first.since.low) == (began + 600, began + 600, None)
    assert [one.observation for one in first.evidence] == [began + 600]
    assert confirmed.observation == began + 720
    assert (confirmed.since.observation, confirmed.since.low, confirmed.since.high) == (
        began + 590,
        began + 580,
        began + 600,
    )
    assert [one.observation for one in confirmed.evidence] == [began + 600, began + 720]
    said = f"{began + 590:,}".replace(",", " ")
    assert f"observation {said}, " in confirmed.sentence


def test_a_version_of_a_watch_that_began_later_has_the_model_s_numbers() -> None:
    state = of_classes(5000)
    run(state, 5300)
    (said,) = version_incidents(state, source(5301), 0)
    assert (said.observation, said.since.observation) == (5300, 5301)
    state = of_classes(5000)  # and so has one before the first observation
    assert state.incident_watch is not None
    assert state.incident_watch.began == -1


def test_the_time_is_that_of_the_onset_as_long_as_it_is_known() -> None:
    state = of_classes(learn=False)
    events = run(state, 2500, followed(0, "degraded"), lambda n: errs(0.1 if n < 590 else 0.8)(n))
    confirmed = next(one for one in events if one.life == "confirmed")
    known = [event_time(1000 * number) for number in range(590 - WINDOW // 10 + 1, 591)]
    assert confirmed.since.observation == 590
    assert confirmed.since.time in known
    late = [one for one in events if one.observation > 590 + 128 * WINDOW // 10]
    assert late
    assert {one.since.time for one in late} == {None}
    assert {one.since.observation for one in late} == {590}


def test_an_id_is_that_of_the_first_event() -> None:
    state = of_classes()
    events = run(state, 4000, {**followed(0), 3000: [alarm(3000)]})
    (first,) = (one for one in events if one.number == 1 and one.revision == 1)
    (second,) = (one for one in events if one.number == 2 and one.revision == 1)
    assert first.id == event_id("bank", source(600), 0)
    assert second.id == event_id("bank", source(3000), 0) != first.id
    assert {one.id for one in events if one.number == 1} == {first.id}
    revisions = [one.revision for one in events if one.number == 1]
    assert revisions == list(range(1, len(revisions) + 1))
    # The place among the events of an observation is in it, that of a later revision is not.
    state = of_classes()
    run(state, 300)
    (said,) = version_incidents(state, source(301), 2)
    assert said.id == event_id("bank", source(301), 2)
    (ended, again) = [*ended_incidents(state, source(301)), *version_incidents(state, source(301), 4)]
    assert (ended.id, again.id) == (said.id, event_id("bank", source(301), 4))


def test_an_error_rate_is_measured_of_classes_and_an_absolute_error_of_numbers() -> None:
    def rate(number: int) -> tuple[Any, Any]:
        return errs(0.1 if number < 590 else 0.4)(number)

    events = run(of_classes(), 720, followed(0), rate)
    assert [one.name for one in events[-1].effects] == ["loss", "error rate"]
    loss, errors = events[-1].effects
    assert errors.before is not None
    assert errors.after is not None
    assert loss.before is not None
    assert errors.before.value == pytest.approx(0.1)
    assert errors.after.value == pytest.approx(0.4)
    assert errors.after.half_width < 0.1
    assert loss.before.value == pytest.approx(0.9 * 2 * 0.1**2 + 0.1 * 2 * 0.9**2)

    def off(number: int) -> tuple[Any, Any]:
        return 5.0 + (-1) ** number, 5.0 + (-1) ** number + (0.5 if number < 590 else 3.0)

    events = run(of_numbers(), 720, followed(0), off)
    loss, errors = events[-1].effects[:2]
    assert (loss.name, errors.name) == ("loss", "mean absolute error")
    assert errors.before is not None
    assert errors.after is not None
    assert loss.after is not None
    assert (errors.before.value, errors.after.value, loss.after.value) == pytest.approx((0.5, 3.0, 9.0))


def test_a_model_of_numbers_that_is_worse_than_the_mean_label_is_useless() -> None:
    """Its errors are compared with those of the mean label, not with the loss of the mean prediction."""
    events = run(of_numbers(), 500, of=lambda number: (5.0 + (-1) ** number, 5.0 + (-1) ** number + 4.0))
    first = events[0]
    assert (first.what, first.life, first.severity) == ("worse", "confirmed", "critical")
    constant = first.effects[-1]
    assert constant.name == "constant"
    assert constant.now is not None
    assert constant.now.value == pytest.approx(1.0, rel=0.1)
    assert "its average error is 4, 3.80 times that of a constant" in first.sentence
    assert run(of_numbers(), 500, of=lambda number: (5.0 + (-1) ** number, 5.0 + 0.9 * (-1) ** number)) == []


def test_a_model_that_is_useless_from_the_beginning_is_one_incident_until_it_is_not() -> None:
    """What it lost before is not known, so that its loss has never risen."""

    def useless(number: int) -> tuple[Any, Any]:
        return 5.0 + (-1) ** number, 5.0 + (-1) ** number + (4.0 if number < 2500 else 0.1)

    events = run(of_numbers(), 4000, of=useless)
    assert {one.number for one in events} == {1}
    *lasting, last = events
    assert {one.life for one in lasting} == {"confirmed"}
    assert (last.life, last.reason) == ("over", "returned")
    assert last.observation > 2500


def test_the_explanation_is_in_each_later_revision_and_not_in_the_next_incident() -> None:
    state = of_classes()
    script = {**followed(0), 3000: [alarm(3000)], 3100: [nothing(3100, 3000)]}
    events = run(state, 3200, script, lambda n: errs(0.1 if n < 590 or n > 1500 else 0.8)(n))
    of_first = [one for one in events if one.number == 1]
    plain = json.loads(encode_json(DETAILS))
    assert [one.explanation for one in of_first] == [None, *[plain] * (len(of_first) - 1)]
    assert len(of_first) > 3
    assert of_first[-1].life == "over"
    of_second = [one for one in events if one.number == 2]
    assert [(one.life, one.explanation) for one in of_second] == [("suspected", None), ("withdrawn", None)]


def test_an_explanation_that_another_version_cuts_short_is_not_the_next_one_s() -> None:
    state = of_classes()
    run(state, 720, followed(0))
    assert state.incident_watch is not None
    state.incident_watch.note(alarm(721), DETAILS)  # noted, and the observation is never taken
    (ended,) = ended_incidents(state, source(721))
    (said,) = version_incidents(state, source(721), 1)
    assert ended.explanation is not None
    assert (said.what, said.explanation) == ("version", None)
    assert [one.watch for one in said.evidence] == ["version"]


def test_what_is_confirmed_is_counted_once_by_what_it_is_and_how_bad() -> None:
    state = of_classes()
    events = run(state, 4000, {**followed(0), 3000: [alarm(3000)], 3100: [nothing(3100, 3000)]})
    (confirmed,) = (one for one in events if one.life == "confirmed")
    assert +state.counts.incidents == {(confirmed.what, confirmed.severity): 1}


@pytest.mark.parametrize(
    ("settings", "model", "measure"),
    [
        ({}, naive_bayes.GaussianNB(), "error rate"),
        ({"loss": "squared"}, linear_model.LinearRegression(), "mean absolute error"),
        ({"mode": "mirror", "loss": "squared"}, linear_model.LinearRegression(), "mean absolute error"),
        ({"mode": "unlabelled", "learn": False}, naive_bayes.GaussianNB(), None),
        ({"mode": "anomaly", "loss": None}, anomaly.HalfSpaceTrees(), None),
        ({"loss": "score"}, anomaly.HalfSpaceTrees(), None),
    ],
    ids=["classes", "numbers", "mirror", "unlabelled", "anomaly", "labelled detector"],
)
def test_what_is_measured_follows_from_the_mode_and_the_model(
    settings: dict[str, Any], model: Any, measure: str | None
) -> None:
    watch = new_incident_watch(Settings(**{**vars(SETTINGS), **settings}), model)
    assert watch is not None
    assert watch.incidents.measure == measure
    assert (watch.incidents.window, watch.inputs is not None) == (WINDOW, True)


def test_a_part_of_a_model_has_no_incidents() -> None:
    sharded = Settings(learn=False, sharded=True, change=None)
    assert new_incident_watch(sharded, naive_bayes.GaussianNB()) is None
    state = Model(None)
    assert incident_events(state, {}, True, None, (None, None), source(1), 0, 0) == []
    assert version_incidents(state, source(1), 0) == ended_incidents(state, source(1)) == []
    assert back_incidents(state, "it failed", source(1), 0) == []


def test_without_labels_nobody_is_told_that_the_model_is_worse_or_by_how_much() -> None:
    state = of_classes(mode="unlabelled", learn=False)
    script = {600: [alarm(600)], 720: [(explanation(720, "degraded", 600, Onset(590, 580, 600)), DETAILS)]}
    first, confirmed = run(state, 750, script, lambda _: (None, {True: 0.9, False: 0.1}))
    assert [(one.what, one.severity) for one in (first, confirmed)] == [("relies_differently", "info")] * 2
    assert [(one.name, one.before, one.after, one.now) for one in confirmed.effects] == [("loss", None, None, None)]
    assert confirmed.since.observation == 590


def test_a_label_that_comes_without_a_prediction_is_not_measured() -> None:
    """As that of an earlier version, where labels come later: its loss is of nothing that is watched."""
    state = of_classes()
    assert state.incident_watch is not None
    run(state, 50)
    before = _courses(state.incident_watch)
    for number in range(51, 100):
        state.n_observations = number
        assert incident_events(state, {"a": 0.5}, True, None, (None, None), source(number), 0, 0) == []
    assert _courses(state.incident_watch) == before


def _courses(watch: IncidentWatch) -> list[Any]:
    incidents = watch.incidents.snapshot()["state"]
    return [incidents[name] for name in ("_loss", "_measured", "_constant")]


def test_another_version_with_another_loss_begins_the_means_anew_and_one_with_the_same_does_not() -> None:
    state = of_classes()
    run(state, 600)
    (same,) = version_incidents(state, source(601), 0)
    assert same.effects[1].before is not None
    assert same.effects[1].before.value == pytest.approx(0.1)

    state.settings, state.model = Settings(**{**vars(SETTINGS), "loss": "cross_entropy"}), naive_bayes.GaussianNB()
    *_, said = [*ended_incidents(state, source(601)), *version_incidents(state, source(601), 1)]
    assert [one.before for one in said.effects] == [None, None]
    assert [one.name for one in said.effects] == ["loss", "error rate"]
    assert state.incident_watch is not None
    assert state.incident_watch.parameters["loss"] == "cross_entropy"
    later = run(state, 1000)
    assert all(one.before is None for event in later for one in event.effects)
    state.settings = Settings(**{**vars(SETTINGS), "loss": "squared"})
    state.model = linear_model.LinearRegression()
    *_, said = [*ended_incidents(state, source(1001)), *version_incidents(state, source(1001), 1)]
    assert [one.name for one in said.effects] == ["loss", "mean absolute error"]
    assert (said.loss, said.loss_unit) == ("squared", "unit of the target, squared")


def test_a_model_that_goes_back_is_an_incident_of_its_own_which_ends_the_open_one() -> None:
    state = of_classes()
    known = run(state, 720, followed(0))
    ended, said = back_incidents(state, "3 in a row failed to learn (KeyError)", source(721), 1)
    assert (ended.id, ended.life, ended.reason) == (known[0].id, "over", "replaced")
    assert (said.what, said.life, said.severity, said.advice) == (
        "recovered",
        "confirmed",
        "critical",
        "look_at_inputs",
    )
    assert (said.id, said.observation) == (event_id("bank", source(721), 2), 720)
    assert [(one.watch, one.said) for one in said.evidence] == [("model", "3 in a row failed to learn (KeyError)")]
    assert said.explanation is None
    assert state.counts.incidents["recovered", "critical"] == 1
    later = run(state, 2000)
    assert [(one.id, one.life, one.reason) for one in later] == [(said.id, "over", "returned")]


def test_names_and_figures_go_out_as_json_has_them() -> None:
    feature = Involved(("a", 1), 0.3, 0.1, -0.2, float("nan"), significant=True)
    numbers = Finding("loss", "level", "loss", opens=True, is_verdict=True, features=(feature,), intercept=float("inf"))
    (event,) = run(of_classes(), 600, {600: [numbers]})
    said = json.loads(encode_json(event))
    assert said["features"]["('a', 1)"] == {
        "before": 0.3, "after": 0.1, "delta": -0.2, "half_width": None, "significant": True, "suspect": False,
        "said": "", "values_before": None, "values_after": None,
    }  # fmt: skip
    assert said["intercept"] is None


def test_values_before_and_since_are_with_a_feature_where_they_are_watched() -> None:
    def events(**settings: Any) -> list[IncidentEvent]:
        state, found = of_classes(**settings), []
        for number in range(1, 1200):
            state.n_observations = number
            x = {"a": random.Random(number).random() + (1000.0 if number > 1000 else 0.0)}
            losses = (0.2, 0.5)
            found += incident_events(state, x, True, {True: 0.9}, losses, source(number), number, 0)
        return found

    assert events(watch_inputs=False) == []
    first = events()[0]
    feature = first.features["a"]
    assert (first.what, first.life, feature.suspect) == ("inputs", "confirmed", True)
    assert feature.values_before is not None
    assert feature.values_after is not None
    assert 0.0 <= feature.values_before.quantiles[0] < feature.values_before.quantiles[-1] <= 1.0
    assert feature.values_after.quantiles[-1] > 1000.0
    assert "1 00" in feature.said


@pytest.mark.parametrize(("every", "watch_inputs"), [(37, False), (181, True)])
def test_stopping_changes_nothing(every: int, watch_inputs: bool) -> None:
    script = {**followed(0), 1500: [alarm(1500)], 1600: [nothing(1600, 1500)], **followed(1400)}
    stored = {True: (pickle.dumps, pickle.loads), False: (orjson.dumps, orjson.loads)}

    def of(number: int) -> tuple[Any, Any]:
        return errs(0.1 if number < 590 or 900 < number < 1990 else 0.6)(number)

    dumps, loads = stored[watch_inputs]
    whole, state = of_classes(watch_inputs=watch_inputs), of_classes(watch_inputs=watch_inputs)
    expected = run(whole, 3000, script, of)
    found: list[IncidentEvent] = []
    for until in (*range(every, 3000, every), 3000):
        found += run(state, until, script, of)
        assert state.incident_watch is not None
        state.incident_watch = IncidentWatch.from_snapshot(loads(dumps(state.incident_watch.snapshot())))
    assert [encode_json(one) for one in found] == [encode_json(one) for one in expected]
    assert {"suspected", "confirmed", "over", "withdrawn"} <= {one.life for one in expected}
    assert whole.incident_watch is not None
    assert state.incident_watch is not None
    assert state.incident_watch.snapshot() == whole.incident_watch.snapshot()


def test_a_version_is_not_blamed_for_what_the_one_before_did() -> None:
    def useless(number: int) -> tuple[Any, Any]:
        return 5.0 + (-1) ** number, 5.0 + (-1) ** number + 4.0

    def good(number: int) -> tuple[Any, Any]:
        return 5.0 + (-1) ** number, 5.0 + 0.9 * (-1) ** number

    state = of_numbers()
    assert [one.what for one in run(state, 505, of=useless)][:1] == ["worse"]
    _, said = [*ended_incidents(state, source(506)), *version_incidents(state, source(506), 1)]
    events = [said, *run(state, 1000, of=good)]
    assert [(one.life, one.severity) for one in events] == [
        ("suspected", "info"),
        ("confirmed", "info"),
        ("over", "info"),
    ]
    assert events[1].observation > 506 + WINDOW, "once a window is of it"
    assert {one.watch for one in events[-1].evidence} == {"version"}
    # And where the new one is as useless, it is said.
    state = of_numbers()
    run(state, 505, of=useless)
    version_incidents(state, source(506), 0)
    events = run(state, 1000, of=useless)
    assert (events[0].what, events[0].life, events[0].severity) == ("version", "confirmed", "critical")
    assert events[0].observation > 506 + WINDOW
