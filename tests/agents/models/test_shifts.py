"""Lasting shifts of importance become incidents in a worker: when, how they end, and after a restart the same."""

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
from attributary_topics import IncidentEvent, Observation, Source, encode_json

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


def incidents(events: list[Any]) -> list[IncidentEvent]:
    return [one for one in events if isinstance(one, IncidentEvent)]


def test_a_shift_is_one_incident_which_is_over_once_the_loss_is_known_to_be_as_before(
    told: tuple[ModelState, list[Any]],
) -> None:
    state, events = told
    first, confirmed, last = incidents(events)
    assert [(one.revision, one.life) for one in (first, confirmed, last)] == [
        (1, "suspected"),
        (2, "confirmed"),
        (3, "over"),
    ]
    assert isinstance(first.source, Source)
    assert BEGINS < first.observation == first.source.offset + 1 < BEGINS + 2000
    for event in (first, confirmed, last):
        assert event.id == f"m:topic:0:{first.source.offset}:0"
        assert (event.what, event.severity, event.advice) == ("relies_differently", "info", "nothing")
        assert abs(event.since.observation - BEGINS) <= 3 * 128
        assert [(one.watch, one.said) for one in event.evidence] == [("importance", "moved")]
        feature = event.features["b"]
        # Of PFI with the squared loss, E (w (x - z))² = 2 w² var x; from the onset on the latest come in.
        assert feature.before == pytest.approx(2.0, rel=0.15)
        assert feature.delta is not None
        assert feature.half_width is not None
        assert 0 < feature.half_width < feature.delta
        assert feature.significant
        assert event.explanation is None
        encode_json(event)
    assert list(first.features) == ["b"]
    assert "It relies more on b" in confirmed.sentence
    assert (last.reason, last.observation > first.observation + 1000) == ("returned", True)
    assert +state.counts.incidents == {("relies_differently", "info"): 1}


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
    (first, *_) = incidents(run(state, 0, 14_000))
    swapped, (ended, _) = swap(state, Version("2", {}, known()), Source("topic", 0, 14_000))
    assert isinstance(ended, IncidentEvent)
    assert (ended.id, ended.reason, ended.model_version) == (first.id, "replaced", "1")
    assert not swapped.shifts["pfi"].ready


def test_the_promise_is_shared_by_the_explainers_of_a_model() -> None:
    both = CONFIG.model_copy(update={"explainers": ExplainersConfig(pfi=CONFIG.explainers.pfi, sage=ExplainerConfig())})
    state = new_state("m", both)
    assert {name: shift.n_explainers for name, shift in state.shifts.items()} == {"pfi": 2, "sage": 2}
    alone = new_state("m", CONFIG)
    run(alone, 0, 200)
    again = decode_state("m", both, encode_state(alone))
    assert again.explainers["pfi"].n_observations == 199
    assert again.shifts["pfi"].n_observations == 0, "another part of the promise: it begins anew"
