"""Which events follow from an observation, when, and that they agree with themselves."""

from __future__ import annotations

from typing import Any

import pytest

from attributary_agents.models.prequential import StepError, prequential
from attributary_explainers import ndcg, shift
from attributary_topics import ChangeEvent, DetectorSpec, ImportanceComparison, Source, encode_json
from tests.agents.models.test_prequential import FEW, NO_CHANGE, changes, importances, run, state_of
from tests.agents.stand_ins import CountingClassifier, observations

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


def test_a_change_event_agrees_with_itself() -> None:
    chosen = {**CHANGE, "loss": "zero_one", "importances": ["sage", "pfi"], "watch_discrepancy": False}
    state = state_of(explainers=FEW, change=chosen, publish={"every": 1000, "min_observations": 1000})
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
        assert event.detector == DetectorSpec("adwin", {"delta": 0.05}, "zero_one")
        assert (event.kind, event.route, event.distance) == ("model", "detector", "label")
        assert (event.model_version_before, event.model_version) == ("1", "1")
        assert list(event.importances) == ["sage", "pfi"]
        for comparison in event.importances.values():
            assert_adds_up(comparison)
        named = [name for name, feature in event.importances["sage"].features.items() if feature.significant]
        assert event.cause in ({"model", "data", "both"} if named else {None, "model", "data", "both"})
        assert event.sentence.startswith(f"m changed at {event.observation} ")
        assert f"{event.discrepancy:.2f} > 0.20" in event.sentence
        for name in named:
            assert name in event.sentence
        encode_json(event)


def assert_adds_up(comparison: ImportanceComparison) -> None:
    features = comparison.features
    assert (comparison.loss, comparison.loss_unit, comparison.loss_largest) == (
        "zero_one",
        "share of observations",
        1.0,
    )
    assert set(features) == {"a", "b"}
    before, after = ({name: getattr(f, side) for name, f in features.items()} for side in ("before", "after"))
    assert (comparison.shift, comparison.ndcg) == (shift(before, after), ndcg(before, after))
    for loss in (comparison.before_loss, comparison.crossed_loss, comparison.after_loss):
        assert loss is not None
        assert (loss * 30).is_integer()  # of 30 observations right or wrong
    for feature in features.values():
        assert feature.before is not None
        assert feature.crossed is not None
        assert feature.after is not None
        assert feature.delta == feature.after - feature.before
        assert feature.model_part == feature.after - feature.crossed
        assert feature.data_part == feature.crossed - feature.before
        assert feature.p_value is not None
        assert feature.significant == (feature.p_value <= 0.05)
        for name in ("before", "crossed", "after", "delta", "model_part", "data_part"):
            assert getattr(feature, f"{name}_std_error") >= 0
    for side in ("before", "after"):
        order = sorted(features, key=lambda name: (-getattr(features[name], side), name))
        assert [getattr(features[name], f"{side}_rank") for name in order] == [1, 2]
    sizes = [abs(feature.delta) for feature in features.values()]
    assert sizes == sorted(sizes, reverse=True)


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


def test_a_change_of_the_data_is_no_change_of_the_model() -> None:
    """A model that does not learn, and labels that turn round: the loss of each feature's removal turns round too."""
    change = {**CHANGE, "explain_data": True, "loss": "zero_one"}
    publish = {"every": 1000, "min_observations": 1000, "reference_after": 40}
    state = state_of(change=change, publish=publish, learn=False)
    state.model.counts = {False: [9, 1], True: [1, 9]}
    found = changes(run(state, observations(400, flip_at=200)))
    assert [event.kind for event in found] == ["data"] * len(found)
    assert found
    event = found[0]
    assert (event.route, event.cause, event.discrepancy) == ("detector", "data", 0.0)
    (comparison,) = event.importances.values()
    assert (comparison.before_loss, comparison.crossed_loss, comparison.after_loss) == (0.0, 1.0, 1.0)
    assert all(feature.model_part == 0.0 for feature in comparison.features.values())
    assert comparison.features["a"].significant
    assert (state.counts.data_changes, state.n_changes, state.last_change_ms) == (len(found), 0, None)
    for publication in state.publications.values():
        assert publication.reference_id == "40", "what it relies on is compared with the same model's still"
