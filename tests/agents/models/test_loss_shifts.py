"""Lasting shifts of the loss as a worker tells them: when, of what, closed by what, and after a restart the same."""

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
from attributary_topics import (
    LossShiftEvent,
    LossShiftExplainedEvent,
    LossShiftReleasedEvent,
    Observation,
    Source,
    encode_json,
)
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


def of_loss(events: list[Any]) -> list[Any]:
    return [one for one in events if isinstance(one, LossShiftEvent | LossShiftExplainedEvent | LossShiftReleasedEvent)]


@pytest.fixture(scope="module")
def told() -> tuple[ModelState, list[Any]]:
    state = new_state("m", CONFIG)
    return state, run(state, 0, N)


def test_flipped_labels_are_told_explained_and_closed_once_they_are_repaired(
    told: tuple[ModelState, list[Any]],
) -> None:
    state, events = told
    shift, explained, end = of_loss(events)
    assert isinstance(shift, LossShiftEvent)
    assert (shift.event, shift.route, shift.kind) == ("loss_shift", "loss", "worse")
    assert FLIPPED_FROM < shift.observation == shift.detected_at == shift.source.offset + 1 < FLIPPED_FROM + 500
    assert abs(shift.onset.observation - FLIPPED_FROM) <= 150
    assert shift.due_at is not None
    assert (shift.loss, shift.loss_unit) == ("log_loss", "nats")
    assert shift.excess is not None
    for moved in (shift.model_loss, shift.excess):
        assert moved.low is not None
        assert moved.low > 0
    assert shift.n_reference > 5000
    assert "m has become worse" in shift.sentence

    assert isinstance(explained, LossShiftExplainedEvent)
    assert (explained.kind, explained.observation) == ("worse", shift.due_at)
    assert (explained.detected_at, explained.change_id) == (shift.observation, f"m:topic:0:{shift.source.offset}:0")

    assert isinstance(end, LossShiftReleasedEvent)
    assert (end.reason, end.change_id) == ("returned", explained.change_id)
    assert end.observation > REPAIRED
    assert end.model_loss.after == pytest.approx(end.model_loss.before, rel=0.1)
    for event in (shift, explained, end):
        encode_json(event)
    assert state.counts.loss_shifts == {"worse": 1, "level": 0, "harder": 0, "rose": 0}
    assert state.n_failed == 0
    assert state.loss_watch is not None
    assert state.loss_watch.open_id is None


def test_stopping_while_a_shift_is_open_changes_nothing(told: tuple[ModelState, list[Any]]) -> None:
    _, whole = told
    state, events, begin = new_state("m", CONFIG), [], 0
    for end in (3000, 10_000, FLIPPED_FROM + 700, N):
        state = decode_state("m", CONFIG, encode_state(state))
        events += run(state, begin, end)
        begin = end
    assert [encode_json(event) for event in events] == [encode_json(event) for event in whole]


@pytest.mark.long
def test_another_version_closes_what_is_open_and_has_a_reference_of_its_own() -> None:
    state = new_state("m", CONFIG)
    run(state, 0, REPAIRED)
    assert state.loss_watch is not None
    open_id, told_at = state.loss_watch.open_id, state.loss_watch.told_at
    assert open_id is not None
    swapped, (*_, ended) = swap(state, Version("2", {}, frozen()), Source("topic", 0, REPAIRED), 0)
    assert isinstance(ended, LossShiftReleasedEvent)
    assert (ended.change_id, ended.reason, ended.model_version) == (open_id, "replaced", "1")
    assert (ended.detected_at, ended.observation) == (told_at, REPAIRED)
    assert swapped.loss_watch is not None
    assert (swapped.loss_watch.open_id, swapped.loss_watch.monitor.ready) == (None, False)
    assert swapped.counts.loss_shifts["worse"] == 1
    # What the second version is told of counts the model's observations, and not its own.
    again = [*STREAM[:REPAIRED], *made(FLIPPED_FROM + 600, seed=12)]
    shift, *_ = of_loss(run(swapped, REPAIRED, len(again), again))
    assert shift.observation == shift.source.offset + 1
    assert abs(shift.onset.observation - REPAIRED - FLIPPED_FROM) <= 150
    assert f"{shift.observation:,}".replace(",", " ") in shift.sentence


def test_a_model_whose_loss_is_not_watched_is_told_nothing_of() -> None:
    config = CONFIG.model_copy(update={"watch_loss": False})
    state = new_state("m", config)
    assert state.loss_watch is None
    assert of_loss(run(state, 0, 50)) == []
    assert decode_state("m", config, encode_state(state)).loss_watch is None
    known = decode_state("m", CONFIG, encode_state(state)).loss_watch
    assert known is not None
    assert known.monitor.n_observations == 0, "it begins now"


def test_the_score_of_an_anomaly_detector_is_not_watched() -> None:
    config = ModelConfig.model_validate({"model": {"class": "river.anomaly.HalfSpaceTrees"}, "change": None})
    assert new_state("m", config).loss_watch is None


def test_another_configuration_begins_anew_and_names_what_stays_open(caplog: pytest.LogCaptureFixture) -> None:
    state = new_state("m", CONFIG)
    run(state, 0, 50)
    assert state.loss_watch is not None
    state.loss_watch.open_id = "m:topic:0:17:0"
    other = CONFIG.model_copy(update={"seed": 7})
    with caplog.at_level(logging.WARNING):
        again = decode_state("m", other, encode_state(state))
    assert again.loss_watch is not None
    assert again.loss_watch.monitor.n_observations == 0
    assert "shift m:topic:0:17:0 stays open" in caplog.text


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
    shift, explained = of_loss(run(state, 0, REPAIRED, stream))
    assert explained.change_id == f"m:topic:0:{shift.source.offset}:0"
    assert (state.n_observations, state.n_failed) == (REPAIRED, 0)


def test_a_model_that_learns_is_watched_by_blocks_of_its_own() -> None:
    config = CONFIG.model_copy(update={"learn": True})
    state = new_state("m", config)
    assert state.loss_watch is not None
    assert state.loss_watch.monitor.learns
    assert of_loss(run(state, 0, 4000)) == []
    assert state.loss_watch.monitor.ready
