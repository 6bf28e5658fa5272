"""Which events follow from an observation, when, and that they agree with themselves."""

from __future__ import annotations

from typing import Any

import pytest

from attributary_agents.models.prequential import prequential
from attributary_agents.models.swap import swap
from attributary_agents.models.versions import Version
from attributary_explainers import ndcg, shift
from attributary_topics import (
    AlarmEvent,
    ChangeEvent,
    DetectorSpec,
    ExplanationEvent,
    ImportanceComparison,
    ImportanceEvent,
    NotConfirmedEvent,
    Source,
    encode_json,
)
from tests.agents.models.test_prequential import FEW, NO_CHANGE, changes, importances, run, state_of
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


def events_of(stream_flips_at: int, n: int, **settings: Any) -> list[ChangeEvent]:
    publish = {"every": 1000, "min_observations": 1000}
    return changes(run(state_of(publish=publish, **settings), observations(n, flip_at=stream_flips_at)))


def test_an_alarm_and_its_explanation_agree_with_each_other_and_with_themselves() -> None:
    chosen = {**CHANGE, "loss": "zero_one", "importances": ["sage", "pfi"]}
    alarm, event = events_of(300, 400, explainers=FEW, change=chosen)[:2]

    assert isinstance(alarm, AlarmEvent)
    assert isinstance(event, ExplanationEvent)
    assert (alarm.event, event.event) == ("alarm", "explanation")
    assert 300 < alarm.observation == alarm.source.offset + 1 == event.detected_at < 340, "at once"
    assert event.change_id == f"m:topic:0:{alarm.source.offset}:0", "the ce_id of the alarm"
    assert alarm.due_at == alarm.observation + 60
    assert event.observation == event.source.offset + 1 == alarm.due_at + 2, "explained in three slices"
    assert alarm.sentence.startswith(f"m may have changed at {alarm.observation} ")
    assert str(alarm.due_at) in alarm.sentence
    for one in (alarm, event):
        assert one.detector == DetectorSpec("adwin", {"delta": 0.05}, "zero_one")
        assert (one.route, one.distance, one.scale, one.threshold) == ("detector", "label", "relative", 0.2)
        assert (one.model_version_before, one.model_version) == ("1", "1")
        encode_json(one)
    assert (event.verdict, event.pattern, event.window) == ("followed", None, 60)
    assert event.onset is not None
    assert (event.onset.observation, event.onset.high) == (301, 301)
    assert event.n_discrepancy == 30, "the later half of the window"
    losses = event.losses
    assert losses is not None
    assert (losses.loss, losses.loss_largest) == ("brier", 2.0)
    assert losses.reference_then is not None
    assert losses.worsened is not None
    assert losses.worsened.loss == losses.reference_now.loss - losses.reference_then.loss
    assert (losses.reference_now.n, losses.model_now.n) == (60, 30)
    for one in (losses.reference_then, losses.reference_now, losses.model_now, losses.worsened, losses.gain):
        assert one.low <= one.loss <= one.high
    assert losses.worsened.low > 0 < losses.gain.low, "what followed means"
    assert list(event.importances) == ["sage", "pfi"]
    for comparison in event.importances.values():
        assert_adds_up(comparison)
    named = [name for name, feature in event.importances["sage"].features.items() if feature.significant]
    assert named == ["a"]
    assert event.sentence.startswith("m changed at 301 ")
    assert "a lost " in event.sentence


def assert_adds_up(comparison: ImportanceComparison) -> None:
    features = comparison.features
    assert (comparison.loss, comparison.loss_unit, comparison.loss_largest, comparison.n) == (
        "zero_one",
        "share of observations",
        1.0,
        30,
    )
    assert set(features) == {"a", "b"}
    before, after = ({name: getattr(f, side) for name, f in features.items()} for side in ("before", "after"))
    assert (comparison.shift, comparison.ndcg) == (shift(before, after), ndcg(before, after))
    for loss in (comparison.before_loss, comparison.after_loss):
        assert loss is not None
        assert (loss * 30).is_integer()  # of 30 observations right or wrong
    for feature in features.values():
        assert feature.before is not None
        assert feature.after is not None
        assert feature.delta == feature.after - feature.before
        assert feature.p_value is not None
        assert feature.significant == (feature.p_value <= 0.05)
        for name in ("before", "after", "delta"):
            assert getattr(feature, f"{name}_std_error") >= 0
    for side in ("before", "after"):
        order = sorted(features, key=lambda name: (-getattr(features[name], side), name))
        assert [getattr(features[name], f"{side}_rank") for name in order] == [1, 2]
    sizes = [abs(feature.delta) for feature in features.values()]
    assert sizes == sorted(sizes, reverse=True)


def test_a_model_that_has_learnt_the_new_rule_is_told_as_matured_once_and_without_an_alarm() -> None:
    found = events_of(300, 3000, explainers={}, change=CHANGE)
    assert [(event.event, getattr(event, "verdict", None)) for event in found] == [
        ("alarm", None),
        ("explanation", "followed"),
        ("explanation", "matured"),
    ]
    *_, matured = found
    assert isinstance(matured, ExplanationEvent)
    assert (matured.route, matured.change_id, matured.onset) == ("check", None, None)


def test_to_mature_is_no_change_in_the_metric_of_the_last_one() -> None:
    state = state_of(explainers={}, change=CHANGE)
    _, followed, matured = changes(run(state, observations(3000, flip_at=300)))
    assert isinstance(followed, ExplanationEvent)
    assert isinstance(matured, ExplanationEvent)
    assert (followed.verdict, matured.verdict) == ("followed", "matured")
    assert state.last_change_ms == 1000 + followed.source.offset


def test_an_alarm_that_was_nothing_is_closed_as_not_confirmed() -> None:
    """The rule changes before there is a reference: the data are as they were since, and the model still learns."""
    found = events_of(15, 80, explainers={}, change={"window": 20, **EAGER})
    alarm, end = found[:2]
    assert isinstance(alarm, AlarmEvent)
    assert isinstance(end, NotConfirmedEvent)
    assert end.change_id == f"m:topic:0:{alarm.source.offset}:0"
    assert (end.event, end.verdict, end.route) == ("not_confirmed", "matured", alarm.route)
    assert end.detected_at == alarm.observation
    assert end.observation == end.source.offset + 1 == alarm.due_at
    assert end.losses is not None
    assert str(alarm.observation) in end.sentence
    encode_json(end)


def test_an_event_names_its_place_among_those_of_its_observation() -> None:
    """A version takes over while an alarm is open: it closes that one, and raises its own."""
    state = state_of(explainers={}, change=CHANGE, publish={"every": 1000, "min_observations": 1000})
    stream = observations(400, flip_at=300)
    (alarm,) = changes(run(state, stream[:330]))
    contrary = CountingClassifier()
    contrary.counts = {False: [1, 9], True: [9, 1]}
    swapped, told = swap(state, Version("2", {}, contrary), Source("topic", 0, 330), 0)
    closed, deployed = told
    assert isinstance(closed, NotConfirmedEvent)
    assert (closed.change_id, closed.verdict) == (f"m:topic:0:{alarm.source.offset}:0", "replaced")
    assert isinstance(deployed, AlarmEvent)
    assert list(swapped.open_alarms.values()) == ["m:topic:0:330:1"], "the second event of the observation"
    events = prequential(swapped, stream[330], Source("topic", 0, 330), 0, n_before=2)
    for i, observation in enumerate(stream[331:], start=331):
        events += prequential(swapped, observation, Source("topic", 0, i), 0)
    (explained,) = [event for event in changes(events) if event.route == "version"]
    assert isinstance(explained, ExplanationEvent)
    assert explained.change_id == "m:topic:0:330:1"


def test_a_change_is_published_before_the_importances_of_the_same_observation() -> None:
    state = state_of(change=CHANGE, publish={"every": 1})
    for i, observation in enumerate(observations(600, flip_at=300)):
        events = prequential(state, observation, Source("topic", 0, i), 0)
        if any(isinstance(event, ExplanationEvent) for event in events):
            assert [type(event) for event in events] == [ExplanationEvent, ImportanceEvent]
            return
    pytest.fail("there was no change")


class BlindClassifier(CountingClassifier):
    """Cannot predict a corner that its own observations never lie in, only mixtures of them, until it can."""

    sees = False

    def predict_proba_one(self, x: dict[str, Any]) -> dict[bool, float]:
        if not self.sees and x["b"] > 0 > x["a"]:
            raise RuntimeError("cannot predict this corner")
        return super().predict_proba_one(x)


def test_a_model_that_raises_while_a_change_is_measured_is_told_without_importances() -> None:
    model = BlindClassifier()
    state = state_of(model, explainers={}, change=CHANGE)
    stream = [o for o in observations(800, flip_at=400) if not o.x["b"] > 0 > o.x["a"]]
    events = [event for event in changes(run(state, stream)) if isinstance(event, ExplanationEvent)]
    assert events[0].verdict == "followed", "the losses need no mixtures"
    assert events[0].importances == {}
    assert events[0].sentence.endswith("no importances: RuntimeError"), "the text may hold values of records"


def test_a_change_of_the_data_that_the_model_does_not_follow_is_harder() -> None:
    """A model that does not learn, and labels that turn round: the loss of each feature's removal turns round too."""
    publish = {"every": 1000, "min_observations": 1000, "reference_after": 100}
    state = state_of(change={**CHANGE, "loss": "zero_one"}, publish=publish, learn=False, watch_loss=False)
    state.model.counts = {False: [9, 1], True: [1, 9]}
    alarm, event = changes(run(state, observations(600, flip_at=300)))
    assert isinstance(alarm, AlarmEvent)
    assert isinstance(event, ExplanationEvent)
    assert (event.verdict, event.route, event.discrepancy) == ("harder", "detector", 0.0)
    (comparison,) = event.importances.values()
    assert (comparison.before_loss, comparison.after_loss) == (0.0, 1.0)
    assert comparison.features["a"].significant
    assert (state.counts.changes["detector", "harder"], state.n_changes, state.last_change_ms) == (
        1,
        1,
        1000 + event.source.offset,
    )
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
    swapped, _ = swap(state, Version("2", {}, CountingClassifier()), Source("topic", 0, 20), 0)
    events = importances(run(swapped, observations(40)))
    assert [(event.n_observations, event.stale) for event in events] == [(20, False), (40, False)]
