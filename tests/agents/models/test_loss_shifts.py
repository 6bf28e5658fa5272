"""Lasting shifts of the loss become incidents in a worker: when, what, how they end, and after a restart the same."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from river import linear_model

from attributary_agents.config.models import ModelConfig
from attributary_agents.models.model_state import ModelState, new_state
from attributary_agents.models.prequential import prequential
from attributary_agents.models.swap import swap
from attributary_agents.models.versions import Version
from attributary_agents.state.codec import decode_state, encode_state
from attributary_explainers import LossMonitor
from attributary_topics import IncidentEvent, Observation, Source, encode_json
from tests.agents.models.frozen import FLIPPED_FROM, frozen, made

N, REPAIRED = 17_000, 12_500
CONFIG = ModelConfig.model_validate(
    {
        "factory": "tests.agents.models.frozen:frozen",
        "learn": False,
        "change": None,
        "explainers": {"pfi": {"n_samples": 1}},
        "explain": {"every": 64},
        "publish": {"every": 10_000, "min_observations": 10_000},
    }
)
STREAM = made(N, seed=11, until=REPAIRED)


def run(state: ModelState, begin: int, end: int, stream: list[Observation] = STREAM) -> list[Any]:
    events: list[Any] = []
    for i in range(begin, end):
        events += prequential(state, stream[i], Source("topic", 0, i), i)
    return events


def incidents(events: list[Any]) -> list[IncidentEvent]:
    return [one for one in events if isinstance(one, IncidentEvent)]


def found(one: IncidentEvent) -> list[tuple[str, str, bool]]:
    return [(evidence.watch, evidence.said, evidence.is_open) for evidence in one.evidence]


@pytest.fixture(scope="module")
def told() -> tuple[ModelState, list[Any]]:
    state = new_state("m", CONFIG)
    return state, run(state, 0, N)


def test_flipped_labels_are_one_incident_which_is_over_once_they_are_repaired(
    told: tuple[ModelState, list[Any]],
) -> None:
    state, events = told
    first, confirmed, *lasting, last = incidents(events)
    assert isinstance(first.source, Source)
    assert {event.id for event in incidents(events)} == {f"m:topic:0:{first.source.offset}:0"}
    assert (first.what, first.life, first.reason) == ("worse", "suspected", "suspected")
    assert FLIPPED_FROM < first.observation == first.source.offset + 1 < FLIPPED_FROM + 500
    assert abs(first.since.observation - FLIPPED_FROM) <= 150
    assert first.since.low is not None
    assert first.since.low <= FLIPPED_FROM <= first.since.high
    assert found(first) == [("loss", "worse", True)]

    assert (confirmed.what, confirmed.life, confirmed.severity) == ("worse", "confirmed", "critical")
    assert FLIPPED_FROM + 1000 < confirmed.observation < FLIPPED_FROM + 1500
    assert found(confirmed) == [("loss", "worse", True)] * 2
    assert [effect.name for effect in confirmed.effects] == ["loss", "error rate"]
    for effect in confirmed.effects:
        assert effect.before is not None
        assert effect.now is not None
        assert effect.before.value + effect.before.half_width < effect.now.value - effect.now.half_width
    assert confirmed.features["a"].significant
    assert not confirmed.features["c"].significant
    assert "m is worse" in confirmed.sentence

    assert [event.reason for event in lasting] == ["lasts", "lasts"]
    assert (last.life, last.reason, last.what) == ("over", "returned", "worse")
    assert last.observation > REPAIRED
    assert found(last) == [("loss", "worse", True), ("loss", "worse", True), ("loss", "returned", False)]
    loss = last.effects[0]
    assert loss.before is not None
    assert loss.now is not None
    assert loss.now.value == pytest.approx(loss.before.value, rel=0.1)
    for event in incidents(events):
        encode_json(event)
    assert +state.counts.incidents == {("worse", "critical"): 1}
    assert state.n_failed == 0
    assert state.incident_watch is not None
    assert state.incident_watch.open is None


def test_stopping_while_a_shift_is_open_changes_nothing(told: tuple[ModelState, list[Any]]) -> None:
    _, whole = told
    state, events, begin = new_state("m", CONFIG), [], 0
    for end in (3000, 10_000, FLIPPED_FROM + 700, N):
        state = decode_state("m", CONFIG, encode_state(state))
        events += run(state, begin, end)
        begin = end
    assert [encode_json(event) for event in events] == [encode_json(event) for event in whole]


@pytest.mark.long
def test_another_version_ends_what_is_open_and_has_a_reference_of_its_own() -> None:
    state = new_state("m", CONFIG)
    known = incidents(run(state, 0, REPAIRED))
    assert state.incident_watch is not None
    assert state.incident_watch.open is not None
    swapped, (ended, begun) = swap(state, Version("2", {}, frozen()), Source("topic", 0, REPAIRED))
    assert isinstance(ended, IncidentEvent)
    assert isinstance(begun, IncidentEvent)
    assert (ended.id, ended.reason, ended.model_version) == (known[0].id, "replaced", "1")
    assert ended.observation == REPAIRED
    assert (begun.what, begun.life, begun.since.observation) == ("version", "suspected", REPAIRED + 1)
    assert swapped.loss_watch is not None
    assert not swapped.loss_watch.monitor.ready
    # What the second version is told of counts the model's observations, and not its own.
    again = [*STREAM[:REPAIRED], *made(FLIPPED_FROM + 600, seed=12)]
    *_, shift = incidents(run(swapped, REPAIRED, len(again), again))
    assert isinstance(shift.source, Source)
    assert (shift.number, shift.what, shift.life) == (3, "worse", "suspected")
    assert shift.observation == shift.source.offset + 1
    assert abs(shift.since.observation - REPAIRED - FLIPPED_FROM) <= 150


def test_a_model_whose_loss_is_not_watched_is_told_nothing_of() -> None:
    config = CONFIG.model_copy(update={"watch_loss": False})
    state = new_state("m", config)
    assert state.loss_watch is None
    assert incidents(run(state, 0, 50)) == []
    assert decode_state("m", config, encode_state(state)).loss_watch is None
    known = decode_state("m", CONFIG, encode_state(state)).loss_watch
    assert known is not None
    assert known.monitor.n_observations == 0, "it begins now"


def test_the_score_of_an_anomaly_detector_is_not_watched() -> None:
    config = ModelConfig.model_validate({"model": {"class": "river.anomaly.HalfSpaceTrees"}, "change": None})
    assert new_state("m", config).loss_watch is None


@pytest.mark.parametrize("changed", [{"seed": 7}, {"watch_loss": False}])
def test_what_is_open_ends_also_where_another_configuration_begins_its_watch_anew(changed: dict[str, Any]) -> None:
    state = new_state("m", CONFIG)
    first = incidents(run(state, 0, FLIPPED_FROM + 1600))[0]
    again = decode_state("m", CONFIG.model_copy(update=changed), encode_state(state))
    assert again.loss_watch is None or again.loss_watch.monitor.n_observations == 0
    assert again.incident_watch is not None
    assert again.incident_watch.open is not None
    *_, last = incidents(run(again, FLIPPED_FROM + 1600, N))
    assert (last.id, last.what, last.life, last.reason) == (first.id, "worse", "over", "returned")
    assert last.observation > REPAIRED


def test_a_shift_that_cannot_be_explained_is_no_dead_letter(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any) -> Any:
        raise ZeroDivisionError("no rows")

    state = new_state("m", CONFIG)
    run(state, 0, 10)
    monkeypatch.setattr(LossMonitor, "update", fails)
    with caplog.at_level(logging.WARNING):
        run(state, 10, 80)
    assert (state.n_observations, state.n_failed) == (80, 0)
    said = [record.message for record in caplog.records if "is not explained" in record.message]
    (line,) = said  # once, and without the text of the exception
    assert line.startswith(
        "model m: a shift of its loss is not explained: ZeroDivisionError in test_loss_shifts.py, line"
    )


class Brittle(linear_model.LogisticRegression):
    """Raises where `c` is not the sum of the others: on every row in which one of them is replaced."""

    def predict_proba_one(self, x: dict[str, Any]) -> dict[Any, float]:
        if x["c"] != x["a"] + x["b"]:
            raise ArithmeticError("c is no sum")
        return super().predict_proba_one(x)


def test_a_model_that_raises_on_replaced_features_is_told_of_all_the_same() -> None:
    config = CONFIG.model_copy(update={"explainers": CONFIG.explainers.model_copy(update={"pfi": None})})
    model = Brittle()
    vars(model).update(vars(frozen()))
    state = new_state("m", config, Version("1", {}, model))
    stream = [Observation("m", {**one.x, "c": one.x["a"] + one.x["b"]}, one.y) for one in STREAM[:REPAIRED]]
    first, confirmed = incidents(run(state, 0, REPAIRED, stream))
    assert (first.id, first.life, confirmed.life) == (confirmed.id, "suspected", "confirmed")
    assert not any(feature.significant for feature in confirmed.features.values())
    assert (state.n_observations, state.n_failed) == (REPAIRED, 0)


def test_a_model_that_learns_is_watched_by_blocks_of_its_own() -> None:
    config = CONFIG.model_copy(update={"learn": True})
    state = new_state("m", config)
    assert state.loss_watch is not None
    assert state.loss_watch.monitor.learns
    assert incidents(run(state, 0, 4000)) == []
    assert state.loss_watch.monitor.ready
