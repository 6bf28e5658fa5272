"""Which events follow from an observation, when, and that they agree with themselves."""

from __future__ import annotations

from typing import Any

import pytest

from attributary_agents.models.prequential import prequential
from attributary_agents.models.swap import swap
from attributary_agents.models.versions import Version
from attributary_explainers import ChangeExplainer, ndcg, shift
from attributary_topics import (
    ImportanceEvent,
    IncidentEffect,
    IncidentEvent,
    IncidentOnset,
    MeanEstimate,
    Source,
    encode_json,
)
from tests.agents.models.test_prequential import FEW, NO_CHANGE, importances, incidents, run, state_of
from tests.agents.stand_ins import EAGER, CountingClassifier, observations

CHANGE = {"window": 60, "threshold": 0.2, "detector_params": {"delta": 0.05}}


def test_events_come_at_every_so_many_observations_and_on_material_change_and_else_never() -> None:
    state = state_of(
        explainers=FEW,
        publish={"every": 40, "material_shift": 0.25, "min_observations": 25, "reference_after": 60},
        **NO_CHANGE,
    )
    published: dict[str, dict[str, float]] = {}
    triggers = []
    for i, observation in enumerate(observations(400, flip_at=200), start=1):
        events = importances(prequential(state, observation, Source("topic", 0, i - 1), 0))
        found = {event.explainer: event for event in events}
        assert len(found) == len(events)
        for name, explainer in state.explainers.items():
            now = explainer.importance
            moved = name not in published or shift(published[name], now) > 0.25
            expected = None
            if i % 40 == 0:
                expected = "interval"
            elif explainer.n_observations >= 25 and moved:
                expected = "material_change"
            assert (found[name].trigger if name in found else None) == expected, (i, name)
            if expected:
                published[name] = now
                triggers.append((name, expected))
                assert found[name].observation == i
                assert {f: v.importance for f, v in found[name].features.items()} == now
    # Otherwise the test would show nothing.
    assert {("pfi", "interval"), ("sage", "interval"), ("sage", "material_change")} <= set(triggers)
    assert len(triggers) < 200


def test_shift_and_ndcg_are_null_until_there_is_a_reference() -> None:
    state = state_of(publish={"every": 10, "reference_after": 25, "min_observations": 1000}, **NO_CHANGE)
    events = importances(run(state, observations(50)))

    assert [event.observation for event in events] == [10, 20, 30, 40, 50]
    assert [event.reference_id for event in events] == [None, None, "25", "25", "25"]
    assert [event.shift is None and event.ndcg is None for event in events] == [True, True, False, False, False]


def test_no_event_before_anything_has_been_explained() -> None:
    state = state_of(publish={"every": 1}, **NO_CHANGE)
    assert [event.observation for event in run(state, observations(3))] == [2, 3]


def test_an_importance_event_says_what_the_explainer_says() -> None:
    state = state_of(alpha=0.1, explainers=FEW, publish={"every": 20}, version="v7", **NO_CHANGE)
    events = importances(run(state, observations(20)))
    assert [event.explainer for event in events] == ["pfi", "sage"]
    for event in events:
        explainer = state.explainers[event.explainer]
        assert (event.model_id, event.model_version, event.alpha) == ("m", "v7", 0.1)
        assert (event.loss, event.loss_unit, event.loss_largest) == ("brier", "squared probability", 2.0)
        assert (event.observation, event.n_observations) == (20, 19)
        assert (event.discrepancy, event.trigger) == (None, "interval")
        assert event.source == Source("topic", 0, 19)
        for name, feature in event.features.items():
            assert feature.importance == explainer.importance[name]
            assert feature.std_error == explainer.std_error[name]
            assert feature.half_width == explainer.half_width[name]
        assert [feature.rank for feature in event.features.values()] == [1, 2]
        assert sum(feature.share for feature in event.features.values()) == pytest.approx(1.0)
        encode_json(event)


def incidents_of(stream_flips_at: int, n: int, **settings: Any) -> list[IncidentEvent]:
    publish = {"every": 1000, "min_observations": 1000}
    return incidents(run(state_of(publish=publish, **settings), observations(n, flip_at=stream_flips_at)))


def test_a_suspicion_and_what_confirms_it_agree_with_each_other_and_with_themselves() -> None:
    chosen = {**CHANGE, "loss": "zero_one", "importances": ["sage", "pfi"]}
    first, event = incidents_of(300, 400, explainers=FEW, change=chosen)

    assert (first.event, first.what, first.life, first.reason) == ("incident", "changed", "suspected", "suspected")
    assert isinstance(first.source, Source)
    assert isinstance(event.source, Source)
    assert 300 < first.observation == first.source.offset + 1 < 340, "at once"
    assert first.since == IncidentOnset(first.observation, None, first.observation, first.since.time)
    assert (first.features, first.explanation) == ({}, None)
    assert first.id == event.id == f"m:topic:0:{first.source.offset}:0", "the ce_id of the first"
    assert (first.number, event.number, first.revision, event.revision) == (1, 1, 1, 2)
    assert (event.what, event.life, event.reason) == ("changed", "confirmed", "confirmed")
    assert event.observation == event.source.offset + 1 == first.observation + 60 + 2, "explained in three slices"
    assert (event.since.observation, event.since.high) == (301, 301)
    for one in (first, event):
        assert (one.model_version, one.loss, one.loss_unit) == ("1", "brier", "squared probability")
        assert [effect.name for effect in one.effects] == ["loss", "error rate"]
        encode_json(one)
    assert [(one.watch, one.said, one.observation, one.is_open) for one in event.evidence] == [
        ("change", "suspects", first.observation, True),
        ("change", "followed", event.observation, False),
    ]
    told = event.explanation
    assert told is not None
    assert told["detector"] == {"name": "adwin", "params": {"delta": 0.05}, "signal": "zero_one"}
    assert (told["route"], told["distance"], told["scale"], told["threshold"]) == ("detector", "label", "relative", 0.2)
    assert (told["model_version_before"], told["model_version"]) == ("1", "1")
    assert (told["verdict"], told["pattern"], told["window"]) == ("followed", None, 60)
    assert (told["observation"], told["detected_at"]) == (event.observation, first.observation)
    assert told["onset"] == {"observation": 301, "low": 301, "high": 301}
    assert told["n_discrepancy"] == 30, "the later half of the window"
    losses = told["losses"]
    assert (losses["loss"], losses["loss_largest"]) == ("brier", 2.0)
    assert losses["worsened"]["loss"] == losses["reference_now"]["loss"] - losses["reference_then"]["loss"]
    assert (losses["reference_now"]["n"], losses["model_now"]["n"]) == (60, 30)
    for name in ("reference_then", "reference_now", "model_now", "worsened", "gain"):
        assert losses[name]["low"] <= losses[name]["loss"] <= losses[name]["high"]
    assert losses["worsened"]["low"] > 0 < losses["gain"]["low"], "what followed means"
    assert list(told["importances"]) == ["sage", "pfi"]
    for comparison in told["importances"].values():
        assert_adds_up(comparison)
    # The incident itself has those of the first kind.
    for name, feature in told["importances"]["sage"]["features"].items():
        said = event.features[name]
        assert (said.before, said.after, said.delta) == (feature["before"], feature["after"], feature["delta"])
        assert said.significant == feature["significant"] == (name == "a")
    assert "It relies less on a" in event.sentence


def assert_adds_up(comparison: dict[str, Any]) -> None:
    features = comparison["features"]
    assert [comparison[name] for name in ("loss", "loss_unit", "loss_largest", "n")] == [
        "zero_one",
        "share of observations",
        1.0,
        30,
    ]
    assert set(features) == {"a", "b"}
    before, after = ({name: f[side] for name, f in features.items()} for side in ("before", "after"))
    assert (comparison["shift"], comparison["ndcg"]) == (shift(before, after), ndcg(before, after))
    for loss in (comparison["before_loss"], comparison["after_loss"]):
        assert (loss * 30).is_integer()  # of 30 observations right or wrong
    for feature in features.values():
        assert feature["delta"] == feature["after"] - feature["before"]
        assert feature["significant"] == (feature["p_value"] <= 0.05)
        for name in ("before", "after", "delta"):
            assert feature[f"{name}_std_error"] >= 0
    for side in ("before", "after"):
        order = sorted(features, key=lambda name: (-features[name][side], name))
        assert [features[name][f"{side}_rank"] for name in order] == [1, 2]
    sizes = [abs(feature["delta"]) for feature in features.values()]
    assert sizes == sorted(sizes, reverse=True)


def test_to_mature_is_no_incident(monkeypatch: pytest.MonkeyPatch) -> None:
    """The change explainer looks at the model once it has learnt the new rule, which nobody has to be woken for."""
    said: list[Any] = []
    update = ChangeExplainer.update

    def noted(change: ChangeExplainer, *args: Any) -> Any:
        found = update(change, *args)
        said.extend(found)
        return found

    monkeypatch.setattr(ChangeExplainer, "update", noted)
    events = incidents_of(300, 3000, explainers={}, change=CHANGE)
    assert [getattr(one, "verdict", None) for one in said] == [None, "followed", "matured"]
    assert {event.id for event in events} == {events[0].id}
    assert [event.reason for event in events[:2]] == ["suspected", "confirmed"]
    assert events[-1].life == "over"
    assert said[-1].n_observations < events[-1].observation, "while it is open"
    assert {event.explanation["verdict"] for event in events if event.explanation} == {"followed"}
    assert all([one.said for one in event.evidence] == ["suspects", "followed"] for event in events[1:])


def test_a_suspicion_that_was_nothing_is_withdrawn() -> None:
    """The rule changes before there is a reference: the data are as they were since, and the model still learns."""
    first, last = incidents_of(15, 80, explainers={}, change={"window": 20, **EAGER})[:2]
    assert first.id == last.id
    assert (first.life, last.life, last.reason) == ("suspected", "withdrawn", "noise")
    assert isinstance(last.source, Source)
    assert last.observation == last.source.offset + 1 == first.observation + 20
    assert (last.advice, last.explanation) == ("nothing", None)
    assert [one.is_open for one in last.evidence] == [True, False]
    encode_json(last)


def test_an_incident_names_the_place_of_its_first_event_among_those_of_an_observation() -> None:
    """A version takes over while an incident is open: it ends that one, and begins its own."""
    state = state_of(explainers={}, change=CHANGE, publish={"every": 1000, "min_observations": 1000})
    stream = observations(400, flip_at=300)
    (first,) = incidents(run(state, stream[:330]))
    contrary = CountingClassifier()
    contrary.counts = {False: [1, 9], True: [9, 1]}
    swapped, (ended, deployed) = swap(state, Version("2", {}, contrary), Source("topic", 0, 330))
    assert isinstance(ended, IncidentEvent)
    assert (ended.id, ended.life, ended.reason) == (first.id, "over", "replaced")
    assert isinstance(deployed, IncidentEvent)
    assert deployed.id == "m:topic:0:330:1", "the second event of the observation"
    events = prequential(swapped, stream[330], Source("topic", 0, 330), 0, n_before=2)
    for i, observation in enumerate(stream[331:], start=331):
        events += prequential(swapped, observation, Source("topic", 0, i), 0)
    explained = next(event for event in incidents(events) if event.explanation is not None)
    assert (explained.id, explained.what) == ("m:topic:0:330:1", "version")


def test_an_incident_is_published_before_the_importances_of_the_same_observation() -> None:
    state = state_of(change=CHANGE, publish={"every": 1})
    seen = []
    for i, observation in enumerate(observations(600, flip_at=300)):
        events = prequential(state, observation, Source("topic", 0, i), 0)
        if incidents(events):
            seen.append([type(event) for event in events])
    assert seen
    assert all(kinds == [IncidentEvent, ImportanceEvent] for kinds in seen)


class BlindClassifier(CountingClassifier):
    """Cannot predict a corner that its own observations never lie in, only mixtures of them, until it can."""

    sees = False

    def predict_proba_one(self, x: dict[str, Any]) -> dict[bool, float]:
        if not self.sees and x["b"] > 0 > x["a"]:
            raise RuntimeError("cannot predict this corner")
        return super().predict_proba_one(x)


def test_a_model_that_raises_while_a_change_is_measured_is_told_without_importances(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = BlindClassifier()
    state = state_of(model, explainers={}, change=CHANGE)
    stream = [o for o in observations(800, flip_at=400) if not o.x["b"] > 0 > o.x["a"]]
    explained = [event for event in incidents(run(state, stream)) if event.explanation is not None]
    assert explained[0].explanation is not None
    assert explained[0].explanation["verdict"] == "followed", "the losses need no mixtures"
    assert (explained[0].explanation["importances"], explained[0].features) == ({}, {})
    assert "model m: a change is not explained: RuntimeError" in caplog.text
    assert "corner" not in caplog.text, "the text may hold values of records"
    assert b"corner" not in encode_json(explained[0])


def test_a_change_of_the_data_that_a_model_cannot_follow_makes_it_worse() -> None:
    """It does not learn, and the labels turn round: the loss of each feature's removal turns round too.

    The change explainer calls the data harder, because it compares the model with itself; nobody watches the loss.
    """
    publish = {"every": 1000, "min_observations": 1000, "reference_after": 100}
    state = state_of(change={**CHANGE, "loss": "zero_one"}, publish=publish, learn=False, watch_loss=False)
    state.model.counts = {False: [9, 1], True: [1, 9]}
    first, event = incidents(run(state, observations(430, flip_at=300)))
    assert (first.life, event.life, event.what, event.severity) == ("suspected", "confirmed", "worse", "critical")
    assert event.effects[1] == IncidentEffect(
        "error rate", MeanEstimate(0.0, 0.0), MeanEstimate(1.0, 0.0), MeanEstimate(1.0, 0.0)
    )
    told = event.explanation
    assert told is not None
    assert (told["verdict"], told["route"], told["discrepancy"]) == ("harder", "detector", 0.0)
    (comparison,) = told["importances"].values()
    assert (comparison["before_loss"], comparison["after_loss"]) == (0.0, 1.0)
    assert comparison["features"]["a"]["significant"]
    assert +state.counts.incidents == {("worse", "critical"): 1}
    run(state, observations(600, flip_at=300)[430:])
    for publication in state.publications.values():
        assert publication.reference_id == str(event.observation + 100), "what it relies on is another thing now"


def test_an_event_is_stale_where_no_figure_was_updated_since_the_last_one() -> None:
    state = state_of(explain={"every": 30}, publish={"every": 20, "min_observations": 1000}, **NO_CHANGE)
    events = importances(run(state, observations(120)))
    assert [(event.observation, event.stale) for event in events] == [
        (40, False),
        (60, False),
        (80, True),
        (100, False),
        (120, False),
    ], "explained at 30, 60, 90 and 120"


def test_another_version_s_first_event_is_not_stale() -> None:
    state = state_of(publish={"every": 20, "min_observations": 1000}, **NO_CHANGE)
    run(state, observations(20))
    swapped, _ = swap(state, Version("2", {}, CountingClassifier()), Source("topic", 0, 20))
    events = importances(run(swapped, observations(40)))
    assert [(event.n_observations, event.stale) for event in events] == [(20, False), (40, False)]
