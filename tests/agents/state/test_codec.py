"""A model's state as bytes: continuing equals never having stopped, and old state is never read as new."""

from __future__ import annotations

import importlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from river import naive_bayes
from river.datasets import synth

from attributary_agents.config.models import ModelConfig
from attributary_agents.errors import DamagedStateError, StateError
from attributary_agents.models.model_state import RULES, ModelState, new_state
from attributary_agents.models.prequential import prequential
from attributary_agents.models.versions import configured_as
from attributary_agents.state.codec import MAGIC, decode_state, encode_state, packed_with
from attributary_topics import IncidentEvent, Observation, Source, encode_json
from tests.agents.stand_ins import EAGER, config_of, observations

SETTINGS: dict[str, Any] = {
    "model": {"class": "river.forest.ARFClassifier", "params": {"n_models": 3, "seed": 1}},
    "alpha": 0.01,
    "explainers": {
        "pfi": {"n_samples": 1},
        "sage": {"n_samples": 1, "reservoir": "uniform", "reservoir_size": 50},
        "mdi": {},
        "pdp": {"window": 40, "grid_size": 4, "every": 50, "max_features": 3},
    },
    "change": {"window": 40, **EAGER},
    "publish": {"every": 25, "min_observations": 50, "reference_after": 100},
}
N, STOP = 500, (1, 39, 90, 260, 330)


def config(**changed: Any) -> ModelConfig:
    return ModelConfig.model_validate({**SETTINGS, **changed})


@pytest.fixture(scope="module")
def stream() -> list[Observation]:
    """Agrawal's credit data with its rule exchanged half-way."""
    parts = [synth.Agrawal(classification_function=rule, seed=rule).take(N // 2) for rule in (1, 2)]
    return [Observation("m", x, y) for part in parts for x, y in part]


def run(state: ModelState, stream: list[Observation], begin: int, end: int) -> list[bytes]:
    events = []
    for i in range(begin, end):
        state.offset = i
        events += prequential(state, stream[i], Source("topic", 0, i), i)
    return [encode_json(event) for event in events]


@pytest.fixture(scope="module")
def whole(stream: list[Observation]) -> list[bytes]:
    """The events of a run that was never interrupted."""
    events = run(new_state("m", config()), stream, 0, N)
    assert sum(b'"sentence"' in event for event in events) >= 1
    assert sum(b'"explainer"' in event for event in events) >= 3 * N // 25
    assert sum(b'"dependence"' in event for event in events) >= 3 * (N // 50 - 1)
    return events


@pytest.fixture(scope="module")
def stopped(stream: list[Observation]) -> bytes:
    """The state after half of the stream."""
    state = new_state("m", config())
    state.partition = 3
    run(state, stream, 0, N // 2)
    state.failed_offsets = {7: "model_failed"}
    return encode_state(state)


@pytest.mark.long
def test_stopping_again_and_again_changes_nothing(stream: list[Observation], whole: list[bytes]) -> None:
    state, events, begin = new_state("m", config()), [], 0
    for end in (*STOP, N):
        state = decode_state("m", config(), encode_state(state))
        events += run(state, stream, begin, end)
        begin = end
    assert events == whole


def test_encoding_does_not_disturb_the_state(stream: list[Observation], whole: list[bytes]) -> None:
    state, events = new_state("m", config()), []
    for begin in range(0, N, 100):
        events += run(state, stream, begin, begin + 100)
        encode_state(state)
    assert events == whole


def test_everything_comes_back(stream: list[Observation], stopped: bytes) -> None:
    state = decode_state("m", config(), stopped)
    assert (state.partition, state.offset, state.failed_offsets) == (3, N // 2 - 1, {7: "model_failed"})
    assert (state.n_observations, state.n_failed, state.last_observation_ms) == (N // 2, 0, N // 2 - 1)
    assert state.change is not None
    assert all(explainer.model is state.model for explainer in state.explainers.values())
    assert state.change.model is state.model
    again = decode_state("m", config(), encode_state(state))
    assert run(again, stream, N // 2, N) == run(state, stream, N // 2, N)


@pytest.mark.parametrize(
    "changed",
    [
        {"version": "2"},
        {"model": {"class": "river.forest.ARFClassifier", "params": {"n_models": 3, "seed": 2}}},
        {"model": {"class": "river.naive_bayes.GaussianNB"}},
        {"model": None, "factory": "tests.agents.stand_ins:counting_classifier"},
    ],
)
def test_another_model_in_the_configuration_is_to_take_over_from_the_stored_one(
    stopped: bytes, changed: dict[str, Any]
) -> None:
    state = decode_state("m", config(**changed), stopped)
    kept = decode_state("m", config(), stopped)

    assert (state.partition, state.offset, state.failed_offsets) == (3, N // 2 - 1, {7: "model_failed"})
    assert (state.version, state.current.spec) == ("1", config().spec)
    assert state.configured == configured_as(config()) != configured_as(config(**changed))
    assert state.n_observations == kept.n_observations == N // 2
    assert state.model_loss.value == kept.model_loss.value
    assert type(state.model) is type(kept.model)
    assert state.change is not None
    assert kept.change is not None
    assert state.change.discrepancy == kept.change.discrepancy
    assert encode_state(state) == encode_state(kept), "and it is stored as it is until then"


def test_learn_alone_is_no_other_model(stopped: bytes) -> None:
    assert decode_state("m", config(learn=False), stopped).configured == configured_as(config(learn=False))


def test_a_stored_model_that_the_new_loss_cannot_explain_gives_way_unexplained(
    stopped: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    regression = {"class": "river.linear_model.LinearRegression"}
    state = decode_state("m", config(model=regression, loss="squared", version="2"), stopped)
    assert (state.version, state.n_observations, state.offset, state.partition) == ("2", 0, N // 2 - 1, 3)
    assert "the change from version 1 cannot be explained" in caplog.text


def test_every_field_is_stored_or_known_not_to_be(stopped: bytes) -> None:
    state = decode_state("m", config(), stopped)
    of_now = {"config", "stored_deployed", "_together", "_learn", "_late_types", "_asks_endpoints", "doubt"}
    assert set(state.snapshot()) == {one.name for one in fields(ModelState)} - of_now
    assert set(RULES) == set(state.snapshot()) - {"model_id", "current"}


def test_what_has_been_counted_comes_back(stopped: bytes) -> None:
    state = decode_state("m", config(), stopped)
    state.counts.incidents["worse", "critical"] = 3
    state.counts.recoveries["forgotten"] = 5
    state.counts.versions["refused"] = 1
    state.current = replace(state.current, name="9", deployed=17)
    again = decode_state("m", config(), encode_state(state))
    assert again.counts == state.counts
    assert (again.version, again.current.deployed, again.stored_deployed) == ("9", 17, 17)


@pytest.mark.parametrize("pfi", [{"n_samples": 2}, {"reservoir": "uniform"}, {"reservoir_size": 7}, {"alpha": 0.5}])
def test_an_explainer_with_other_parameters_starts_afresh_and_the_rest_is_kept(
    stream: list[Observation], stopped: bytes, pfi: dict[str, Any]
) -> None:
    explainers = {**SETTINGS["explainers"], "pfi": {"n_samples": 1, **pfi}}
    state = decode_state("m", config(explainers=explainers), stopped)
    kept = decode_state("m", config(), stopped)

    assert state.explainers["pfi"].n_observations == 0
    assert state.publications["pfi"].snapshot()["_published"] is None
    assert state.explainers["sage"].importance == kept.explainers["sage"].importance
    assert state.change is not None
    assert state.change.n_observations == N // 2
    assert state.n_observations == N // 2
    assert state.model_loss.value == kept.model_loss.value
    x = stream[N // 2].x
    assert state.model.predict_proba_one(x) == kept.model.predict_proba_one(x)


@pytest.mark.parametrize("changed", [{"loss": "cross_entropy"}, {"groups": {"money": ["salary", "commission"]}}])
def test_a_parameter_of_all_explainers_restarts_all(stopped: bytes, changed: dict[str, Any]) -> None:
    state = decode_state("m", config(**changed), stopped)
    assert [explainer.n_observations for explainer in state.explainers.values()] == [0, 0]
    assert state.n_observations == N // 2
    if "loss" in changed:
        assert state.model_loss.value is state.baseline_loss.value is None, "in another unit"


@pytest.mark.parametrize("changed", [{"window": 61}, {"threshold": 0.5}, {"detector_params": {}}])
def test_change_explanation_with_other_parameters_starts_afresh(
    stream: list[Observation], stopped: bytes, changed: dict[str, Any]
) -> None:
    state = decode_state("m", config(change={**SETTINGS["change"], **changed}), stopped)
    assert state.change is not None
    assert (state.change.n_observations, state.change.reference_observation) == (0, None)
    assert state.explainers["pfi"].n_observations > 0


def incidents(state: ModelState, stream: list[Observation], begin: int) -> list[IncidentEvent]:
    found: list[IncidentEvent] = []
    for i, one in enumerate(stream[begin:], start=begin):
        found += [e for e in prequential(state, one, Source("topic", 0, i), i) if isinstance(e, IncidentEvent)]
    return found


def test_events_count_the_model_s_observations_after_change_explanation_began_anew(
    stream: list[Observation], stopped: bytes
) -> None:
    state = decode_state("m", config(change={**SETTINGS["change"], "threshold": 0.0, "window": 20}), stopped)
    found = incidents(state, stream, N // 2)
    assert {event.life for event in found} == {"suspected", "withdrawn"}, "the detector is eager"
    for event in found:
        assert isinstance(event.source, Source)
        assert N // 2 < event.observation == event.source.offset + 1
        assert N // 2 < event.since.observation == event.since.high == event.evidence[0].observation
        assert event.evidence[-1].observation == event.observation
        if event.life == "withdrawn":
            assert event.observation == event.since.observation + 20


def test_an_explanation_counts_the_model_s_observations_after_change_explanation_began_anew() -> None:
    change = {"window": 60, "threshold": 0.2, "detector_params": {"delta": 0.05}}
    before, after = (config_of(change={**change, "threshold": value}).models["m"] for value in (0.2, 0.3))
    turning, state = observations(600, flip_at=400), new_state("m", before)
    assert incidents(state, turning[:200], 0) == []
    state = decode_state("m", after, encode_state(state))
    assert state.change is not None
    assert state.change.n_observations == 0
    first, event = incidents(state, turning[:500], 200)
    told = event.explanation
    assert told is not None
    assert 400 < first.observation < 440
    assert event.since.observation == told["onset"]["observation"] == 401
    assert (told["observation"], told["detected_at"]) == (event.observation, first.observation)
    assert 200 < told["reference_at"] < 400


def test_a_suspicion_of_change_explanation_that_begins_anew_is_withdrawn() -> None:
    change = {"window": 60, "threshold": 0.2, "detector_params": {"delta": 0.05}}
    before, after = (config_of(change={**change, "threshold": value}).models["m"] for value in (0.2, 0.3))
    stream, state = observations(400, flip_at=300), new_state("m", before)
    (first,) = incidents(state, stream[:330], 0)
    last = incidents(decode_state("m", after, encode_state(state)), stream, 330)[0]
    assert (first.life, last.id, last.revision, last.life) == ("suspected", first.id, 2, "withdrawn")


def test_explainers_can_come_and_go(stream: list[Observation], stopped: bytes) -> None:
    without = decode_state("m", config(explainers={"pfi": {"n_samples": 1}}, change=None), stopped)
    assert list(without.explainers) == ["pfi"]
    assert without.change is None
    back = decode_state("m", config(), encode_state(without))
    assert back.explainers["sage"].n_observations == 0
    assert back.explainers["pfi"].n_observations > 0
    assert back.change is not None
    assert back.change.n_observations == 0
    run(back, stream, N // 2, N // 2 + 30)


@pytest.mark.parametrize("publish", [{"every": 7}, {"every": 1000, "min_observations": 1000}])
def test_publishing_follows_the_configuration_of_now(
    stream: list[Observation], stopped: bytes, publish: dict[str, Any]
) -> None:
    state = decode_state("m", config(publish={**publish, "material_shift": 1.0}), stopped)
    events = run(state, stream, N // 2, N // 2 + 30)
    assert sum(b'"interval"' in event for event in events) == (3 * 5 if publish["every"] == 7 else 0)


@pytest.mark.parametrize(
    "damage",
    [
        lambda blob: b"",
        lambda blob: blob[:3],
        lambda blob: b"ATS5" + blob[4:],
        lambda blob: b"junk",
        lambda blob: MAGIC,
        lambda blob: blob[: len(blob) // 2],
        lambda blob: blob[:-1],
        lambda blob: blob[:-100] + bytes([blob[-100] ^ 1]) + blob[-99:],
        lambda blob: blob[:-1] + bytes([blob[-1] ^ 1]),
    ],
    ids=["empty", "short", "other format", "junk", "magic alone", "half", "last byte", "flipped bit", "checksum"],
)
def test_damaged_bytes_are_refused_with_what_to_do(stopped: bytes, damage: Any) -> None:
    with pytest.raises(StateError) as caught:
        decode_state("m", config(), damage(stopped))
    if not isinstance(caught.value, DamagedStateError):  # which the partition tells of
        assert "Model m: " in str(caught.value)
        assert "attributary models reset m" in str(caught.value)


def test_a_state_of_another_river_is_refused_unless_the_user_wants_it(stopped: bytes) -> None:
    river = packed_with(stopped)["river"]
    minor = ".".join(river.split(".")[:2])
    other = stopped.replace(f'"river":"{river}"'.encode(), b'"river":"0.20.1"', 1)
    patched = stopped.replace(f'"river":"{river}"'.encode(), f'"river":"{minor}.999"'.encode(), 1)
    with pytest.raises(StateError, match=r"River 0\.20\.1, and here is River .*any_river: true.*models reset m"):
        decode_state("m", config(), other)
    for chosen, blob in ((config(any_river=True), other), (config(), patched)):
        assert decode_state("m", chosen, blob).n_observations == N // 2


def test_the_state_of_another_model_is_refused(stopped: bytes) -> None:
    with pytest.raises(StateError, match="not of this model"):
        decode_state("other", config(), stopped)


def test_a_model_whose_class_is_gone_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "attributary_test_moving.py").write_text(
        "from river.naive_bayes import GaussianNB\nclass Mine(GaussianNB):\n    pass\nmake = Mine\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    chosen = config(model=None, factory="attributary_test_moving:make")
    blob = encode_state(new_state("m", chosen))
    moving = importlib.import_module("attributary_test_moving")
    monkeypatch.delattr(moving, "Mine")
    monkeypatch.setattr(moving, "make", naive_bayes.GaussianNB)
    with pytest.raises(StateError, match=r"Mine.* Model m: .*that wrote it \(python .*river .*models reset m"):
        decode_state("m", chosen, blob)
    assert decode_state("m", chosen.model_copy(update={"version": "2"}), blob).n_observations == 0


def test_the_state_stays_small(stream: list[Observation]) -> None:
    state = new_state("m", config())
    run(state, stream, 0, N)
    assert len(encode_state(state)) < 300_000
