"""Which events follow from an observation, when, and that they agree with themselves."""

from __future__ import annotations

import math
from typing import Any

import pytest

from attributary_agents.prequential import StepError, prequential
from attributary_explainers import shift
from attributary_topics import ChangeEvent, Source, encode_json
from tests.agents.stand_ins import CountingClassifier, observations
from tests.agents.test_prequential import FEW, NO_CHANGE, changes, importances, run, state_of

CHANGE = {"window": 30, "threshold": 0.2, "detector_params": {"delta": 0.05}}


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
        assert (event.model_id, event.model_version, event.loss, event.alpha) == ("m", "v7", "cross_entropy", 0.1)
        assert (event.observation, event.n_observations) == (20, 19)
        assert (event.discrepancy, event.trigger) == (None, "interval")
        assert event.source == Source("topic", 0, 19)
        for name, feature in event.features.items():
            assert feature.importance == explainer.importance[name]
            assert feature.std_error == explainer.std_error[name]
        assert [feature.rank for feature in event.features.values()] == [1, 2]
        assert sum(feature.share for feature in event.features.values()) == pytest.approx(1.0)
        encode_json(event)


def test_a_change_event_agrees_with_itself() -> None:
    state = state_of(explainers=FEW, change=CHANGE, publish={"every": 1000, "min_observations": 1000})
    stream = observations(600, flip_at=150)
    found = changes(run(state, stream))

    assert found, "the label's rule is turned round: there must be a change"
    assert state.n_changes == len(found)
    known_references = {30}
    for event in found:
        assert event.reference_at in known_references
        known_references.add(event.observation)
        assert event.reference_at < event.detected_at <= event.observation == event.detected_at + event.window - 1
        assert event.source.offset == event.observation - 1
        assert event.discrepancy > event.threshold == 0.2
        assert (event.window, event.n_discrepancy) == (30, 60)
        assert (event.detector.name, event.detector.params, event.detector.signal) == (
            "adwin",
            {"delta": 0.05},
            "zero_one",
        )
        assert (event.distance, event.loss) == ("label", "zero_one")
        assert set(event.features) == {"a", "b"}
        for feature in event.features.values():
            assert feature.before is not None
            assert feature.after is not None
            assert feature.delta == feature.after - feature.before
            errors = feature.before_std_error, feature.after_std_error
            assert feature.delta_std_error == math.hypot(*(error or 0.0 for error in errors))
        for side in ("before", "after"):
            order = sorted(event.features, key=lambda name: (-getattr(event.features[name], side), name))
            assert [getattr(event.features[name], f"{side}_rank") for name in order] == [1, 2]
        sizes = [abs(feature.delta) for feature in event.features.values()]
        assert sizes == sorted(sizes, reverse=True)
        named = [name for name, feature in event.features.items() if feature.significant]
        assert event.sentence.startswith(
            f"m changed at {event.observation} (discrepancy {event.discrepancy:.2f} > 0.20)"
        )
        for name, feature in event.features.items():
            word = f"{name} {'gained' if feature.delta > 0 else 'lost'} "
            assert (word in event.sentence) == (name in named)
        encode_json(event)


def test_a_change_is_published_before_the_importances_of_the_same_observation() -> None:
    state = state_of(change=CHANGE, publish={"every": 1})
    for i, observation in enumerate(observations(600, flip_at=150)):
        events = prequential(state, observation, Source("topic", 0, i), 0)
        if changes(events):
            assert isinstance(events[0], ChangeEvent)
            assert len(events) == 2
            return
    pytest.fail("there was no change")


class BlindClassifier(CountingClassifier):
    """Cannot predict a corner that its own observations never lie in, only mixtures of them, until it can."""

    sees = False

    def predict_proba_one(self, x: dict[str, Any]) -> dict[bool, float]:
        if not self.sees and x["b"] > 0 > x["a"]:
            raise RuntimeError("cannot predict this corner")
        return super().predict_proba_one(x)


def test_a_model_that_raises_while_a_change_is_measured_does_not_end_change_explanation() -> None:
    model = BlindClassifier()
    state = state_of(model, explainers={}, change={**CHANGE, "threshold": 0.05})
    stream = [o for o in observations(800, flip_at=200) if not o.x["b"] > 0 > o.x["a"]]
    events, failed = [], []
    for i, observation in enumerate(stream):
        model.sees = i >= 60
        try:
            events += prequential(state, observation, Source("topic", 0, i), 0)
        except StepError as error:
            failed.append((i, error.stage))
    assert {stage for _, stage in failed} <= {"change"}
    assert changes(events), "the label's rule is turned round long after the model can predict everything"
    for event in changes(events):
        n_failed_before = sum(i < event.source.offset for i, _ in failed)
        assert event.observation == event.source.offset + 1 - n_failed_before
        assert event.reference_at < event.detected_at == event.observation - event.window + 1
