"""Lasting shifts of importance as a worker tells them: when, of what, closed by what, and after a restart the same."""

from __future__ import annotations

import random
from typing import Any

import pytest
from river import linear_model, optim

from attributary_agents.config.explainers import ExplainerConfig, ExplainersConfig
from attributary_agents.config.models import ModelConfig
from attributary_agents.models.model_state import ModelState, new_state
from attributary_agents.models.prequential import prequential
from attributary_agents.models.swap import swap
from attributary_agents.models.versions import Version
from attributary_agents.state.codec import decode_state, encode_state
from attributary_topics import ImportanceShiftEvent, ImportanceShiftReleasedEvent, Observation, Source, encode_json

BEGINS, N = 12_500, 26_000
CONFIG = ModelConfig.model_validate(
    {
        "factory": "tests.agents.models.test_shifts:known",
        "learn": False,
        "loss": "squared",
        "change": None,
        "explainers": {"pfi": {"n_samples": 6}},
        "publish": {"every": 1000},
    }
)


def known() -> linear_model.LinearRegression:
    """Has learnt the rule without noise."""
    model, rng = linear_model.LinearRegression(optimizer=optim.SGD(0.1)), random.Random(5)
    for _ in range(500):
        x = {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1)}
        model.learn_one(x, 2 * x["a"] + x["b"])
    return model


def stream() -> list[Observation]:
    """The model is right and does not learn; from `BEGINS` on, `b` varies twice as much: its importance is 4 times."""
    rng = random.Random(11)
    found = []
    for i in range(N):
        x = {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1 if i < BEGINS else 2)}
        found.append(Observation("m", x, 2 * x["a"] + x["b"] + rng.gauss(0, 0.5)))
    return found


STREAM = stream()


def run(state: ModelState, begin: int, end: int) -> list[Any]:
    events: list[Any] = []
    for i in range(begin, end):
        events += prequential(state, STREAM[i], Source("topic", 0, i), i)
    return events


@pytest.fixture(scope="module")
def told() -> tuple[ModelState, list[Any]]:
    state = new_state("m", CONFIG)
    return state, run(state, 0, N)


def test_a_shift_is_told_once_and_closed_once_the_new_importance_is_the_reference(
    told: tuple[ModelState, list[Any]],
) -> None:
    state, events = told
    shift, end = [e for e in events if isinstance(e, ImportanceShiftEvent | ImportanceShiftReleasedEvent)]
    assert isinstance(shift, ImportanceShiftEvent)
    assert (shift.event, shift.route, shift.explainer, shift.feature) == ("importance_shift", "importance", "pfi", "b")
    assert shift.direction == "rose"
    assert BEGINS < shift.observation == shift.detected_at == shift.source.offset + 1 < BEGINS + 2000
    assert abs(shift.onset.observation - BEGINS) <= 3 * 128
    assert 5000 < shift.reference_at < BEGINS
    # Of PFI with the squared loss, E (w (x - z))² = 2 w² var x.
    assert shift.before == pytest.approx(2.0, rel=0.15)
    assert shift.size.low is not None
    assert shift.size.high is not None
    assert 0 < shift.size.low < shift.size.high
    assert shift.least is not None
    assert 0 < shift.least < shift.size.low
    assert shift.sentence.startswith("m relies more on b since about ")
    assert isinstance(end, ImportanceShiftReleasedEvent)
    assert end.change_id == f"m:topic:0:{shift.source.offset}:0"
    assert (end.reason, end.feature, end.detected_at) == ("settled", "b", shift.observation)
    assert end.after == pytest.approx(8.0, rel=0.2)
    for event in (shift, end):
        encode_json(event)
    assert state.counts.shifts == {"pfi": 1}
    assert set(state.shifts["pfi"].least) == {"a", "b"}


@pytest.mark.long
def test_stopping_while_a_shift_is_open_changes_nothing(told: tuple[ModelState, list[Any]]) -> None:
    _, whole = told
    state, events, begin = new_state("m", CONFIG), [], 0
    for end in (5130, 13_000, 15_000, N):
        state = decode_state("m", CONFIG, encode_state(state))
        events += run(state, begin, end)
        begin = end
    assert [encode_json(event) for event in events] == [encode_json(event) for event in whole]


@pytest.mark.long
def test_another_version_takes_a_reference_of_its_own() -> None:
    state = new_state("m", CONFIG)
    run(state, 0, 16_000)
    assert state.shifts["pfi"].open_id is not None
    open_id = state.shifts["pfi"].open_id
    swapped, (*_, ended) = swap(state, Version("2", {}, known()), Source("topic", 0, 16_000), 0)
    assert isinstance(ended, ImportanceShiftReleasedEvent)
    assert (ended.change_id, ended.reason, ended.model_version) == (open_id, "replaced", "1")
    assert "until another version took over" in ended.sentence
    assert swapped.shifts["pfi"].open_id is None
    assert not swapped.shifts["pfi"].shift.ready
    assert swapped.counts.shifts == {"pfi": 1}


def test_the_promise_is_shared_by_the_explainers_of_a_model() -> None:
    both = CONFIG.model_copy(update={"explainers": ExplainersConfig(pfi=CONFIG.explainers.pfi, sage=ExplainerConfig())})
    state = new_state("m", both)
    assert {name: watch.shift.n_explainers for name, watch in state.shifts.items()} == {"pfi": 2, "sage": 2}
    alone = new_state("m", CONFIG)
    run(alone, 0, 200)
    again = decode_state("m", both, encode_state(alone))
    assert again.explainers["pfi"].n_observations == 199
    assert again.shifts["pfi"].shift.n_observations == 0, "another part of the promise: it begins anew"
