"""What is told of a loss becomes an event: numbers of the model's observations, labels and figures as JSON has them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attributary_agents.models.model_state import ModelState, new_state
from attributary_explainers import LossShift, LossShiftEnd, LossShiftExplained, Moved, Onset, Suspect
from attributary_explainers.loss_shift.events import LevelMoved
from attributary_explainers.monitor.telling.losses import loss_events, loss_shift_replaced
from attributary_topics import Source, encode_json
from tests.agents.stand_ins import config_of

SOURCE = Source("t", 0, 1059)
MOVED = Moved(0.35, 0.52, 0.12, 0.22, 6.5)
SHIFT = LossShift(
    "level", "level", 60, Onset(40, None, 50), MOVED, MOVED, None, (), 7808, 128, "log_loss", "nats", 6.9, 160
)
SUSPECT = Suspect(("a", 1), 0.2, 0.3, 0.1, -0.2, math.nan, 0.001, 0.4, True)
EXPLAINED = LossShiftExplained(replace(SHIFT, kind="worse"), 60, (SUSPECT,), 500, 400)
END = LossShiftEnd(SHIFT, "settled", 60, replace(MOVED, z=math.inf))


@pytest.fixture
def state() -> ModelState:
    """At observation 1060; its loss has been watched since 1000."""
    made = new_state("m", config_of().models["m"])
    made.n_observations = 1060
    assert made.loss_watch is not None
    made.loss_watch.monitor.n_observations = 60
    return made


def told(state: ModelState, monkeypatch: pytest.MonkeyPatch, *events: Any) -> list[dict[str, Any]]:
    assert state.loss_watch is not None
    monkeypatch.setattr(state.loss_watch, "update", lambda *_: list(events))
    return [json.loads(encode_json(event)) for event in loss_events(state, {}, True, {True: 1.0}, SOURCE, 2)]


def test_numbers_are_those_of_the_model(state: ModelState, monkeypatch: pytest.MonkeyPatch) -> None:
    (shift,) = told(state, monkeypatch, SHIFT)
    assert (shift["observation"], shift["detected_at"], shift["due_at"]) == (1060, 1060, 1160)
    assert shift["onset"] == {"observation": 1040, "low": None, "high": 1050}
    assert "1 060" in shift["sentence"]
    assert (
        shift["excess"] == shift["model_loss"] == {"before": 0.35, "after": 0.52, "low": 0.12, "high": 0.22, "z": 6.5}
    )
    assert (shift["slope"], shift["loss"], shift["loss_unit"]) == (None, "log_loss", "nats")


def test_a_shift_is_open_from_its_first_word_to_its_end(state: ModelState, monkeypatch: pytest.MonkeyPatch) -> None:
    told(state, monkeypatch, SHIFT)
    state.n_observations += 100
    events = told(state, monkeypatch, EXPLAINED, END, SHIFT)
    assert [event["event"] for event in events] == ["loss_shift_explained", "loss_shift_released", "loss_shift"]
    explained, released, _ = events
    assert explained["change_id"] == released["change_id"] == "m:t:0:1059:2"
    assert (explained["kind"], explained["detected_at"], explained["observation"]) == ("worse", 1060, 1160)
    assert (released["reason"], released["model_loss"]["z"]) == ("settled", None)
    assert explained["features"] == {
        "('a', 1)": {
            "score": 0.2,
            "importance_before": 0.3,
            "importance_after": 0.1,
            "delta": -0.2,
            "delta_std_error": None,
            "p_value": 0.001,
            "moved": 0.4,
            "significant": True,
        }
    }
    assert state.loss_watch is not None
    assert (state.loss_watch.open_id, state.loss_watch.told_at) == ("m:t:0:1059:4", 1160), "the third of this one"
    assert state.counts.loss_shifts["level"] == 2
    assert loss_shift_replaced(state, SOURCE) == [], "its monitor itself has told nothing"


@pytest.mark.parametrize(
    ("label", "sent"),
    [(None, None), (True, True), (3, 3), (1.5, 1.5), ("yes", "yes"), (np.bool_(True), "True"), ((1, "b"), "(1, 'b')")],
)
def test_a_label_goes_out_as_json_has_it(
    label: Any, sent: Any, state: ModelState, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shift,) = told(state, monkeypatch, replace(SHIFT, level=(LevelMoved(label, 0.4, 0.5, 0.41),)))
    assert shift["level"] == [{"label": sent, "expected": 0.4, "observed": 0.5, "intercept": 0.41}]
